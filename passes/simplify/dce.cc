// dce (xla/hlo/transforms/simplifiers/hlo_dce.cc): removes what nothing needs.
#include <algorithm>
#include <unordered_set>

#include "passes/rewrite.h"

namespace hlo {
namespace {

bool is_sharding_call(const Module& m, InstId i) {
  return m.op(i) == Opcode::CustomCall && m.u().text(m.attrs(i).text(Attr::custom_call_target)) == "Sharding";
}

// Drops outputs of a multi-output fusion that no user takes.
bool trim_fusion_outputs(Module& m, PassContext& ctx, InstId fusion) {
  CompId body = m.called(fusion)[0];
  InstId root = m.comp(body).root;
  if (m.op(root) != Opcode::Tuple || m.attrs(root).has(Attr::sharding) || m.is_root(fusion) || m.has_control(fusion))
    return false;
  if (m.attrs(fusion).has(Attr::output_to_operand_aliasing) ||
      m.u().text(m.attrs(fusion).text(Attr::kind)) == "kCustom")
    return false;
  std::vector<InstId> users = m.users_copy(fusion);
  if (users.empty()) return false;
  std::vector<bool> used(m.operand_count(root), false);
  for (InstId user : users) {
    if (m.op(user) != Opcode::GetTupleElement) return false;
    used[static_cast<size_t>(m.attrs(user).integer(Attr::index))] = true;
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (m.has_side_effect(m.operand(root, i))) used[i] = true;
  std::vector<InstId> kept;
  std::vector<int64_t> index(used.size(), -1);
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) index[i] = static_cast<int64_t>(kept.size()), kept.push_back(m.operand(root, i));
  if (kept.size() == used.size() || !ctx.spend(m, "unused fusion outputs", {fusion})) return false;
  if (kept.size() == 1) {
    m.set_root(body, kept[0]);
    m.set_shape(fusion, m.shape_id(kept[0]));
    for (InstId gte : users) {
      m.replace_all_uses(gte, fusion);
      m.remove(gte);
    }
  } else {
    InstId tuple = make(m, body, Opcode::Tuple, kept);
    m.set_root(body, tuple);
    m.set_shape(fusion, m.shape_id(tuple));
    for (InstId gte : users)
      m.set_attr(gte, Attr::index, index[static_cast<size_t>(m.attrs(gte).integer(Attr::index))]);
  }
  m.remove_with_unused_operands(root, false);
  return true;
}

bool remove_dead_parameters(Module& m, PassContext& ctx, InstId fusion) {
  CompId body = m.called(fusion)[0];
  bool changed = false;
  for (size_t n = m.comp(body).params.size(); n-- > 0;) {
    std::vector<InstId> params = m.comp(body).params;
    InstId p = params[n];
    if (!m.users(p).empty() || m.is_root(p) || m.attrs(fusion).has(Attr::output_to_operand_aliasing)) continue;
    if (!ctx.spend(m, "unused fusion parameter", {p})) return changed;
    std::vector<InstId> operands(m.operands(fusion).begin(), m.operands(fusion).end());
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(n));
    m.set_operands(fusion, operands);
    m.remove(p);
    params.erase(params.begin() + static_cast<ptrdiff_t>(n));
    for (size_t k = n; k < params.size(); ++k) m.set_parameter_number(params[k], static_cast<int64_t>(k));
    m.set_params(body, std::move(params));
    changed = true;
  }
  return changed;
}

}  // namespace

bool run_dce(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<std::vector<InstId>> callers = m.callers();
  std::vector<bool> seen(m.comp_slots(), false);
  std::vector<CompId> agenda{m.entry()};
  seen[m.entry().value] = true;
  while (!agenda.empty()) {
    CompId comp = agenda.back();
    agenda.pop_back();
    for (InstId caller : callers[comp.value])
      if (m.alive(caller) && m.op(caller) == Opcode::Fusion && callers[comp.value].size() == 1)
        changed |= trim_fusion_outputs(m, ctx, caller);
    std::vector<InstId> dead;
    for (InstId i : m.live_order(comp)) {
      if (!m.dead(i) || !m.safely_removable(i) || m.has_side_effect(i)) continue;
      if (is_sharding_call(m, i)) {
        InstId operand = m.operand(i, 0);
        if (m.is_root(operand) || m.op(operand) == Opcode::Parameter || m.user_count(operand) != 1) continue;
      }
      dead.push_back(i);
    }
    for (InstId i : dead) {
      if (!m.alive(i)) continue;
      if (!ctx.spend(m, "dead instruction", {i})) return changed;
      m.remove_with_unused_operands(i, false);
      changed = true;
    }
    for (InstId caller : callers[comp.value])
      if (m.alive(caller) && m.op(caller) == Opcode::Fusion && callers[comp.value].size() == 1)
        changed |= remove_dead_parameters(m, ctx, caller);
    for (InstId i : m.live_order(comp))
      for (CompId callee : m.called(i))
        if (!seen[callee.value]) seen[callee.value] = true, agenda.push_back(callee);
  }
  for (CompId c : m.computations())
    if (!seen[c.value]) {
      if (!ctx.spend(m, "dead computation", {}, m.comp_name(c))) return changed;
      m.remove_computation(c);
      changed = true;
    }
  return changed;
}

}  // namespace hlo
