// The queue of priority-fusion (xla/backends/gpu/transforms/priority_fusion.cc): producers of one computation by what
// fusing them into all of their users saves, kept true from fusion to fusion.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/analysis/performance/fusibility.h"
#include "ir/analysis/performance/gpu_performance_model.h"
#include "passes/fusion/fusion_ids.h"

namespace hlo {

class PriorityFusionQueue {
 public:
  // What was found about a producer: its times, or why it is out. Of updates times are what changed.
  struct Decision {
    InstId producer, consumer;  // consumer: the first that refuses; invalid where all of them, or none, do
    std::string refused;        // empty: the times hold
    Ticks fused = 0, unfused = 0, saves = 0;  // saves: by all that was priced of it so far
  };
  using Listener = std::function<void(const Decision&)>;

  PriorityFusionQueue(Module& m, CompId comp, const GpuTarget& target, Listener on_decision);

  // The next producer with the users that it goes into; an invalid id where none is left.
  InstId next(std::vector<InstId>* consumers);
  // That producer's turn, whatever its priority: what a foreign compiler decided.
  void take(InstId producer);
  // Fuses the two; to be followed, after the last consumer, by finish.
  InstId fuse(InstId producer, InstId consumer);
  // Removes the producer where nothing needs it any more, and prices what changed.
  void finish(InstId producer, const std::vector<InstId>& consumers);
  std::string refuse_constant(InstId constant, InstId user);
  std::string_view kind_of(InstId producer, InstId consumer) const;
  GpuPerformanceModel& model() { return model_; }

 private:
  using Key = std::pair<Ticks, uint32_t>;  // of equal priorities the instruction made last comes first
  struct Times {
    Ticks fused = 0, unfused = 0;
  };
  // Each once, in the order in which they came first.
  class Pending {
   public:
    void insert(InstId i) {
      if (place_.emplace(i, list_.size()).second) list_.push_back(i);
    }
    void erase(InstId i) {
      auto at = place_.find(i);
      if (at == place_.end()) return;
      list_[at->second] = InstId();
      place_.erase(at);
    }
    // Leaves none behind.
    std::vector<InstId> take() {
      std::erase(list_, InstId());
      place_.clear();
      return std::exchange(list_, {});
    }

   private:
    std::vector<InstId> list_;  // invalid where one was taken out
    std::unordered_map<InstId, size_t> place_;
  };
  void price(const std::vector<InstId>& producers);
  bool decide(InstId producer, Ticks* priority);
  std::string refuse(InstId producer, InstId consumer);
  std::string refuse_tiled(InstId producer, InstId consumer);
  std::string refuse_users(InstId producer, InstId* by);
  uint32_t number(InstId i) const;
  const RunTime& run_time(InstId i);
  Ticks fused_time(InstId producer, InstId consumer);
  void forget(InstId i);
  void drop(InstId i);
  void note_removed(InstId operand, const std::unordered_set<InstId>& gone);

  Module& m_;
  const GpuTarget& target_;
  Listener on_decision_;
  GpuCostAnalysis costs_;
  GpuPerformanceModel model_;
  Fusibility fusibility_;
  std::unordered_map<InstId, uint32_t> places_;  // of what was there at first, in the order in which it was made
  std::map<Key, InstId> queue_;
  std::unordered_map<InstId, Key> keys_;
  std::unordered_map<InstId, RunTime> times_;
  std::unordered_map<InstId, std::unordered_map<InstId, Ticks>> fused_;
  std::unordered_map<InstId, std::unordered_map<InstId, std::string>> refusals_;
  std::unordered_set<InstId> accepted_;  // producers that all of their users took when they were looked at last
  std::unordered_map<InstId, std::unordered_map<InstId, TritonTiles>> tiles_;  // of pairs that Triton would take
  std::optional<FusionIds> ids_;                                               // where something is Triton's
  std::map<FusionIds::PairId, std::optional<TritonTiles>> tiles_by_id_;
  // Since the last finish.
  Pending to_update_;
  std::unordered_map<InstId, std::vector<InstId>> new_consumers_;
  std::unordered_map<InstId, Times> removed_;
};

}  // namespace hlo
