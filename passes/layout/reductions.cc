// What the GPU's reductions go through before their kernels: dimensions of one element taken out, the others in the
// order of memory and merged, what is too long for one kernel in two (xla/service/gpu/transforms/reduction_*.cc,
// tree_reduction_rewriter.cc).
#include <utility>

#include "ir/analysis/fusion/reduction.h"
#include "passes/layout/physical.h"

namespace hlo {
namespace {

struct Arrays {  // what a reduce reads, without the initial values
  std::vector<InstId> inputs, inits;
};
Arrays arrays_of(const Module& m, InstId reduce) {
  Arrays a;
  const auto all = m.operands(reduce);
  a.inputs.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(all.size() / 2));
  a.inits.assign(all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  return a;
}

std::vector<ShapeId> parts_of(const Module& m, InstId i) {
  return m.shape(i).is_tuple() ? m.shape(i).elements : std::vector<ShapeId>{m.shape_id(i)};
}

// The same reduction of other inputs; results of these shapes.
InstId reduce_like(Module& m, InstId like, const std::vector<InstId>& inputs, const Dims& dims,
                   const std::vector<ShapeId>& results) {
  std::vector<InstId> operands = inputs;
  for (InstId init : arrays_of(m, like).inits) operands.push_back(init);
  const ShapeId shape = m.shape(like).is_tuple() ? m.u().tuple(results) : results[0];
  const InstId made = m.clone_inst(like, m.parent(like), operands, shape);
  m.set_uniquified_name(made, "reduce");
  m.set_attr(made, Attr::dimensions, dims);
  return made;
}

ShapeId without(Universe& u, ShapeId shape, const std::vector<bool>& gone) {
  Shape s = u[shape];
  Dims dims, layout, place(s.dims.size(), -1);
  for (size_t d = 0; d < s.dims.size(); ++d)
    if (!gone[d]) place[d] = static_cast<int64_t>(dims.size()), dims.push_back(s.dims[d]);
  for (int64_t d : s.layout.minor_to_major)
    if (place[static_cast<size_t>(d)] >= 0) layout.push_back(place[static_cast<size_t>(d)]);
  s.dims = std::move(dims);
  s.layout.minor_to_major = std::move(layout);
  return u.shape(std::move(s));
}
ShapeId without_ones(Universe& u, ShapeId shape) {
  const Dims& dims = u[shape].dims;
  std::vector<bool> ones;
  for (int64_t d : dims) ones.push_back(d == 1);
  return without(u, shape, ones);
}

// One rewrite for each reduction of arrays whose sizes are known, in XLA's order of visits.
template <class Rewrite>
bool each_reduction(Module& m, PassContext& ctx, Rewrite&& rewrite) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    visit_computation(m, c, [&](InstId i) {
      if (m.op(i) != Opcode::Reduce) return;
      for (InstId o : arrays_of(m, i).inputs)
        if (m.shape(o).is_dynamic() || m.shape(o).has_zero() || !m.u().bytes(m.shape_id(o)).fits()) return;
      changed |= rewrite(i, ctx);
    });
  return changed;
}

bool replace_visited(Module& m, InstId from, InstId to) { return m.replace(from, to, {.relay_control = true}); }

}  // namespace

//   reduce(f32[1,16,64] A), dimensions={0,1}      →      reduce(f32[16,64] bitcast(A)), dimensions={0}
bool run_reduction_degenerate_dim_remover(Module& m, PassContext& context) {
  Universe& u = m.u();
  return each_reduction(m, context, [&](InstId i, PassContext& ctx) {
    const std::vector<InstId> inputs = arrays_of(m, i).inputs;
    const Dims dims = m.shape(inputs[0]).dims;
    if (!contains(dims, 1)) return false;
    Dims left;
    for (int64_t d : m.attrs(i).ints(Attr::dimensions))
      if (dims[static_cast<size_t>(d)] != 1) left.push_back(d - std::count(dims.begin(), dims.begin() + d, 1));
    if (left.empty() && m.shape(i).is_tuple()) return false;
    if (!ctx.spend(m, left.empty() ? "reduction of one element" : "dimensions of one element", {i})) return false;
    if (left.empty())
      return replace_visited(m, i, make(m, m.parent(i), Opcode::Bitcast, {inputs[0]}, {}, m.shape_id(i)));
    std::vector<InstId> narrow;
    for (InstId o : inputs) narrow.push_back(bitcast_to(m, o, without_ones(u, m.shape_id(o))));
    std::vector<ShapeId> results = parts_of(m, i);
    for (ShapeId& s : results) s = without_ones(u, s);
    return replace_visited(m, i, bitcast_parts(m, reduce_like(m, i, narrow, left, results), m.shape_id(i)));
  });
}

