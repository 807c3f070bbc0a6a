// How long a kernel takes by XLA's model of a GPU (xla/service/gpu/model/gpu_performance_model*.cc,
// coalescing_analysis.cc): one instruction or fusion, and a producer in its consumer.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/analysis/fusion/tiling.h"
#include "ir/analysis/performance/gpu_cost_analysis.h"

namespace hlo {

// Quarters of a nanosecond, in which XLA counts: equal priorities are equal to it.
using Ticks = int64_t;
inline constexpr Ticks kLaunchOverhead = 4000;
// From and by absl::Duration's own roundings.
Ticks from_seconds(double s);
// Computing and moving, of which much goes on at once.
Ticks together(Ticks compute, Ticks memory);
inline double microseconds(Ticks t) { return static_cast<double>(t) / 4000; }

struct RunTime {
  int64_t flops = 0, bytes_written = 0;
  Ticks compute = 0, read = 0, write = 0, total = 0;
  Grid grid;
  EmitterKind kind = EmitterKind::kLoop;
  std::string text() const;  // its terms, for notes
};

// How a Triton kernel is cut up, by the result's dimensions.
struct TritonTiles {
  Dims sizes;
  int64_t warps = 1;  // of a block
  RunTime time;
  // As a fusion's backend_config has it.
  std::string config() const;
};

class GpuPerformanceModel {
 public:
  GpuPerformanceModel(const Module& m, const GpuTarget& target, GpuCostAnalysis& costs)
      : m_(m), target_(target), costs_(costs) {}
  RunTime of(InstId i);
  // `output`: what the producer gives is written as well, for others.
  RunTime fused(InstId producer, InstId consumer, const RunTime& of_producer, const RunTime& of_consumer,
                bool output = false);
  // The tiles that would be fastest (xla/service/gpu/model/gpu_indexing_performance_model.cc); nothing where the kernel
  // cannot be tiled or is too large for the registers however it is.
  std::optional<TritonTiles> best_tiles(const FusionView& view);

 private:
  // False where the tiles do not fit. `warps` of 0: as many as the tiles ask for.
  bool tiled_time(const FusionView& view, TiledFusion* fusion, TritonTiles* tiles);
  std::optional<RunTime> of_triton(InstId fusion);
  int64_t cycles_of_element(InstId i);
  Ticks compute_time(int64_t flops, const Grid& grid) const;
  Ticks read_time(const Grid& grid, int64_t net, int64_t total, double rate) const;
  double read_rate(ElementType type, bool coalesced) const;
  bool coalesced(EmitterKind kind, InstId producer, InstId consumer);

  const Module& m_;
  const GpuTarget& target_;
  GpuCostAnalysis& costs_;
};

}  // namespace hlo
