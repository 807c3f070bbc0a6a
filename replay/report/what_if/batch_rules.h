// Which dimensions of a module's arrays have one size for one reason: elementwise operations, products, loops and calls
// tie those of their operands to those of their results. replay/report/what_if/batch.cc follows the batch along them.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace hlo {

// Every dimension of every array, or of every leaf of a tuple, is a node: nodes of one group go together.
class BatchDimensions {
 public:
  // `of_one`: where a reshape has a dimension of one element on one side only, it goes with its neighbours, as a batch
  // of one in f32[1,9,4] → f32[9,4] is one of nine rows; else the nine are the nine.
  BatchDimensions(const Module& m, bool of_one);
  // The node of an instruction's first dimension; those of its leaves follow, depth first.
  uint32_t first(InstId i) const { return first_[i.value]; }
  uint32_t nodes_of(ShapeId shape) const;
  uint32_t group(uint32_t node) const;
  size_t nodes() const { return up_.size(); }

  // Neighbours that a reshape makes of other neighbours: their sizes multiply to the same.
  struct Reshaped {
    InstId inst;
    std::vector<uint32_t> operand, result;  // nodes
    Dims operand_sizes, result_sizes;
  };
  const std::vector<Reshaped>& reshaped() const { return reshaped_; }
  // A dimension that cannot have another size, and what for.
  struct Fixed {
    uint32_t node;
    InstId inst;
    const char* why;
  };
  const std::vector<Fixed>& fixed() const { return fixed_; }

 private:
  void unite(uint32_t a, uint32_t b);
  void same(InstId a, InstId b) { same(first(a), a, first(b), b); }
  void same(uint32_t a, InstId of_a, uint32_t b, InstId of_b);
  uint32_t node(InstId i, int64_t dim) const { return first(i) + static_cast<uint32_t>(dim); }
  void fix(InstId i, int64_t dim, InstId at, const char* why) { fixed_.push_back({node(i, dim), at, why}); }
  void fix_all(InstId i, const char* why);  // of operands and result
  void rules(InstId i);
  void call_rules(InstId i);
  void move_rules(InstId i);
  void slice_rules(InstId i);
  void reshape_rule(InstId i);
  void dot_rule(InstId i);
  void conv_rule(InstId i);
  void reduce_rule(InstId i);
  void window_rule(InstId i);
  void gather_rule(InstId i);
  void scatter_rule(InstId i);
  void norm_rule(InstId i);
  bool other_rules(InstId i);

  const Module& m_;
  bool of_one_;
  std::vector<uint32_t> first_;
  mutable std::vector<uint32_t> up_;
  mutable std::unordered_map<ShapeId, uint32_t> counts_;
  std::vector<Reshaped> reshaped_;
  std::vector<Fixed> fixed_;
};

}  // namespace hlo
