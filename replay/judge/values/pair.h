// Two numbers side by side, which the processor takes at once: written out, for compilers do not find it.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace hlo {

using Pair = double __attribute__((vector_size(16)));
using PairBits = int64_t __attribute__((vector_size(16)));

inline Pair pair_at(const double* v) {
  Pair out;
  std::memcpy(&out, v, sizeof out);
  return out;
}

inline Pair magnitude(Pair x) {
  return std::bit_cast<Pair>(std::bit_cast<PairBits>(x) & std::numeric_limits<int64_t>::max());
}

}  // namespace hlo
