// async-collective-annotator (xla/service/gpu/transforms/collectives/async_collective_annotator.cc).
#include "ir/analysis/schedule/messages.h"
#include "passes/passes.h"

namespace hlo {
namespace {

// XLA's flags leave all messages asynchronous; but it does not look for those that have a start's opcode of their own
// in an async-start.
bool waits_for_rest(const Module& m, InstId start) {
  if (m.op(start) != Opcode::AsyncStart) return false;
  switch (m.op(m.comp(m.called(start)[0]).root)) {
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter:
      return false;
    default:
      return true;
  }
}

}  // namespace

//   %s = all-gather-start(A)      →      %s = all-gather-start(A), backend_config={… "is_sync":false …}
bool run_async_collective_annotator(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::AllGatherStart, Opcode::AllReduceStart, Opcode::CollectivePermuteStart, Opcode::AsyncStart}))
    return false;
  bool changed = false, seen = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (!starts_message(m, i)) continue;
      seen = true;
      const StrId config = config_with_sync(m, i, waits_for_rest(m, i));
      if (!config.valid() || config == m.attrs(i).text(Attr::backend_config)) continue;
      if (!ctx.spend(m, "says when it runs", {i})) return changed;
      m.set_attr(i, Attr::backend_config, AttrValue(config));
      changed = true;
    }
  ctx.claim(seen);
  return changed;
}

}  // namespace hlo
