#include "ir/module.h"

#include <algorithm>
#include <charconv>

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
  // In the order of CloneInContext (xla/hlo/ir/hlo_computation.cc): as they were made, but each behind its operands, of
  // which the last goes first. Users of the copies come in that order, too.
  std::unordered_map<InstId, InstId> map;
  std::vector<InstId> list, stack, ops;
  for (InstId i : comps_[id.value].order)
    if (alive(i)) list.push_back(i);
  for (InstId start : list) {
    stack.assign(1, start);
    while (!stack.empty()) {
      InstId i = stack.back();
      const size_t depth = stack.size();
      if (!map.contains(i))
        for (InstId o : operands(i))
          if (!map.contains(o)) stack.push_back(o);
      if (stack.size() > depth) continue;
      stack.pop_back();
      if (map.contains(i)) continue;
      ops.clear();
      for (InstId o : operands(i)) ops.push_back(map.at(o));
      map[i] = clone_inst(i, copy, ops);
    }
  }
  for (InstId i : list)
    for (InstId p : std::vector<InstId>(control_preds(i).begin(), control_preds(i).end()))
      if (map.contains(p)) add_control(map.at(p), map.at(i));
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

namespace {

// What one walk has seen, by id. Bodies of fusions have ids from all over the module: what is kept from walk to walk
// need not be made, and of a walk's own marks nobody else's are in the way.
class Marks {
 public:
  enum State : uint32_t { kNew, kOpen, kDone };
  void begin(size_t slots) {
    if (marks_.size() < slots) marks_.resize(slots, 0);
    if (++round_ < kMostRounds) return;
    std::fill(marks_.begin(), marks_.end(), 0);
    round_ = 1;
  }
  State state(InstId i) const { return static_cast<State>(own(i) & 3); }
  void set_state(InstId i, State s) { marks_[i.value] = (own(i) & ~3u) | s; }
  bool has_user(InstId i) const { return (own(i) & 4) != 0; }
  void set_has_user(InstId i) { marks_[i.value] = own(i) | 4; }

 private:
  static constexpr uint32_t kMostRounds = 1u << 29;
  uint32_t own(InstId i) const { return marks_[i.value] >> 3 == round_ ? marks_[i.value] : round_ << 3; }
  std::vector<uint32_t> marks_;  // the walk's number, has a user, state
  uint32_t round_ = 0;
};

}  // namespace

std::vector<InstId> Module::post_order(CompId id) const {
  const std::vector<InstId>& order = comps_[id.value].order;
  std::vector<InstId> out;
  out.reserve(order.size());
  if (order.empty()) return out;
  thread_local Marks marks;
  marks.begin(insts_.size());
  for (InstId i : order)
    if (alive(i))
      for (InstId o : operands(i)) marks.set_has_user(o);
  std::vector<InstId> stack;
  for (InstId start : order) {
    if (!alive(start) || marks.has_user(start)) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      InstId i = stack.back();
      const Marks::State s = marks.state(i);
      if (s == Marks::kDone) {
        stack.pop_back();
      } else if (s == Marks::kOpen) {
        stack.pop_back();
        marks.set_state(i, Marks::kDone);
        out.push_back(i);
      } else {
        marks.set_state(i, Marks::kOpen);
        auto ops = operands(i);
        for (size_t k = ops.size(); k-- > 0;)
          if (marks.state(ops[k]) == Marks::kNew) stack.push_back(ops[k]);
        for (InstId p : control_preds(i))
          if (marks.state(p) == Marks::kNew) stack.push_back(p);
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