//   reduce(f32[8,16]{0,1} A), dimensions={0}      →      reduce(f32[16,8]{1,0} bitcast(A)), dimensions={1}
bool run_reduction_layout_normalizer(Module& m, PassContext& context) {
  Universe& u = m.u();
  return each_reduction(m, context, [&](InstId i, PassContext& ctx) {
    const std::vector<InstId> inputs = arrays_of(m, i).inputs;
    const Dims& gone = m.attrs(i).ints(Attr::dimensions);
    const Dims order = major_to_minor(m.shape(inputs[0]));
    bool all_plain = true;
    for (InstId o : inputs) {
      if (major_to_minor(m.shape(o)) != order) return false;  // reduce-decomposer makes them alike
      all_plain &= lies_by_default(m.shape(o));
    }
    if (all_plain || !ctx.spend(m, "inputs in layout order", {i})) return false;
    Dims dims, kept;  // kept: by their old number in the result, as they stand in the new one
    for (size_t k = 0; k < order.size(); ++k) {
      if (contains(gone, order[k]))
        dims.push_back(static_cast<int64_t>(k));
      else
        kept.push_back(order[k] - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < order[k]; }));
    }
    const Dims places = inverse_permutation(kept);
    std::vector<InstId> plain;
    for (InstId o : inputs) plain.push_back(bitcast_to(m, o, as_it_lies(u, m.shape_id(o))));
    std::vector<ShapeId> results = parts_of(m, i);
    for (ShapeId& shape : results) {
      Shape s = u[shape];
      s.dims = in_order(s.dims, kept);
      s.layout.minor_to_major = at_places(s.layout.minor_to_major, places);
      shape = u.shape(std::move(s));
    }
    return replace_visited(m, i, bitcast_parts(m, reduce_like(m, i, plain, dims, results), m.shape_id(i)));
  });
}

//   reduce(f32[4,8,16] A), dimensions={1,2}      →      reduce(f32[4,128] bitcast(A)), dimensions={1}
bool run_reduction_dimension_grouper(Module& m, PassContext& context) {
  Universe& u = m.u();
  return each_reduction(m, context, [&](InstId i, PassContext& ctx) {
    const std::vector<InstId> inputs = arrays_of(m, i).inputs;
    const Dims& gone = m.attrs(i).ints(Attr::dimensions);
    const Dims dims = m.shape(inputs[0]).dims;
    for (InstId o : inputs)
      if (!lies_by_default(m.shape(o))) return false;
    Dims grouped, left;
    int64_t size = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      size *= dims[d];
      const bool reduced = contains(gone, static_cast<int64_t>(d));
      if (reduced && contains(gone, static_cast<int64_t>(d) + 1)) continue;
      if (reduced) left.push_back(static_cast<int64_t>(grouped.size()));
      grouped.push_back(std::exchange(size, 1));
    }
    if (grouped.size() == dims.size() || !ctx.spend(m, "neighbouring dimensions as one", {i})) return false;
    std::vector<InstId> merged;
    for (InstId o : inputs) merged.push_back(bitcast_to(m, o, u.array(m.shape(o).type, grouped)));
    return replace_visited(m, i, reduce_like(m, i, merged, left, parts_of(m, i)));
  });
}

//   reduce(A), dimensions={0,2}      →      reduce(reduce(A), dimensions={2}), dimensions={0}: the longest first
bool run_reduction_splitter(Module& m, PassContext& context) {
  return visit_until_still(m, [&](InstId i) {
    if (m.op(i) != Opcode::Reduce || m.shape(i).is_tuple() || m.operand_count(i) != 2) return false;
    const InstId x = m.operand(i, 0);
    const Dims gone = m.attrs(i).ints(Attr::dimensions), &dims = m.shape(x).dims;
    if (gone.size() < 2 || m.shape(x).is_dynamic() || !m.u().bytes(m.shape_id(x)).fits() ||
        kernel_reduction(m.shape(x), gone))
      return false;
    const int64_t longest = *std::max_element(gone.begin(), gone.end(), [&](int64_t a, int64_t b) {
      return dims[static_cast<size_t>(a)] < dims[static_cast<size_t>(b)];
    });
    if (!context.spend(m, "longest dimension first", {i})) return false;
    std::vector<bool> taken(dims.size());
    taken[static_cast<size_t>(longest)] = true;
    ShapeId shape = without(
        m.u(), m.u().with_layout(m.u().with_dims(m.shape_id(x), m.shape(x).dims), m.shape(x).layout.minor_to_major),
        taken);
    shape = m.u().with_type(shape, m.shape(i).type);
    const InstId inner = reduce_like(m, i, {x}, {longest}, {shape});
    Dims rest;
    for (int64_t d : gone)
      if (d != longest) rest.push_back(d > longest ? d - 1 : d);
    return replace_visited(m, i, reduce_like(m, i, {inner}, rest, {m.shape_id(i)}));
  });
}

}  // namespace hlo
