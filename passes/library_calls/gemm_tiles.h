// Tiles that a Triton kernel of a product works in (xla/backends/gpu/autotuner/triton/dot_search_space.cc).
#pragma once
#include <optional>

#include "ir/module.h"
#include "ir/target/gpu_target.h"

namespace hlo {

struct GemmTiles {
  int64_t m = 0, n = 0, k = 0;  // elements: rows, columns, of the sum
  int64_t stages = 1, warps = 1;
};
// What XLA takes where no device measures: the first of its list for that generation of GPUs that suits the dot's
// sizes; nothing where there is no list here. `dot` is within a fusion, of arrays that have elements.
std::optional<GemmTiles> default_gemm_tiles(const Module& m, InstId dot, const GpuTarget& target);

// Tiles of the fusion's result with which its dot has the given ones: the first order of them, ascending, that does;
// nothing where none does (xla/backends/gpu/transforms/convert_triton_gemm_config.cc).
std::optional<Dims> root_tiles(const Module& m, InstId dot, const Dims& tiles);

}  // namespace hlo
