#include "ir/module.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <unordered_set>

namespace hlo {

// --- names ---

bool NameUniquer::Sequence::take(uint64_t id) {
  if (id < (1u << 22)) {
    if (low.size() <= id) low.resize(std::max<size_t>(id + 1, low.size() * 2));
    if (low[id]) return false;
    low[id] = true;
    return true;
  }
  return high.insert(id).second;
}

std::string sanitized_name(std::string_view name) {
  std::string out(name);
  if (out.empty()) return out;
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (!letter(out[0])) out[0] = '_';
  for (char& c : out)
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '-') c = '_';
  ElementType type;
  if (out != "tuple" && type_from_name(out, &type)) out += '_';
  if (out.starts_with("__") && !out.starts_with("__xla_")) out[0] = 'a';
  return out;
}

std::string NameUniquer::unique(std::string_view prefix) {
  std::string root = sanitized_name(prefix.empty() ? "name" : prefix);
  bool numbered = false;
  uint64_t id = 0;
  size_t dot = root.rfind(separator_);
  if (dot != std::string::npos && dot > 0 && dot + 1 < root.size()) {
    uint64_t parsed = 0;
    auto [end, error] = std::from_chars(root.data() + dot + 1, root.data() + root.size(), parsed);
    if (error == std::errc() && end == root.data() + root.size() && parsed <= INT64_MAX) {
      id = parsed;
      numbered = true;
      root.resize(dot);
    }
  }
  Sequence& sequence = sequences_[root];
  if (!sequence.take(id)) {
    while (!sequence.take(sequence.next)) ++sequence.next;
    id = sequence.next++;
  }
  if (id == 0) return numbered ? root + separator_ + "0" : root;
  return root + separator_ + std::to_string(id);
}

void Module::ensure_names() {
  if (names_built_) return;
  names_built_ = true;
  for (CompId c : comp_order_)
    if (comps_[c.value].alive) {
      comp_names_.unique(comp_name(c));
      for (InstId i : comps_[c.value].order)
        if (alive(i)) inst_names_.unique(inst_name(i));
    }
}

// --- computations ---

std::vector<CompId> Module::computations() const {
  std::vector<CompId> out;
  for (CompId c : comp_order_)
    if (comps_[c.value].alive) out.push_back(c);
  return out;
}

CompId Module::add_computation(std::string_view wish) {
  ensure_names();
  return add_computation_verbatim(u().str(comp_names_.unique(wish)));
}

CompId Module::add_computation_verbatim(StrId name) {
  CompId id(comps_.size());
  comps_.emplace_back();
  comps_.back().name = name;
  comp_order_.push_back(id);
  dirty_comp_.push_back(false);
  touch_comp(id);
  return id;
}

void Module::rename_computation(CompId id, std::string_view wish) {
  ensure_names();
  touch_comp(id).name = u().str(comp_names_.unique(wish));
}

void Module::set_order(CompId id, std::vector<InstId> order) {
  if (comp(id).order != order) touch_comp(id).order = std::move(order);
}

void Module::set_params(CompId id, std::vector<InstId> params) {
  if (comp(id).params != params) touch_comp(id).params = std::move(params);
}

void Module::set_thread(CompId id, StrId thread) {
  if (comp(id).thread != thread) touch_comp(id).thread = thread;
}

void Module::set_computation_name(CompId id, StrId name) {
  if (comp(id).name != name) touch_comp(id).name = name;
}

void Module::remove_uncalled_computations() {
  std::vector<bool> called_from_entry(comps_.size(), false);
  std::vector<CompId> agenda{entry()};
  called_from_entry[entry().value] = true;
  while (!agenda.empty()) {
    CompId c = agenda.back();
    agenda.pop_back();
    for (InstId i : comps_[c.value].order) {
      if (!alive(i)) continue;
      for (CompId callee : called(i))
        if (!called_from_entry[callee.value]) called_from_entry[callee.value] = true, agenda.push_back(callee);
    }
  }
  for (CompId c : computations())
    if (!called_from_entry[c.value]) remove_computation(c);
}

void Module::remove_computation(CompId id) {
  ensure_names();
  ensure_users();
  Computation& c = touch_comp(id);
  for (InstId i : c.order)
    if (alive(i)) {
      drop_control(i);
      for (InstId o : operands(i)) users_[o.value].count = 0;
      users_[i.value].count = 0;
      user_index_.erase(i);
      touch(i).parent = CompId();
    }
  c.alive = false;
  c.order.clear();
  c.params.clear();
  c.root = InstId();
}

