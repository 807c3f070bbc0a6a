// sharding-remover (xla/service/sharding_remover.cc).
#include "passes/rewrite.h"

namespace hlo {
namespace {

std::string_view target(const Module& m, InstId i) {
  return m.op(i) == Opcode::CustomCall ? m.u().text(m.attrs(i).text(Attr::custom_call_target)) : std::string_view();
}

}  // namespace

//   custom-call(A), custom_call_target="Sharding"      →      copy(A), its users read A
bool run_sharding_remover(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations()) {
    std::vector<InstId> order = m.post_order(c);
    for (size_t k = order.size(); k-- > 0;) {
      InstId i = order[k];
      std::string_view t = target(m, i);
      bool barrier = t == "xla.sdy.PropagationBarrier" || t == "xla.sdy.FuncResultSharding";
      bool group = t == "xla.sdy.ShardingGroup";
      if (t != "Sharding" && t != "SPMDShardToFullShape" && t != "SPMDFullToShardShape" && !barrier && !group) continue;
      if (m.operand_count(i) != 1) continue;
      InstId x = m.operand(i, 0);
      if (!group && !m.u().compatible(m.shape_id(x), m.shape_id(i)))
        fail(FailureKind::kUnsupported, "sharding-remover: {} changes the shape of {}: the module is partitioned",
             m.inst_name(i), m.inst_name(x));
      if (!ctx.spend(m, "mark of the partitioner", {i, x})) return changed;
      changed = true;
      if (group) {
        if (m.dead(i)) m.remove(i);
        continue;
      }
      m.replace_all_uses(i, x);
      m.replace(i, make(m, c, Opcode::Copy, {x}, {}, m.shape_id(i)));
    }
  }
  return changed;
}

}  // namespace hlo
