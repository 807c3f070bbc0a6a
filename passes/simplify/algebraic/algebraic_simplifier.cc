// algsimp: driver and what its rules share.
#include "passes/simplify/algebraic/algebraic_simplifier.h"

#include <array>
#include <cmath>
#include <limits>

namespace hlo {

bool AlgebraicSimplifier::replace_if_compatible(InstId i, InstId to) {
  if (!m_.control_preds(i).empty() || !same_shape(i, to)) return false;
  if (!ctx_.spend(m_, rule_->id, {i, to})) return true;
  if (!m_.replace(i, to, {.preserve_sharding = true, .relay_control = true})) return false;
  changed_ = true;
  return true;
}

void AlgebraicSimplifier::replace(InstId i, InstId to) {
  m_.replace(i, to, {.relay_control = true});
  changed_ = true;
}

void AlgebraicSimplifier::rewrite_to(InstId i, InstId to) {
  m_.replace(i, to);
  changed_ = true;
}

InstId AlgebraicSimplifier::rewrite(InstId i, Opcode op, std::vector<InstId> operands, AttrsId attrs) {
  InstId to = make(m_, m_.parent(i), op, std::move(operands), attrs, m_.shape_id(i));
  rewrite_to(i, to);
  return to;
}

void AlgebraicSimplifier::swap_precisions(AttrSet* set) const {
  StrId precision = set->text(Attr::operand_precision);
  if (!precision.valid()) return;
  std::string t(u_.text(precision));
  if (size_t comma = t.find(','); comma != std::string::npos)
    set->set(Attr::operand_precision,
             u_.str("{" + t.substr(comma + 1, t.size() - comma - 2) + "," + t.substr(1, comma - 1) + "}"));
}

double AlgebraicSimplifier::scalar_value(InstId i) const {
  while (op(i) == Opcode::Broadcast) i = operand(i, 0);
  return load_double(type(i), m_.literal(i).bytes.data());
}

bool AlgebraicSimplifier::scalar_int(InstId i, int64_t* v) const {
  while (op(i) == Opcode::Broadcast) i = operand(i, 0);
  if (!is_scalar_constant(m_, i) || m_.literal(i).elided || !is_integral(type(i))) return false;
  *v = load_int(type(i), m_.literal(i).bytes.data());
  return true;
}

bool AlgebraicSimplifier::non_negative(InstId i, int depth) const {
  if (depth > 8) return false;
  for (InstId o : m_.operands(i))
    if (is_complex(type(o))) return false;
  auto of = [&](size_t n) { return non_negative(operand(i, n), depth + 1); };
  switch (op(i)) {
    case Opcode::Multiply:
      return operand(i, 0) == operand(i, 1);
    case Opcode::Abs:
    case Opcode::Exp:
    case Opcode::Iota:
      return true;
    case Opcode::Broadcast:
      return of(0);
    case Opcode::Constant: {
      if (!is_scalar_constant(m_, i) || m_.literal(i).elided || is_complex(type(i))) return false;
      double v = load_double(type(i), m_.literal(i).bytes.data());
      return !std::isnan(v) && !std::signbit(v);
    }
    case Opcode::Minimum:
      return of(0) && of(1);
    case Opcode::Maximum:
      return of(0) || of(1);
    case Opcode::Power:
      return of(0);
    case Opcode::Select:
      return of(1) && of(2);
    default:
      return false;
  }
}

std::vector<const AlgebraicRule*> algebraic_rules() {
  std::vector<const AlgebraicRule*> all;
  for (auto table :
       {arithmetic_rules, quotient_rules, elementwise_rules, conversion_rules, broadcast_rules, movement_rules,
        slice_rules, indexing_rules, reduction_rules, window_rules, product_rules, convolution_rules, structure_rules})
    for (const AlgebraicRule& rule : table()) all.push_back(&rule);
  return all;
}

namespace {

using RulesByOpcode = std::array<std::vector<const AlgebraicRule*>, std::numeric_limits<uint8_t>::max() + 1>;

const RulesByOpcode& rules_by_opcode() {
  static const RulesByOpcode rules = [] {
    RulesByOpcode out;
    for (const AlgebraicRule* rule : algebraic_rules()) {
      out[static_cast<size_t>(rule->opcodes.first)].push_back(rule);
      if (rule->opcodes.second != rule->opcodes.first) out[static_cast<size_t>(rule->opcodes.second)].push_back(rule);
    }
    return out;
  }();
  return rules;
}

}  // namespace

void AlgebraicSimplifier::visit(InstId i) {
  for (const AlgebraicRule* rule : rules_by_opcode()[static_cast<size_t>(op(i))]) {
    rule_ = rule;
    if ((this->*rule->apply)(i)) return;
  }
}

bool AlgebraicSimplifier::run() {
  for (CompId c : m_.nonfusion_computations()) visit_computation(m_, c, [this](InstId i) { visit(i); });
  return changed_;
}

bool run_algsimp(Module& m, PassContext& ctx) {
  // One walk, or walks until nothing changes where XLA wraps it in HloPassFix (at most 25).
  int most = ctx.flag("fixpoint") ? 25 : 1;
  bool changed = false;
  for (int n = 0; n < most && AlgebraicSimplifier(m, ctx).run(); ++n) {
    changed = true;
    m.cleanup();
    if (ctx.fuel <= 0) break;
  }
  return changed;
}

}  // namespace hlo
