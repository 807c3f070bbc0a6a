// Dimensions of arrays side by side: in the order of memory, and what two shapes of the same elements share.
#pragma once
#include <utility>
#include <vector>

#include "ir/types/shape.h"

namespace hlo {

// Dimensions of an array as they lie, major first; row by row where nothing says how.
Dims major_to_minor(const Shape& s);
// Pairs of ranges of equal products between two dimension lists: the common factors of a reshape, as start indices.
std::vector<std::pair<size_t, size_t>> common_factors(const Dims& a, const Dims& b);

}  // namespace hlo
