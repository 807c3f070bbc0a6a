// What makes, changes and removes instructions of a module.
#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "ir/module.h"

namespace hlo {

// --- creation ---

InstId Module::add_verbatim(CompId comp, const Inst& inst) {
  InstId id(insts_.size());
  insts_.push_back(inst);
  insts_.back().parent = comp;
  dirty_.push_back(false);
  count_op(inst, true);
  touch(id);
  Computation& c = touch_comp(comp);
  if (c.order.empty()) c.order.reserve(6);  // what the smallest block has room for
  c.order.push_back(id);
  if (inst.op == Opcode::Parameter) {
    size_t number = inst.operand[0];
    if (c.params.empty()) c.params.reserve(6);
    if (c.params.size() <= number) c.params.resize(number + 1);
    c.params[number] = id;
  }
  if (users_built_) {
    users_.emplace_back();
    add_as_user(id);
  }
  return id;
}

InstId Module::add(CompId comp, const NewInst& n) {
  ensure_names();
  ensure_users();
  Inst inst;
  inst.op = n.op;
  inst.shape = n.shape;
  inst.attrs = n.attrs;
  inst.meta = n.meta;
  inst.name = u().str(inst_names_.unique(n.name.empty() ? op_text(n.op) : n.name));
  if (n.op == Opcode::Constant || n.op == Opcode::Parameter)
    inst.operand[0] = n.payload;
  else
    write_operands(inst, n.operands);
  return add_verbatim(comp, inst);
}

namespace {
// Tuples of the same form whose leaves have the same ranks: XLA's ShapeUtil::CompatibleKind. A sharding of one is one
// of the other.
bool compatible_kind(const Universe& u, ShapeId a, ShapeId b) {
  const Shape &x = u[a], &y = u[b];
  if (a == b) return true;
  if (x.is_tuple() != y.is_tuple() || x.elements.size() != y.elements.size() || x.rank() != y.rank()) return false;
  for (size_t k = 0; k < x.elements.size(); ++k)
    if (!compatible_kind(u, x.elements[k], y.elements[k])) return false;
  return true;
}
}  // namespace

void Module::inherit(InstId from, InstId to) {
  const Inst target = inst(to);
  log_heir(from, to, HeirKind::kDerived);
  set_meta(to, inst(from).meta);
  const AttrSet& source = attrs(from);
  // Most have nothing of it.
  auto none = [](const AttrSet& of, std::initializer_list<Attr> keys) {
    return of.list.empty() || std::none_of(keys.begin(), keys.end(), [&](Attr key) { return of.has(key); });
  };
  if (none(attrs(to), {Attr::sharding, Attr::frontend_attributes, Attr::statistics}) &&
      none(source,
           {Attr::sharding, Attr::frontend_attributes, Attr::statistics, Attr::backend_config, Attr::result_accuracy}))
    return;
  AttrSet set = attrs(to);
  set.op = target.op;
  bool changed = false;
  bool same_kind = compatible_kind(u(), inst(from).shape, target.shape);
  auto take = [&](Attr key, bool clear) {
    if (const AttrValue* v = source.find(key)) {
      set.set(key, *v), changed = true;
    } else if (clear && set.has(key)) {
      set.erase(key), changed = true;
    }
  };
  if (same_kind)
    take(Attr::sharding, false);
  else if (set.has(Attr::sharding))
    set.erase(Attr::sharding), changed = true;
  take(Attr::frontend_attributes, true);
  take(Attr::statistics, true);
  if (source.op == target.op && !set.has(Attr::backend_config)) take(Attr::backend_config, false);
  if (op_info(target.op).transcendental) take(Attr::result_accuracy, false);
  if (changed) set_attrs(to, u().attrs(std::move(set)));
}

InstId Module::add_derived(InstId from, const NewInst& n) {
  bool had_sharding = u()[n.attrs].has(Attr::sharding);
  InstId id = add(parent(from), n);
  inherit(from, id);
  if (!had_sharding && (n.op == Opcode::Reshape || n.op == Opcode::Transpose)) erase_attr(id, Attr::sharding);
  return id;
}

StrId Module::take_name(std::string_view wish) {
  ensure_names();
  return u().str(inst_names_.unique(wish));
}

StrId Module::take_computation_name(std::string_view wish) {
  ensure_names();
  return u().str(comp_names_.unique(wish));
}

StrId Module::clone_name(InstId id, std::string_view suffix) {
  std::string wish(inst_name(id));
  if (!suffix.empty()) {
    // xla/hlo/ir/hlo_instruction.cc, Clone: a repeated suffix counts up.
    std::string dotted = "." + std::string(suffix);
    size_t at = wish.rfind(dotted);
    if (at == std::string::npos) {
      wish += dotted;
    } else {
      std::string_view tail = std::string_view(wish).substr(at + dotted.size());
      uint64_t number = 0;
      auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), number);
      if (tail.empty())
        wish += "2";
      else if (error == std::errc() && end == tail.data() + tail.size())
        wish = wish.substr(0, at) + dotted + std::to_string(number + 1);
      else
        wish += dotted;
    }
  }
  return take_name(wish);
}

