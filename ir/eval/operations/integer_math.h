// Arithmetic of integers that wraps, and the order in which NaN has a place.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace hlo {

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

// Wrapping integer arithmetic in the unsigned twin.
template <class T>
T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}
template <class T>
T wrap_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  } else {
    return a - b;
  }
}
template <class T>
T wrap_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<uint64_t>(static_cast<U>(a)) * static_cast<uint64_t>(static_cast<U>(b)));
  } else {
    return a * b;
  }
}

template <class T>
T int_pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? T{1} : base == -1 ? static_cast<T>(exponent & 1 ? -1 : 1) : T{0};
  }
  T result = 1;
  auto e = static_cast<std::make_unsigned_t<T>>(exponent);
  for (; e; e = static_cast<decltype(e)>(e >> 1)) {
    if (e & 1) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
  }
  return result;
}

// Bits of a float so that integer order is the total order.
template <class T>
auto total_order(T v) {
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  I bits = std::bit_cast<I>(v);
  return bits < 0 ? static_cast<I>(std::numeric_limits<I>::max() ^ bits) : bits;
}

}  // namespace hlo
