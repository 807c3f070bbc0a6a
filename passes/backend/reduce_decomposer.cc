// reduce-decomposer (xla/hlo/transforms/expanders/reduce_decomposer.cc).
#include <algorithm>

#include "ir/analysis/fusion/reduction.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// Shape of a reduction that leaves the kept dimensions in the order in which the operand has them in memory.
ShapeId natural(Module& m, InstId input, const Dims& gone, ElementType type) {
  const Shape& in = m.shape(input);
  std::vector<int64_t> to(in.dims.size(), -1);
  Dims dims, layout;
  for (size_t d = 0; d < in.dims.size(); ++d)
    if (std::find(gone.begin(), gone.end(), static_cast<int64_t>(d)) == gone.end())
      to[d] = static_cast<int64_t>(dims.size()), dims.push_back(in.dims[d]);
  for (int64_t d : in.layout.minor_to_major)
    if (to[static_cast<size_t>(d)] >= 0) layout.push_back(to[static_cast<size_t>(d)]);
  return m.u().with_layout(m.u().array(type, dims), layout);
}

}  // namespace

//   f32[16,64]{0,1} reduce(f32[8,16,64]{2,1,0} A)      →      copy(f32[16,64]{1,0} reduce(A))
bool run_reduce_decomposer(Module& m, PassContext& ctx) {
  bool changed = false, keep = ctx.flag("keep_tiled");
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Reduce)) {
    size_t n = m.operand_count(i) / 2;
    const Dims gone = m.attrs(i).ints(Attr::dimensions);
    CompId c = m.parent(i);
    const auto layout_of = [&](InstId x) { return m.shape(x).layout.minor_to_major; };
    bool uneven = false;
    for (size_t k = 1; k < n; ++k) uneven |= layout_of(m.operand(i, k)) != layout_of(m.operand(i, 0));
    std::vector<ShapeId> parts;
    bool other = false;
    for (size_t k = 0; k < n; ++k) {
      ShapeId have = m.shape(i).is_tuple() ? m.shape(i).elements[k] : m.shape_id(i);
      parts.push_back(natural(m, m.operand(i, 0), gone, u[have].type));
      other |= parts.back() != have;
    }
    if (keep && kernel_reduction(m.shape(m.operand(i, 0)), gone)) other = false;
    if (!uneven && !other) continue;
    if (!ctx.spend(m, uneven ? "inputs in one layout" : "result in the operand's layout", {i})) return changed;
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
    const auto& first = layout_of(ops[0]);
    for (size_t k = 1; k < n; ++k)
      if (layout_of(ops[k]) != first)
        ops[k] =
            make(m, c, Opcode::Copy, {ops[k]}, {}, u.with_layout(m.shape_id(ops[k]), Dims(first.begin(), first.end())));
    ShapeId shape = !other ? m.shape_id(i) : m.shape(i).is_tuple() ? u.tuple(parts) : parts[0];
    InstId r = m.clone_inst(i, c, ops, shape);
    if (!other) {
      changed |= m.replace(i, r);
    } else if (!m.shape(i).is_tuple()) {
      // Behind the only user where that is a conversion, which may move less.
      InstId user = m.user_count(i) == 1 ? m.users(i)[0] : InstId();
      if (user.valid() && m.op(user) == Opcode::Convert && !m.has_control(user)) {
        InstId narrow = make(m, c, Opcode::Convert, {r}, {}, u.with_type(shape, m.shape(user).type));
        changed |= m.replace(user, make(m, c, Opcode::Copy, {narrow}, {}, m.shape_id(user)));
      } else {
        changed |= m.replace(i, make(m, c, Opcode::Copy, {r}, {}, m.shape_id(i)));
      }
    } else {
      std::vector<InstId> copies;
      for (size_t k = 0; k < n; ++k)
        copies.push_back(
            make(m, c, Opcode::Copy, {make_element(m, r, static_cast<int64_t>(k))}, {}, m.shape(i).elements[k]));
      changed |= m.replace(i, make(m, c, Opcode::Tuple, copies, {}, m.shape_id(i)));
    }
  }
  return changed;
}

}  // namespace hlo
