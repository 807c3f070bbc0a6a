// Elements where an operation does something: chance would seldom find them.
#pragma once
#include <cstdint>
#include <vector>

#include "replay/judge/chosen/elements/elements.h"

namespace hlo {

// Where updates land, where pads and parts of a concatenation begin and end: a few elements of
// what `device` has, in no order. `elements` gives the indices that decide it; what these cost too much for is left
// out.
std::vector<int64_t> landings(const std::vector<Expr>& all, ExprId e, ChosenElements& elements, uint64_t seed,
                              int64_t device);

}  // namespace hlo
