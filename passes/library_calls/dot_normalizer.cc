// dot_normalizer (xla/backends/gpu/transforms/dot_normalizer.cc).
#include "passes/rewrite.h"

namespace hlo {

//   dot(f32[8] A, f32[9] B), which sums nothing      →      dot(f32[8,1] bitcast(A), f32[9,1] bitcast(B))
bool run_dot_normalizer(Module& m, PassContext& ctx) {
  Universe& u = m.u();
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Dot)) {
    if (m.operand_count(i) != 2 || !m.attrs(i).ints(Attr::lhs_contracting_dims).empty()) continue;
    if (m.shape(m.operand(i, 0)).is_dynamic() || m.shape(m.operand(i, 1)).is_dynamic()) continue;
    if (!ctx.spend(m, "a dimension of one element to sum", {i})) return changed;
    AttrSet set = m.attrs(i);
    std::vector<InstId> operands;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const InstId x = m.operand(i, side);
      Shape s = m.shape(x);
      const int64_t last = s.rank();
      s.dims.push_back(1);
      if (s.has_layout) s.layout.minor_to_major.insert(s.layout.minor_to_major.begin(), last);
      set.set(side ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims, Dims{last});
      operands.push_back(make_derived(m, i, Opcode::Bitcast, {x}, {}, u.shape(std::move(s))));
    }
    m.set_operands(i, operands);
    m.set_attrs(i, u.attrs(std::move(set)));
    changed = true;
  }
  return changed;
}

}  // namespace hlo
