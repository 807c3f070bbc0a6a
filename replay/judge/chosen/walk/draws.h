// Values for leaves of expressions: some value, the same wherever it is asked for.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

enum class Draw : uint8_t {
  kMixed,     // floats of both signs, up to 1; integers from 0 to 7
  kPositive,  // floats from a half to 3/2; unsigned integers of all bits
  kNear,      // by turns at and about constants, on whose sides operations differ; then of many magnitudes
  kInside,    // parameters as kMixed, all else as kPositive
};

// Constants that values are compared with, clamped to, and the like.
struct DrawnNear {
  std::vector<int64_t> integers;  // each with its neighbours
  std::vector<double> reals;
  int64_t turn = 0;
  ExprId anew = kNoExpr;  // of all leaves this one alone has other values than the turn gives it
  int64_t turns() const;  // that show all of them, at most 24; 0: there is none
};

// Elements of `e`, `storage_bytes` of its type each, by seed, expression and index alone. `near`: of Draw::kNear.
void draw_elements(const Expressions& all, ExprId e, std::span<const int64_t> indices, uint64_t seed, Draw how,
                   const DrawnNear* near, char* out);

// Row-major indices of an array of these dimensions, in order: the first and the last, and by chance, half of these at
// first and last places of dimensions. At most `count`; all where there are no more.
std::vector<int64_t> sampled_indices(const Dims& dims, size_t count, uint64_t seed);

}  // namespace hlo
