// Inputs that a module can use: indices in range, initial values that change nothing.
#pragma once
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// Looks where each parameter of the entry goes (through reshapes, slices, converts, tuples, calls and loops) and
// changes the values that would make no sense there: indices of gather, scatter and dynamic slices are taken modulo
// what the operand has room for, initial values of reductions become the neutral element of a plain reducer, and with
// `unique_keys` the keys of sorts become a permutation without duplicates.
void fit_arguments(const Module& m, bool unique_keys, std::vector<Value>* arguments);
// The same for an array that is not an argument: the value of `i`, of any computation.
void fit_value(const Module& m, InstId i, Value* value);

}  // namespace hlo
