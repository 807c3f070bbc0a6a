#include "ir/types/element_type.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

namespace hlo {
namespace {
struct Row {
  std::string_view name;
  int bits;
  TypeKind kind;
};
constexpr Row kRows[] = {
#define X(id, text, bits, kind) {text, bits, TypeKind::kind},
    HLO_ELEMENT_TYPES(X)
#undef X
};
}  // namespace

std::string_view type_name(ElementType type) { return kRows[static_cast<int>(type)].name; }
int type_bits(ElementType type) { return kRows[static_cast<int>(type)].bits; }
TypeKind type_kind(ElementType type) { return kRows[static_cast<int>(type)].kind; }
int storage_bytes(ElementType type) { return (type_bits(type) + 7) / 8; }

namespace {
constexpr int kTypes = static_cast<int>(ElementType::Tuple);
// Open addressing by ends and length of the name.
struct TypeTable {
  int8_t slots[128];
  static size_t start(std::string_view name) {
    return (static_cast<size_t>(name.front()) * 31 + static_cast<size_t>(name.back()) * 7 + name.size()) % 128;
  }
  TypeTable() {
    std::fill(std::begin(slots), std::end(slots), int8_t{-1});
    for (int i = 0; i < kTypes; ++i) {
      size_t at = start(kRows[i].name);
      while (slots[at] >= 0) at = (at + 1) % 128;
      slots[at] = static_cast<int8_t>(i);
    }
  }
};
}  // namespace

bool type_from_name(std::string_view name, ElementType* type) {
  static const TypeTable kTable;
  if (name.empty()) return false;
  for (size_t at = TypeTable::start(name); kTable.slots[at] >= 0; at = (at + 1) % 128) {
    if (kRows[kTable.slots[at]].name != name) continue;
    *type = static_cast<ElementType>(kTable.slots[at]);
    return true;
  }
  return false;
}

const FloatFormat* float_format(ElementType type) {
  static constexpr FloatFormat kF4{2, 1, 1, false, false, false, true, 2};
  static constexpr FloatFormat kF6E2M3{2, 3, 1, false, false, false, true, 3};
  static constexpr FloatFormat kF6E3M2{3, 2, 3, false, false, false, true, 2};
  static constexpr FloatFormat kE3M4{3, 4, 3, true, true, false, true, 3};
  static constexpr FloatFormat kE4M3{4, 3, 7, true, true, false, true, 3};
  static constexpr FloatFormat kE4M3B11{4, 3, 11, false, true, true, true, 3};
  static constexpr FloatFormat kE4M3FN{4, 3, 7, false, true, false, true, 3};
  static constexpr FloatFormat kE4M3FNUZ{4, 3, 8, false, true, true, true, 3};
  static constexpr FloatFormat kE5M2{5, 2, 15, true, true, false, true, 2};
  static constexpr FloatFormat kE5M2FNUZ{5, 2, 16, false, true, true, true, 2};
  static constexpr FloatFormat kE8M0{8, 0, 127, false, true, false, false, 2};
  static constexpr FloatFormat kBF16{8, 7, 127, true, true, false, true, 4};
  static constexpr FloatFormat kF16{5, 10, 15, true, true, false, true, 5};
  switch (type) {
    case ElementType::F4E2M1FN:
      return &kF4;
    case ElementType::F6E2M3FN:
      return &kF6E2M3;
    case ElementType::F6E3M2FN:
      return &kF6E3M2;
    case ElementType::F8E3M4:
      return &kE3M4;
    case ElementType::F8E4M3:
      return &kE4M3;
    case ElementType::F8E4M3B11FNUZ:
      return &kE4M3B11;
    case ElementType::F8E4M3FN:
      return &kE4M3FN;
    case ElementType::F8E4M3FNUZ:
      return &kE4M3FNUZ;
    case ElementType::F8E5M2:
      return &kE5M2;
    case ElementType::F8E5M2FNUZ:
      return &kE5M2FNUZ;
    case ElementType::F8E8M0FNU:
      return &kE8M0;
    case ElementType::BF16:
      return &kBF16;
    case ElementType::F16:
      return &kF16;
    default:
      return nullptr;
  }
}

namespace {
uint32_t sign_bit(const FloatFormat& f) { return f.has_sign ? 1u << (f.exponent_bits + f.mantissa_bits) : 0; }
uint32_t exponent_mask(const FloatFormat& f) { return ((1u << f.exponent_bits) - 1) << f.mantissa_bits; }

uint32_t nan_bits(const FloatFormat& f, bool negative) {
  if (!f.has_nan) return sign_bit(f);  // XLA converts NaN to negative zero where a format has no NaN
  if (f.fnuz) return sign_bit(f);
  uint32_t sign = negative ? sign_bit(f) : 0;
  if (f.has_inf) return sign | exponent_mask(f) | (1u << (f.mantissa_bits - 1));
  return sign | exponent_mask(f) | ((1u << f.mantissa_bits) - 1);
}

uint32_t largest_finite(const FloatFormat& f) {
  uint32_t all = exponent_mask(f) | ((1u << f.mantissa_bits) - 1);
  if (f.has_inf) return exponent_mask(f) - 1;
  if (f.has_nan && !f.fnuz) return all - 1;
  return all;
}
}  // namespace

uint32_t encode_float(const FloatFormat& f, double value) {
  bool negative = std::signbit(value);
  if (std::isnan(value)) return nan_bits(f, negative);
  if (!f.has_sign) {  // e8m0: powers of two only, no zero and no sign
    if (negative || value == 0) return nan_bits(f, false);
    if (std::isinf(value)) return nan_bits(f, false);
    int exponent;
    double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
    int biased = exponent - 1 + f.bias;
    if (fraction >= 0.75) ++biased;  // ties upwards
    if (biased < 0) biased = 0;
    return biased > 254 ? nan_bits(f, false) : static_cast<uint32_t>(biased);
  }
  uint32_t sign = negative ? sign_bit(f) : 0;
  double magnitude = std::fabs(value);
  uint32_t overflow = f.has_inf   ? sign | exponent_mask(f)
                      : f.has_nan ? nan_bits(f, negative)
                                  : sign | largest_finite(f);
  if (std::isinf(magnitude)) return overflow;
  if (magnitude == 0) return f.fnuz ? 0 : sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  int unbiased = std::max(exponent - 1, 1 - f.bias);
  double scaled = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - unbiased));  // ties to even
  auto mantissa = static_cast<uint64_t>(scaled);
  if (mantissa >> (f.mantissa_bits + 1)) {
    mantissa >>= 1;
    ++unbiased;
  }
  uint32_t bits;
  if (mantissa >> f.mantissa_bits)
    bits = (static_cast<uint32_t>(unbiased + f.bias) << f.mantissa_bits) |
           (static_cast<uint32_t>(mantissa) & ((1u << f.mantissa_bits) - 1));
  else
    bits = static_cast<uint32_t>(mantissa);
  if (bits > largest_finite(f)) return overflow;
  if (bits == 0 && f.fnuz) return 0;
  return sign | bits;
}

