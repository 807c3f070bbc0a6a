// What XLA's GPU fusions allow (xla/service/gpu/gpu_fusible.cc, instruction_fusion.cc and priority_fusion.cc): reasons
// in its dump's own words, so that both can be compared.
#pragma once
#include <string>
#include <unordered_map>

#include "ir/analysis/dataflow/alias_info.h"
#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/analysis/performance/gpu_cost_analysis.h"

namespace hlo {

// Of one kernel (MaxOperandsAndOutputsPerFusion).
inline constexpr size_t kMostOperandsAndOutputs = 96;

// HloInstruction::IsFusible.
bool is_fusible(const Module& m, InstId i);
// An instruction that priority-fusion takes as producer or consumer.
bool is_priority_fusible(const Module& m, InstId i);
// Does it write into one of its operands, as a dynamic-update-slice does?
bool overwrites_operand(const Module& m, InstId i);

class Fusibility {
 public:
  Fusibility(const Module& m, const GpuTarget& target, GpuCostAnalysis& costs)
      : m_(m), target_(target), costs_(costs), updates_(m) {}
  // Why the producer cannot go into that consumer; empty where it can.
  std::string refuse(InstId producer, InstId consumer);
  // The same of scatters alone, which constants are asked for as well.
  std::string refuse_scatter(InstId producer, InstId consumer) const;
  // Why both would have too many parameters; the same of all that one kernel may have.
  std::string refuse_parameters(InstId a, InstId b, bool into) const;
  // Why both are too much for one kernel. `into`: b goes into a, an operand of its own.
  std::string refuse_budget(InstId a, InstId b, bool into);
  void forget(InstId i) { budgets_.erase(i), updates_.forget(i); }

 private:
  struct Budget {
    int64_t shared_bytes = 0, reductions = 0;
    bool reduces = false;  // sums up 16 elements and more
  };
  const Budget& budget(InstId i);
  void add_to_budget(InstId i, Budget* b) const;
  std::string refuse_in_place(InstId producer, InstId consumer) const;
  std::string refuse_update(InstId producer, InstId consumer, InstId moved) const;

  const Module& m_;
  const GpuTarget& target_;
  GpuCostAnalysis& costs_;
  InPlaceUpdates updates_;
  std::unordered_map<InstId, Budget> budgets_;
};

}  // namespace hlo
