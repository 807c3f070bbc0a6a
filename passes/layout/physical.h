// Arrays as they lie: their dimensions in the order of memory, major first, and what of that passes behind layout
// assignment share.
#pragma once
#include "ir/attribute.h"
#include "passes/rewrite.h"

namespace hlo {

bool lies_by_default(const Shape& s);  // an array, row by row
// The same bytes row by row: dimensions as they lie. Tuples part by part.
ShapeId as_it_lies(Universe& u, ShapeId shape);

// result[i] = values[order[i]]
template <class T>
std::vector<T> in_order(const std::vector<T>& values, const Dims& order) {
  std::vector<T> out;
  out.reserve(order.size());
  for (int64_t k : order) out.push_back(values[static_cast<size_t>(k)]);
  return out;
}
Dims at_places(const Dims& dims, const Dims& places);  // result[i] = places[dims[i]]

// The operand itself where it has that shape already, else a bitcast of it; without metadata.
InstId bitcast_to(Module& m, InstId i, ShapeId shape);
// A bitcast to every part of the tuple's shape, and a tuple of them; of an array a bitcast.
InstId bitcast_parts(Module& m, InstId i, ShapeId shape);

}  // namespace hlo
