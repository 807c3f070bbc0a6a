// while-loop-constant-sinking (xla/service/while_loop_constant_sinking.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// A copy of the loop's body or condition that is the loop's alone, made at the first change.
class Own {
 public:
  Own(Module& m, InstId loop, CompId original) : m_(m), loop_(loop), original_(original) {}
  CompId get() {
    if (!copy_.valid()) {
      copy_ = m_.clone_computation(original_, "sunk", &map_);
      m_.replace_called(loop_, original_, copy_);
    }
    return copy_;
  }
  InstId operator[](InstId i) const { return map_.at(i); }

 private:
  Module& m_;
  InstId loop_;
  CompId original_, copy_;
  std::unordered_map<InstId, InstId> map_;
};

bool sink_constants(Module& m, PassContext& ctx, InstId loop, bool* stop) {
  InstId init = m.operand(loop, 0);
  CompId body = m.attrs(loop).comp(Attr::body), condition = m.attrs(loop).comp(Attr::condition);
  InstId root = m.comp(body).root, state = m.comp(body).params[0], tested = m.comp(condition).params[0];
  if (m.op(init) != Opcode::Tuple || m.op(root) != Opcode::Tuple) return false;
  Own own_body(m, loop, body), own_condition(m, loop, condition);
  bool changed = false;
  for (size_t k = 0; k < m.operand_count(root); ++k) {
    // Elements that stay what they were when the loop began, and were constants.
    InstId kept = m.operand(root, k), constant = m.operand(init, k);
    auto index = static_cast<int64_t>(k);
    if (m.op(kept) != Opcode::GetTupleElement || m.operand(kept, 0) != state ||
        m.attrs(kept).integer(Attr::index) != index || m.op(constant) != Opcode::Constant)
      continue;
    std::vector<InstId> read;  // in the condition
    for (InstId user : m.users(tested))
      if (m.op(user) == Opcode::GetTupleElement && m.attrs(user).integer(Attr::index) == index &&
          !m.users(user).empty())
        read.push_back(user);
    bool in_body = m.user_count(kept) > 1;
    if (!in_body && read.empty()) continue;
    if (!ctx.spend(m, "constant into a loop", {loop, constant}, fmt::format("element {}", k))) {
      *stop = true;
      break;
    }
    if (in_body) {
      CompId own = own_body.get();
      InstId here = own_body[kept], sunk = m.clone_inst(constant, own, {}, {}, ".sunk"), end = m.comp(own).root;
      for (InstId user : m.users_copy(here))
        for (size_t o = 0; o < m.operand_count(user); ++o)
          if (m.operand(user, o) == here && !(user == end && o == k)) m.set_operand(user, o, sunk);
    }
    for (InstId user : read) {
      CompId own = own_condition.get();
      InstId here = own_condition[user];
      m.replace_all_uses(here, m.clone_inst(constant, own, {}, {}, ".sunk"));
      m.remove(here);
    }
    changed = true;
  }
  return changed;
}

}  // namespace

//   while((i, constant)), body: { c = get-tuple-element(state), index=1, … add(x, c) … root (…, c) }
//   →  body: { … add(x, constant) … root (…, c) }
bool run_while_loop_constant_sinking(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::While)) return false;
  bool changed = false, stop = false;
  std::vector<CompId> stack{m.entry()};
  std::vector<bool> seen(m.comp_slots(), false);
  while (!stack.empty() && !stop) {
    CompId c = stack.back();
    stack.pop_back();
    for (InstId i : m.live_order(c)) {
      if (!m.alive(i) || stop) continue;
      if (m.op(i) == Opcode::While) changed |= sink_constants(m, ctx, i, &stop);
      for (CompId callee : m.called(i)) {
        if (callee.value >= seen.size()) seen.resize(m.comp_slots(), false);
        if (!seen[callee.value]) seen[callee.value] = true, stack.push_back(callee);
      }
    }
  }
  if (changed) m.remove_uncalled_computations();
  return changed;
}

}  // namespace hlo
