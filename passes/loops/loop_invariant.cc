// while-loop-invariant-code-motion and while-loop-expensive-invariant-code-motion
// (xla/service/while_loop_invariant_code_motion.cc, while_loop_expensive_invariant_code_motion.cc), and
// conditional-canonicalizer (xla/hlo/transforms/simplifiers/conditional_canonicalizer.cc).
#include <algorithm>
#include <unordered_set>

#include "passes/loops/loops.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

namespace {

// The first `count` elements of a tuple, as a tuple.
InstId prefix(Module& m, InstId tuple, size_t count) {
  std::vector<InstId> parts;
  std::vector<ShapeId> shapes;
  for (size_t k = 0; k < count; ++k) {
    parts.push_back(make_element(m, tuple, static_cast<int64_t>(k)));
    shapes.push_back(m.shape_id(parts.back()));
  }
  return make(m, m.parent(tuple), Opcode::Tuple, parts, {}, m.u().tuple(shapes));
}

// The elements of a tuple and more behind them.
InstId suffixed(Module& m, InstId tuple, const std::vector<InstId>& more) {
  std::vector<InstId> parts;
  std::vector<ShapeId> shapes;
  for (size_t k = 0; k < m.shape(tuple).elements.size(); ++k)
    parts.push_back(make_element(m, tuple, static_cast<int64_t>(k)));
  parts.insert(parts.end(), more.begin(), more.end());
  for (InstId p : parts) shapes.push_back(m.shape_id(p));
  return make(m, m.parent(tuple), Opcode::Tuple, parts, {}, m.u().tuple(shapes));
}

struct Widened {
  std::vector<InstId> inside;                  // the handed-on values in the new body
  std::unordered_map<InstId, InstId> renamed;  // instructions of the old body in the new one
};

// A loop whose state holds `values` besides, unchanged from trip to trip (while_util.cc, MakeInstructionsLiveIn).
Widened hand_in(Module& m, InstId loop, const std::vector<InstId>& values) {
  Universe& u = m.u();
  CompId body = m.attrs(loop).comp(Attr::body), condition = m.attrs(loop).comp(Attr::condition);
  size_t count = m.shape(loop).elements.size();
  std::vector<ShapeId> shapes = m.shape(loop).elements;
  for (InstId v : values) shapes.push_back(m.shape_id(v));
  ShapeId state = u.tuple(shapes);
  Widened out;
  auto widen = [&](CompId from, bool is_body) {
    // The copy keeps the instructions' places known, as inlining a call would not.
    std::unordered_map<InstId, InstId> map;
    CompId copy = m.clone_computation(from, "wide", &map);
    m.rename_computation(copy, fmt::format("wide.{}", m.comp_name(from)));
    InstId old = m.comp(copy).params[0];
    std::vector<InstId> readers = m.users_copy(old);
    bool was_root = m.is_root(old);
    m.set_shape(old, state);
    InstId narrow = prefix(m, old, count);
    for (InstId r : readers)
      for (size_t k = 0; k < m.operand_count(r); ++k)
        if (m.operand(r, k) == old) m.set_operand(r, k, narrow);
    InstId root = was_root ? narrow : m.comp(copy).root;
    if (is_body) {
      // Taken apart twice, as XLA does: what goes on to the next trip, and what the body reads.
      std::vector<InstId> through;
      for (std::vector<InstId>* list : {&through, &out.inside})
        for (size_t k = count; k < shapes.size(); ++k) list->push_back(make_element(m, old, static_cast<int64_t>(k)));
      root = suffixed(m, root, through);
      out.renamed = std::move(map);
    }
    m.set_root(copy, root);
    return copy;
  };
  CompId new_condition = widen(condition, false), new_body = widen(body, true);
  AttrSet attrs = m.attrs(loop);
  attrs.set(Attr::condition, new_condition), attrs.set(Attr::body, new_body);
  attrs.erase(Attr::sharding);
  InstId init = suffixed(m, m.operand(loop, 0), values);
  InstId fresh = m.add(m.parent(loop), {.op = Opcode::While,
                                        .shape = state,
                                        .operands = {init},
                                        .attrs = u.attrs(std::move(attrs)),
                                        .meta = m[loop].meta});
  m.replace_all_uses(loop, prefix(m, fresh, count));
  m.remove(loop);
  return out;
}

// Not worth moving by themselves: they cost nothing where they are.
bool cheap_alone(Opcode op) {
  switch (op) {
    case Opcode::Constant:
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Iota:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Tuple:
      return true;
    default:
      return false;
  }
}

class InvariantMotion {
 public:
  InvariantMotion(Module& m, PassContext& ctx, bool expensive_only)
      : m_(m),
        ctx_(ctx),
        expensive_(expensive_only),
        constants_(!expensive_only && ctx.flag("hoist_constants")),
        reshapes_(!expensive_only && ctx.flag("hoist_reshapes")),
        ratio_(ctx.number("size_inflation_percent")) {}

