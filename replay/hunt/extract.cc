#include "replay/hunt/extract.h"

#include <algorithm>

namespace hlo {
namespace {

// Removes what the root does not need; parameters of others than the entry stay, their number is the callers' affair.
void sweep(Module& m, CompId comp) {
  bool entry = comp == m.entry();
  if (entry)
    for (InstId i : m.live_order(comp)) m.drop_control(i);
  std::unordered_set<InstId> needed{m.comp(comp).root};
  std::vector<InstId> stack{m.comp(comp).root};
  auto need = [&](InstId i) {
    if (needed.insert(i).second) stack.push_back(i);
  };
  if (!entry)
    for (InstId i : m.live_order(comp))
      if (m.has_side_effect(i) || m.op(i) == Opcode::Parameter) need(i);
  while (!stack.empty()) {
    InstId i = stack.back();
    stack.pop_back();
    for (InstId o : m.operands(i)) need(o);
    for (InstId p : m.control_preds(i)) need(p);
  }
  // Users stand behind what they use.
  std::vector<InstId> order = m.post_order(comp);
  for (size_t k = order.size(); k-- > 0;)
    if (!needed.contains(order[k])) m.remove(order[k]);
}

}  // namespace

void tidy_entry(Module& m) {
  CompId entry = m.entry();
  std::vector<bool> seen(m.comp_slots(), false);
  std::vector<CompId> list{entry};
  seen[entry.value] = true;
  for (size_t k = 0; k < list.size(); ++k) {
    sweep(m, list[k]);
    for (InstId i : m.live_order(list[k]))
      for (CompId c : m.called(i))
        if (!seen[c.value]) seen[c.value] = true, list.push_back(c);
  }
  for (CompId c : m.computations())
    if (!seen[c.value]) m.remove_computation(c);
  std::vector<InstId> params = m.comp(entry).params;
  std::erase_if(params, [&](InstId p) { return !m.alive(p); });
  m.set_params(entry, params);
  ModuleConfig& config = m.edit_config();
  config.entry_params.clear();
  for (size_t k = 0; k < params.size(); ++k) {
    m.set_parameter_number(params[k], static_cast<int64_t>(k));
    config.entry_params.push_back(m.shape_id(params[k]));
  }
  config.has_entry_layout = true;
  config.entry_result = m.shape_id(m.comp(entry).root);
  config.is_scheduled = config.alias_passthrough_params = false;
  for (std::string* s : {&config.input_output_alias, &config.buffer_donor, &config.spmd_to_parameters,
                         &config.spmd_to_output, &config.origin_recovery_table})
    s->clear();
  m.cleanup();
}

std::unique_ptr<Module> extracted(const Module& from, const std::vector<InstId>& outputs,
                                  const std::vector<InstId>& cuts) {
  std::unique_ptr<Module> copy = from.clone();
  Module& m = *copy;
  CompId comp = m.parent(outputs.at(0));
  m.set_entry(comp);
  std::unordered_map<InstId, InstId> stand_in;
  for (InstId cut : cuts) {
    if (m.op(cut) == Opcode::Parameter || stand_in.contains(cut)) continue;
    InstId p = m.parameter(comp, static_cast<int64_t>(m.comp(comp).params.size()), m.shape_id(cut), "cut");
    m.set_meta(p, m[cut].meta);
    for (InstId user : m.users_copy(cut))
      for (size_t k = 0; k < m.operand_count(user); ++k)
        if (m.operand(user, k) == cut) m.set_operand(user, k, p);
    stand_in[cut] = p;
  }
  std::vector<InstId> results;
  for (InstId o : outputs) {
    auto at = stand_in.find(o);
    results.push_back(at == stand_in.end() ? o : at->second);
  }
  InstId root = results[0];
  if (results.size() > 1) {
    std::vector<ShapeId> shapes;
    for (InstId r : results) shapes.push_back(m.shape_id(r));
    root = m.add(comp, {.op = Opcode::Tuple, .shape = m.u().tuple(shapes), .operands = results, .name = "outputs"});
  }
  m.set_root(comp, root);
  tidy_entry(m);
  for (auto [cut, p] : stand_in)
    if (m.alive(p)) m.set_name(p, from[cut].name);
  return copy;
}

std::vector<InstId> boundary(const Module& m, const std::vector<InstId>& outputs, size_t hops) {
  std::unordered_map<InstId, size_t> distance;
  std::vector<InstId> list, cuts;
  for (InstId o : outputs)
    if (distance.emplace(o, 0).second) list.push_back(o);
  for (size_t k = 0; k < list.size(); ++k) {
    size_t d = distance[list[k]];
    if (d > hops) {
      // A constant is as good as a parameter, and says more.
      if (m.op(list[k]) != Opcode::Constant) cuts.push_back(list[k]);
      continue;
    }
    for (InstId o : m.operands(list[k]))
      if (distance.emplace(o, d + 1).second) list.push_back(o);
  }
  return cuts;
}

Values::Values(const Module& m, const Session& session, const EvalOptions& options, int64_t most_bytes) {
  int64_t bytes = 0;
  EvalOptions traced = options;
  auto size = [&](auto&& self, const Value& v) -> int64_t {
    int64_t sum = v.data ? static_cast<int64_t>(v.data->size()) : 0;
    for (const Value& e : v.elements) sum += self(self, e);
    return sum;
  };
  traced.trace = [&](InstId i, std::span<const Value>, const Value& v) {
    if (values_.contains(m[i].name)) return;
    int64_t more = size(size, v);
    if (bytes + more > most_bytes) return;
    bytes += more;
    values_.emplace(m[i].name, v);
  };
  session.run(m, *find_executor("evaluator"), traced, 1, false);
}

const Value* Values::find(StrId name) const {
  auto at = values_.find(name);
  return at == values_.end() ? nullptr : &at->second;
}

std::vector<Value> Values::arguments(const Module& m, uint64_t seed, bool positive) const {
  std::vector<Value> out = seeded_arguments(m, seed, positive);
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  for (size_t k = 0; k < params.size(); ++k)
    if (const Value* v = find(m[params[k]].name); v && m.u().compatible(v->shape, out[k].shape)) {
      ShapeId shape = out[k].shape;
      out[k] = *v;
      out[k].shape = shape;
    }
  return out;
}

}  // namespace hlo
