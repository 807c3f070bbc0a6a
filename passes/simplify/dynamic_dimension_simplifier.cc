// dynamic-dimension-simplifier (xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.cc).
#include "passes/rewrite.h"

namespace hlo {
namespace {

// One sweep over what is no fusion; `f` gives what an instruction of that opcode can be replaced by, or nothing.
template <class F>
bool sweep(Module& m, PassContext& ctx, Opcode op, std::string_view rule, F f) {
  bool changed = false;
  if (!m.count(op)) return false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != op || !m.alive(i)) continue;
      InstId to = f(i);
      if (!to.valid() || m.dead(i)) continue;
      if (!ctx.spend(m, rule, {i, to})) return changed;
      m.replace_all_uses(i, to);  // what is left is dead until dce comes, as in XLA
      changed = true;
    }
  return changed;
}

}  // namespace

//   reshape(reshape(A)) of A's shape      →      A      and other index arithmetic that does nothing
bool run_dynamic_dimension_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  const Universe& u = m.u();
  // Nested concatenates.
  for (InstId i : all_of_opcode(m, Opcode::Concatenate)) {
    const Dims& along = m.attrs(i).ints(Attr::dimensions);
    std::vector<InstId> flat;
    bool nested = false;
    for (InstId o : m.operands(i))
      if (m.op(o) == Opcode::Concatenate && m.attrs(o).ints(Attr::dimensions) == along) {
        nested = true;
        for (InstId p : m.operands(o)) flat.push_back(p);
      } else {
        flat.push_back(o);
      }
    if (!nested) continue;
    if (!ctx.spend(m, "nested concatenate", {i})) return changed;
    changed |= m.replace(i, make(m, m.parent(i), Opcode::Concatenate, flat,
                                 dims_attr(m.u(), Opcode::Concatenate, Dims(along)), m.shape_id(i)));
  }
  changed |= sweep(m, ctx, Opcode::Slice, "slice is a piece of a concatenate", [&](InstId i) {
    if (m.shape(i).rank() != 1 || m.op(m.operand(i, 0)) != Opcode::Concatenate) return InstId();
    const SliceDim cut = m.attrs(i).get<std::vector<SliceDim>>(Attr::slice)->at(0);
    if (cut.stride != 1) return InstId();
    int64_t at = 0;
    for (InstId o : m.operands(m.operand(i, 0))) {
      int64_t n = m.shape(o).dims[0];
      if (at == cut.start && at + n == cut.limit) return o;
      at += n;
    }
    return InstId();
  });
  changed |= sweep(m, ctx, Opcode::Reshape, "scalar of a broadcast scalar", [&](InstId i) {
    if (m.shape(i).rank() != 0) return InstId();
    InstId b = m.operand(i, 0);
    if (m.op(b) != Opcode::Broadcast || m.shape(b).rank() != 1 || m.shape(m.operand(b, 0)).rank() != 0) return InstId();
    return m.operand(b, 0);
  });
  changed |= sweep(m, ctx, Opcode::Reshape, "reshape there and back", [&](InstId i) {
    if (m.op(m.operand(i, 0)) != Opcode::Reshape) return InstId();
    InstId source = m.operand(m.operand(i, 0), 0);
    return u.shape_text(m.shape_id(source)) == u.shape_text(m.shape_id(i)) ? source : InstId();
  });
  for (Opcode op : {Opcode::Convert, Opcode::Reshape})
    changed |= sweep(m, ctx, op, op == Opcode::Convert ? "convert to the same type" : "reshape to the same shape",
                     [&](InstId i) {
                       bool same = u.shape_text(m.shape_id(m.operand(i, 0))) == u.shape_text(m.shape_id(i));
                       return same ? m.operand(i, 0) : InstId();
                     });
  return changed;
}

}  // namespace hlo
