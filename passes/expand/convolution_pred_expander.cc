// convolution-pred-expander (xla/hlo/transforms/expanders/convolution_pred_expander.cc).
#include "passes/rewrite.h"

namespace hlo {

//   pred convolution(A, F)      →      convert(f16 convolution(convert(A), convert(F)))
bool run_convolution_pred_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Convolution)) {
    if (m.shape(m.operand(i, 0)).type != ElementType::Pred || m.shape(m.operand(i, 1)).type != ElementType::Pred ||
        m.shape(i).type != ElementType::Pred)
      continue;
    if (!ctx.spend(m, "convolution of truth values", {i})) return changed;
    std::vector<InstId> ops{make_convert(m, m.operand(i, 0), ElementType::F16),
                            make_convert(m, m.operand(i, 1), ElementType::F16)};
    InstId conv = m.clone_inst(i, m.parent(i), ops, m.u().with_type(m.shape_id(i), ElementType::F16));
    changed |= m.replace(i, m.add(m.parent(i), {.op = Opcode::Convert, .shape = m.shape_id(i), .operands = {conv}}));
  }
  return changed;
}

}  // namespace hlo