CompId Module::clone_computation(CompId id, std::string_view suffix, std::unordered_map<InstId, InstId>* outer) {
  std::string wish = std::string(comp_name(id));
  if (!suffix.empty()) wish += "." + std::string(suffix);
  CompId copy = add_computation(wish);
  comps_[copy.value].thread = comps_[id.value].thread;
  std::unordered_map<InstId, InstId> map;
  for (InstId i : post_order(id)) {
    std::vector<InstId> ops;
    for (InstId o : operands(i)) ops.push_back(map.at(o));
    InstId fresh = clone_inst(i, copy, ops);
    for (InstId p : std::vector<InstId>(control_preds(i).begin(), control_preds(i).end()))
      if (map.contains(p)) add_control(map.at(p), fresh);
    map[i] = fresh;
  }
  set_root(copy, map.at(comps_[id.value].root));
  if (outer) *outer = std::move(map);
  return copy;
}

std::vector<CompId> Module::computation_post_order() const {
  std::vector<uint8_t> state(comps_.size(), 0);
  std::vector<CompId> out;
  // Callees of a computation, in instruction order, each once.
  auto callees = [&](CompId c) {
    std::vector<CompId> list;
    for (InstId i : comps_[c.value].order)
      if (alive(i))
        for (CompId callee : called(i)) list.push_back(callee);
    return list;
  };
  struct Frame {
    CompId comp;
    std::vector<CompId> callees;
    size_t next = 0;
  };
  for (CompId root : comp_order_) {
    if (!comps_[root.value].alive || state[root.value]) continue;
    std::vector<Frame> stack;
    state[root.value] = 1;
    stack.push_back({root, callees(root)});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.callees.size()) {
        CompId next = top.callees[top.next++];
        if (!state[next.value]) {
          state[next.value] = 1;
          stack.push_back({next, callees(next)});
        }
      } else {
        out.push_back(top.comp);
        stack.pop_back();
      }
    }
  }
  return out;
}

std::vector<bool> Module::fusion_computation_flags() const {
  std::vector<bool> fused(comps_.size(), false);
  for (CompId c : comp_order_)
    for (InstId i : comps_[c.value].order)
      if (alive(i) && op(i) == Opcode::Fusion)
        for (CompId callee : called(i)) fused[callee.value] = true;
  return fused;
}

std::vector<CompId> Module::nonfusion_computations() const {
  std::vector<bool> fused = fusion_computation_flags();
  std::vector<CompId> out;
  for (CompId c : computation_post_order())
    if (!fused[c.value]) out.push_back(c);
  return out;
}

std::vector<bool> Module::computations_with(Opcode op) const {
  std::vector<bool> out;
  for (const Inst& i : insts_) {
    if (i.op != op || !i.parent.valid()) continue;
    if (out.empty()) out.resize(comps_.size());
    out[i.parent.value] = true;
  }
  return out;
}

std::vector<std::vector<InstId>> Module::callers() const {
  std::vector<std::vector<InstId>> out(comps_.size());
  for (CompId c : comp_order_)
    for (InstId i : comps_[c.value].order)
      if (alive(i))
        for (CompId callee : called(i)) out[callee.value].push_back(i);
  return out;
}

size_t Module::size(CompId id) const {
  size_t n = 0;
  for (InstId i : comps_[id.value].order) n += alive(i);
  return n;
}

size_t Module::instruction_count() const {
  size_t n = 0;
  for (CompId c : comp_order_) n += size(c);
  return n;
}

// --- operands ---

size_t Module::operand_count(InstId id) const {
  const Inst& inst = insts_[id.value];
  return inst.count_low == 0xFFFF ? u().pool_at(inst.operand[0])->value : inst.count_low;
}

std::span<const InstId> Module::operands(InstId id) const {
  const Inst& inst = insts_[id.value];
  if (inst.count_low <= 2) return {reinterpret_cast<const InstId*>(inst.operand), inst.count_low};
  const InstId* at = u().pool_at(inst.operand[0]);
  if (inst.count_low == 0xFFFF) return {at + 1, at->value};
  return {at, inst.count_low};
}

InstId* Module::operand_array(InstId id) {
  Inst& inst = touch(id);
  if (inst.count_low <= 2) return reinterpret_cast<InstId*>(inst.operand);
  size_t total = inst.count_low == 0xFFFF ? u().pool_at(inst.operand[0])->value + 1 : inst.count_low;
  if (inst.operand[0] < frozen_pool_) inst.operand[0] = u().pool_add(u().pool_at(inst.operand[0]), total);
  return u().pool_at(inst.operand[0]) + (inst.count_low == 0xFFFF ? 1 : 0);
}

void Module::write_operands(Inst& inst, std::span<const InstId> values) {
  if (values.size() <= 2) {
    inst.count_low = static_cast<uint16_t>(values.size());
    for (size_t i = 0; i < values.size(); ++i) inst.operand[i] = values[i].value;
  } else if (values.size() < 0xFFFF) {
    inst.count_low = static_cast<uint16_t>(values.size());
    inst.operand[0] = u().pool_add(values.data(), values.size());
  } else {
    std::vector<InstId> counted{InstId(values.size())};
    counted.insert(counted.end(), values.begin(), values.end());
    inst.count_low = 0xFFFF;
    inst.operand[0] = u().pool_add(counted.data(), counted.size());
  }
}

