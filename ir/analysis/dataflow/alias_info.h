// Which results lie where an operand lies: must (xla/hlo/analysis/alias_info.h: what an operation updates in place) and
// may (xla/service/gpu/alias_info.h: what a kernel can write over while it reads it).
#pragma once
#include <unordered_map>
#include <vector>

#include "ir/analysis/dataflow/dataflow.h"
#include "ir/target/gpu_target.h"

namespace hlo {

// A part of an operand that a part of the result is made of in place, by node (ShapeNodes).
struct InPlacePair {
  uint32_t operand = 0, operand_node = 0, result_node = 0;
  InstId by;  // the update: the instruction itself, or of a fusion the one inside of it
};

// What is updated in place: each answer is kept, until forgotten.
class InPlaceUpdates {
 public:
  // `fusions`: those of fusions as well.
  explicit InPlaceUpdates(const Module& m, bool fusions = true) : m_(m), fusions_(fusions), nodes_(m.u()) {}
  const std::vector<InPlacePair>& of(InstId i) const;
  void forget(InstId i) { known_.erase(i); }

 private:
  std::vector<InPlacePair> pairs(InstId i) const;
  void aliasing_pairs(InstId i, std::vector<InPlacePair>* out) const;
  void fusion_pairs(InstId fusion, std::vector<InPlacePair>* out) const;

  const Module& m_;
  bool fusions_;
  mutable ShapeNodes nodes_;
  mutable std::unordered_map<InstId, std::vector<InPlacePair>> known_;
};

class AliasInfo {
 public:
  // `fusions`: kernels of fusions write over operands where XLA's do; else into memory of their own alone.
  AliasInfo(const Module& m, const GpuTarget& target, bool fusions = true)
      : m_(m), target_(target), fusions_(fusions), updates_(m, fusions), nodes_(m.u()) {}

  const std::vector<InPlacePair>& in_place(InstId i) const { return updates_.of(i); }
  // Can that part of what `user` makes lie where the use, one of its own, reads? Who else reads there is not asked.
  bool can_share(const Dataflow& flow, const ValueUse& use, InstId user, uint32_t node) const;

 private:
  bool fusion_can_share(InstId fusion, InstId operand, uint32_t node) const;
  bool plain_can_share(const Dataflow& flow, const ValueUse& use, InstId user, uint32_t node) const;
  size_t output_of(InstId i, uint32_t node) const;

  const Module& m_;
  GpuTarget target_;
  bool fusions_;
  InPlaceUpdates updates_;
  mutable ShapeNodes nodes_;
};

}  // namespace hlo
