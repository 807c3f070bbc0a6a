// How long a kernel takes by XLA's model of a GPU (xla/service/gpu/model/gpu_performance_model*.cc,
// coalescing_analysis.cc): one instruction or fusion, and a producer in its consumer.
#pragma once
#include <string>
#include <unordered_map>

#include "ir/analysis/fusion_analysis.h"
#include "ir/analysis/gpu_cost_analysis.h"

namespace hlo {

// Quarters of a nanosecond, in which XLA counts: equal priorities are equal to it.
using Ticks = int64_t;
inline constexpr Ticks kLaunchOverhead = 4000;
inline double microseconds(Ticks t) { return static_cast<double>(t) / 4000; }

struct RunTime {
  int64_t flops = 0, bytes_written = 0;
  Ticks compute = 0, read = 0, write = 0, total = 0;
  Grid grid;
  EmitterKind kind = EmitterKind::kLoop;
  std::string text() const;  // its terms, for notes
};

class GpuPerformanceModel {
 public:
  GpuPerformanceModel(const Module& m, const GpuTarget& target, GpuCostAnalysis& costs)
      : m_(m), target_(target), costs_(costs) {}
  RunTime of(InstId i);
  // `output`: what the producer gives is written as well, for others.
  RunTime fused(InstId producer, InstId consumer, const RunTime& of_producer, const RunTime& of_consumer,
                bool output = false);

 private:
  Ticks compute_time(int64_t flops, const Grid& grid) const;
  Ticks read_time(const Grid& grid, int64_t net, int64_t total, ElementType type, bool coalesced) const;
  bool coalesced(EmitterKind kind, InstId producer, InstId consumer) const;

  const Module& m_;
  const GpuTarget& target_;
  GpuCostAnalysis& costs_;
};

}  // namespace hlo
