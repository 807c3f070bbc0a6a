// What is known of a loop from its text (xla/hlo/analysis/while_loop_analysis.cc).
#pragma once
#include "ir/module.h"

namespace hlo {

// A loop that counts tuple element `index` from `init` by `step` up to a constant: `count` iterations.
struct Trips {
  int64_t index, init, step, count;
};
// False where the loop does not count so.
bool trip_count(const Module& m, InstId loop, Trips* out);

// Value of a word in `frontend_attributes={name="value",…}`; empty where it is not there.
std::string_view frontend_attribute(const Module& m, InstId i, std::string_view name);

}  // namespace hlo
