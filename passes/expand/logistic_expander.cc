// logistic-expander (xla/hlo/transforms/expanders/logistic_expander.cc).
#include "passes/rewrite.h"

namespace hlo {

//   logistic(A)      →      1 / (1 + exp(-A))
bool run_logistic_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Logistic)) return false;
  std::vector<InstId> found;
  each_instruction(m, [&](InstId i) {
    if (m.op(i) == Opcode::Logistic && !m.has_control(i)) found.push_back(i);
    return false;
  });
  bool changed = false;
  for (InstId i : found) {
    if (!ctx.spend(m, "logistic", {i})) return changed;
    InstId x = m.operand(i, 0);
    InstId one = make_scalar_like(m, x, 1);
    CompId c = m.parent(i);
    InstId n = make(m, c, Opcode::Negate, {x}, {}, m.shape_id(x));
    InstId e = make(m, c, Opcode::Exp, {n}, {}, m.shape_id(x));
    InstId d = make(m, c, Opcode::Add, {one, e}, {}, m.shape_id(x));
    InstId q = make(m, c, Opcode::Divide, {one, d}, {}, m.shape_id(i));
    changed |= m.replace(i, q);
  }
  return changed;
}

}  // namespace hlo