InstId Module::clone_named(InstId id, CompId into, std::span<const InstId> ops, ShapeId shape, StrId name) {
  ensure_users();
  Inst inst = insts_[id.value];
  if (shape.valid()) inst.shape = shape;
  inst.name = name;
  if (inst.op != Opcode::Constant && inst.op != Opcode::Parameter) write_operands(inst, ops);
  InstId copy = add_verbatim(into, inst);
  log_heir(id, copy, HeirKind::kCloned);
  return copy;
}

InstId Module::constant(CompId comp, Literal literal, std::string_view wish) {
  ShapeId shape = literal.shape;
  LitId lit = u().literal(std::move(literal));
  return add(comp, {.op = Opcode::Constant, .shape = shape, .name = wish, .payload = lit.value});
}

LitId Module::scalar_literal(ElementType type, ScalarValue value) const {
  Literal literal;
  literal.shape = u().scalar(type);
  literal.bytes.resize(static_cast<size_t>(storage_bytes(type)));
  store_scalar(type, literal.bytes.data(), value);
  return u().literal(std::move(literal));
}

InstId Module::parameter(CompId comp, int64_t number, ShapeId shape, std::string_view wish) {
  return add(comp, {.op = Opcode::Parameter, .shape = shape, .name = wish, .payload = static_cast<uint32_t>(number)});
}

// --- edits ---

void Module::set_operand(InstId id, size_t i, InstId value) {
  ensure_users();
  InstId old = operands(id)[i];
  if (old == value) return;
  if (!uses(id, value, i)) add_user(value, id);
  operand_array(id)[i] = value;
  if (wide_user_ == id) {
    std::vector<uint32_t>& left = wide_places_[old];
    std::erase(left, static_cast<uint32_t>(i));
    if (left.empty()) wide_places_.erase(old);
    wide_places_[value].push_back(static_cast<uint32_t>(i));
  }
  if (!uses(id, old, SIZE_MAX)) remove_user(old, id);
}

void Module::set_operands(InstId id, std::span<const InstId> values) {
  ensure_users();
  std::vector<InstId> fresh(values.begin(), values.end()), old(operands(id).begin(), operands(id).end());
  std::unordered_set<InstId> seen;
  for (InstId o : old)
    if (seen.insert(o).second) remove_user(o, id);
  write_operands(touch(id), fresh);
  if (wide_user_ == id) wide_user_ = InstId();
  seen.clear();
  for (InstId o : fresh)
    if (seen.insert(o).second) add_user(o, id);
}

void Module::exchange_operands(InstId id, std::span<const InstId> values) {
  ensure_users();
  std::vector<InstId> fresh(values.begin(), values.end()), old(operands(id).begin(), operands(id).end());
  std::unordered_set<InstId> before(old.begin(), old.end()), after(fresh.begin(), fresh.end());
  for (InstId o : old)
    if (before.contains(o) && !after.contains(o)) remove_user(o, id), before.erase(o);
  write_operands(touch(id), fresh);
  if (wide_user_ == id) wide_user_ = InstId();
  for (InstId o : fresh)
    if (before.insert(o).second) add_user(o, id);
}

void Module::set_attr(InstId id, Attr key, AttrValue value) {
  AttrSet set = attrs(id);
  set.op = op(id);
  set.set(key, std::move(value));
  set_attrs(id, u().attrs(std::move(set)));
}

void Module::erase_attr(InstId id, Attr key) {
  if (!attrs(id).has(key)) return;
  AttrSet set = attrs(id);
  set.erase(key);
  set_attrs(id, u().attrs(std::move(set)));
}

void Module::set_root(CompId id, InstId root) {
  if (comp(id).root != root) touch_comp(id).root = root;
}

void Module::set_uniquified_name(InstId id, std::string_view wish) {
  ensure_names();
  touch(id).name = u().str(inst_names_.unique(wish));
}

void Module::replace_called(InstId id, CompId from, CompId to) {
  AttrSet set = attrs(id);
  for (auto& [key, value] : set.list) {
    if (CompId* one = std::get_if<CompId>(&value); one && *one == from) *one = to;
    if (auto* many = std::get_if<std::vector<CompId>>(&value)) std::replace(many->begin(), many->end(), from, to);
  }
  set_attrs(id, u().attrs(std::move(set)));
}

void Module::replace_all_uses(InstId from, InstId to) {
  if (from == to) return;
  log_heir(from, to, HeirKind::kReplaced);
  bool to_uses_from = false;
  for (InstId user : users_copy(from)) {
    if (user == to) {
      to_uses_from = true;
      continue;
    }
    if (!uses(user, to, SIZE_MAX)) add_user(to, user);
    InstId* list = operand_array(user);
    if (auto* places = places_in(user)) {
      std::vector<uint32_t> at = std::move(places->at(from));
      places->erase(from);
      std::vector<uint32_t>& all = (*places)[to];
      for (uint32_t k : at) list[k] = to, all.push_back(k);
      continue;
    }
    size_t n = operand_count(user);
    for (size_t i = 0; i < n; ++i)
      if (list[i] == from) list[i] = to;
  }
  users_[from.value].count = 0;
  user_index_.erase(from);
  if (to_uses_from) add_user(from, to);
  if (is_root(from)) set_root(parent(from), to);
}

