// What one element of each elementwise operation means (xla/hlo/evaluator/hlo_evaluator_typed_visitor.h).
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ir/base/parallel.h"
#include "ir/eval/kernels.h"
#include "ir/eval/operations/integer_math.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

template <class T, class F>
void unary(const EwArgs& e, F f) {
  const T* a = reinterpret_cast<const T*>(e.a);
  using R = decltype(f(a[0]));
  R* out = reinterpret_cast<R*>(e.result);
  for (int64_t i = 0; i < e.n; ++i) out[i] = f(a[i]);
}
template <class T, class F>
void binary(const EwArgs& e, F f) {
  const T* a = reinterpret_cast<const T*>(e.a);
  const T* b = reinterpret_cast<const T*>(e.b);
  using R = decltype(f(a[0], b[0]));
  R* out = reinterpret_cast<R*>(e.result);
  if (e.b_scalar) {
    T s = *b;
    for (int64_t i = 0; i < e.n; ++i) out[i] = f(a[e.a_scalar ? 0 : i], s);
  } else if (e.a_scalar) {
    T s = *a;
    for (int64_t i = 0; i < e.n; ++i) out[i] = f(s, b[i]);
  } else {
    for (int64_t i = 0; i < e.n; ++i) out[i] = f(a[i], b[i]);
  }
}

template <class T>
bool compare(const EwArgs& e) {
  auto with = [&](auto key) {
    auto run = [&](auto test) {
      binary<T>(e, [&](T x, T y) { return static_cast<uint8_t>(test(key(x), key(y))); });
      return true;
    };
    if (e.direction == "EQ") return run([](auto x, auto y) { return x == y; });
    if (e.direction == "NE") return run([](auto x, auto y) { return x != y; });
    if constexpr (!kIsComplex<T>) {
      if (e.direction == "LT") return run([](auto x, auto y) { return x < y; });
      if (e.direction == "LE") return run([](auto x, auto y) { return x <= y; });
      if (e.direction == "GT") return run([](auto x, auto y) { return x > y; });
      if (e.direction == "GE") return run([](auto x, auto y) { return x >= y; });
    }
    return false;
  };
  if constexpr (std::is_floating_point_v<T>) {
    if (e.compare_type == "TOTALORDER") return with([](T v) { return total_order(v); });
  }
  return with([](T v) { return v; });
}

template <class T>
bool any_type(const EwArgs& e) {
  switch (e.op) {
    case Opcode::Add:
      return binary<T>(e, [](T x, T y) { return wrap_add(x, y); }), true;
    case Opcode::Subtract:
      return binary<T>(e, [](T x, T y) { return wrap_sub(x, y); }), true;
    case Opcode::Multiply:
      return binary<T>(e, [](T x, T y) { return wrap_mul(x, y); }), true;
    case Opcode::Negate:
      return unary<T>(e, [](T x) { return wrap_sub(T{}, x); }), true;
    case Opcode::Compare:
      return compare<T>(e);
    default:
      return false;
  }
}

