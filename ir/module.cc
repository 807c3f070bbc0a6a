#include "ir/module.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "ir/marks.h"

namespace hlo {

// --- names ---

bool NameUniquer::take(Sequence& of, uint64_t id) {
  if (id < 64) {
    const uint64_t bit = uint64_t{1} << id;
    const bool fresh = !(of.first & bit);
    of.first |= bit;
    return fresh;
  }
  if (of.more == kNone) of.more = static_cast<uint32_t>(more_.size()), more_.emplace_back();
  More& more = more_[of.more];
  ++more.count;
  if (id >= more.dense.size()) {
    // Numbers nearly without holes by a bit each, those far away one by one.
    if (id >= 256 + 8 * more.count) return more.far.insert(id).second;
    more.dense.resize(std::max<size_t>(id + 1, more.dense.size() * 2));
    std::erase_if(more.far, [&](uint64_t far) {
      if (far >= more.dense.size()) return false;
      more.dense[far] = true;
      return true;
    });
  }
  const bool fresh = !more.dense[id];
  more.dense[id] = true;
  return fresh;
}

namespace {

constexpr bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool stays(char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; }

// Of each character: does it stay, and can it not stand in the name of an element type?
constexpr uint8_t kStays = 1, kOfNoType = 2;
constexpr std::array<uint8_t, 256> kCharacters = [] {
  std::array<uint8_t, 256> out = {};
  for (int c = 0; c < 256; ++c)
    if (stays(static_cast<char>(c)))
      out[static_cast<size_t>(c)] = kStays | (c == '.' || c == '-' || c == '_' ? kOfNoType : 0);
  return out;
}();

// Does it stay as it is?
bool is_sanitized(std::string_view name) {
  uint8_t all = kStays, any = 0;
  for (char c : name) {
    const uint8_t of = kCharacters[static_cast<unsigned char>(c)];
    all &= of, any |= of;
  }
  if (!all || !letter(name[0]) || name.starts_with("__")) return false;
  ElementType type;
  return (any & kOfNoType) || name == "tuple" || !type_from_name(name, &type);
}

}  // namespace

std::string sanitized_name(std::string_view name) {
  std::string out(name);
  if (out.empty()) return out;
  if (!letter(out[0])) out[0] = '_';
  for (char& c : out)
    if (!stays(c)) c = '_';
  ElementType type;
  if (out != "tuple" && type_from_name(out, &type)) out += '_';
  if (out.starts_with("__") && !out.starts_with("__xla_")) out[0] = 'a';
  return out;
}

std::string_view NameUniquer::unique(std::string_view prefix) {
  std::string_view whole = prefix.empty() ? "name" : prefix;
  if (!is_sanitized(whole)) whole = out_ = sanitized_name(whole);
  std::string_view root = whole;
  bool numbered = false;
  uint64_t id = 0;
  size_t dot = root.rfind(separator_);
  if (dot != std::string_view::npos && dot > 0 && dot + 1 < root.size()) {
    uint64_t parsed = 0;
    auto [end, error] = std::from_chars(root.data() + dot + 1, root.data() + root.size(), parsed);
    if (error == std::errc() && end == root.data() + root.size() && parsed <= INT64_MAX) {
      id = parsed;
      numbered = true;
      root = root.substr(0, dot);
    }
  }
  const size_t at = roots_.intern(root).value;
  if (at == sequences_.size()) sequences_.emplace_back();
  Sequence& sequence = sequences_[at];
  if (take(sequence, id)) {
    // As it is wished, if its number has one spelling.
    if (!numbered || whole[dot + 1] != '0' || dot + 2 == whole.size()) return whole;
  } else {
    while (!take(sequence, sequence.next)) ++sequence.next;
    id = sequence.next++;
  }
  char digits[20];
  const size_t size = static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, id).ptr - digits);
  out_.assign(root).append(1, separator_).append(digits, size);
  return out_;
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
  comp_edited_.push_back(0);
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
      count_op(inst(i), false);
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
    // A body is its fusion's alone (CloneWithNewOperandsImpl in xla/hlo/ir/hlo_instructions.cc).
    if (op(i) == Opcode::Fusion)
      for (CompId body : std::vector<CompId>(called(i))) replace_called(fresh, body, clone_computation(body, "clone"));
    for (InstId p : std::vector<InstId>(control_preds(i).begin(), control_preds(i).end()))
      if (map.contains(p)) add_control(map.at(p), fresh);
    map[i] = fresh;
  }
  set_root(copy, map.at(comps_[id.value].root));
  // In the end instructions and users stand as those that they are copies of (SortClonedInstructions in
  // xla/hlo/ir/hlo_computation.cc).
  std::vector<InstId> order;
  for (InstId i : live_order(id)) order.push_back(map.at(i));
  set_order(copy, std::move(order));
  if (users_built_)
    for (auto [from, to] : map) {
      user_index_.erase(to);
      uint32_t* users = user_array(to);
      for (InstId user : this->users(from)) *users++ = map.at(user).value;
    }
  if (outer) *outer = std::move(map);
  return copy;
}