  bool run() {
    bool changed = false;
    std::vector<InstId> loops;
    for (CompId c : m_.computation_post_order())
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::While) loops.push_back(i);
    for (InstId w : loops)
      if (m_.alive(w) && ctx_.fuel > 0) changed |= move_out(w);
    if (changed) {
      ctx_.run(m_, "dce");
      ctx_.run(m_, "tuple-simplifier");
    }
    return changed;
  }

 private:
  bool worth_looking(InstId w) const {
    if (!m_.shape(w).is_tuple() || m_.has_control(w)) return false;
    Trips trips;
    if (trip_count(m_, w, &trips) && trips.count <= 1) return false;
    if (frontend_attribute(m_, w, "_xla_disable_loop_instr_hoisting") == "true") return false;
    CompId body = m_.attrs(w).comp(Attr::body);
    for (InstId i : m_.live_order(body)) {
      if (m_.op(i) == Opcode::Domain) return false;
      if (m_.op(i) != Opcode::CustomCall) continue;
      std::string_view target = m_.u().text(m_.attrs(i).text(Attr::custom_call_target));
      if (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" || target == "MoveToHost" ||
          target == "MoveToDevice")
        return false;
    }
    return m_.op(m_.comp(body).root) == Opcode::Tuple;
  }

  static bool expensive(Opcode op) {
    switch (op) {
      case Opcode::Dot:
      case Opcode::Convolution:
      case Opcode::Fft:
      case Opcode::Sort:
      case Opcode::Cholesky:
      case Opcode::TriangularSolve:
      case Opcode::Reduce:
      case Opcode::ReduceWindow:
      case Opcode::AllReduce:
      case Opcode::AllGather:
        return true;
      default:
        return false;
    }
  }

  //   while (i, A): body { … multiply(A, A) … }      →      B = multiply(A, A), while (i, A, B): body { … B … }
  bool move_out(InstId w) {
    if (!worth_looking(w)) return false;
    CompId body = m_.attrs(w).comp(Attr::body);
    InstId root = m_.comp(body).root, param = m_.comp(body).params[0], init = m_.operand(w, 0);
    // Where what the body knows lies outside: invariant elements, and copies as they are made.
    std::unordered_map<InstId, InstId> outside;
    std::unordered_set<InstId> waiting;
    for (size_t k = 0; k < m_.operand_count(root); ++k) {
      InstId g = m_.operand(root, k);
      if (m_.op(g) != Opcode::GetTupleElement || m_.operand(g, 0) != param || !m_.shape(g).is_array() ||
          m_.attrs(g).integer(Attr::index) != static_cast<int64_t>(k))
        continue;
      waiting.insert(g);
    }
    if (waiting.empty() && !constants_) return false;
    std::vector<InstId> moved, values;
    for (InstId i : m_.post_order(body)) {
      Opcode op = m_.op(i);
      if (op == Opcode::Parameter || op == Opcode::GetTupleElement || op == Opcode::AfterAll || m_.has_control(i) ||
          m_.has_side_effect(i) || m_.is_root(i) || !m_.shape(i).is_array())
        continue;
      bool invariant = std::all_of(m_.operands(i).begin(), m_.operands(i).end(),
                                   [&](InstId o) { return waiting.contains(o) || outside.contains(o); });
      if (op == Opcode::Constant && m_.literal(i).elided) invariant = false;
      if (!invariant) continue;
      bool alone = !cheap_alone(op);
      if (constants_ && op == Opcode::Constant) alone = true;
      if (reshapes_ && op == Opcode::Reshape) alone = true;
      if (expensive_) alone = expensive(op);
      if (alone && ratio_ > 0) {
        int64_t in = 0;
        for (InstId o : m_.operands(i)) in += m_.u().byte_size(m_.shape_id(o));
        alone = m_.u().byte_size(m_.shape_id(i)) * 100 <= in * ratio_;
      }
      if (!alone) {
        waiting.insert(i);
        continue;
      }
      if (!ctx_.spend(m_, "out of the loop", {i, w})) break;
      moved.push_back(i);
      values.push_back(copy_out(i, init, outside));
    }
    if (moved.empty()) return false;
    Widened wide = hand_in(m_, w, values);
    for (size_t k = 0; k < moved.size(); ++k) m_.replace_all_uses(wide.renamed.at(moved[k]), wide.inside[k]);
    return true;
  }