template <class T>
bool integer(const EwArgs& e) {
  constexpr int kBits = 8 * sizeof(T);
  using U = std::make_unsigned_t<T>;
  switch (e.op) {
    case Opcode::Divide:
      return binary<T>(e,
                       [](T x, T y) -> T {
                         if (y == 0) return static_cast<T>(-1);
                         if constexpr (std::is_signed_v<T>)
                           if (x == std::numeric_limits<T>::min() && y == -1) return x;
                         return static_cast<T>(x / y);
                       }),
             true;
    case Opcode::Remainder:
      return binary<T>(e,
                       [](T x, T y) -> T {
                         if (y == 0) return x;
                         if constexpr (std::is_signed_v<T>)
                           if (y == -1) return 0;
                         return static_cast<T>(x % y);
                       }),
             true;
    case Opcode::Maximum:
      return binary<T>(e, [](T x, T y) { return x < y ? y : x; }), true;
    case Opcode::Minimum:
      return binary<T>(e, [](T x, T y) { return y < x ? y : x; }), true;
    case Opcode::Power:
      return binary<T>(e, [](T x, T y) { return int_pow(x, y); }), true;
    case Opcode::And:
      return binary<T>(e, [](T x, T y) { return static_cast<T>(x & y); }), true;
    case Opcode::Or:
      return binary<T>(e, [](T x, T y) { return static_cast<T>(x | y); }), true;
    case Opcode::Xor:
      return binary<T>(e, [](T x, T y) { return static_cast<T>(x ^ y); }), true;
    case Opcode::Not:
      return unary<T>(e, [](T x) { return static_cast<T>(~x); }), true;
    case Opcode::ShiftLeft:
      return binary<T>(e,
                       [](T x, T y) {
                         return static_cast<U>(y) >= kBits ? T{0}
                                                           : static_cast<T>(static_cast<U>(x) << static_cast<U>(y));
                       }),
             true;
    case Opcode::ShiftRightLogical:
      return binary<T>(e,
                       [](T x, T y) {
                         return static_cast<U>(y) >= kBits ? T{0}
                                                           : static_cast<T>(static_cast<U>(x) >> static_cast<U>(y));
                       }),
             true;
    case Opcode::ShiftRightArithmetic:
      return binary<T>(e,
                       [](T x, T y) {
                         using S = std::make_signed_t<T>;
                         S v = static_cast<S>(x);
                         return static_cast<T>(static_cast<U>(y) >= kBits ? (v < 0 ? S{-1} : S{0})
                                                                          : static_cast<S>(v >> static_cast<U>(y)));
                       }),
             true;
    case Opcode::Abs:
      return unary<T>(e, [](T x) -> T { return std::is_signed_v<T> && x < T{0} ? wrap_sub(T{0}, x) : x; }), true;
    case Opcode::Sign:
      return unary<T>(e, [](T x) { return static_cast<T>((x > T{0}) - (x < T{0})); }), true;
    case Opcode::Popcnt:
      return unary<T>(e, [](T x) { return static_cast<T>(std::popcount(static_cast<U>(x))); }), true;
    case Opcode::CountLeadingZeros:
      return unary<T>(e, [](T x) { return static_cast<T>(std::countl_zero(static_cast<U>(x))); }), true;
    case Opcode::Mulhi:
      return binary<T>(e,
                       [](T x, T y) {
                         if constexpr (std::is_signed_v<T>)
                           return static_cast<T>((static_cast<__int128>(x) * y) >> kBits);
                         else
                           return static_cast<T>((static_cast<unsigned __int128>(x) * y) >> kBits);
                       }),
             true;
    default:
      return any_type<T>(e);
  }
}

template <class T>
T reduced_precision(T v, int exponent_bits, int mantissa_bits) {
  // xla's EmitReducePrecision on the bits of an f32/f64.
  using B = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1,
                kExponent = static_cast<int>(8 * sizeof(T)) - 1 - kMantissa;
  if (std::isnan(v)) return v;
  B bits = std::bit_cast<B>(v);
  if (mantissa_bits < kMantissa) {
    B last = B{1} << (kMantissa - mantissa_bits);
    B bias = (last >> 1) - 1, keep = (bits & last) ? B{1} : B{0};
    bits = (bits + bias + keep) & ~(last - 1);
  }
  if (exponent_bits < kExponent) {
    B sign = bits & (B{1} << (8 * sizeof(T) - 1));
    B exponent = bits & (((B{1} << kExponent) - 1) << kMantissa);
    B bias = (B{1} << (kExponent - 1)) - 1, reduced = (B{1} << (exponent_bits - 1)) - 1;
    B largest = (bias + reduced) << kMantissa, smallest = (bias - reduced) << kMantissa;
    if (exponent > largest)
      bits = sign | (((B{1} << kExponent) - 1) << kMantissa);
    else if (exponent <= smallest)
      bits = sign;
  }
  return std::bit_cast<T>(bits);
}

