// Grids of kernels by what they do, and tiles of packed transposes (xla/backends/gpu/codegen/emitters).
#pragma once
#include <optional>

#include "ir/analysis/fusion/fusion_analysis.h"

namespace hlo {

Grid launch_grid(const FusionView& view, const FusionAnalysis& analysis, const GpuTarget& target);

// Tile sizes by dimension of a normalized transpose of elements narrower than a bank of shared memory; nothing where it
// does not go that way.
std::optional<Dims> packed_tiles(const Dims& dims, const Dims& permutation, int64_t bits);

}  // namespace hlo
