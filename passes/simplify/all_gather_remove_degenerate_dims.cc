// all-gather-remove-degenerate-dims (xla/hlo/transforms/collectives/all_gather_remove_degenerate_dims.cc).
#include "passes/rewrite.h"

namespace hlo {

//   f32[1,32] all-gather(f32[1,8] A)      →      reshape(f32[32] all-gather(reshape(A)))
bool run_all_gather_remove_degenerate_dims(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::AllGather)) {
    if (m.operand_count(i) != 1 || !m.shape(i).is_array()) continue;
    const Shape to = m.shape(i), from = m.shape(m.operand(i, 0));
    int64_t along = m.attrs(i).ints(Attr::dimensions)[0], place = 0;
    Dims kept, brought;
    for (int64_t d = 0; d < to.rank(); ++d) {
      auto at = static_cast<size_t>(d);
      if (to.dims[at] == 1 && d != along) continue;
      if (d == along) place = static_cast<int64_t>(kept.size());
      kept.push_back(to.dims[at]), brought.push_back(from.dims[at]);
    }
    if (kept.size() == to.dims.size()) continue;
    if (!ctx.spend(m, "dimensions of one", {i})) return changed;
    InstId a = make_reshape(m, m.operand(i, 0), brought);
    InstId gather = m.clone_inst(i, m.parent(i), std::vector<InstId>{a}, u.with_dims(m.shape_id(i), kept));
    m.set_attr(gather, Attr::dimensions, Dims{place});
    changed |= m.replace(i, make_reshape(m, gather, to.dims));
  }
  return changed;
}

}  // namespace hlo
