// What a program needs in memory by other orders of its instructions than the one that it has.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/module.h"
#include "replay/record/target.h"

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

// Of a scheduled module. Never throws for what the module holds.
OrderPeaks order_peaks(const Module& m, const Target& target);
// What may make XLA choose another order, for who compiles for that target; none of it tried. `passes`: those that took
// more.
std::vector<std::string> order_flags(const Target& target, const std::vector<OrderPass>& passes);

}  // namespace hlo
