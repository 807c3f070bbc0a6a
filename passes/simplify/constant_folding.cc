// constant_folding (xla/hlo/transforms/simplifiers/hlo_constant_folding.cc): evaluates what is constant and small.
#include <algorithm>
#include <unordered_map>

#include "ir/eval/evaluator.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kMaxElements = 45'000'000;

class Folder {
 public:
  Folder(Module& m, PassContext& ctx) : m_(m), ctx_(ctx) {}

  bool run() {
    std::vector<CompId> order = m_.nonfusion_computations();
    std::reverse(order.begin(), order.end());
    auto callers = m_.callers();
    bool changed = false;
    for (CompId c : order) {
      changed |= constant_arguments(c, callers[c.value]);
      for (InstId i : m_.post_order(c))
        if (m_.alive(i)) changed |= fold(i);
    }
    return changed;
  }

 private:
  // A parameter that every call site gives the same constant takes that constant.
  bool constant_arguments(CompId c, const std::vector<InstId>& callers) {
    const auto params = m_.comp(c).params;
    if (callers.empty()) return false;
    for (InstId caller : callers)
      if (!m_.alive(caller) || m_.op(caller) != Opcode::Call) return false;
    std::vector<InstId> same(params.size());
    size_t count = 0;
    for (size_t n = 0; n < params.size(); ++n) {
      InstId first = m_.operand(callers[0], n);
      if (m_.op(first) != Opcode::Constant) continue;
      bool all = std::all_of(callers.begin(), callers.end(), [&](InstId caller) {
        InstId o = m_.operand(caller, n);
        return m_.op(o) == Opcode::Constant && m_.literal_id(o) == m_.literal_id(first);
      });
      if (all) same[n] = first, ++count;
    }
    if (count == params.size()) return false;
    bool changed = false;
    for (size_t n = 0; n < params.size(); ++n) {
      if (!same[n].valid() || m_.users(params[n]).empty()) continue;
      if (!ctx_.spend(m_, "constant argument", {params[n], same[n]})) return changed;
      InstId copy = m_.clone_inst(same[n], c, {}, ShapeId(), "clone");
      m_.replace_all_uses(params[n], copy);
      changed = true;
    }
    return changed;
  }

  // The value of a constant, a broadcast of one, an iota, or a tuple of such.
  bool constant_value(InstId i) const {
    switch (m_.op(i)) {
      case Opcode::Constant:
        return !m_.literal(i).elided;
      case Opcode::Iota:
        return true;
      case Opcode::Broadcast:
        return m_.op(m_.operand(i, 0)) == Opcode::Constant && !m_.literal(m_.operand(i, 0)).elided;
      case Opcode::Tuple:
        return std::all_of(m_.operands(i).begin(), m_.operands(i).end(), [&](InstId o) { return constant_value(o); });
      default:
        return false;
    }
  }
  bool has_constant(InstId i) const {
    if (m_.op(i) == Opcode::Tuple)
      return std::any_of(m_.operands(i).begin(), m_.operands(i).end(), [&](InstId o) { return has_constant(o); });
    return m_.op(i) == Opcode::Constant;
  }

  bool foldable_body(CompId c) {
    auto [at, fresh] = body_.emplace(c, true);
    if (!fresh) return at->second;
    bool ok = true;
    // A conditional whose branches spread something stays for simplify-conditional.
    for (InstId i : m_.live_order(c))
      ok = ok && m_.op(i) != Opcode::Broadcast && (m_.op(i) == Opcode::OptBarrier || foldable_opcode(i));
    body_[c] = ok;
    return ok;
  }
  bool foldable_opcode(InstId i) {
    switch (m_.op(i)) {
      case Opcode::AfterAll:
      case Opcode::Rng:
      case Opcode::Fft:
      case Opcode::While:
      case Opcode::AsyncStart:
      case Opcode::AsyncDone:
      case Opcode::AsyncUpdate:
      case Opcode::Infeed:
      case Opcode::Outfeed:
      case Opcode::OptBarrier:
        return false;
      default:
        break;
    }
    for (CompId c : m_.called(i))
      if (!foldable_body(c)) return false;
    return true;
  }

  static int64_t array_elements(const Universe& u, ShapeId s) { return u[s].is_array() ? u[s].elements_count() : 0; }

  bool fold(InstId i) {
    Opcode op = m_.op(i);
    if (op == Opcode::Parameter || op == Opcode::Constant || op == Opcode::Tuple || op == Opcode::Broadcast ||
        op == Opcode::Iota)
      return false;
    if (m_.dead(i) || m_.operand_count(i) == 0) return false;
    auto ops = m_.operands(i);
    // First what stops early: a loop's tuple of weights has ten thousands of elements, each taken out once.
    if (!std::all_of(ops.begin(), ops.end(), [&](InstId o) { return constant_value(o); })) return false;
    if (!std::any_of(ops.begin(), ops.end(), [&](InstId o) { return has_constant(o); })) return false;
    if (op == Opcode::Pad && m_.op(ops[0]) == Opcode::Broadcast && m_.op(ops[1]) == Opcode::Constant) return false;
    if (!foldable_opcode(i) || m_.has_side_effect(i) || m_.has_control(i)) return false;
    const Universe& u = m_.u();
    // A literal has no size of its own: what is set or given at run time would be lost.
    if (op == Opcode::SetDimensionSize || u[m_.shape_id(i)].is_dynamic() ||
        std::any_of(ops.begin(), ops.end(), [&](InstId o) { return u[m_.shape_id(o)].is_dynamic(); }))
      return false;
    if (u[m_.shape_id(i)].is_array()) {
      int64_t in = 0;
      for (InstId o : ops) in += array_elements(u, m_.shape_id(o));
      if (std::max(in, array_elements(u, m_.shape_id(i))) > kMaxElements) return false;
    }
    Value result;
    try {
      EvalOptions options;
      options.max_while_steps = 0;
      Evaluator evaluator(m_, options);
      std::vector<Value> values;
      for (InstId o : ops) values.push_back(value(evaluator, o));
      result = evaluator.run_instruction(i, std::move(values));
    } catch (const Failure& failure) {
      ctx_.note(m_, "not folded", {i}, failure.what());
      return false;
    }
    if (!ctx_.spend(m_, "folded", {i})) return false;
    result.shape = m_.shape_id(i);
    LitId lit = m_.u().literal(literal_of_value(m_.u(), result));
    //   add(constant(1), constant(2))      →      constant(3)
    InstId constant = m_.add_derived(i, {.op = Opcode::Constant, .shape = m_.shape_id(i), .payload = lit.value});
    m_.replace_all_uses(i, constant);
    m_.remove_with_unused_operands(i);
    return true;
  }

  Value value(Evaluator& e, InstId i) {
    std::vector<Value> values;
    for (InstId o : m_.operands(i)) values.push_back(value(e, o));
    return e.run_instruction(i, std::move(values));
  }

  Module& m_;
  PassContext& ctx_;
  std::unordered_map<CompId, bool> body_;
};

}  // namespace

bool run_constant_folding(Module& m, PassContext& ctx) { return Folder(m, ctx).run(); }

}  // namespace hlo