template <class T>
bool transcendental(const EwArgs& e) {
  switch (e.op) {
    case Opcode::Exp:
      return unary<T>(e, [](T x) { return std::exp(x); }), true;
    case Opcode::Expm1:
      return unary<T>(e, [](T x) { return std::expm1(x); }), true;
    case Opcode::Log:
      return unary<T>(e, [](T x) { return std::log(x); }), true;
    case Opcode::Log1p:
      return unary<T>(e, [](T x) { return std::log1p(x); }), true;
    case Opcode::Logistic:
      return unary<T>(e, [](T x) { return T{1} / (T{1} + std::exp(-x)); }), true;
    case Opcode::Sqrt:
      return unary<T>(e, [](T x) { return std::sqrt(x); }), true;
    case Opcode::Rsqrt:
      return unary<T>(e, [](T x) { return T{1} / std::sqrt(x); }), true;
    case Opcode::Cbrt:
      return unary<T>(e, [](T x) { return std::cbrt(x); }), true;
    case Opcode::Sine:
      return unary<T>(e, [](T x) { return std::sin(x); }), true;
    case Opcode::Cosine:
      return unary<T>(e, [](T x) { return std::cos(x); }), true;
    case Opcode::Tan:
      return unary<T>(e, [](T x) { return std::tan(x); }), true;
    case Opcode::Tanh:
      return unary<T>(e, [](T x) { return std::tanh(x); }), true;
    case Opcode::Sinh:
      return unary<T>(e, [](T x) { return std::sinh(x); }), true;
    case Opcode::Cosh:
      return unary<T>(e, [](T x) { return std::cosh(x); }), true;
    case Opcode::Asin:
      return unary<T>(e, [](T x) { return std::asin(x); }), true;
    case Opcode::Acos:
      return unary<T>(e, [](T x) { return std::acos(x); }), true;
    case Opcode::Asinh:
      return unary<T>(e, [](T x) { return std::asinh(x); }), true;
    case Opcode::Acosh:
      return unary<T>(e, [](T x) { return std::acosh(x); }), true;
    case Opcode::Atanh:
      return unary<T>(e, [](T x) { return std::atanh(x); }), true;
    case Opcode::Erf:
      return unary<T>(e, [](T x) { return std::erf(x); }), true;
    default:
      return any_type<T>(e);
  }
}

template <class T>
bool floating(const EwArgs& e) {
  switch (e.op) {
    case Opcode::Divide:
      return binary<T>(e, [](T x, T y) { return x / y; }), true;
    case Opcode::Remainder:
      return binary<T>(e, [](T x, T y) { return std::fmod(x, y); }), true;
    case Opcode::Maximum:
      return binary<T>(e,
                       [](T x, T y) {
                         return std::isnan(x)      ? x
                                : std::isnan(y)    ? y
                                : x == y && x == 0 ? (std::signbit(x) ? y : x)
                                : x < y            ? y
                                                   : x;
                       }),
             true;
    case Opcode::Minimum:
      return binary<T>(e,
                       [](T x, T y) {
                         return std::isnan(x)      ? x
                                : std::isnan(y)    ? y
                                : x == y && x == 0 ? (std::signbit(x) ? x : y)
                                : y < x            ? y
                                                   : x;
                       }),
             true;
    case Opcode::Power:
      return binary<T>(e, [](T x, T y) { return std::pow(x, y); }), true;
    case Opcode::Atan2:
      return binary<T>(e, [](T x, T y) { return std::atan2(x, y); }), true;
    case Opcode::Abs:
      return unary<T>(e, [](T x) { return std::fabs(x); }), true;
    case Opcode::Negate:
      return unary<T>(e, [](T x) { return -x; }), true;
    case Opcode::Sign:
      return unary<T>(e, [](T x) { return std::isnan(x) || x == 0 ? x : std::copysign(T{1}, x); }), true;
    case Opcode::Ceil:
      return unary<T>(e, [](T x) { return std::ceil(x); }), true;
    case Opcode::Floor:
      return unary<T>(e, [](T x) { return std::floor(x); }), true;
    case Opcode::RoundNearestAfz:
      return unary<T>(e, [](T x) { return std::round(x); }), true;
    case Opcode::RoundNearestEven:
      return unary<T>(e, [](T x) { return std::nearbyint(x); }), true;
    case Opcode::Real:
      return unary<T>(e, [](T x) { return x; }), true;
    case Opcode::Imag:
      return unary<T>(e, [](T) { return T{0}; }), true;
    case Opcode::IsFinite:
      return unary<T>(e, [](T x) { return static_cast<uint8_t>(std::isfinite(x)); }), true;
    case Opcode::ReducePrecision:
      return unary<T>(e, [&](T x) { return reduced_precision(x, e.exponent_bits, e.mantissa_bits); }), true;
    case Opcode::Complex:
      return binary<T>(e, [](T x, T y) { return std::complex<T>(x, y); }), true;
    default:
      return transcendental<T>(e);
  }
}

