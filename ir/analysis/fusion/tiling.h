// Tiles of a Triton kernel: which part of each value one block of the grid computes or reads, from the part of the
// result that it is to give (xla/codegen/tiling/symbolic_tile_analysis.cc, with the constraints of
// xla/service/gpu/model/triton_emitter_constraints.cc), for the operations that do without offsets of their own.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ir/analysis/fusion/fusion_view.h"
#include "ir/analysis/fusion/operand_dims.h"
#include "ir/target/gpu_target.h"

namespace hlo {

struct Tile {
  size_t rank = 0;
  std::array<int64_t, kMostTileRank> sizes{}, strides{};  // by dimension; behind the rank they are 0
  bool operator==(const Tile&) const = default;
};
// A value as one part of it is asked for.
template <class Part>
struct Asked {
  InstId inst;
  uint32_t node = 0;    // of the TiledFusion
  bool inside = false;  // computed here; else read
  Part part;
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
  // Does XLA see tiles in all of its values, whatever their sizes (tile_maps.h)?
  bool has_maps();
  // Each value once for each tile of it, the root first, until the next call; null where it cannot be cut so.
  const std::vector<Asked<Tile>>* cut(const Tile& root);

 private:
  struct Operand {
    uint32_t node;
    OperandDims dims;
  };
  struct Node {
    InstId inst;
    bool inside = false;
    std::vector<Operand> operands;
  };
  template <class Part, class Through>
  bool follow(const Part& root, std::vector<Asked<Part>>* out, const Through& through);

  const Module& m_;
  std::vector<Node> nodes_;
  bool small_ = true;  // all are arrays that have no more dimensions than a tile
  std::vector<Asked<Tile>> out_;
  std::vector<std::vector<uint32_t>> asked_;  // parts of each node
};

}  // namespace hlo
