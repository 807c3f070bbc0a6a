#include "ir/query/fingerprint.h"

#include "ir/base/stack_guard.h"

namespace hlo {

uint64_t Fingerprints::instruction(InstId inst) {
  const Inst& i = m_[inst];
  const Universe& u = m_.u();
  const std::string& shape = options_.layouts ? u.shape_text(i.shape) : u.shape_text_plain(i.shape);
  uint64_t h = hash_combine(static_cast<uint64_t>(i.op), hash_bytes(shape));
  if (i.op == Opcode::Constant) {
    const Literal& lit = u[LitId(i.operand[0])];
    return hash_combine(h, hash_combine(hash_bytes(lit.bytes), lit.elements.empty() ? lit.elided : i.operand[0]));
  }
  if (i.op == Opcode::Parameter) h = hash_combine(h, i.operand[0]);
  return with_attrs(inst, h);
}

uint64_t Fingerprints::elements(InstId inst) { return elements(inst, m_.shape(inst).elements_count()); }

uint64_t Fingerprints::elements(InstId inst, int64_t count) {
  uint64_t h = hash_combine(static_cast<uint64_t>(m_.op(inst)), static_cast<uint64_t>(m_.shape(inst).type));
  return with_attrs(inst, hash_combine(h, static_cast<uint64_t>(count)));
}

uint64_t Fingerprints::with_attrs(InstId inst, uint64_t h) {
  const Inst& i = m_[inst];
  const Universe& u = m_.u();
  if (!i.attrs.valid()) return h;
  auto known = attrs_known_.find(i.attrs.value);
  if (known != attrs_known_.end()) return known->second ? hash_combine(h, *known->second) : h;
  AttrSet set = u[i.attrs];
  set.erase(Attr::frontend_attributes);
  set.erase(Attr::origin);
  set.erase(Attr::statistics);
  if (!options_.sharding) set.erase(Attr::sharding);
  if (!options_.config) set.erase(Attr::backend_config);
  // A sharding that does not count leaves what is written without one.
  if (set.list.empty() && set.called.empty()) {
    attrs_known_[i.attrs.value] = std::nullopt;
    return h;
  }
  uint64_t a = 0;
  for (CompId c : set.called) a = hash_combine(a, computation(c));
  for (auto& [key, value] : set.list) {
    if (CompId* one = std::get_if<CompId>(&value)) *one = CompId();
    if (auto* many = std::get_if<std::vector<CompId>>(&value)) many->assign(many->size(), CompId());
    // Interned texts have ids of one universe; take their bytes so that two runs agree.
    if (StrId* text = std::get_if<StrId>(&value)) a = hash_combine(a, hash_bytes(u.text(*text))), *text = StrId();
    if (ShapeId* shape_value = std::get_if<ShapeId>(&value))
      a = hash_combine(a, hash_bytes(u.shape_text(*shape_value))), *shape_value = ShapeId();
    if (auto* shapes = std::get_if<std::vector<ShapeId>>(&value)) {
      for (ShapeId& s : *shapes) a = hash_combine(a, hash_bytes(u.shape_text(s))), s = ShapeId();
    }
  }
  a = hash_combine(a, hash_bytes(attr_key(set)));
  attrs_known_[i.attrs.value] = a;
  return hash_combine(h, a);
}

uint64_t Fingerprints::computation(CompId comp) {
  if (auto found = known_.find(comp); found != known_.end()) return found->second;
  check_stack("computations call each other");
  if (options_.any_order) return known_[comp] = in_any_order(comp);
  std::unordered_map<InstId, uint64_t> number;
  uint64_t h = m_.comp(comp).params.size();
  for (InstId i : m_.post_order(comp)) {
    h = hash_combine(h, instruction(i));
    for (InstId o : m_.operands(i)) h = hash_combine(h, number.at(o));
    uint64_t next = number.size();
    number[i] = next;
  }
  h = hash_combine(h, number.at(m_.comp(comp).root));
  known_[comp] = h;
  return h;
}

// What each instruction is made of and what reads it, as a sum: equal for graphs that are the same but for their order.
uint64_t Fingerprints::in_any_order(CompId comp) {
  std::unordered_set<InstId> left_out;
  if (!options_.unread_elements) left_out = unread_elements(m_, comp);
  std::vector<InstId> order = m_.post_order(comp);
  std::erase_if(order, [&](InstId i) { return left_out.contains(i); });
  struct Seen {
    uint64_t own = 0, up = 0, down = 0;
  };
  std::unordered_map<InstId, Seen> seen;
  seen.reserve(order.size());
  for (InstId i : order) {
    Seen now;
    now.own = now.up = instruction(i);
    for (InstId o : m_.operands(i)) now.up = hash_combine(now.up, seen.at(o).up);
    seen[i] = now;
  }
  const InstId root = m_.comp(comp).root;
  seen.at(root).down = 1;
  uint64_t sum = 0;
  for (size_t k = order.size(); k-- > 0;) {
    const Seen now = seen.at(order[k]);
    sum += mix64(hash_combine(now.up, mix64(now.down)));
    // The operands' own place among those of a reader counts, and what the reader is itself made of.
    const uint64_t reader = hash_combine(now.up, mix64(now.down));
    uint64_t slot = 0;
    for (InstId o : m_.operands(order[k])) seen.at(o).down += mix64(hash_combine(reader, ++slot));
  }
  return hash_combine(hash_combine(m_.comp(comp).params.size(), sum), seen.at(root).up);
}

std::unordered_set<InstId> unread_elements(const Module& m, CompId comp) {
  std::unordered_set<InstId> read{m.comp(comp).root}, out;
  std::vector<InstId> order = m.post_order(comp);
  for (InstId i : order)
    for (InstId p : m.control_preds(i)) read.insert(i), read.insert(p);
  for (size_t k = order.size(); k-- > 0;) {
    const InstId i = order[k];
    if (m.op(i) == Opcode::GetTupleElement && !read.contains(i)) {
      out.insert(i);
      continue;
    }
    for (InstId o : m.operands(i)) read.insert(o);
  }
  return out;
}

}  // namespace hlo
