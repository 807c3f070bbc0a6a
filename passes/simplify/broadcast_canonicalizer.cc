// broadcast_canonicalizer (xla/hlo/transforms/simplifiers/broadcast_canonicalizer.cc).
#include <algorithm>
#include <numeric>

#include "passes/rewrite.h"

namespace hlo {

//   broadcast(A), dimensions={2,0}      →      broadcast(transpose(A)), dimensions={0,2}
bool run_broadcast_canonicalizer(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Broadcast)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::Broadcast) continue;
      Dims dims = m.attrs(i).ints(Attr::dimensions);
      if (std::is_sorted(dims.begin(), dims.end()) || m.has_control(i)) continue;
      if (!ctx.spend(m, "dimensions out of order", {i})) return changed;
      Dims order(dims.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return dims[static_cast<size_t>(a)] < dims[static_cast<size_t>(b)];
      });
      std::sort(dims.begin(), dims.end());
      InstId x = m.operand(i, 0), moved = make_transpose(m, x, order);
      m.set_shape(moved, m.u().with_layout(m.shape_id(moved), m.shape(x).layout.minor_to_major));
      changed |= m.replace(i, make_broadcast(m, c, moved, dims, m.shape_id(i)));
    }
  return changed;
}

}  // namespace hlo