bool Module::replace(InstId from, InstId to, ReplaceOptions options) {
  HLO_CHECK(u().compatible(shape_id(from), shape_id(to)), "replacing {} {} by {} {}", u().shape_text(shape_id(from)),
            inst_name(from), u().shape_text(shape_id(to)), inst_name(to));
  StrId old_sharding = attrs(from).text(Attr::sharding), new_sharding = attrs(to).text(Attr::sharding);
  if (options.preserve_sharding && old_sharding.valid() && new_sharding.valid() && old_sharding != new_sharding)
    return false;
  if (has_control(from)) {
    if (!options.relay_control) return false;
    std::vector<InstId> before(control_preds(from).begin(), control_preds(from).end());
    std::vector<InstId> after(control_succs(from).begin(), control_succs(from).end());
    drop_control(from);
    for (InstId p : before) add_control(p, to);
    for (InstId s : after) add_control(to, s);
  }
  const Metadata& theirs = u()[insts_[to.value].meta];
  const Metadata& ours = u()[insts_[from.value].meta];
  bool empty_name = theirs.op_name == StrId::kNone || u().text(StrId(theirs.op_name)).empty();
  if (empty_name && ours.op_name != StrId::kNone && !u().text(StrId(ours.op_name)).empty())
    set_meta(to, inst(from).meta);
  for (Attr key : {Attr::frontend_attributes, Attr::sharding, Attr::origin})
    if (StrId text = attrs(from).text(key); text.valid() && !attrs(to).has(key)) {
      if (key == Attr::sharding && shape(from).is_tuple() != shape(to).is_tuple()) continue;
      set_attr(to, key, text);
    }
  replace_all_uses(from, to);
  bool same_target = op(from) != Opcode::CustomCall ||
                     attrs(from).text(Attr::custom_call_target) == attrs(to).text(Attr::custom_call_target);
  if (op(from) == op(to) && same_target) set_name(to, inst(from).name);
  if (options.remove_unused)
    remove_with_unused_operands(from, options.relay_control);
  else
    remove(from);
  return true;
}

bool Module::has_side_effect(InstId id) const {
  auto by_itself = [&](InstId i) {
    const OpInfo& info = op_info(op(i));
    if (info.effect) return true;
    const AttrSet& a = attrs(i);
    if (info.cls == OpClass::Collective)
      return a.flag(Attr::constrain_layout) || (a.has(Attr::channel_id) && config_.num_partitions <= 1);
    return op(i) == Opcode::CustomCall && a.flag(Attr::custom_call_has_side_effect);
  };
  if (by_itself(id)) return true;
  // Each computation below once, however often it is called; mostly it is one, which calls nothing.
  std::vector<CompId> stack;
  std::unordered_set<CompId> seen;
  auto within = [&](CompId c) {
    for (InstId i : comps_[c.value].order) {
      if (!alive(i)) continue;
      if (by_itself(i)) return true;
      for (CompId callee : called(i))
        if (seen.insert(callee).second) stack.push_back(callee);
    }
    return false;
  };
  for (CompId c : called(id))
    if (within(c)) return true;
  while (!stack.empty()) {
    const CompId c = stack.back();
    stack.pop_back();
    if (within(c)) return true;
  }
  return false;
}

bool Module::safely_removable(InstId id, bool ignore_control) const {
  if (!ignore_control && has_control(id)) return false;
  return op(id) != Opcode::Parameter;
}

void Module::remove(InstId id) {
  ensure_names();
  ensure_users();
  HLO_CHECK(users(id).empty() && !is_root(id), "removing {} which is in use", inst_name(id));
  drop_control(id);
  std::vector<InstId> ops(operands(id).begin(), operands(id).end());
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  for (InstId o : ops) remove_user(o, id);
  if (wide_user_ == id) wide_user_ = InstId();
  touch_comp(parent(id));
  count_op(inst(id), false);
  touch(id).parent = CompId();
}

void Module::remove_with_unused_operands(InstId id, bool ignore_control) {
  std::vector<InstId> queue{id};
  for (size_t next = 0; next < queue.size(); ++next) {
    const InstId i = queue[next];
    if (!alive(i) || !users(i).empty() || is_root(i)) continue;
    if (i != id && (!safely_removable(i, ignore_control) || has_side_effect(i) || (!ignore_control && has_control(i))))
      continue;
    const std::span<const InstId> ops = operands(i);
    queue.insert(queue.end(), ops.begin(), ops.end());
    remove(i);
  }
}

void Module::cleanup() {
  for (CompId c : dirty_comp_list_) {
    auto& order = comps_[c.value].order;
    std::erase_if(order, [&](InstId i) { return !alive(i); });
  }
}

}  // namespace hlo
