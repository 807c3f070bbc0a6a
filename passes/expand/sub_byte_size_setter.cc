// sub-byte-size-setter (xla/hlo/transforms/simplifiers/sub_byte_normalization.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// The shape with E(bits) in the layouts of what takes less than a byte.
ShapeId packed(Universe& u, ShapeId id) {
  Shape s = u[id];
  if (s.is_tuple()) {
    for (ShapeId& e : s.elements) e = packed(u, e);
    return u.tuple(std::move(s.elements));
  }
  if (!s.is_array() || s.type == ElementType::Pred || type_bits(s.type) >= 8) return id;
  std::string& rest = s.layout.rest;
  std::string size = fmt::format("E({})", type_bits(s.type));
  if (rest.find(size) != std::string::npos) return id;
  // Tiles stand in front of it, memory space and the like behind.
  rest.insert(std::min(rest.find_first_of("SP"), rest.size()), size);
  return u.shape(std::move(s));
}

}  // namespace

//   s4[8]{0}      →      s4[8]{0:E(4)}
bool run_sub_byte_size_setter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      ShapeId to = packed(m.u(), m.shape_id(i));
      if (to == m.shape_id(i)) continue;
      if (!ctx.spend(m, "size of an element", {i})) return changed;
      m.set_shape(i, to);
      changed = true;
    }
  return changed;
}

}  // namespace hlo
