// What conversions between element types give (xla/hlo/evaluator/hlo_evaluator_typed_visitor.h, HandleConvert).
#include <cmath>
#include <cstring>

#include "ir/base/parallel.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

// Elements that one worker takes at a time.
constexpr int64_t kConvertedAtOnce = 1 << 15;

void convert_part(ElementType from, ElementType to, int64_t n, const char* in, char* out) {
  if (n == 0) return;  // arrays without elements may have no storage at all
  if (from == to) {
    if (n) std::memcpy(out, in, static_cast<size_t>(n) * static_cast<size_t>(storage_bytes(to)));
    return;
  }
  auto loop = [&](auto from_zero, auto to_zero, auto f) {
    using A = decltype(from_zero);
    using B = decltype(to_zero);
    const A* a = reinterpret_cast<const A*>(in);
    B* b = reinterpret_cast<B*>(out);
    for (int64_t i = 0; i < n; ++i) b[i] = f(a[i]);
  };
  if (from == ElementType::BF16 && to == ElementType::F32) return loop(uint16_t{}, float{}, bf16_to_f32);
  if (from == ElementType::F32 && to == ElementType::BF16) return loop(float{}, uint16_t{}, f32_to_bf16);
  if (from == ElementType::F16 && to == ElementType::F32) return loop(uint16_t{}, float{}, f16_to_f32);
  if (from == ElementType::F32 && to == ElementType::F16) return loop(float{}, uint16_t{}, f32_to_f16);
  if (from == ElementType::F32 && to == ElementType::F64)
    return loop(float{}, double{}, [](float v) { return static_cast<double>(v); });
  if (from == ElementType::F64 && to == ElementType::F32)
    return loop(double{}, float{}, [](double v) { return static_cast<float>(v); });
  if (from == ElementType::BF16 && to == ElementType::F64)
    return loop(uint16_t{}, double{}, [](uint16_t v) { return static_cast<double>(bf16_to_f32(v)); });
  if (from == ElementType::F16 && to == ElementType::F64)
    return loop(uint16_t{}, double{}, [](uint16_t v) { return static_cast<double>(f16_to_f32(v)); });
  if (from == ElementType::F64 && to == ElementType::BF16) return loop(double{}, uint16_t{}, f64_to_bf16);
  if (from == ElementType::F64 && to == ElementType::F16) return loop(double{}, uint16_t{}, f64_to_f16);
  if (from == ElementType::S32 && to == ElementType::F32)
    return loop(int32_t{}, float{}, [](int32_t v) { return static_cast<float>(v); });
  if (from == ElementType::Pred && to == ElementType::F32)
    return loop(uint8_t{}, float{}, [](uint8_t v) { return static_cast<float>(v != 0); });
  int wi = storage_bytes(from), wo = storage_bytes(to);
  bool from_int = is_integral(from) || from == ElementType::Pred;
  for (int64_t i = 0; i < n; ++i) {
    const char* a = in + i * wi;
    char* b = out + i * wo;
    if (is_complex(to)) {
      store_complex(to, b, load_complex(from, a));
    } else if (to == ElementType::Pred) {
      *b = from_int           ? load_int(from, a) != 0
           : is_complex(from) ? load_complex(from, a) != 0.0
                              : load_double(from, a) != 0;
    } else if (is_float(to)) {
      if (from == ElementType::U64)
        store_double(to, b, static_cast<double>(static_cast<uint64_t>(load_int(from, a))));
      else if (from_int && to == ElementType::F32)
        store_double(to, b, static_cast<float>(load_int(from, a)));
      else
        store_double(to, b, from_int ? static_cast<double>(load_int(from, a)) : load_double(from, a));
    } else if (from_int) {
      store_int(to, b, load_int(from, a));
    } else {
      // Float to integer: NaN is 0, values outside saturate.
      double v = load_double(from, a);
      int bits = type_bits(to);
      if (std::isnan(v)) {
        store_int(to, b, 0);
      } else if (is_signed_int(to)) {
        double limit = std::ldexp(1.0, bits - 1);
        int64_t r = v >= limit   ? (bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1)
                    : v < -limit ? (bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1)))
                                 : static_cast<int64_t>(v);
        store_int(to, b, r);
      } else {
        double limit = std::ldexp(1.0, bits);
        uint64_t r = v >= limit ? (bits == 64 ? UINT64_MAX : (1ull << bits) - 1)
                     : v <= 0   ? 0
                                : static_cast<uint64_t>(v);
        store_int(to, b, static_cast<int64_t>(r));
      }
    }
  }
}

}  // namespace

void convert_kernel(ElementType from, ElementType to, int64_t n, const char* in, char* out) {
  parallel_ranges(n, kConvertedAtOnce, [&](int64_t first, int64_t last) {
    convert_part(from, to, last - first, in + first * storage_bytes(from), out + first * storage_bytes(to));
  });
}

}  // namespace hlo
