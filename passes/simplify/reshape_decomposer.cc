// reshape-decomposer (xla/hlo/transforms/expanders/reshape_decomposer.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// A layout for `to` in which the reshape moves nothing: the groups of dimensions that belong together keep their order
// in memory, each row-major within. Nothing where a group of `from` is not contiguous and row-major.
bool aligned_layout(const Universe& u, ShapeId from_id, const Dims& to, Dims* minor_to_major) {
  const Shape& from = u[from_id];
  const std::string& rest = from.layout.rest;
  if ((!rest.empty() && !rest.starts_with("E(")) || from.elements_count() == 0) return false;
  auto bounds = common_factors(from.dims, to);
  // Groups by their place in memory, minor first; dimensions of one element lie anywhere.
  std::vector<size_t> group_of(from.dims.size());
  for (size_t g = 0; g + 1 < bounds.size(); ++g)
    for (size_t d = bounds[g].first; d < bounds[g + 1].first; ++d) group_of[d] = g;
  std::vector<size_t> order;
  int64_t last = -1;
  for (int64_t d : from.layout.minor_to_major) {
    auto k = static_cast<size_t>(d);
    if (from.dims[k] == 1) continue;
    if (order.empty() || order.back() != group_of[k]) {
      if (std::find(order.begin(), order.end(), group_of[k]) != order.end()) return false;
      order.push_back(group_of[k]);
    } else if (d > last) {
      return false;
    }
    last = d;
  }
  minor_to_major->clear();
  for (size_t g : order)
    for (size_t d = bounds[g + 1].second; d-- > bounds[g].second;)
      if (to[d] != 1) minor_to_major->push_back(static_cast<int64_t>(d));
  // Dimensions of one element go last (ShapeUtil::AlignLayouts).
  for (size_t d = to.size(); d-- > 0;)
    if (to[d] == 1) minor_to_major->push_back(static_cast<int64_t>(d));
  return minor_to_major->size() == to.size();
}

}  // namespace

//   reshape(A)      →      bitcast(A), bitcast(copy(A)) or copy(bitcast(A)), as the layouts need it
bool run_reshape_decomposer(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations()) {
    std::vector<InstId> found;
    visit_computation(m, c, [&](InstId i) {
      if (m.op(i) == Opcode::Reshape) found.push_back(i);
    });
    for (InstId i : found) {
      InstId x = m.operand(i, 0);
      if (m.has_control(i) || m.shape(i).is_dynamic()) continue;
      ShapeId from = m.shape_id(x), to = m.shape_id(i);
      auto bitcast = [&](InstId of, ShapeId shape) {
        InstId b = make(m, c, Opcode::Bitcast, {of}, {}, shape);
        m.set_meta(b, m[of].meta);
        return b;
      };
      auto copy = [&](InstId of, ShapeId shape) { return make(m, c, Opcode::Copy, {of}, {}, shape); };
      Dims layout;
      InstId now;
      if (reshape_is_bitcast(u, from, to)) {
        if (!ctx.spend(m, "reshape that moves nothing", {i})) return changed;
        now = bitcast(x, to);
      } else if (aligned_layout(u, to, m.shape(x).dims, &layout)) {
        if (!ctx.spend(m, "copy, then a reshape that moves nothing", {i})) return changed;
        // How large its elements are is not said of what is copied.
        ShapeId aligned = u.with_layout(u.array(m.shape(x).type, m.shape(x).dims), layout);
        now = bitcast(copy(x, aligned), to);
      } else if (aligned_layout(u, from, m.shape(i).dims, &layout)) {
        if (!ctx.spend(m, "reshape that moves nothing, then a copy", {i})) return changed;
        now = copy(bitcast(x, u.with_layout(to, layout)), to);
      } else {
        if (!ctx.spend(m, "copy, a reshape that moves nothing, copy", {i})) return changed;
        ShapeId plain = u.with_default_layout(from), wide = u.with_default_layout(to);
        now = copy(bitcast(copy(x, plain), wide), to);
      }
      changed |= m.replace(i, now);
    }
  }
  return changed;
}

}  // namespace hlo
