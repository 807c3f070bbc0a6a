// algsimp: driver and what its rules share.
#include "passes/simplify/algebraic/algebraic_simplifier.h"

#include <cmath>

namespace hlo {

bool AlgebraicSimplifier::ric(InstId i, InstId to, std::string_view rule) {
  if (!m_.control_preds(i).empty() || !same_shape(i, to)) return false;
  if (!ctx_.spend(m_, rule, {i, to})) return true;
  if (!m_.replace(i, to, {.preserve_sharding = true, .relay_control = true})) return false;
  changed_ = true;
  return true;
}

void AlgebraicSimplifier::ri(InstId i, InstId to) {
  m_.replace(i, to, {.relay_control = true});
  changed_ = true;
}

void AlgebraicSimplifier::rw_to(InstId i, InstId to) {
  m_.replace(i, to);
  changed_ = true;
}

InstId AlgebraicSimplifier::rw(InstId i, Opcode op, std::vector<InstId> operands, AttrsId attrs) {
  InstId to = make(m_, m_.parent(i), op, std::move(operands), attrs, m_.shape_id(i));
  rw_to(i, to);
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

CompId AlgebraicSimplifier::scalar_add(ElementType t) {
  auto [at, fresh] = scalar_add_.emplace(t, CompId());
  if (fresh) at->second = make_reducer(m_, "scalar_add_computation", Opcode::Add, t, "scalar_lhs", "scalar_rhs");
  return at->second;
}

void AlgebraicSimplifier::visit(InstId i) {
  switch (op(i)) {
    case Opcode::Add:
      return add(i);
    case Opcode::Subtract:
      return subtract(i);
    case Opcode::Multiply:
      return multiply(i);
    case Opcode::Divide:
      return divide(i);
    case Opcode::Remainder:
      return remainder(i);
    case Opcode::And:
    case Opcode::Or:
      return logic(i);
    case Opcode::Compare:
      return compare(i);
    case Opcode::Maximum:
    case Opcode::Minimum:
      return minmax(i);
    case Opcode::Power:
      return power(i);
    case Opcode::Abs:
    case Opcode::Negate:
    case Opcode::Not:
    case Opcode::Log:
    case Opcode::Exp:
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
    case Opcode::Complex:
    case Opcode::Real:
    case Opcode::Imag:
    case Opcode::ReducePrecision:
      return unary(i);
    case Opcode::Select:
      return select(i);
    case Opcode::Clamp:
      //   clamp(lo, clamp(lo, A, hi), hi)      →      clamp(lo, A, hi)
      if (op(operand(i, 1)) == Opcode::Clamp && operand(operand(i, 1), 0) == operand(i, 0) &&
          operand(operand(i, 1), 2) == operand(i, 2))
        ric(i, operand(i, 1), "clamp twice");
      else
        clamp_of_id(i);
      return;
    case Opcode::Convert:
      return convert(i);
    case Opcode::BitcastConvert:
      return bitcast_convert(i);
    case Opcode::Constant:
      return constant(i);
    case Opcode::Iota:
      return iota(i);
    case Opcode::Broadcast:
      return broadcast(i);
    case Opcode::Reshape:
      return reshape(i);
    case Opcode::Transpose:
      return transpose(i);
    case Opcode::Slice:
      return slice(i);
    case Opcode::DynamicSlice:
      return dynamic_slice(i);
    case Opcode::DynamicUpdateSlice:
      return dynamic_update_slice(i);
    case Opcode::Pad:
      return pad(i);
    case Opcode::Concatenate:
      return concatenate(i);
    case Opcode::Reverse:
      return reverse(i);
    case Opcode::Copy:
      return copy(i);
    case Opcode::Bitcast:
      return bitcast(i);
    case Opcode::Reduce:
      return reduce(i);
    case Opcode::ReduceWindow:
      return reduce_window(i);
    case Opcode::Dot:
      return dot(i);
    case Opcode::Convolution:
      return convolution(i);
    case Opcode::Gather:
      return gather(i);
    case Opcode::Scatter:
      return scatter(i);
    case Opcode::Sort:
      return sort(i);
    case Opcode::Map:
      return map(i);
    case Opcode::Conditional:
      return conditional(i);
    case Opcode::OptBarrier:
      return opt_barrier(i);
    case Opcode::GetTupleElement:
      return get_tuple_element(i);
    case Opcode::AllGather:
    case Opcode::AllToAll:
    case Opcode::AllReduce:
    case Opcode::ReduceScatter:
      return collective(i);
    case Opcode::CustomCall:
      return custom_call(i);
    default:
      return;
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