template <class T>
bool complex_type(const EwArgs& e) {
  using C = std::complex<T>;
  switch (e.op) {
    case Opcode::Divide:
      return binary<C>(e, [](C x, C y) { return x / y; }), true;
    case Opcode::Atan2:
      // -i log((x + iy) / sqrt(x² + y²))
      return binary<C>(e,
                       [](C y, C x) {
                         C z = std::log((x + C(0, 1) * y) / std::sqrt(x * x + y * y));
                         return C(z.imag(), -z.real());
                       }),
             true;
    case Opcode::Power:
      return binary<C>(e, [](C x, C y) { return x == C(0) && y == C(0) ? C(1) : std::pow(x, y); }), true;
    case Opcode::Abs:
      return unary<C>(e, [](C x) { return std::abs(x); }), true;
    case Opcode::Negate:
      return unary<C>(e, [](C x) { return -x; }), true;
    case Opcode::Sign:
      return unary<C>(e,
                      [](C x) {
                        T a = std::abs(x);
                        return a == 0 ? C(0) : x / a;
                      }),
             true;
    case Opcode::Exp:
      return unary<C>(e, [](C x) { return std::exp(x); }), true;
    case Opcode::Expm1:
      return unary<C>(e,
                      [](C x) {
                        // e^x cos y - 1 without taking what is nearly one from one.
                        T half = std::sin(x.imag() / 2);
                        return C(std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half,
                                 std::exp(x.real()) * std::sin(x.imag()));
                      }),
             true;
    case Opcode::Log:
      return unary<C>(e, [](C x) { return std::log(x); }), true;
    case Opcode::Log1p:
      return unary<C>(e,
                      [](C x) {
                        C log = std::log(x + C(1));
                        if (std::fabs(x.real()) >= T(0.5) || std::fabs(x.imag()) >= T(0.5)) return log;
                        // The square of the size exceeds one by x (2 + x) + y².
                        T excess = x.real() * (2 + x.real()) + x.imag() * x.imag();
                        return C(std::log1p(excess) / 2, log.imag());
                      }),
             true;
    case Opcode::Logistic:
      return unary<C>(e, [](C x) { return C(1) / (C(1) + std::exp(-x)); }), true;
    case Opcode::Sqrt:
      return unary<C>(e, [](C x) { return std::sqrt(x); }), true;
    case Opcode::Rsqrt:
      return unary<C>(e, [](C x) { return C(1) / std::sqrt(x); }), true;
    case Opcode::Sine:
      return unary<C>(e, [](C x) { return std::sin(x); }), true;
    case Opcode::Cosine:
      return unary<C>(e, [](C x) { return std::cos(x); }), true;
    case Opcode::Tan:
      return unary<C>(e, [](C x) { return std::tan(x); }), true;
    case Opcode::Tanh:
      return unary<C>(e, [](C x) { return std::tanh(x); }), true;
    case Opcode::Real:
      return unary<C>(e, [](C x) { return x.real(); }), true;
    case Opcode::Imag:
      return unary<C>(e, [](C x) { return x.imag(); }), true;
    default:
      return any_type<C>(e);
  }
}

