// dot_decomposer (xla/hlo/transforms/expanders/dot_decomposer.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

bool canonical(const Module& m, InstId dot) {
  for (size_t side = 0; side < 2; ++side) {
    const Dims& batch = m.attrs(dot).ints(side ? Attr::rhs_batch_dims : Attr::lhs_batch_dims);
    const Dims& contract = m.attrs(dot).ints(side ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims);
    if (contract.size() != 1) return false;
    int64_t free = m.shape(m.operand(dot, side)).rank() - static_cast<int64_t>(batch.size() + contract.size());
    if (free > 1) return false;
    for (size_t b = 0; b < batch.size(); ++b)
      if (batch[b] != static_cast<int64_t>(b)) return false;
  }
  return true;
}

//   dot(A[m1,m2,k1,k2], B)      →      reshape(dot(reshape(transpose(A)), reshape(transpose(B))))
void decompose(Module& m, InstId dot) {
  const AttrSet attrs = m.attrs(dot);
  const Dims &lb = attrs.ints(Attr::lhs_batch_dims), &rb = attrs.ints(Attr::rhs_batch_dims),
             &lc = attrs.ints(Attr::lhs_contracting_dims), &rc = attrs.ints(Attr::rhs_contracting_dims);
  // XLA lists the batch as it stands in the left operand, on both sides: where the order differs, sizes are regrouped.
  Dims batch_sizes;
  for (int64_t d = 0; d < m.shape(m.operand(dot, 0)).rank(); ++d)
    if (contains(lb, d)) batch_sizes.push_back(m.shape(m.operand(dot, 0)).dims[static_cast<size_t>(d)]);
  auto side = [&](size_t which, const Dims& batch, const Dims& contract, bool free_first, bool* has_free) {
    InstId x = m.operand(dot, which);
    const Dims in = m.shape(x).dims;
    Dims order, dims;
    order.reserve(in.size()), dims.reserve(batch_sizes.size() + 2);
    order = batch;
    int64_t free_size = 1, contract_size = 1;
    *has_free = false;
    auto free = [&] {
      for (int64_t d = 0; d < static_cast<int64_t>(in.size()); ++d)
        if (!contains(batch, d) && !contains(contract, d))
          order.push_back(d), free_size *= in[static_cast<size_t>(d)], *has_free = true;
    };
    auto contracted = [&] {
      for (int64_t d : contract) order.push_back(d), contract_size *= in[static_cast<size_t>(d)];
    };
    if (free_first)
      free(), contracted();
    else
      contracted(), free();
    for (int64_t d : batch_sizes) dims.push_back(d);
    // A group that multiplies to one free element leaves no dimension.
    bool keep_free = *has_free && free_size != 1;
    *has_free = keep_free;
    if (free_first) {
      if (keep_free) dims.push_back(free_size);
      dims.push_back(contract_size);
    } else {
      dims.push_back(contract_size);
      if (keep_free) dims.push_back(free_size);
    }
    // XLA permutes the sizes and keeps the operand's layout as it stands.
    const Shape& from = m.shape(x);
    ShapeId turned;
    if (!from.is_dynamic()) {
      Dims sizes;
      for (int64_t d : order) sizes.push_back(in[static_cast<size_t>(d)]);
      turned = m.u().with_layout(m.u().array(from.type, std::move(sizes)), from.layout.minor_to_major);
    }
    AttrsId permutation = dims_attr(m.u(), Opcode::Transpose, std::move(order));
    InstId moved = make_derived(m, x, Opcode::Transpose, {x}, permutation, turned);
    if (!turned.valid()) m.set_shape(moved, m.u().with_layout(m.shape_id(moved), from.layout.minor_to_major));
    const InstId flat = make_reshape(m, moved, dims);
    // They are called as the operand is, and have nothing else of it.
    for (InstId i : {moved, flat}) m.erase_attr(i, Attr::frontend_attributes);
    return flat;
  };
  bool lhs_free, rhs_free;
  InstId l = side(0, lb, lc, true, &lhs_free), r = side(1, rb, rc, false, &rhs_free);
  int64_t b = static_cast<int64_t>(lb.size());
  Dims batch;
  for (int64_t k = 0; k < b; ++k) batch.push_back(k);
  AttrSet set = attrs;
  if (b) set.set(Attr::lhs_batch_dims, batch), set.set(Attr::rhs_batch_dims, batch);
  set.set(Attr::lhs_contracting_dims, Dims{b + lhs_free}), set.set(Attr::rhs_contracting_dims, Dims{b});
  for (Attr key : {Attr::sharding, Attr::origin}) set.erase(key);
  Dims out = batch;
  for (size_t k = 0; k < out.size(); ++k) out[k] = m.shape(l).dims[k];
  if (lhs_free) out.push_back(m.shape(l).dims[static_cast<size_t>(b)]);
  if (rhs_free) out.push_back(m.shape(r).dims[static_cast<size_t>(b) + 1]);
  AttrsId id = m.u().attrs(std::move(set));
  InstId small = m.add_derived(
      dot, {.op = Opcode::Dot, .shape = m.u().array(m.shape(dot).type, out), .operands = {l, r}, .attrs = id});
  InstId back = make(m, m.parent(dot), Opcode::Reshape, {small}, {}, m.shape_id(dot));
  m.replace(dot, back);
}

}  // namespace

bool run_dot_decomposer(Module& m, PassContext& ctx) {
  std::vector<InstId> dots;
  const std::vector<bool> there = m.computations_with(Opcode::Dot);
  if (there.empty()) return false;
  for (CompId c : m.nonfusion_computations()) {
    if (!there[c.value]) continue;
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && m.op(i) == Opcode::Dot && !canonical(m, i) && !m.has_control(i)) dots.push_back(i);
  }
  bool changed = false;
  for (InstId i : dots) {
    if (!ctx.spend(m, "dot made canonical", {i})) return changed;
    decompose(m, i);
    changed = true;
  }
  return changed;
}

}  // namespace hlo
