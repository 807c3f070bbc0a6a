// gpu-convert-async-collectives-to-sync (xla/hlo/transforms/collectives/convert_async_collectives_to_sync.cc).
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/schedule/messages.h"
#include "passes/passes.h"

namespace hlo {
namespace {

// As XLA's GPU gives it to the pass: a tuple is none of these.
bool runs_nothing(Opcode op) {
  return op == Opcode::Parameter || op == Opcode::Constant || op == Opcode::Bitcast || op == Opcode::GetTupleElement;
}

// Starts whose message is waited for before anything else runs.
std::vector<InstId> waited_for_at_once(const Module& m, CompId c) {
  std::vector<InstId> out;
  std::unordered_set<InstId> open;
  for (InstId i : m.live_order(c)) {
    if (starts_message(m, i)) {
      open.insert(i);
    } else if (ends_message(m, i)) {
      if (open.erase(m.operand(i, 0))) out.push_back(m.operand(i, 0));
    } else if (!runs_nothing(m.op(i))) {
      open.clear();
    }
  }
  return out;
}

// They go right in front of what waits for them, where nothing waits for the start itself.
void move_to_ends(Module& m, CompId c, const std::vector<InstId>& starts) {
  std::unordered_map<InstId, InstId> start_of;  // by what waits
  std::unordered_set<InstId> moved;
  for (InstId s : starts)
    if (m.control_succs(s).empty()) start_of[m.users(s)[0]] = s, moved.insert(s);
  const std::vector<InstId> had = m.live_order(c);
  std::vector<InstId> order;
  for (InstId i : had) {
    if (moved.contains(i)) continue;
    if (const auto it = start_of.find(i); it != start_of.end()) order.push_back(it->second);
    order.push_back(i);
  }
  if (order != had) m.set_order(c, std::move(order));
}

}  // namespace

//   %s = all-gather-start(A)                %x = bitcast(B)
//                                           %s = all-gather-start(A), backend_config={… "is_sync":true …}
//   %x = bitcast(B)               →         %d = all-gather-done(%s)          nothing runs between them
//   %d = all-gather-done(%s)
bool run_convert_async_collectives_to_sync(Module& m, PassContext& ctx) {
  if (!m.config().is_scheduled) return false;
  bool changed = false, seen = false;
  for (CompId c : m.nonfusion_computations()) {
    std::vector<InstId> tagged;
    for (InstId start : waited_for_at_once(m, c)) {
      seen = true;
      const StrId config = config_with_sync(m, start, true);
      if (!config.valid() || config == m.attrs(start).text(Attr::backend_config)) continue;
      if (!ctx.spend(m, "nothing runs during it", {start})) break;
      m.set_attr(start, Attr::backend_config, AttrValue(config));
      tagged.push_back(start);
    }
    if (tagged.empty()) continue;
    move_to_ends(m, c, tagged);
    changed = true;
  }
  ctx.claim(seen);
  return changed;
}

}  // namespace hlo