bool predicate(const EwArgs& e) {
  using T = uint8_t;
  switch (e.op) {
    case Opcode::Add:
    case Opcode::Or:
    case Opcode::Maximum:
      return binary<T>(e, [](T x, T y) { return static_cast<T>(x | y); }), true;
    case Opcode::Multiply:
    case Opcode::And:
    case Opcode::Minimum:
      return binary<T>(e, [](T x, T y) { return static_cast<T>(x & y); }), true;
    case Opcode::Xor:
    case Opcode::Subtract:
      return binary<T>(e, [](T x, T y) { return static_cast<T>(x ^ y); }), true;
    case Opcode::Not:
      return unary<T>(e, [](T x) { return static_cast<T>(!x); }), true;
    case Opcode::Compare:
      return compare<T>(e);
    default:
      return false;
  }
}

void select_kernel(const EwArgs& e) {
  size_t width = static_cast<size_t>(storage_bytes(e.out));
  auto run = [&](auto zero) {
    using T = decltype(zero);
    const T *b = reinterpret_cast<const T*>(e.b), *c = reinterpret_cast<const T*>(e.c);
    T* out = reinterpret_cast<T*>(e.result);
    for (int64_t i = 0; i < e.n; ++i) out[i] = e.a[e.a_scalar ? 0 : i] ? b[e.b_scalar ? 0 : i] : c[e.c_scalar ? 0 : i];
  };
  if (width == 1)
    run(uint8_t{});
  else if (width == 2)
    run(uint16_t{});
  else if (width == 4)
    run(uint32_t{});
  else if (width == 8)
    run(uint64_t{});
  else
    run(std::complex<double>{});
}

// Widens one operand to f32 when its type is a narrow float.
struct Widened {
  std::vector<float> storage;
  const char* data = nullptr;
  Widened(ElementType type, const char* in, int64_t n) {
    if (!in) return;
    storage.resize(static_cast<size_t>(n));
    convert_kernel(type, ElementType::F32, n, in, reinterpret_cast<char*>(storage.data()));
    data = reinterpret_cast<const char*>(storage.data());
  }
};

// Elements that one worker takes at a time: what it needs beside stays in its cache.
constexpr int64_t kGrain = 1 << 15;

// Sub-byte integers lie in bytes with their sign; shifts and counts want the bits as if they were of the other kind.
bool sub_byte_bits(const EwArgs& e) {
  return type_bits(e.in) < 8 && e.in != ElementType::Pred && is_integral(e.in) &&
         (e.op == Opcode::Popcnt || e.op == Opcode::CountLeadingZeros || e.op == Opcode::ShiftRightLogical ||
          e.op == Opcode::ShiftRightArithmetic);
}

void sub_byte_kernel(const EwArgs& e) {
  int bits = type_bits(e.in), mask = (1 << bits) - 1;
  for (int64_t i = 0; i < e.n; ++i) {
    int v = e.a[e.a_scalar ? 0 : i] & mask, by = e.b ? e.b[e.b_scalar ? 0 : i] & mask : 0, r = 0;
    if (e.op == Opcode::Popcnt)
      r = std::popcount(static_cast<unsigned>(v));
    else if (e.op == Opcode::CountLeadingZeros)
      r = std::countl_zero(static_cast<uint32_t>(v)) - (32 - bits);
    else if (e.op == Opcode::ShiftRightLogical)
      r = by >= bits ? 0 : v >> by;
    else
      r = (v >> (bits - 1) ? v - (1 << bits) : v) >> std::min(by, bits - 1);
    store_int(e.out, e.result + i, r);
  }
}

bool kernel_part(const EwArgs& e);

bool clamp_kernel(const EwArgs& e) {
  // max(lower, value) bounded by upper; NaN of the value stays.
  size_t bytes = static_cast<size_t>(e.n) * static_cast<size_t>(storage_bytes(e.out));
  std::vector<char> low(bytes);
  EwArgs lower = e;
  lower.op = Opcode::Maximum;
  lower.a = e.b, lower.a_scalar = false;
  lower.b = e.a, lower.b_scalar = e.a_scalar;
  lower.result = low.data();
  if (!kernel_part(lower)) return false;
  EwArgs upper = lower;
  upper.op = Opcode::Minimum;
  upper.a = low.data();
  upper.b = e.c, upper.b_scalar = e.c_scalar;
  upper.result = e.result;
  return kernel_part(upper);
}