std::vector<CompId> Module::computation_post_order() const {
  if (post_order_of_comps_.at == edits_) return post_order_of_comps_.ids;
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
  if (!count(Opcode::Fusion)) return fused;
  for (CompId c : comp_order_)
    for (InstId i : comps_[c.value].order)
      if (alive(i) && op(i) == Opcode::Fusion)
        for (CompId callee : called(i)) fused[callee.value] = true;
  return fused;
}

std::vector<CompId> Module::nonfusion_computations() const {
  if (nonfusion_.at == edits_) return nonfusion_.ids;
  std::vector<bool> fused = fusion_computation_flags();
  std::vector<CompId> out = computation_post_order();
  std::erase_if(out, [&](CompId c) { return fused[c.value]; });
  return out;
}

std::vector<CompId> Module::computation_post_order() {
  if (post_order_of_comps_.at != edits_) post_order_of_comps_ = {edits_, std::as_const(*this).computation_post_order()};
  return post_order_of_comps_.ids;
}

std::vector<CompId> Module::nonfusion_computations() {
  if (nonfusion_.at != edits_) nonfusion_ = {edits_, std::as_const(*this).nonfusion_computations()};
  return nonfusion_.ids;
}

std::vector<InstId> Module::post_order(CompId id) {
  if (post_orders_.size() <= id.value) post_orders_.resize(comps_.size());
  Order<InstId>& kept = post_orders_[id.value];
  if (kept.at != comp_edited_[id.value]) kept = {comp_edited_[id.value], std::as_const(*this).post_order(id)};
  return kept.ids;
}

std::vector<bool> Module::computations_with(Opcode op) const {
  std::vector<bool> out;
  if (!count(op)) return out;
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

size_t Module::instruction_count() const { return std::accumulate(op_counts_.begin(), op_counts_.end(), size_t{0}); }

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
  if (id.value < post_orders_.size() && post_orders_[id.value].at == comp_edited_[id.value])
    return post_orders_[id.value].ids;
  const std::vector<InstId>& order = comps_[id.value].order;
  std::vector<InstId> out;
  out.reserve(order.size());
  if (order.empty()) return out;
  constexpr uint32_t kOpen = 1, kDone = 2, kState = 3, kHasUser = 4;
  Marks marks(insts_.size());
  for (InstId i : order)
    if (alive(i))
      for (InstId o : operands(i)) marks.set(o, kHasUser);
  std::vector<InstId> stack;
  for (InstId start : order) {
    if (!alive(start) || (marks[start] & kHasUser)) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      InstId i = stack.back();
      const uint32_t mark = marks[i];
      if (mark & kDone) {
        stack.pop_back();
      } else if (mark & kOpen) {
        stack.pop_back();
        marks.add(i, kDone);
        out.push_back(i);
      } else {
        marks.add(i, kOpen);
        auto ops = operands(i);
        for (size_t k = ops.size(); k-- > 0;)
          if (!(marks[ops[k]] & kState)) stack.push_back(ops[k]);
        for (InstId p : control_preds(i))
          if (!(marks[p] & kState)) stack.push_back(p);
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
