// rename-instructions (xla/service/gpu/transforms/rename_instructions.cc).
#include "passes/rewrite.h"

namespace hlo {

//   %add      →      %add.0       so that copies of an instruction can be told from it
bool run_rename_instructions(Module& m, PassContext& ctx) {
  bool changed = false;
  std::string wish;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      switch (m.op(i)) {
        case Opcode::Parameter:
        case Opcode::CustomCall:
        case Opcode::Fusion:
        case Opcode::Domain:
        case Opcode::While:
        case Opcode::Conditional:
        case Opcode::Call:
          continue;
        default:
          break;
      }
      if (m.has_side_effect(i)) continue;
      if (!ctx.spend(m, "a number for its copies", {i})) return changed;
      wish.assign(m.inst_name(i)).append(".0");
      m.set_uniquified_name(i, wish);
      changed = true;
    }
  return changed;
}

}  // namespace hlo