bool widened_kernel(const EwArgs& e) {
  Widened a(e.in, e.a, e.a_scalar ? 1 : e.n), b(e.in, e.b, e.b_scalar ? 1 : e.n);
  EwArgs wide = e;
  wide.in = ElementType::F32;
  wide.a = a.data, wide.b = b.data;
  if (e.out != e.in) return kernel_part(wide);  // compare, is-finite
  std::vector<float> result(static_cast<size_t>(e.n));
  wide.out = ElementType::F32;
  wide.result = reinterpret_cast<char*>(result.data());
  if (!kernel_part(wide)) return false;
  convert_kernel(ElementType::F32, e.out, e.n, wide.result, e.result);
  return true;
}

bool typed_kernel(const EwArgs& e) {
  bool done = false;
  switch (e.in) {
    case ElementType::Pred:
      return predicate(e);
    case ElementType::S1:
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8:
      done = integer<int8_t>(e);
      break;
    case ElementType::S16:
      done = integer<int16_t>(e);
      break;
    case ElementType::S32:
      done = integer<int32_t>(e);
      break;
    case ElementType::S64:
      done = integer<int64_t>(e);
      break;
    case ElementType::U1:
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8:
      done = integer<uint8_t>(e);
      break;
    case ElementType::U16:
      done = integer<uint16_t>(e);
      break;
    case ElementType::U32:
      done = integer<uint32_t>(e);
      break;
    case ElementType::U64:
      done = integer<uint64_t>(e);
      break;
    case ElementType::F32:
      return floating<float>(e);
    case ElementType::F64:
      return floating<double>(e);
    case ElementType::C64:
      return complex_type<float>(e);
    case ElementType::C128:
      return complex_type<double>(e);
    default:
      return false;
  }
  // Sub-byte integers live in bytes: cut what went over.
  if (done && type_bits(e.in) < 8 && e.out == e.in) {
    for (int64_t i = 0; i < e.n; ++i) store_int(e.out, e.result + i, static_cast<int8_t>(e.result[i]));
  }
  return done;
}

bool kernel_part(const EwArgs& e) {
  if (e.n == 0) return true;
  if (sub_byte_bits(e)) {
    sub_byte_kernel(e);
    return true;
  }
  if (e.op == Opcode::Copy) {
    if (e.n) std::memcpy(e.result, e.a, static_cast<size_t>(e.n) * static_cast<size_t>(storage_bytes(e.out)));
    return true;
  }
  if (e.op == Opcode::Convert) {
    convert_kernel(e.in, e.out, e.n, e.a, e.result);
    return true;
  }
  if (e.op == Opcode::Select) {
    select_kernel(e);
    return true;
  }
  if (e.op == Opcode::Clamp) return clamp_kernel(e);
  if (float_format(e.in) && e.in != ElementType::F32) return widened_kernel(e);
  return typed_kernel(e);
}

}  // namespace

bool elementwise_kernel(const EwArgs& e) {
  if (e.n <= kGrain) return kernel_part(e);
  int64_t typed = storage_bytes(e.in), first = e.op == Opcode::Select ? 1 : typed,
          rest = e.op == Opcode::Select ? storage_bytes(e.out) : typed, out = storage_bytes(e.out);
  std::atomic<bool> ok = true;
  parallel_ranges(e.n, kGrain, [&](int64_t from, int64_t to) {
    EwArgs part = e;
    part.n = to - from;
    if (part.a && !part.a_scalar) part.a += from * first;
    if (part.b && !part.b_scalar) part.b += from * rest;
    if (part.c && !part.c_scalar) part.c += from * rest;
    part.result += from * out;
    if (!kernel_part(part)) ok = false;
  });
  return ok;
}

}  // namespace hlo
