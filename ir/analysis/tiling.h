// Tiles of a Triton kernel: which part of each value one block of the grid computes or reads, from the part of the
// result that it is to give (xla/codegen/tiling/symbolic_tile_analysis.cc, with the constraints of
// xla/service/gpu/model/triton_emitter_constraints.cc), for the operations that do without offsets of their own.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/fusion_view.h"

namespace hlo {

struct Tile {
  Dims sizes, strides;  // by dimension
  bool operator==(const Tile&) const = default;
};
struct TiledValue {
  InstId inst;
  Tile tile;
  bool inside;  // computed here; else read
};

// Why Triton does not take the instruction, in XLA's words; empty where it does
// (xla/backends/gpu/codegen/triton/support.cc).
std::string refuse_triton(const Module& m, InstId i);
// All values of the kernel, each once for each tile of it, the root first; nothing where it cannot be tiled so.
std::optional<std::vector<TiledValue>> tiled_values(const FusionView& view, const Dims& root_tile);
// Elements of a tile whose sizes are rounded up to powers of 2, as Triton has them.
int64_t padded_elements(const Dims& sizes);

}  // namespace hlo
