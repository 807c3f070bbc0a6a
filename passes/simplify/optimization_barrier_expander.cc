// cse_barrier_expander (xla/hlo/transforms/expanders/optimization_barrier_expander.cc).
#include "passes/passes.h"

namespace hlo {

// Behind all that a barrier kept apart:
//   b = opt-barrier(t)      r = get-tuple-element(b)      →      r = get-tuple-element(t)
// What was to wait for the barrier, or it for, has to do with what it let through.
bool run_optimization_barrier_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::OptBarrier)) return false;
  std::vector<InstId> barriers;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::OptBarrier) barriers.push_back(i);
  bool changed = false;
  for (InstId barrier : barriers) {
    const InstId through = m.operand(barrier, 0);
    if (!ctx.spend(m, "barrier goes", {barrier, through})) return changed;
    const std::vector<InstId> before(m.control_preds(barrier).begin(), m.control_preds(barrier).end()),
        after(m.control_succs(barrier).begin(), m.control_succs(barrier).end());
    m.drop_control(barrier);
    for (InstId p : before) m.add_control(p, through);
    for (InstId s : after) m.add_control(through, s);
    changed |= m.replace(barrier, through);
  }
  return changed;
}

}  // namespace hlo
