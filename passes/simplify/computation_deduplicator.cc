// computation-deduplicator (xla/hlo/transforms/simplifiers/hlo_computation_deduplicator.cc).
#include "ir/query/fingerprint.h"
#include "passes/rewrite.h"

namespace hlo {

//   two computations that do the same      →      one
bool run_computation_deduplicator(Module& m, PassContext& ctx) {
  constexpr size_t kMostInstructions = 128;
  constexpr int64_t kMostConstantBytes = 1024;
  // Behind fusion XLA only marks fusions that are alike, in metadata that its dumps do not show.
  if (ctx.flag("mark_fusion_duplications")) return false;
  const std::vector<bool> fused = m.fusion_computation_flags();  // a fusion's body is its own
  std::unordered_map<CompId, bool> of_collectives;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && op_info(m.op(i)).cls == OpClass::Collective)
        for (CompId callee : m.called(i)) of_collectives[callee] = true;
  Fingerprints prints(m);
  std::unordered_map<uint64_t, CompId> first;
  std::unordered_map<CompId, CompId> same;
  for (CompId c : m.computation_post_order()) {
    if (c == m.entry() || fused[c.value] || of_collectives.contains(c) || m.size(c) > kMostInstructions) continue;
    int64_t bytes = 0;
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::Constant) bytes += m.u().leaf_bytes(m.shape_id(i));
    if (bytes > kMostConstantBytes) continue;
    auto [at, fresh] = first.emplace(prints.computation(c), c);
    if (!fresh) same[c] = at->second;
  }
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      for (CompId callee : std::vector<CompId>(m.called(i))) {
        auto twin = same.find(callee);
        if (twin == same.end()) continue;
        if (!ctx.spend(m, "computation that is there already", {i},
                       fmt::format("{} is {}", m.comp_name(callee), m.comp_name(twin->second))))
          return changed;
        m.replace_called(i, callee, twin->second);
        changed = true;
      }
  if (!changed) return false;
  m.remove_uncalled_computations();
  return true;
}

}  // namespace hlo
