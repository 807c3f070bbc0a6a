// Inputs that tell something of what is inside.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// Seeded arguments made over: floats are of magnitude 1 and few different ones, so that there are ties; integers are
// small, negative, at and beyond the bounds of what they index. For a second look where something sorts or indexes.
std::vector<Value> edge_arguments(const Module& m, std::vector<Value> arguments);
// Does it sort or index?
bool has_edges(const Module& m);

// Floats times so much; `positive`: magnitudes.
std::vector<Value> scaled_arguments(const Module& m, std::vector<Value> arguments, double by, bool positive);

// Floats of two dimensions or more brought to the size at which sums of products with them, over all dimensions but the
// last, stay of the size of what they are multiplied with: layers upon layers neither vanish nor reach limits.
std::vector<Value> balanced_arguments(const Module& m, std::vector<Value> arguments);

// What values of the module take in f64, at least, while it is looked into: its parameters and its largest values.
int64_t bytes_inside(const Module& m);

}  // namespace hlo