double decode_float(const FloatFormat& f, uint32_t bits) {
  if (!f.has_sign)
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(bits) - f.bias);
  bool negative = bits & sign_bit(f);
  uint32_t magnitude = bits & (sign_bit(f) - 1);
  double sign = negative ? -1.0 : 1.0;
  // The one NaN has the bits of a negative zero.
  if (f.fnuz && negative && magnitude == 0) return -std::numeric_limits<double>::quiet_NaN();
  if (f.has_inf && (magnitude & exponent_mask(f)) == exponent_mask(f))
    return magnitude == exponent_mask(f) ? sign * std::numeric_limits<double>::infinity()
                                         : std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (!f.has_inf && f.has_nan && !f.fnuz && magnitude > largest_finite(f))
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  double mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  double scale = std::ldexp(1.0, -f.mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(mantissa * scale, 1 - f.bias);
  return sign * std::ldexp(1.0 + mantissa * scale, exponent - f.bias);
}

float f16_to_f32(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t f32_to_f16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x3ff));
  if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00);  // rounds past 65504
  if (bits < 0x38800000u)                                                // subnormal: the adder rounds
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(0x3f000000u)) - 0x3f000000u));
  return static_cast<uint16_t>(sign | ((bits + 0xfff + ((bits >> 13) & 1) - 0x38000000u) >> 13));
}

namespace {
// Towards zero, with the last bit set where anything was lost: rounded once more, to two bits less or fewer, it is what
// the value itself would be rounded to.
float rounded_to_odd(double v) {
  if (std::isnan(v)) return std::copysign(std::numeric_limits<float>::quiet_NaN(), std::signbit(v) ? -1.0f : 1.0f);
  auto near = static_cast<float>(v);
  if (static_cast<double>(near) == v) return near;
  auto bits = std::bit_cast<uint32_t>(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(v)) --bits;
  return std::bit_cast<float>(bits | 1);
}
}  // namespace

uint16_t f64_to_bf16(double value) { return f32_to_bf16(rounded_to_odd(value)); }
uint16_t f64_to_f16(double value) { return f32_to_f16(rounded_to_odd(value)); }

ElementType higher_precision(ElementType a, ElementType b) {
  auto rank = [](ElementType t) {
    ElementType part = component_type(t);
    int range = -1, precision = -1;
    if (part == ElementType::F64) {
      range = 1024, precision = 53;
    } else if (part == ElementType::F32) {
      range = 128, precision = 24;
    } else if (const FloatFormat* f = float_format(part)) {
      // A largest exponent that says inf, or NaN alone, holds no number.
      const bool reserved = f->has_inf || (f->mantissa_bits == 0 && f->has_nan);
      range = (1 << f->exponent_bits) - f->bias - (reserved ? 1 : 0), precision = f->mantissa_bits + 1;
    }
    return std::tuple(is_complex(t), range, precision, type_bits(t), is_signed_int(t));
  };
  return rank(b) > rank(a) ? b : a;
}

}  // namespace hlo
