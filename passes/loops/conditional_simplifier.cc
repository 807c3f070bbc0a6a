// simplify-conditional (xla/service/conditional_simplifier.cc): conditionals whose branch is known or cheap, and
// results that nobody takes.
#include <algorithm>

#include "passes/loops/loops.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

class Conditionals {
 public:
  Conditionals(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    std::vector<InstId> list;
    for (CompId c : m_.computation_post_order())
      for (InstId i : m_.post_order(c))
        if (m_.op(i) == Opcode::Conditional && !m_.attrs(i).has(Attr::sharding) && !talks(i)) list.push_back(i);
    bool changed = false;
    for (InstId i : list) {
      if (!m_.alive(i)) continue;
      changed |= merge_results(i);
      changed |= drop_results(i);
      changed |= drop_all_results(i);
      changed |= resolve(i);
    }
    // Computations in the order in which they are first called, each with its callers.
    std::vector<CompId> branches;
    std::unordered_map<CompId, std::vector<InstId>> callers;
    for (InstId i : list) {
      if (!m_.alive(i)) continue;
      for (CompId c : m_.called(i)) {
        std::vector<InstId>& of = callers[c];
        if (of.empty()) branches.push_back(c);
        if (of.empty() || of.back() != i) of.push_back(i);
      }
    }
    for (CompId branch : branches) changed |= drop_operands(branch, callers[branch]);
    return changed;
  }

 private:
  bool talks(InstId i) const {
    for (CompId c : m_.called(i))
      for (InstId b : m_.live_order(c)) {
        Opcode op = m_.op(b);
        if (op == Opcode::Send || op == Opcode::SendDone || op == Opcode::Recv || op == Opcode::RecvDone ||
            (m_.attrs(b).has(Attr::channel_id) && m_.attrs(b).integer(Attr::channel_id) > 0) || talks_below(b))
          return true;
      }
    return false;
  }
  bool talks_below(InstId i) const { return !m_.called(i).empty() && talks(i); }
  bool tuples(InstId i) const {
    if (!m_.shape(i).is_tuple() || m_.is_root(i)) return false;
    for (CompId c : m_.called(i))
      if (m_.op(m_.comp(c).root) != Opcode::Tuple) return false;
    auto users = m_.users(i);
    return !users.empty() &&
           std::all_of(users.begin(), users.end(), [&](InstId u) { return m_.op(u) == Opcode::GetTupleElement; });
  }

  // Results that every branch makes of the same thing.
  bool merge_results(InstId i) {
    if (!tuples(i)) return false;
    std::vector<std::vector<InstId>> made(m_.shape(i).elements.size());
    for (CompId c : m_.called(i))
      for (size_t k = 0; k < made.size(); ++k) made[k].push_back(m_.operand(m_.comp(c).root, k));
    bool changed = false;
    for (InstId gte : m_.users_copy(i)) {
      auto k = static_cast<size_t>(m_.attrs(gte).integer(Attr::index));
      auto first = static_cast<size_t>(std::find(made.begin(), made.end(), made[k]) - made.begin());
      if (first == k || m_.shape(i).elements[first] != m_.shape(i).elements[k]) continue;
      if (!ctx_.spend(m_, "the same result twice", {i, gte}, fmt::format("{} is {}", k, first))) return changed;
      m_.set_attr(gte, Attr::index, static_cast<int64_t>(first));
      changed = true;
    }
    return changed;
  }

