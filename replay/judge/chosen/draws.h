// Values for leaves of expressions: some value, the same wherever it is asked for.
#pragma once
#include <span>

#include "replay/judge/chosen/expressions.h"

namespace hlo {

enum class Draw : uint8_t {
  kMixed,     // floats of both signs, up to 1; integers from 0 to 7
  kPositive,  // floats from a half to 3/2; unsigned integers of all bits
};

// Elements of `e`, `storage_bytes` of its type each, by seed, expression and index alone.
void draw_elements(const Expressions& all, ExprId e, std::span<const int64_t> indices, uint64_t seed, Draw how,
                   char* out);

// Row-major indices of an array of these dimensions, in order: the first and the last, and by chance, half of these at
// first and last places of dimensions. At most `count`; all where there are no more.
std::vector<int64_t> sampled_indices(const Dims& dims, size_t count, uint64_t seed);

}  // namespace hlo
