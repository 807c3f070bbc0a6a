#include "passes/layout/physical.h"

#include <numeric>

namespace hlo {

bool lies_by_default(const Shape& s) {
  return s.is_array() && (s.layout.minor_to_major.empty() || is_default_layout(Layout{s.layout.minor_to_major, "", 0}));
}

ShapeId as_it_lies(Universe& u, ShapeId shape) {
  Shape s = u[shape];
  if (s.is_tuple()) {
    std::vector<ShapeId> parts = s.elements;
    for (ShapeId& part : parts) part = as_it_lies(u, part);
    return u.tuple(std::move(parts));
  }
  if (!s.is_array() || lies_by_default(s)) return shape;
  const Dims order = major_to_minor(s);
  s.dims = in_order(s.dims, order);
  if (!s.dynamic.empty()) s.dynamic = in_order(s.dynamic, order);
  s.layout.minor_to_major = default_minor_to_major(s.rank());
  return u.shape(std::move(s));
}

Dims at_places(const Dims& dims, const Dims& places) {
  Dims out;
  out.reserve(dims.size());
  for (int64_t d : dims) out.push_back(places[static_cast<size_t>(d)]);
  return out;
}

InstId bitcast_to(Module& m, InstId i, ShapeId shape) {
  return m.shape_id(i) == shape ? i : make(m, m.parent(i), Opcode::Bitcast, {i}, {}, shape);
}

InstId bitcast_parts(Module& m, InstId i, ShapeId shape) {
  if (!m.u()[shape].is_tuple()) return bitcast_to(m, i, shape);
  const std::vector<ShapeId> elements = m.u()[shape].elements;
  std::vector<InstId> parts;
  for (size_t k = 0; k < elements.size(); ++k)
    parts.push_back(bitcast_to(m, make_element(m, i, static_cast<int64_t>(k)), elements[k]));
  return make(m, m.parent(i), Opcode::Tuple, parts, {}, shape);
}

}  // namespace hlo
