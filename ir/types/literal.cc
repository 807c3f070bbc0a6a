#include "ir/types/literal.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/base/check.h"

namespace hlo {
namespace {
template <class T>
T read(const void* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
void write(void* at, T v) {
  std::memcpy(at, &v, sizeof v);
}
uint32_t narrow_bits(ElementType type, const void* at) {
  return type_bits(type) == 16 ? read<uint16_t>(at) : read<uint8_t>(at);
}
int64_t sign_extend(int64_t v, int bits) {
  if (bits >= 64) return v;
  uint64_t shift = static_cast<uint64_t>(64 - bits);
  return static_cast<int64_t>(static_cast<uint64_t>(v) << shift) >> shift;
}
}  // namespace

int64_t load_int(ElementType type, const void* at) {
  switch (type) {
    case ElementType::Pred:
      return read<uint8_t>(at) != 0;
    case ElementType::S1:
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8:
      return read<int8_t>(at);
    case ElementType::S16:
      return read<int16_t>(at);
    case ElementType::S32:
      return read<int32_t>(at);
    case ElementType::S64:
    case ElementType::U64:
      return read<int64_t>(at);
    case ElementType::U1:
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8:
      return read<uint8_t>(at);
    case ElementType::U16:
      return read<uint16_t>(at);
    case ElementType::U32:
      return read<uint32_t>(at);
    default: {
      double v = load_double(type, at);
      if (std::isnan(v)) return 0;
      if (v >= 9223372036854775808.0) return INT64_MAX;
      if (v <= -9223372036854775808.0) return INT64_MIN;
      return static_cast<int64_t>(v);
    }
  }
}

double load_double(ElementType type, const void* at) {
  switch (type) {
    case ElementType::F32:
      return read<float>(at);
    case ElementType::F64:
      return read<double>(at);
    case ElementType::C64:
      return read<float>(at);
    case ElementType::C128:
      return read<double>(at);
    case ElementType::BF16:
      return bf16_to_f32(read<uint16_t>(at));
    case ElementType::F16:
      return f16_to_f32(read<uint16_t>(at));
    case ElementType::U64:
      return static_cast<double>(read<uint64_t>(at));
    default:
      break;
  }
  if (const FloatFormat* f = float_format(type)) return decode_float(*f, narrow_bits(type, at));
  return static_cast<double>(load_int(type, at));
}

std::complex<double> load_complex(ElementType type, const void* at) {
  if (type == ElementType::C64) return {read<float>(at), read<float>(static_cast<const char*>(at) + 4)};
  if (type == ElementType::C128) return {read<double>(at), read<double>(static_cast<const char*>(at) + 8)};
  return {load_double(type, at), 0};
}

void store_int(ElementType type, void* at, int64_t v) {
  switch (type) {
    case ElementType::Pred:
      write<uint8_t>(at, v != 0);
      return;
    case ElementType::S1:
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8:
      write<int8_t>(at, static_cast<int8_t>(sign_extend(v, type_bits(type))));
      return;
    case ElementType::U1:
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8:
      write<uint8_t>(at, static_cast<uint8_t>(static_cast<uint64_t>(v) & ((1u << type_bits(type)) - 1)));
      return;
    case ElementType::S16:
    case ElementType::U16:
      write(at, static_cast<uint16_t>(v));
      return;
    case ElementType::S32:
    case ElementType::U32:
      write(at, static_cast<uint32_t>(v));
      return;
    case ElementType::S64:
    case ElementType::U64:
      write(at, v);
      return;
    default:
      store_double(type, at, static_cast<double>(v));
  }
}

void store_scalar(ElementType type, void* at, ScalarValue value) {
  value.is_integer ? store_int(type, at, value.integer) : store_double(type, at, value.real);
}

void store_double(ElementType type, void* at, double v) {
  switch (type) {
    case ElementType::F32:
      write(at, static_cast<float>(v));
      return;
    case ElementType::F64:
      write(at, v);
      return;
    case ElementType::C64:
      write(at, static_cast<float>(v)), write(static_cast<char*>(at) + 4, 0.0f);
      return;
    case ElementType::C128:
      write(at, v), write(static_cast<char*>(at) + 8, 0.0);
      return;
    case ElementType::Pred:
      write<uint8_t>(at, v != 0);
      return;
    default:
      break;
  }
  if (const FloatFormat* f = float_format(type)) {
    uint32_t bits = encode_float(*f, v);
    if (type_bits(type) == 16)
      write(at, static_cast<uint16_t>(bits));
    else
      write(at, static_cast<uint8_t>(bits));
    return;
  }
  store_int(type, at,
            std::isnan(v)                 ? 0
            : v >= 9223372036854775808.0  ? INT64_MAX
            : v <= -9223372036854775808.0 ? INT64_MIN
                                          : static_cast<int64_t>(v));
}

void store_complex(ElementType type, void* at, std::complex<double> v) {
  if (type == ElementType::C64)
    write(at, static_cast<float>(v.real())), write(static_cast<char*>(at) + 4, static_cast<float>(v.imag()));
  else if (type == ElementType::C128)
    write(at, v.real()), write(static_cast<char*>(at) + 8, v.imag());
  else
    store_double(type, at, v.real());
}

namespace {
// The digits behind "nan": sign and a payload other than the quiet bit alone (xla/util.h, RoundTripNanPayload).
void append_nan(std::string& out, bool negative, uint64_t payload, uint64_t quiet) {
  if (negative) out += '-';
  out += "nan";
  if (payload != quiet) out += fmt::format("({:#x})", payload);
}

void append_float(std::string& out, ElementType type, const void* at) {
  if (type == ElementType::F32) {
    float v = read<float>(at);
    if (std::isnan(v)) {
      uint32_t bits = read<uint32_t>(at);
      return append_nan(out, bits >> 31, bits & 0x7fffff, 0x400000);
    }
    if (std::isinf(v)) return void(out += v < 0 ? "-inf" : "inf");
    char buffer[32];
    int n = snprintf(buffer, sizeof buffer, "%.6g", static_cast<double>(v));
    if (strtof(buffer, nullptr) != v) n = snprintf(buffer, sizeof buffer, "%.9g", static_cast<double>(v));
    out.append(buffer, static_cast<size_t>(n));
    return;
  }
  if (type == ElementType::F64) {
    double v = read<double>(at);
    if (std::isnan(v)) {
      uint64_t bits = read<uint64_t>(at);
      return append_nan(out, bits >> 63, bits & 0xfffffffffffffull, 0x8000000000000ull);
    }
    if (std::isinf(v)) return void(out += v < 0 ? "-inf" : "inf");
    char buffer[40];
    int n = snprintf(buffer, sizeof buffer, "%.15g", v);
    if (strtod(buffer, nullptr) != v) n = snprintf(buffer, sizeof buffer, "%.17g", v);
    out.append(buffer, static_cast<size_t>(n));
    return;
  }
  const FloatFormat* f = float_format(type);
  uint32_t bits = narrow_bits(type, at);
  double v = decode_float(*f, bits);
  if (std::isnan(v)) {
    uint64_t mask = (1ull << f->mantissa_bits) - 1;
    bool negative = f->has_sign && !f->fnuz && (bits >> (f->exponent_bits + f->mantissa_bits));
    // Formats whose NaN is one bit pattern have no payload to tell.
    if (!f->has_inf) return append_nan(out, f->fnuz ? true : negative, 0, 0);
    return append_nan(out, negative, bits & mask, 1ull << (f->mantissa_bits - 1));
  }
  if (std::isinf(v)) return void(out += v < 0 ? "-inf" : "inf");
  char buffer[32];
  int n = snprintf(buffer, sizeof buffer, "%.*g", f->max_digits, v);
  out.append(buffer, static_cast<size_t>(n));
}
}  // namespace

void append_element(std::string& out, ElementType type, const void* at) {
  switch (type_kind(type)) {
    case TypeKind::kBool:
      out += read<uint8_t>(at) ? "true" : "false";
      return;
    case TypeKind::kSigned:
      out += std::to_string(load_int(type, at));
      return;
    case TypeKind::kUnsigned:
      out += std::to_string(static_cast<uint64_t>(load_int(type, at)));
      return;
    case TypeKind::kFloat:
      append_float(out, type, at);
      return;
    case TypeKind::kComplex: {
      ElementType part = component_type(type);
      out += '(';
      append_float(out, part, at);
      out += ", ";
      append_float(out, part, static_cast<const char*>(at) + storage_bytes(part));
      out += ')';
      return;
    }
    case TypeKind::kOther:
      break;
  }
  HLO_CHECK(false, "element of type {}", type_name(type));
}

}  // namespace hlo
