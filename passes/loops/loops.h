// What is known of a loop from its text (xla/hlo/analysis/while_loop_analysis.cc).
#pragma once
#include <optional>

#include "ir/module.h"
#include "ir/query/frontend_attribute.h"

namespace hlo {

// A loop that counts tuple element `index` from `init` by `step` up to a constant: `count` iterations.
struct Trips {
  int64_t index, init, step, count;
};
// False where the loop does not count so.
bool trip_count(const Module& m, InstId loop, Trips* out);
// The element of the state that alone decides how long the loop runs, and that its body makes of itself alone.
std::optional<int64_t> induction_index(const Module& m, InstId loop);
// Trips of a loop over that element, whatever it does to it, found by evaluating step and condition; nothing where they
// are not one operation on the element and constants each, or where it runs more than `limit` times.
std::optional<int64_t> counted_trips(const Module& m, InstId loop, int64_t index, int64_t limit);

}  // namespace hlo
