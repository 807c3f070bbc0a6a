// Element types of HLO: names, widths, kinds, and conversion of the narrow float formats.
#pragma once
#include <cstdint>
#include <string_view>

namespace hlo {

// name, bits, kind. Order is alphabetical within a kind; values are not stored anywhere outside one run.
#define HLO_ELEMENT_TYPES(X)                   \
  X(Pred, "pred", 1, kBool)                    \
  X(S1, "s1", 1, kSigned)                      \
  X(S2, "s2", 2, kSigned)                      \
  X(S4, "s4", 4, kSigned)                      \
  X(S8, "s8", 8, kSigned)                      \
  X(S16, "s16", 16, kSigned)                   \
  X(S32, "s32", 32, kSigned)                   \
  X(S64, "s64", 64, kSigned)                   \
  X(U1, "u1", 1, kUnsigned)                    \
  X(U2, "u2", 2, kUnsigned)                    \
  X(U4, "u4", 4, kUnsigned)                    \
  X(U8, "u8", 8, kUnsigned)                    \
  X(U16, "u16", 16, kUnsigned)                 \
  X(U32, "u32", 32, kUnsigned)                 \
  X(U64, "u64", 64, kUnsigned)                 \
  X(F4E2M1FN, "f4e2m1fn", 4, kFloat)           \
  X(F6E2M3FN, "f6e2m3fn", 6, kFloat)           \
  X(F6E3M2FN, "f6e3m2fn", 6, kFloat)           \
  X(F8E3M4, "f8e3m4", 8, kFloat)               \
  X(F8E4M3, "f8e4m3", 8, kFloat)               \
  X(F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, kFloat) \
  X(F8E4M3FN, "f8e4m3fn", 8, kFloat)           \
  X(F8E4M3FNUZ, "f8e4m3fnuz", 8, kFloat)       \
  X(F8E5M2, "f8e5m2", 8, kFloat)               \
  X(F8E5M2FNUZ, "f8e5m2fnuz", 8, kFloat)       \
  X(F8E8M0FNU, "f8e8m0fnu", 8, kFloat)         \
  X(BF16, "bf16", 16, kFloat)                  \
  X(F16, "f16", 16, kFloat)                    \
  X(F32, "f32", 32, kFloat)                    \
  X(F64, "f64", 64, kFloat)                    \
  X(C64, "c64", 64, kComplex)                  \
  X(C128, "c128", 128, kComplex)               \
  X(Token, "token", 0, kOther)                 \
  X(Opaque, "opaque", 0, kOther)               \
  X(Tuple, "tuple", 0, kOther)

enum class ElementType : uint8_t {
#define X(id, text, bits, kind) id,
  HLO_ELEMENT_TYPES(X)
#undef X
};
inline constexpr int kElementTypeCount = static_cast<int>(ElementType::Tuple) + 1;

enum class TypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kOther };

std::string_view type_name(ElementType type);
// The type of that lower-case name; false where there is none. `tuple` has no spelling.
bool type_from_name(std::string_view name, ElementType* type);
int type_bits(ElementType type);
TypeKind type_kind(ElementType type);
// Bytes of one element as literals and the evaluator store it: sub-byte elements take a whole byte.
int storage_bytes(ElementType type);

inline bool is_float(ElementType t) { return type_kind(t) == TypeKind::kFloat; }
inline bool is_signed_int(ElementType t) { return type_kind(t) == TypeKind::kSigned; }
inline bool is_unsigned_int(ElementType t) { return type_kind(t) == TypeKind::kUnsigned; }
inline bool is_integral(ElementType t) { return is_signed_int(t) || is_unsigned_int(t); }
inline bool is_complex(ElementType t) { return type_kind(t) == TypeKind::kComplex; }
inline bool is_array_type(ElementType t) { return type_kind(t) != TypeKind::kOther; }
inline bool is_narrow_float(ElementType t) { return is_float(t) && t != ElementType::F32 && t != ElementType::F64; }
// The float type of a complex number's parts.
inline ElementType component_type(ElementType t) {
  return t == ElementType::C64 ? ElementType::F32 : t == ElementType::C128 ? ElementType::F64 : t;
}

// The type that holds more of the two: complex before real, then by range, precision and width, signed before unsigned
// (xla/primitive_util.h, HigherPrecisionType).
ElementType higher_precision(ElementType a, ElementType b);

// A binary float format of at most 16 bits.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool has_inf;  // an all-ones exponent means inf/NaN as in IEEE
  bool has_nan;
  bool fnuz;  // no negative zero: its bits are the one NaN
  bool has_sign;
  int max_digits;  // digits that printing needs (max_digits10)
};
// The format of a narrow float type (16 bits and less), null for others.
const FloatFormat* float_format(ElementType type);
// Nearest-even rounding of a double to the format's bits, and back. Values over the largest finite one become inf where
// the format has one, NaN where it has that alone, else the largest finite value (f4, f6: saturating).
uint32_t encode_float(const FloatFormat& format, double value);
double decode_float(const FloatFormat& format, uint32_t bits);

inline float bf16_to_f32(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}
inline uint16_t f32_to_bf16(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
uint16_t f64_to_bf16(double value);  // one rounding, ties to even
uint16_t f64_to_f16(double value);

}  // namespace hlo