// --- users ---

void Module::ensure_users() const {
  if (users_built_) return;
  users_built_ = true;
  users_.assign(insts_.size(), UserList());
  for (CompId c : comp_order_)
    for (InstId i : comps_[c.value].order) {
      if (!alive(i)) continue;
      add_as_user(i);
    }
}

void Module::add_as_user(InstId id) const {
  for (InstId o : operands(id)) {
    // Its uses of one value follow each other, so the last user tells whether it stands there already.
    const UserList& known = users_[o.value];
    if (known.count && user_array(o)[known.count - 1] == id.value) continue;
    append_user(o, id);
  }
}

uint32_t* Module::user_array(InstId of) const {
  UserList& list = users_[of.value];
  return list.capacity <= 2 ? list.inside : user_pool_.data() + list.offset;
}

void Module::append_user(InstId of, InstId user) const {
  UserList& list = users_[of.value];
  if (list.count == list.capacity) {
    uint32_t offset = static_cast<uint32_t>(user_pool_.size());
    user_pool_.resize(user_pool_.size() + list.capacity * 2);
    const uint32_t* old = user_array(of);
    std::copy(old, old + list.count, user_pool_.begin() + offset);
    list.capacity *= 2;
    list.offset = offset;
  }
  if (auto indexed = user_index_.find(of); indexed != user_index_.end()) indexed->second[user] = list.count;
  user_array(of)[list.count++] = user.value;
}

// A root of ten thousands of results is searched for one operand over and over: its operands by value, for one such
// instruction at a time.
std::unordered_map<InstId, std::vector<uint32_t>>* Module::places_in(InstId user) {
  constexpr size_t kWide = 64;
  auto list = operands(user);
  if (list.size() < kWide) return nullptr;
  if (wide_user_ != user) {
    wide_user_ = user;
    wide_places_.clear();
    for (size_t k = 0; k < list.size(); ++k) wide_places_[list[k]].push_back(static_cast<uint32_t>(k));
  }
  return &wide_places_;
}

bool Module::uses(InstId user, InstId value, size_t except) {
  if (auto* places = places_in(user)) {
    auto at = places->find(value);
    return at != places->end() && (at->second.size() > 1 || at->second[0] != except);
  }
  auto list = operands(user);
  for (size_t i = 0; i < list.size(); ++i)
    if (i != except && list[i] == value) return true;
  return false;
}

void Module::add_user(InstId of, InstId user) const { append_user(of, user); }

void Module::remove_user(InstId of, InstId user) {
  UserList& list = users_[of.value];
  uint32_t* data = user_array(of);
  uint32_t at = list.count;
  if (list.count > 32) {
    auto& index = user_index_[of];
    if (index.empty())
      for (uint32_t i = 0; i < list.count; ++i) index[InstId(data[i])] = i;
    auto found = index.find(user);
    HLO_CHECK(found != index.end(), "no user to remove");
    at = found->second;
    index.erase(found);
    if (at + 1 != list.count) index[InstId(data[list.count - 1])] = at;
  } else {
    user_index_.erase(of);
    for (at = 0; at < list.count && data[at] != user.value;) ++at;
    HLO_CHECK(at < list.count, "no user to remove");
  }
  data[at] = data[--list.count];
}

std::span<const InstId> Module::users(InstId id) const {
  ensure_users();
  const UserList& list = users_[id.value];
  return {reinterpret_cast<const InstId*>(user_array(id)), list.count};
}

size_t Module::use_count(InstId id) const {
  size_t n = 0;
  for (InstId user : users(id))
    for (InstId o : operands(user)) n += o == id;
  return n;
}

// --- creation ---

