// What a program needs in memory by other orders of its instructions than the one that it has.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "replay/record/start/target.h"

namespace hlo {

// Bytes alive at once as XLA counts them to choose an order (xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc):
// of one measure, so that they can be held against each other; what a buffer assignment allocates is more.
struct OrderPeaks {
  static constexpr std::array<const char*, 3> kOrders = {"what frees most first", "depth first", "post order"};
  std::string why_not;             // why nothing is known; else empty
  int64_t as_it_is = 0;            // by the module's own order
  std::array<int64_t, 3> peaks{};  // by kOrders
  size_t least = 0;                // of these
  // By how much the least of the three is below what it is, a thousandth at least; 0: it is not.
  int64_t saved() const;
};

// What a pass made of the order: bytes alive at once in front of it and behind it.
struct OrderPass {
  std::string pass, stage;
  int64_t before = 0, after = 0;
};
// Of the passes of a recording that schedule, those that changed what is alive at once by a hundredth or more. Stages
// that cannot be read tell nothing.
std::vector<OrderPass> order_passes(const Recording& r, const Target& target);

// What a stage of a recording needs.
struct StagePeak {
  size_t row = 0;          // of the recording
  std::string pass;        // that the stage stands behind; empty: no pass
  std::string stage;       // its name
  int64_t bytes = -1;      // alive at once, by OrderPeaks' measure; -1: unknown
  bool scheduled = false;  // by the stage's own order; false: it has none, and the least of the three orders is meant
  std::string why_not;     // why it is unknown
};
// Of each stage with a text but begins of pipelines and steps inside of passes, in their order. `progress`: called with
// how many are done, of how many; may be empty. What cannot be read is unknown; throws where the user interrupts.
std::vector<StagePeak> stage_peaks(const Recording& r, const Target& target,
                                   const std::function<void(size_t, size_t)>& progress = {});
// Of two stages that follow one another, both known and measured alike, where the second needs more or less: the most
// risen first, then what fell, the most first.
struct PeakChange {
  size_t before = 0, after = 0;  // places in the list
  int64_t bytes = 0;             // more; below 0: less
};
std::vector<PeakChange> peak_changes(const std::vector<StagePeak>& all);

// Of a scheduled module. Never throws for what the module holds.
OrderPeaks order_peaks(const Module& m, const Target& target);
// What may make XLA choose another order, for who compiles for that target; none of it tried. `passes`: those that took
// more.
std::vector<std::string> order_flags(const Target& target, const std::vector<OrderPass>& passes);

}  // namespace hlo
