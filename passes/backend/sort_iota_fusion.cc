// sort-iota-fusion (xla/backends/gpu/transforms/sort_iota_fusion.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

//   sort(A, iota)      →      fusion(A), kind=kCustom, calls={ sort(parameter, iota) }
bool run_sort_iota_fusion(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Sort)) {
    bool counted =
        std::any_of(m.operands(i).begin(), m.operands(i).end(), [&](InstId o) { return m.op(o) == Opcode::Iota; });
    if (!counted) continue;
    if (!ctx.spend(m, "iota into a sort", {i})) return changed;
    CompId body = m.add_computation("fused_computation");
    std::vector<InstId> arguments, inside;
    std::unordered_map<InstId, InstId> map;
    for (InstId o : std::vector<InstId>(m.operands(i).begin(), m.operands(i).end())) {
      InstId& to = map[o];
      if (!to.valid()) {
        if (m.op(o) == Opcode::Iota) {
          to = m.clone_inst(o, body, {});
        } else {
          to = m.parameter(body, static_cast<int64_t>(arguments.size()), m.shape_id(o),
                           fmt::format("param_{}", arguments.size()));
          arguments.push_back(o);
        }
      }
      inside.push_back(to);
    }
    m.set_root(body, m.clone_inst(i, body, inside));
    InstId fusion = m.add(
        m.parent(i), {.op = Opcode::Fusion,
                      .shape = m.shape_id(i),
                      .operands = arguments,
                      .attrs = attrs_of(u, Opcode::Fusion, {{Attr::kind, u.str("kCustom")}, {Attr::calls, body}})});
    changed |= m.replace(i, fusion);
  }
  return changed;
}

}  // namespace hlo