  //   get-tuple-element(conditional), index=1 alone      →      branches without the other results
  bool drop_results(InstId i) {
    if (!m_.shape(i).is_tuple() || m_.is_root(i) || !m_.safely_removable(i)) return false;
    std::vector<InstId> users = m_.users_copy(i);
    size_t count = m_.shape(i).elements.size();
    std::vector<bool> used(count, false);
    for (InstId user : users) {
      if (m_.op(user) != Opcode::GetTupleElement) return false;
      used[static_cast<size_t>(m_.attrs(user).integer(Attr::index))] = true;
    }
    std::vector<size_t> kept;
    std::vector<ShapeId> shapes;
    std::vector<int64_t> place(count, -1);
    for (size_t k = 0; k < count; ++k)
      if (used[k])
        place[k] = static_cast<int64_t>(kept.size()), kept.push_back(k), shapes.push_back(m_.shape(i).elements[k]);
    if (users.empty() || kept.size() == count || !ctx_.spend(m_, "results without users", {i})) return false;
    ShapeId shape = u_.tuple(shapes);
    const std::vector<CompId> branches = m_.called(i);
    std::unordered_map<CompId, CompId> copies;
    for (CompId c : branches) {
      if (copies.contains(c)) continue;
      CompId copy = m_.clone_computation(c, "clone");
      InstId root = m_.comp(copy).root;
      std::vector<InstId> parts;
      for (size_t k : kept) parts.push_back(make_element(m_, root, static_cast<int64_t>(k)));
      m_.set_root(copy, make(m_, copy, Opcode::Tuple, parts, {}, shape));
      copies[c] = copy;
    }
    for (auto [from, to] : copies) m_.replace_called(i, from, to);
    m_.set_shape(i, shape);
    for (InstId user : users)
      m_.set_attr(user, Attr::index, place[static_cast<size_t>(m_.attrs(user).integer(Attr::index))]);
    return true;
  }

  //   conditional that nobody reads      →      branches that give ()
  bool drop_all_results(InstId i) {
    ShapeId nothing = u_.tuple({});
    if (!m_.users(i).empty() || m_.is_root(i) || m_.shape_id(i) == nothing) return false;
    if (!ctx_.spend(m_, "results without users", {i})) return false;
    std::unordered_map<CompId, CompId> copies;
    for (CompId c : std::vector<CompId>(m_.called(i))) {
      if (copies.contains(c)) continue;
      CompId copy = m_.clone_computation(c, "clone");
      m_.set_root(copy, make(m_, copy, Opcode::Tuple, {}, {}, nothing));
      copies[c] = copy;
    }
    for (auto [from, to] : copies) m_.replace_called(i, from, to);
    m_.set_shape(i, nothing);
    return true;
  }

  //   conditional(p, (a, b), …), branch reads element 1 only      →      conditional(p, (b), …)
  bool drop_operands(CompId branch, const std::vector<InstId>& callers) {
    InstId parameter = m_.comp(branch).params[0];
    if (m_.is_root(parameter) || !m_.shape(parameter).is_tuple()) return false;
    const size_t count = m_.shape(parameter).elements.size();
    std::vector<bool> read(count, false);
    for (InstId user : m_.users(parameter)) {
      if (m_.op(user) != Opcode::GetTupleElement) return false;
      read[static_cast<size_t>(m_.attrs(user).integer(Attr::index))] = true;
    }
    std::vector<int64_t> kept, place(count, -1);
    std::vector<ShapeId> shapes;
    for (size_t k = 0; k < count; ++k)
      if (read[k]) {
        place[k] = static_cast<int64_t>(kept.size());
        kept.push_back(static_cast<int64_t>(k));
        shapes.push_back(m_.shape(parameter).elements[k]);
      }
    if (kept.size() == count) return false;
    if (!ctx_.spend(m_, "operands that the branch leaves alone", {callers[0]})) return false;
    ShapeId shape = u_.tuple(shapes);
    CompId copy = m_.clone_computation(branch, "clone");
    parameter = m_.comp(copy).params[0];
    m_.set_shape(parameter, shape);
    for (InstId user : m_.users_copy(parameter))
      m_.set_attr(user, Attr::index, place[static_cast<size_t>(m_.attrs(user).integer(Attr::index))]);
    for (InstId i : callers) {
      for (size_t b = 0; b < m_.called(i).size(); ++b) {
        if (m_.called(i)[b] != branch) continue;
        std::vector<InstId> parts;
        for (int64_t k : kept) parts.push_back(make_element(m_, m_.operand(i, b + 1), k));
        m_.set_operand(i, b + 1, make(m_, m_.parent(i), Opcode::Tuple, parts));
      }
      m_.replace_called(i, branch, copy);
    }
    return true;
  }