InstId Module::add_verbatim(CompId comp, const Inst& inst) {
  InstId id(insts_.size());
  insts_.push_back(inst);
  insts_.back().parent = comp;
  dirty_.push_back(false);
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

InstId Module::clone_inst(InstId id, CompId into, std::span<const InstId> ops, ShapeId shape, std::string_view suffix) {
  ensure_names();
  ensure_users();
  Inst inst = insts_[id.value];
  if (shape.valid()) inst.shape = shape;
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
  inst.name = u().str(inst_names_.unique(wish));
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
  auto callees = called(id);
  if (callees.empty()) return false;
  // Each computation below once, however often it is called.
  std::vector<CompId> stack(callees.begin(), callees.end());
  std::unordered_set<CompId> seen(callees.begin(), callees.end());
  while (!stack.empty()) {
    CompId c = stack.back();
    stack.pop_back();
    for (InstId i : comps_[c.value].order) {
      if (!alive(i)) continue;
      if (by_itself(i)) return true;
      for (CompId callee : called(i))
        if (seen.insert(callee).second) stack.push_back(callee);
    }
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
  touch(id).parent = CompId();
}

void Module::remove_with_unused_operands(InstId id, bool ignore_control) {
  std::deque<InstId> queue{id};
  std::unordered_set<InstId> removed;
  while (!queue.empty()) {
    InstId i = queue.front();
    queue.pop_front();
    if (removed.contains(i) || !users(i).empty() || is_root(i)) continue;
    if (i != id && (!safely_removable(i, ignore_control) || has_side_effect(i) || (!ignore_control && has_control(i))))
      continue;
    std::vector<InstId> ops(operands(i).begin(), operands(i).end());
    remove(i);
    removed.insert(i);
    for (InstId o : ops) queue.push_back(o);
  }
}

void Module::cleanup() {
  for (CompId c : dirty_comp_list_) {
    auto& order = comps_[c.value].order;
    std::erase_if(order, [&](InstId i) { return !alive(i); });
  }
}

// --- control ---

namespace {
const std::vector<InstId> kNoInsts;
}
std::span<const InstId> Module::control_preds(InstId id) const {
  if (preds_.empty()) return kNoInsts;
  auto found = preds_.find(id);
  return found == preds_.end() ? kNoInsts : found->second;
}
std::span<const InstId> Module::control_succs(InstId id) const {
  if (succs_.empty()) return kNoInsts;
  auto found = succs_.find(id);
  return found == succs_.end() ? kNoInsts : found->second;
}
void Module::add_control(InstId before, InstId after) {
  auto& list = preds_[after];
  if (std::find(list.begin(), list.end(), before) != list.end()) return;
  list.push_back(before);
  succs_[before].push_back(after);
  touch(after), touch(before);
}
void Module::drop_control(InstId id) {
  if (preds_.empty() && succs_.empty()) return;
  if (auto found = preds_.find(id); found != preds_.end()) {
    for (InstId p : found->second) {
      std::erase(succs_[p], id);
      if (succs_[p].empty()) succs_.erase(p);
    }
    preds_.erase(found);
    touch(id);
  }
  if (auto found = succs_.find(id); found != succs_.end()) {
    for (InstId s : found->second) {
      std::erase(preds_[s], id);
      touch(s);
      if (preds_[s].empty()) preds_.erase(s);
    }
    succs_.erase(found);
    touch(id);
  }
}

// --- orders ---

std::vector<InstId> Module::elided_constants() const {
  std::vector<InstId> out;
  for (CompId c : computations())
    for (InstId i : comp(c).order)
      if (alive(i) && op(i) == Opcode::Constant && literal(i).elided) out.push_back(i);
  return out;
}

std::vector<InstId> Module::live_order(CompId id) const {
  std::vector<InstId> out;
  out.reserve(comps_[id.value].order.size());
  for (InstId i : comps_[id.value].order)
    if (alive(i)) out.push_back(i);
  return out;
}

std::vector<InstId> Module::post_order(CompId id) const {
  const std::vector<InstId>& order = comps_[id.value].order;
  std::vector<InstId> out;
  out.reserve(order.size());
  if (order.empty()) return out;
  // States by distance from the smallest id: ids of one computation lie close together.
  uint32_t low = UINT32_MAX, high = 0;
  for (InstId i : order)
    if (alive(i)) low = std::min(low, i.value), high = std::max(high, i.value);
  if (low > high) return out;
  std::vector<uint8_t> state(high - low + 1, 0);
  std::vector<bool> has_user(high - low + 1, false);
  for (InstId i : order)
    if (alive(i))
      for (InstId o : operands(i)) has_user[o.value - low] = true;
  std::vector<InstId> stack;
  for (InstId start : order) {
    if (!alive(start) || has_user[start.value - low]) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      InstId i = stack.back();
      uint8_t& s = state[i.value - low];
      if (s == 2) {
        stack.pop_back();
      } else if (s == 1) {
        stack.pop_back();
        s = 2;
        out.push_back(i);
      } else {
        s = 1;
        auto ops = operands(i);
        for (size_t k = ops.size(); k-- > 0;)
          if (!state[ops[k].value - low]) stack.push_back(ops[k]);
        for (InstId p : control_preds(i))
          if (!state[p.value - low]) stack.push_back(p);
      }
    }
  }
  return out;
}

void Module::clear_dirty() {
  for (InstId i : dirty_list_) dirty_[i.value] = false;
  for (CompId c : dirty_comp_list_) dirty_comp_[c.value] = false;
  dirty_header_ = false;
  dirty_list_.clear();
  dirty_comp_list_.clear();
}

}  // namespace hlo
