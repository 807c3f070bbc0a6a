// Tiles of a Triton kernel: which part of each value one block of the grid computes or reads, from the part of the
// result that it is to give (xla/codegen/tiling/symbolic_tile_analysis.cc, with the constraints of
// xla/service/gpu/model/triton_emitter_constraints.cc), for the operations that do without offsets of their own.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ir/analysis/fusion_view.h"
#include "ir/analysis/gpu_target.h"

namespace hlo {

inline constexpr size_t kMostTileRank = 8;

struct Tile {
  size_t rank = 0;
  std::array<int64_t, kMostTileRank> sizes{}, strides{};  // by dimension; behind the rank they are 0
  uint32_t summed =
      0;  // bits of the dimensions that a reduction goes all along, which are no part of the result's tile
  bool operator==(const Tile& t) const { return rank == t.rank && sizes == t.sizes && strides == t.strides; }
};
struct TiledValue {
  InstId inst;
  Tile tile;
  bool inside = false;  // computed here; else read
};

// Why Triton does not take the instruction on that card, in XLA's words; empty where it does (triton_support.cc).
std::string refuse_triton(const Module& m, InstId i, const GpuTarget& target);
// Can it be cut into tiles of one element of its result, which every other tile is made of?
bool can_be_cut(const FusionView& view);
// Elements of a tile whose sizes are rounded up to powers of 2, as Triton has them; 2^31 stands for all above it.
int64_t padded_elements(const Tile& t);

// The values of a kernel of one result, looked at once for all the ways to cut it.
class TiledFusion {
 public:
  explicit TiledFusion(const FusionView& view);
  // Each value once for each tile of it, the root first, until the next call; null where it cannot be cut so.
  const std::vector<TiledValue>* cut(const Tile& root);

 private:
  struct Node {
    InstId inst;
    bool inside = false;
    std::vector<uint32_t> operands;
  };
  const Module& m_;
  std::vector<Node> nodes_;
  bool small_ = true;  // no value has more dimensions than a tile
  std::vector<TiledValue> out_;
  std::vector<uint32_t> node_of_;             // of each value
  std::vector<std::vector<uint32_t>> tiled_;  // values of each node
};

}  // namespace hlo
