// An order for each computation in which few bytes are alive at once (xla/service/hlo_memory_scheduler.cc).
#pragma once
#include <vector>

#include "ir/analysis/gpu_target.h"
#include "ir/analysis/points_to.h"

namespace hlo {

// Bytes alive at once when a computation runs in that order, what it calls left out: the most at any instruction.
// Results lie where operands lay that end with them, where XLA lets them.
int64_t peak_of_order(const Module& m, CompId c, const std::vector<InstId>& order, const PointsTo& points,
                      const GpuTarget& target);

// What frees the most bytes, of all that could run next, goes first.
std::vector<InstId> list_order(const Module& m, CompId c, const PointsTo& points);
// Depth first; of an instruction's operands first that with the most users among all that leads to it.
std::vector<InstId> depth_first_order(const Module& m, CompId c, const PointsTo& points);
// The one of these two and the plain post order that needs the least; of equal ones the first.
std::vector<InstId> memory_order(const Module& m, CompId c, const PointsTo& points, const GpuTarget& target);

}  // namespace hlo