  static bool cheap(const Module& m, InstId i) {
    switch (m.op(i)) {
      case Opcode::Constant:
      case Opcode::Broadcast:
      case Opcode::Concatenate:
      case Opcode::DynamicSlice:
      case Opcode::GetTupleElement:
      case Opcode::Reduce:
      case Opcode::Reshape:
      case Opcode::Pad:
      case Opcode::Parameter:
      case Opcode::Slice:
      case Opcode::Tuple:
        return true;
      default:
        return op_info(m.op(i)).elementwise;
    }
  }
  bool holds_array(ShapeId id) const {
    const Shape& s = u_[id];
    return s.is_array() || std::any_of(s.elements.begin(), s.elements.end(), [&](ShapeId e) { return holds_array(e); });
  }
  // Both ways may be gone: nothing dear, and not just arrays that are handed on (that is cheaper than a select).
  bool both_ways(CompId c) const {
    bool empty = true;
    for (InstId i : m_.live_order(c)) {
      if (!cheap(m_, i)) return false;
      empty =
          empty && (m_.op(i) == Opcode::Tuple || m_.op(i) == Opcode::GetTupleElement || m_.op(i) == Opcode::Parameter);
    }
    return !(empty && holds_array(m_.shape_id(m_.comp(c).root)));
  }

  InstId call(InstId i, size_t branch) {
    AttrSet attrs;
    attrs.op = Opcode::Call;
    attrs.set(Attr::to_apply, m_.called(i)[branch]);
    if (StrId text = m_.attrs(i).text(Attr::frontend_attributes); text.valid())
      attrs.set(Attr::frontend_attributes, text);
    return make_derived(m_, i, Opcode::Call, {m_.operand(i, branch + 1)}, u_.attrs(std::move(attrs)), m_.shape_id(i));
  }
  void inline_call(InstId c) {
    if (frontend_attribute(m_, c, "inlineable") == "false") return;
    std::vector<InstId> args(m_.operands(c).begin(), m_.operands(c).end());
    inline_computation(m_, c, m_.called(c)[0], args, true);
  }

  InstId chosen(InstId i, InstId yes, InstId no) {
    CompId here = m_.parent(i);
    ShapeId shape = m_.shape_id(yes);
    if (m_.shape(yes).is_tuple()) {
      std::vector<InstId> parts;
      size_t count = m_.shape(yes).elements.size();
      for (size_t k = 0; k < count; ++k) {
        auto part = [&](InstId of) { return make_element(m_, of, static_cast<int64_t>(k)); };
        InstId a = part(yes), b = part(no);
        parts.push_back(chosen(i, a, b));
      }
      return make(m_, here, Opcode::Tuple, parts, {}, shape);
    }
    if (m_.shape(yes).is_token()) return make(m_, here, Opcode::AfterAll, {yes, no}, {}, shape);
    InstId pred = m_.operand(i, 0);
    if (m_.shape(yes).rank()) pred = make_broadcast(m_, here, pred, {}, u_.with_type(shape, ElementType::Pred));
    return make(m_, here, Opcode::Select, {pred, yes, no}, {}, shape);
  }

  //   conditional(constant)      →      the branch;      of cheap branches      →      both, and a select
  bool resolve(InstId i) {
    if (!m_.safely_removable(i) || m_.has_side_effect(i)) return false;
    size_t count = m_.called(i).size();
    InstId selector = m_.operand(i, 0);
    bool pred = m_.shape(selector).type == ElementType::Pred;
    if (count == 1 || m_.op(selector) == Opcode::Constant) {
      size_t which = 0;
      if (count > 1) {
        if (m_.literal(selector).elided) return false;
        int64_t v = load_int(m_.shape(selector).type, m_.literal(selector).bytes.data());
        which = pred ? (v ? 0 : 1) : v < 0 || v >= static_cast<int64_t>(count) ? count - 1 : static_cast<size_t>(v);
      }
      if (!ctx_.spend(m_, count == 1 ? "conditional of one branch" : "conditional on a constant", {i})) return false;
      InstId c = call(i, which);
      m_.replace(i, c);
      inline_call(c);
      return true;
    }
    if (!pred || count != 2 || !both_ways(m_.called(i)[0]) || !both_ways(m_.called(i)[1])) return false;
    if (!ctx_.spend(m_, "conditional of cheap branches", {i})) return false;
    InstId yes = call(i, 0), no = call(i, 1);
    InstId result = chosen(i, yes, no);
    m_.replace(i, result);
    inline_call(no);
    inline_call(yes);
    return true;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
};

}  // namespace

bool run_simplify_conditional(Module& m, PassContext& ctx) {
  return m.count(Opcode::Conditional) && Conditionals(m, ctx).run();
}

}  // namespace hlo
