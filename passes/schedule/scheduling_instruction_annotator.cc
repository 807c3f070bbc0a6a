// scheduling-instruction-annotator (xla/backends/gpu/transforms/scheduling_instruction_annotator.cc).
#include "passes/passes.h"

namespace hlo {

//   %add = add(…)      →      %add = add(…), metadata={scheduling_name="add"}
// Constants are left out: their names change later.
bool run_scheduling_instruction_annotator(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) == Opcode::Constant) continue;
      Metadata meta = m.u()[m[i].meta];
      if (meta.scheduling_name == m[i].name.value) continue;
      if (!ctx.spend(m, "named for the schedule", {i})) return changed;
      meta.scheduling_name = m[i].name.value;
      m.set_meta(i, m.u().metadata(meta));
      changed = true;
    }
  return changed;
}

}  // namespace hlo
