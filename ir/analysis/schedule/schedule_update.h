// The order of a scheduled computation after an edit.
#pragma once

#include <vector>

#include "ir/module.h"

namespace hlo {

// Orders what was added to computation `c` of a scheduled module since `before`, its order then: what stood there stays
// in that order, an added instruction follows as soon as its operands and control predecessors are there
// (xla/hlo/ir/hlo_schedule.cc, HloSchedule::UpdateComputationSchedule). One that now reads what ran after it runs after
// that: XLA's schedule would not verify there. Instructions of a cycle keep their places.
//   a, b, c=logistic(a), d   →   a, c'=negate(a), exponential(c'), …, b, d
void update_schedule(Module& m, CompId c, const std::vector<InstId>& before);

}  // namespace hlo
