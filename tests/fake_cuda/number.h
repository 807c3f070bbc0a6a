// Numbers of the formats that the fake libraries take, by cudaDataType_t.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fake {

enum { kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14, kE4m3 = 28, kE5m2 = 29 };

inline size_t width(int type) {
  switch (type) {
    case kF64:
      return 8;
    case kF32:
      return 4;
    case kF16:
    case kBf16:
      return 2;
    case kE4m3:
    case kE5m2:
      return 1;
    default:
      return 0;
  }
}

struct Format {
  int exponent, mantissa;
  bool has_inf;
};
inline Format format(int type) {
  switch (type) {
    case kF16:
      return {5, 10, true};
    case kBf16:
      return {8, 7, true};
    case kE4m3:
      return {4, 3, false};
    default:
      return {5, 2, true};
  }
}

// To the ten bits of mantissa that tensor cores multiply of an f32.
inline double as_tf32(double v) {
  auto single = static_cast<float>(v);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, 4);
  if ((bits >> 23 & 255) != 255) bits = (bits + 0x1000) & ~0x1fffu;
  std::memcpy(&single, &bits, 4);
  return static_cast<double>(single);
}

inline double load(int type, const void* from, int64_t at) {
  const char* p = static_cast<const char*>(from) + static_cast<size_t>(at) * width(type);
  if (type == kF64) {
    double v;
    std::memcpy(&v, p, 8);
    return v;
  }
  if (type == kF32) {
    float v;
    std::memcpy(&v, p, 4);
    return static_cast<double>(v);
  }
  Format f = format(type);
  uint32_t bits = 0;
  std::memcpy(&bits, p, width(type));
  int sign = static_cast<int>(bits >> (f.exponent + f.mantissa) & 1), top = (1 << f.exponent) - 1,
      e = static_cast<int>(bits >> f.mantissa) & top, m = static_cast<int>(bits) & ((1 << f.mantissa) - 1),
      bias = top / 2;
  double v;
  if (e == top && f.has_inf)
    v = m ? NAN : INFINITY;
  else if (e == top && !f.has_inf && m == (1 << f.mantissa) - 1)
    v = NAN;
  else
    v = std::ldexp(m + (e ? 1 << f.mantissa : 0), (e ? e : 1) - bias - f.mantissa);
  return sign ? -v : v;
}

inline void store(int type, void* to, int64_t at, double v) {
  char* p = static_cast<char*>(to) + static_cast<size_t>(at) * width(type);
  if (type == kF64) {
    std::memcpy(p, &v, 8);
    return;
  }
  auto single = static_cast<float>(v);
  if (type == kF32) {
    std::memcpy(p, &single, 4);
    return;
  }
  Format f = format(type);
  int top = (1 << f.exponent) - 1, bias = top / 2;
  uint32_t sign = std::signbit(v) ? 1u : 0u, bits;
  double a = std::fabs(static_cast<double>(single));
  uint32_t infinity = static_cast<uint32_t>(top) << f.mantissa;
  uint32_t nan = f.has_inf ? infinity | 1u << (f.mantissa - 1) : infinity | ((1u << f.mantissa) - 1);
  uint32_t largest = f.has_inf ? infinity - 1 : nan - 1;
  if (std::isnan(a)) {
    bits = nan;
  } else {
    int e = a > 0 ? std::max(std::ilogb(a), 1 - bias) : 1 - bias;
    double steps = std::nearbyint(std::ldexp(a, f.mantissa - e));
    auto whole = static_cast<uint64_t>(std::min(steps, 1e9));
    uint64_t all = (static_cast<uint64_t>(e + bias - 1) << f.mantissa) + whole;
    // Eight bits are saturated, wider types overflow.
    bits = all > largest ? (width(type) == 1 ? largest : infinity) : static_cast<uint32_t>(all);
  }
  bits |= sign << (f.exponent + f.mantissa);
  std::memcpy(p, &bits, width(type));
}

}  // namespace fake
