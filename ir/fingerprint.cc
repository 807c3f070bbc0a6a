#include "ir/fingerprint.h"

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

uint64_t Fingerprints::elements(InstId inst) {
  const Shape& s = m_.shape(inst);
  uint64_t h = hash_combine(static_cast<uint64_t>(m_.op(inst)), static_cast<uint64_t>(s.type));
  return with_attrs(inst, hash_combine(h, static_cast<uint64_t>(s.elements_count())));
}

uint64_t Fingerprints::with_attrs(InstId inst, uint64_t h) {
  const Inst& i = m_[inst];
  const Universe& u = m_.u();
  if (!i.attrs.valid()) return h;
  auto known = attrs_known_.find(i.attrs.value);
  if (known != attrs_known_.end()) return hash_combine(h, known->second);
  AttrSet set = u[i.attrs];
  set.erase(Attr::frontend_attributes);
  set.erase(Attr::origin);
  set.erase(Attr::statistics);
  if (!options_.sharding) set.erase(Attr::sharding);
  if (!options_.config) set.erase(Attr::backend_config);
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

}  // namespace hlo