  InstId copy_out(InstId i, InstId init, std::unordered_map<InstId, InstId>& outside) {
    std::vector<std::pair<InstId, bool>> stack{{i, false}};
    while (!stack.empty()) {
      auto [at, ready] = stack.back();
      stack.pop_back();
      if (outside.contains(at)) continue;
      if (m_.op(at) == Opcode::GetTupleElement) {
        int64_t k = m_.attrs(at).integer(Attr::index);
        outside[at] =
            m_.op(init) == Opcode::Tuple ? m_.operand(init, static_cast<size_t>(k)) : make_element(m_, init, k);
        continue;
      }
      if (!ready) {
        stack.push_back({at, true});
        for (InstId o : m_.operands(at)) stack.push_back({o, false});
        continue;
      }
      std::vector<InstId> ops;
      for (InstId o : m_.operands(at)) ops.push_back(outside.at(o));
      outside[at] = m_.clone_inst(at, m_.parent(init), ops, {}, "");
    }
    return outside.at(i);
  }

  Module& m_;
  PassContext& ctx_;
  bool expensive_, constants_, reshapes_;
  int64_t ratio_;
};

}  // namespace

bool run_while_loop_invariant_code_motion(Module& m, PassContext& ctx) { return InvariantMotion(m, ctx, false).run(); }

bool run_while_loop_expensive_invariant_code_motion(Module& m, PassContext& ctx) {
  return InvariantMotion(m, ctx, true).run();
}

//   f32[4] conditional(p, A, B)      →      get-tuple-element((f32[4]) conditional(p, tuple(A), tuple(B))), index=0
bool run_conditional_canonicalizer(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Conditional)) return false;
  bool changed = false;
  Universe& u = m.u();
  std::vector<InstId> found;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::Conditional) found.push_back(i);
  if (found.empty()) return false;
  std::vector<std::vector<InstId>> callers = m.callers();
  for (InstId i : found) {
    const std::vector<CompId> branches = m.called(i);
    auto bare = [&](ShapeId s) { return !u[s].is_tuple(); };
    bool result = bare(m.shape_id(i)), any = result;
    for (size_t k = 0; k < branches.size(); ++k) any |= bare(m.shape_id(m.operand(i, k + 1)));
    if (!any) continue;
    if (!ctx.spend(m, "branches of tuples", {i})) return changed;
    std::unordered_set<CompId> done;
    for (size_t k = 0; k < branches.size(); ++k) {
      bool wrap = bare(m.shape_id(m.operand(i, k + 1)));
      CompId c = branches[k];
      // A branch that others call, or that stands for two branches, gets a copy of its own.
      if (done.contains(c) || (c.value < callers.size() && callers[c.value].size() > 1)) {
        CompId copy = m.clone_computation(c, "canonicalized");
        AttrSet set = m.attrs(i);
        bool once = false;
        for (auto& [key, value] : set.list) {
          if (auto* one = std::get_if<CompId>(&value)) {
            if (!once && *one == c && ((key == Attr::true_computation) == (k == 0))) *one = copy, once = true;
          } else if (auto* list = std::get_if<std::vector<CompId>>(&value)) {
            (*list)[k] = copy;
          }
        }
        set.finish();
        m.set_attrs(i, u.attrs(std::move(set)));
        c = copy;
      }
      done.insert(c);
      if (wrap) {
        InstId p = m.comp(c).params[0];
        ShapeId element = m.shape_id(p);
        std::vector<InstId> readers = m.users_copy(p);
        bool was_root = m.is_root(p);
        m.set_shape(p, u.tuple({element}));
        InstId part = make_element(m, p, 0);
        for (InstId r : readers)
          for (size_t o = 0; o < m.operand_count(r); ++o)
            if (m.operand(r, o) == p) m.set_operand(r, o, part);
        if (was_root) m.set_root(c, part);
        InstId argument = m.operand(i, k + 1);
        m.set_operand(i, k + 1, make(m, m.parent(i), Opcode::Tuple, {argument}));
      }
      if (result) m.set_root(c, make(m, c, Opcode::Tuple, {m.comp(c).root}));
    }
    if (result) {
      std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
      InstId wide = m.clone_inst(i, m.parent(i), ops, u.tuple({m.shape_id(i)}), "clone");
      InstId part = make_element(m, wide, 0);
      m.replace(i, part);
    }
    changed = true;
  }
  return changed;
}

}  // namespace hlo
