// all-gather-bcast-reorder (xla/hlo/transforms/collectives/all_gather_broadcast_reorder.cc).
#include <algorithm>

#include "passes/collectives/collectives.h"
#include "passes/rewrite.h"

namespace hlo {

//   all-gather(broadcast(A)), along a dimension of A      →      broadcast(all-gather(A))
//   f32[16,4] all-gather(f32[4,4] broadcast(f32[] A))      →      reshape(f32[4,4,4] broadcast(f32[4] all-gather(…)))
bool run_all_gather_bcast_reorder(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  int64_t channel = 0;
  for (InstId i : all_of_opcode(m, Opcode::AllGather)) {
    if (m.operand_count(i) != 1 || !m.shape(i).is_array()) continue;
    InstId b = m.operand(i, 0);
    if (m.op(b) != Opcode::Broadcast || m.user_count(b) != 1) continue;
    const Dims map = m.attrs(b).ints(Attr::dimensions), to = m.shape(i).dims;
    int64_t along = m.attrs(i).ints(Attr::dimensions)[0], from = 0;
    auto at = std::find(map.begin(), map.end(), along);
    const int64_t part = m.shape(b).dims[static_cast<size_t>(along)];
    // Arrays that are the same all along what is gathered XLA leaves; of a scalar each device's value is gathered.
    const bool scalar = map.empty() && part > 0;
    if (at == map.end() && !scalar) continue;
    if (!ctx.spend(m, scalar ? "all-gather of a scalar" : "all-gather before the broadcast", {i, b})) return changed;
    CompId c = m.parent(i);
    InstId a = m.operand(b, 0);
    Dims dims = m.shape(a).dims;
    if (scalar) {
      a = make_reshape(m, a, {1});
      dims = {to[static_cast<size_t>(along)] / part};
    } else {
      from = at - map.begin();
      dims[static_cast<size_t>(from)] = to[static_cast<size_t>(along)];
    }
    InstId gather = m.clone_inst(i, c, std::vector<InstId>{a}, u.with_dims(m.shape_id(a), dims));
    m.set_attr(gather, Attr::dimensions, Dims{from});
    if (m.attrs(i).has(Attr::channel_id)) m.set_attr(gather, Attr::channel_id, next_channel(m, &channel));
    if (scalar) {
      Dims wide = m.shape(b).dims;
      wide.insert(wide.begin() + along, dims[0]);
      InstId spread = make_broadcast(m, c, gather, {along}, u.with_dims(m.shape_id(a), wide));
      InstId whole = make_reshape(m, spread, to);
      m.set_shape(whole, m.shape_id(i));  // its layout too
      changed |= m.replace(i, whole);
      continue;
    }
    changed |= m.replace(i, m.clone_inst(b, c, std::vector<InstId>{gather}, m.shape_id(i)));
  }
  return changed;
}

}  // namespace hlo
