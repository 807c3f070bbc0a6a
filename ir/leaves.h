// The leaves of a shape: its parts that hold no others (arrays, tokens, buffers), depth first, however deep the tuples
// around them are. Whatever lists a result's arrays (values of a buffer assignment, pointers of a kernel, files of a
// result) numbers them in this order.
#pragma once
#include <vector>

#include "ir/base/stack_guard.h"
#include "ir/universe.h"

namespace hlo {

// Calls f(path, leaf) for each leaf; an empty tuple has none. `path` is the index of the leaf, empty where the shape is
// one itself.
template <typename F>
void each_leaf(const Universe& u, ShapeId shape, const F& f) {
  Dims path;
  auto walk = [&](auto&& self, ShapeId id) -> void {
    if (!u[id].is_tuple()) return f(static_cast<const Dims&>(path), id);
    check_stack("the parts of a shape");
    for (size_t k = 0; k < u[id].elements.size(); ++k) {
      path.push_back(static_cast<int64_t>(k));
      self(self, u[id].elements[k]);
      path.pop_back();
    }
  };
  walk(walk, shape);
}

inline std::vector<ShapeId> leaf_shapes(const Universe& u, ShapeId shape) {
  std::vector<ShapeId> out;
  each_leaf(u, shape, [&](const Dims&, ShapeId leaf) { out.push_back(leaf); });
  return out;
}

}  // namespace hlo
