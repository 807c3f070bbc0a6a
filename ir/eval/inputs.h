// Inputs that reach: drawn so that what is rare among drawn numbers comes up soon.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// Seeds from here on are turns of reaching_arguments (seed - kReachingFrom) in `seeded_arguments`; those below draw as
// they always have, and as ../shared/oracle/inputs.py does.
inline constexpr uint64_t kReachingFrom = 1'000'000;

// Arguments of the entry by turn. What an index is made of, at dynamic slices, their updates, gathers and scatters,
// takes in turn 0, 1, the last valid start, the ones beside it, and what lies outside: -1 and the least of a signed
// type, the largest of an unsigned one. Other integers are in turn small (so that they wrap, repeat and cancel), at the
// ends of their type and, in arrays, where squares wrap below zero, alike, and drawn. Floats are in turn drawn, few
// values alike (ties), zeros of both signs among ones, below zero, with infinities, with NaN. Over 24 turns every one
// of these comes up for every argument. `positive`: no float is below zero.
std::vector<Value> reaching_arguments(const Module& m, uint64_t turn, bool positive);

}  // namespace hlo
