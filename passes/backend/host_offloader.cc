// host-offloader (xla/hlo/transforms/host_offloader.cc), of what lies on the device alone.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

// What a module has twice goes at its end, whether anything moves to the host's memory or not.
bool run_host_offloader(Module& m, PassContext& ctx) {
  for (InstId i : all_of_opcode(m, Opcode::CustomCall)) {
    const std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
    if (target == "MoveToHost" || target == "MoveToDevice" || target == "annotate_device_placement")
      ctx.note(m, "not moved", {i}, "arrays in the host's memory stay where they are");
  }
  return ctx.run(m, "cse", {{"layout_sensitive", "true"}});
}

}  // namespace hlo
