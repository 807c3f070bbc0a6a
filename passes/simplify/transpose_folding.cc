// transpose-folding (xla/hlo/transforms/simplifiers? service/transpose_folding.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// May the transposition of that operand be left to the product? As XLA of 2019 has it: one matrix a batch, batch
// dimensions where they were. As today's GPU compiler has it: what is left over keeps its order, and the operand lies
// as a matrix that cuBLAS reads: batch, rows and columns each together, a batch dimension not minor-most.
bool foldable_dot_operand(const Module& m, InstId dot, size_t side, bool matrix_layouts) {
  InstId t = m.operand(dot, side);
  if (m.op(t) != Opcode::Transpose) return false;
  const Dims& p = m.attrs(t).ints(Attr::dimensions);
  if (is_identity(p)) return false;
  const Dims& batch = m.attrs(dot).ints(side ? Attr::rhs_batch_dims : Attr::lhs_batch_dims);
  const Dims& contract = m.attrs(dot).ints(side ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims);
  if (!matrix_layouts) {
    if (p.size() != batch.size() + 2 || contract.size() != 1) return false;
    return std::all_of(batch.begin(), batch.end(), [&](int64_t b) { return p[static_cast<size_t>(b)] == b; });
  }
  Dims groups[3];  // of the operand's dimensions: batch, contracted, left over
  for (int64_t b : batch) groups[0].push_back(p[static_cast<size_t>(b)]);
  for (int64_t c : contract) groups[1].push_back(p[static_cast<size_t>(c)]);
  for (size_t d = 0; d < p.size(); ++d)
    if (!contains(batch, static_cast<int64_t>(d)) && !contains(contract, static_cast<int64_t>(d)))
      groups[2].push_back(p[d]);
  if (!std::is_sorted(groups[2].begin(), groups[2].end())) return false;
  const auto& order = m.shape(m.operand(t, 0)).layout.minor_to_major;
  for (size_t at = 0; at < order.size();) {
    const Dims* group = nullptr;
    for (const Dims& g : groups)
      if (!g.empty() && g.back() == order[at]) group = &g;
    if (!group || (at == 0 && group == &groups[0])) return false;
    for (auto d = group->rbegin(); d != group->rend(); ++d)
      if (at >= order.size() || order[at++] != *d) return false;
  }
  return true;
}

bool fold_dot(Module& m, PassContext& ctx, InstId dot) {
  if (m.has_control(dot)) return false;
  if (m.shape(m.operand(dot, 0)).rank() < 2 || m.shape(m.operand(dot, 1)).rank() < 2) return false;
  const bool matrices = ctx.flag("matrix_layouts");
  bool fold[2] = {foldable_dot_operand(m, dot, 0, matrices), foldable_dot_operand(m, dot, 1, matrices)};
  if ((!fold[0] && !fold[1]) || !ctx.spend(m, "transpose into dot", {dot})) return false;
  AttrSet set = m.attrs(dot);
  std::vector<InstId> ops;
  for (size_t side = 0; side < 2; ++side) {
    InstId o = m.operand(dot, side);
    if (!fold[side]) {
      ops.push_back(o);
      continue;
    }
    const Dims p = m.attrs(o).ints(Attr::dimensions);
    for (Attr key : {side ? Attr::rhs_batch_dims : Attr::lhs_batch_dims,
                     side ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims}) {
      Dims mapped;
      for (int64_t d : set.ints(key)) mapped.push_back(p[static_cast<size_t>(d)]);
      if (set.has(key)) set.set(key, mapped);
    }
    ops.push_back(m.operand(o, 0));
  }
  AttrsId attrs = m.u().attrs(std::move(set));
  InstId to = m.add_derived(dot, {.op = Opcode::Dot, .shape = m.shape_id(dot), .operands = ops, .attrs = attrs});
  return m.replace(dot, to, {.relay_control = true});
}

bool fold_conv(Module& m, PassContext& ctx, InstId conv) {
  DimLabels d = *m.attrs(conv).get<DimLabels>(Attr::dim_labels);
  std::vector<InstId> ops(m.operands(conv).begin(), m.operands(conv).end());
  bool changed = false;
  for (size_t side = 0; side < 2; ++side) {
    InstId t = ops[side];
    if (m.op(t) != Opcode::Transpose) continue;
    const Dims& p = m.attrs(t).ints(Attr::dimensions);
    auto map = [&](int64_t& x) { x = p[static_cast<size_t>(x)]; };
    if (side == 0) {
      map(d.input_batch), map(d.input_feature);
      for (int64_t& x : d.input_spatial) map(x);
    } else {
      map(d.kernel_input), map(d.kernel_output);
      for (int64_t& x : d.kernel_spatial) map(x);
    }
    ops[side] = m.operand(t, 0);
    changed = true;
  }
  if (!changed || m.has_control(conv) || !ctx.spend(m, "transpose into convolution", {conv})) return false;
  AttrSet set = m.attrs(conv);
  set.set(Attr::dim_labels, d);
  for (Attr key : {Attr::sharding, Attr::frontend_attributes, Attr::backend_config, Attr::origin, Attr::statistics})
    set.erase(key);
  AttrsId attrs = m.u().attrs(std::move(set));
  InstId to =
      m.add(m.parent(conv), {.op = Opcode::Convolution, .shape = m.shape_id(conv), .operands = ops, .attrs = attrs});
  return m.replace(conv, to);
}

}  // namespace

bool run_transpose_folding(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::Dot, Opcode::Convolution})) return false;
  std::vector<InstId> dots, convs;
  for (CompId c : m.nonfusion_computations())
    visit_computation(m, c, [&](InstId i) {
      if (m.op(i) == Opcode::Dot) dots.push_back(i);
      if (m.op(i) == Opcode::Convolution) convs.push_back(i);
    });
  bool changed = false;
  if (ctx.flag("dots"))
    for (InstId i : dots) changed |= fold_dot(m, ctx, i);
  if (ctx.flag("convs"))
    for (InstId i : convs) changed |= fold_conv(m, ctx, i);
  return changed;
}

}  // namespace hlo
