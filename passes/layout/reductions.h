// Reductions as the GPU's kernels see them (xla/service/gpu/reduction_utils.cc).
#pragma once
#include <array>
#include <optional>

#include "ir/module.h"

namespace hlo {

struct TiledReduction {
  bool row = true;                          // what is reduced lies at the minor end
  std::array<int64_t, 3> dims = {1, 1, 1};  // row: {reduced, kept, reduced}; column: {kept, reduced, kept}; major first
};
// Of an input of which `gone` is reduced, where threads work on it together: rows or columns of neighbours in memory
// that are long enough. Nothing: a loop for each result.
std::optional<TiledReduction> tiled_reduction(const Module& m, InstId input, const Dims& gone);

// How far a kernel of one block for each result reduces: rows at their minor and their major end, and columns.
inline constexpr int64_t kMostRow = 16384, kMostRowBatch = 8, kMostColumn = 4096;

}  // namespace hlo
