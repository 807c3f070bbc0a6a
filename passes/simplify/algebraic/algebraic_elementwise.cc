// algsimp on elementwise operations.

#include <cmath>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kElementwiseRules[] = {
    {"and true", Opcode::And, "and(A, true)", "A", &AlgebraicSimplifier::and_true},
    {"and zero", Opcode::And, "and(A, 0)", "0", &AlgebraicSimplifier::and_zero},
    {"and of two bounds", Opcode::And, "and(A < K1, A < K2) of integers", "A < min(K1, K2)",
     &AlgebraicSimplifier::and_of_two_bounds},
    {"or true", Opcode::Or, "or(A, true)", "true", &AlgebraicSimplifier::or_true},
    {"or zero", Opcode::Or, "or(A, 0)", "A", &AlgebraicSimplifier::or_zero},

    {"unsigned below zero", Opcode::Compare, "A < 0, A >= 0 of unsigned integers", "false, true",
     &AlgebraicSimplifier::unsigned_below_zero},
    {"non-negative below zero", Opcode::Compare, "A < 0, A >= 0 where A is not negative", "false, true",
     &AlgebraicSimplifier::non_negative_below_zero},
    {"compare with itself", Opcode::Compare, "compare(A, A) of integers", "true or false, by the direction",
     &AlgebraicSimplifier::compare_with_itself},
    {"not equal false", Opcode::Compare, "A != false", "A", &AlgebraicSimplifier::not_equal_false},
    {"equal true", Opcode::Compare, "A == true", "A", &AlgebraicSimplifier::equal_true},
    {"truth value as a number", Opcode::Compare, "select(A >= B, 1, 0) != 0", "A >= B",
     &AlgebraicSimplifier::truth_value_as_number},
    {"compare with an extremum of itself", Opcode::Compare, "maximum(A, B) > A, A > minimum(A, B)", "B > A, A > B",
     &AlgebraicSimplifier::compare_with_extremum},

    {"extremum with itself",
     {Opcode::Maximum, Opcode::Minimum},
     "maximum(A, A)",
     "A",
     &AlgebraicSimplifier::extremum_with_itself},
    {"extremum with its identity",
     {Opcode::Maximum, Opcode::Minimum},
     "maximum(A, the least value)",
     "A",
     &AlgebraicSimplifier::extremum_with_identity},
    {"extremum twice",
     {Opcode::Maximum, Opcode::Minimum},
     "maximum(maximum(A, B), A)",
     "maximum(A, B)",
     &AlgebraicSimplifier::extremum_twice},
    {"extremum twice on the right",
     {Opcode::Maximum, Opcode::Minimum},
     "maximum(B, maximum(A, B))",
     "maximum(B, A)",
     &AlgebraicSimplifier::extremum_twice_on_the_right},
    {"clamp from extrema",
     {Opcode::Maximum, Opcode::Minimum},
     "maximum(K0, minimum(A, K1)) where K0 < K1",
     "clamp(K0, A, K1)",
     &AlgebraicSimplifier::clamp_from_extrema},
    {"maximum with a clamp's bound", Opcode::Maximum, "maximum(B, clamp(B, A, C))", "clamp(B, A, C)",
     &AlgebraicSimplifier::maximum_with_bound},
    {"maximum of monotone functions", Opcode::Maximum, "maximum(tanh(A), tanh(B)), of cbrt, erf, logistic, too",
     "tanh(maximum(A, B))", &AlgebraicSimplifier::maximum_of_monotone},

    {"abs of a non-negative value", Opcode::Abs, "abs(A) where A is not negative", "A",
     &AlgebraicSimplifier::abs_of_non_negative},
    {"negate twice", Opcode::Negate, "negate(negate(A))", "A", &AlgebraicSimplifier::same_twice},
    {"not twice", Opcode::Not, "not(not(A))", "A", &AlgebraicSimplifier::same_twice},
    {"log of exp", Opcode::Log, "log(exponential(A))", "A", &AlgebraicSimplifier::log_of_exp},
    {"log of a power", Opcode::Log, "log(power(A, B))", "select(B == 0, 0, multiply(log(abs(A)), B))",
     &AlgebraicSimplifier::log_of_power},
    {"log of a root", Opcode::Log, "log(sqrt(A)), or of rsqrt(A)", "multiply(log(A), 0.5), or by -0.5",
     &AlgebraicSimplifier::log_of_root},
    {"exp of zero", Opcode::Exp, "exponential(0)", "1", &AlgebraicSimplifier::exp_of_zero},
    {"sqrt of a square", Opcode::Sqrt, "sqrt(multiply(A, A))", "abs(A)", &AlgebraicSimplifier::sqrt_of_square},
    {"rsqrt of an inverse square", Opcode::Rsqrt, "rsqrt(power(A, -2)) where A is not negative", "A",
     &AlgebraicSimplifier::rsqrt_of_inverse_square},
    {"rsqrt of an inverse", Opcode::Rsqrt, "rsqrt(divide(1, A)) where A is not negative", "sqrt(A)",
     &AlgebraicSimplifier::rsqrt_of_inverse},
    {"complex of its parts", Opcode::Complex, "complex(real(A), imag(A))", "A", &AlgebraicSimplifier::complex_of_parts},
    {"real part of a real value", Opcode::Real, "real(A) where A is real", "A", &AlgebraicSimplifier::real_of_real},
    {"real part of complex", Opcode::Real, "real(complex(A, B))", "A", &AlgebraicSimplifier::real_of_complex},
    {"imaginary part of complex", Opcode::Imag, "imag(complex(A, B))", "B", &AlgebraicSimplifier::imag_of_complex},
    {"imaginary part of a real value", Opcode::Imag, "imag(A) where A is real", "0",
     &AlgebraicSimplifier::imag_of_real},
    {"reduce-precision to the same precision", Opcode::ReducePrecision,
     "reduce-precision(A) to what A's type has, with remove_no_op_reduce_precision", "A",
     &AlgebraicSimplifier::reduce_precision_to_same},

    {"select of one value", Opcode::Select, "select(P, A, A)", "A", &AlgebraicSimplifier::select_of_one_value},
    {"select by true", Opcode::Select, "select(true, A, B)", "A", &AlgebraicSimplifier::select_by_true},
    {"select by false", Opcode::Select, "select(false, A, B)", "B", &AlgebraicSimplifier::select_by_false},
    {"select by a negation", Opcode::Select, "select(not(P), A, B)", "select(P, B, A)",
     &AlgebraicSimplifier::select_by_negation},
    {"select of true and false", Opcode::Select, "select(P, true, false)", "P",
     &AlgebraicSimplifier::select_of_true_and_false},
    {"select of false and true", Opcode::Select, "select(P, false, true)", "not(P)",
     &AlgebraicSimplifier::select_of_false_and_true},
    {"select by comparing truth values", Opcode::Select, "select(compare(A, B), A, B) of pred",
     "or(A, B), and(A, B), A or B, by the direction", &AlgebraicSimplifier::select_by_comparing},
    {"select of an update", Opcode::Select, "select(P, A, dynamic-update-slice(A, U, idx))",
     "dynamic-update-slice(A, select(P, dynamic-slice(A, idx), U), idx)", &AlgebraicSimplifier::select_of_update},

    {"clamp twice", Opcode::Clamp, "clamp(B, clamp(B, A, C), C)", "clamp(B, A, C)", &AlgebraicSimplifier::clamp_twice},
    {"clamp of a device's number", Opcode::Clamp,
     "clamp(0, partition-id, K), or of replica-id, of at most K + 1 devices", "partition-id",
     &AlgebraicSimplifier::clamp_of_device},
};

}  // namespace

std::span<const AlgebraicRule> elementwise_rules() { return kElementwiseRules; }

bool AlgebraicSimplifier::and_true(InstId i) {
  return type(i) == ElementType::Pred &&
         either(i, [&](InstId a, InstId truth) { return is_all(m_, truth, 1) && replace_if_compatible(i, a); });
}

bool AlgebraicSimplifier::and_zero(InstId i) {
  return either(i, [&](InstId, InstId zero) { return is_all(m_, zero, 0) && replace_if_compatible(i, zero); });
}

bool AlgebraicSimplifier::and_of_two_bounds(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1), a, b;
  auto bound = [&](InstId x, InstId* value, int64_t* limit) {
    if (op(x) != Opcode::Compare || type(operand(x, 0)) != ElementType::S32) return false;
    std::string_view d = direction(x);
    if (d != "LT" && d != "GT") return false;
    *value = operand(x, d == "LT" ? 0 : 1);
    InstId constant = operand(x, d == "LT" ? 1 : 0);
    return is_scalar_constant(m_, constant) && scalar_int(constant, limit) && !is_constant(*value);
  };
  int64_t first, second;
  if (!bound(l, &a, &first) || !bound(r, &b, &second) || a != b) return false;
  if (!spend(i)) return true;
  InstId less = first <= second ? l : r;
  InstId limit = operand(less, operand(less, 0) == a ? 1 : 0);
  rewrite(i, Opcode::Compare, {a, limit}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("LT")}}));
  return true;
}

bool AlgebraicSimplifier::or_true(InstId i) {
  return type(i) == ElementType::Pred &&
         either(i, [&](InstId, InstId truth) { return is_all(m_, truth, 1) && replace_if_compatible(i, truth); });
}

bool AlgebraicSimplifier::or_zero(InstId i) {
  return either(i, [&](InstId a, InstId zero) { return is_all(m_, zero, 0) && replace_if_compatible(i, a); });
}

std::string_view AlgebraicSimplifier::direction(InstId compare) const {
  return u_.text(m_.attrs(compare).text(Attr::direction));
}

bool AlgebraicSimplifier::becomes_truth(InstId i, bool value) {
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, value));
  return true;
}

bool AlgebraicSimplifier::unsigned_below_zero(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (!is_unsigned_int(type(l)) && type(l) != ElementType::Pred) return false;
  std::string_view d = direction(i);
  if ((d == "LT" || d == "GE") && is_all(m_, r, 0)) return becomes_truth(i, d == "GE");
  if ((d == "GT" || d == "LE") && is_all(m_, l, 0)) return becomes_truth(i, d == "LE");
  return false;
}

bool AlgebraicSimplifier::non_negative_below_zero(InstId i) {
  if (m_.attrs(i).has(Attr::type)) return false;  // the order is total: -0 is below 0
  InstId l = operand(i, 0), r = operand(i, 1);
  std::string_view d = direction(i);
  if ((d == "LT" || d == "GE") && is_all(m_, r, 0) && non_negative(l)) return becomes_truth(i, d == "GE");
  if ((d == "GT" || d == "LE") && is_all(m_, l, 0) && non_negative(r)) return becomes_truth(i, d == "LE");
  return false;
}

bool AlgebraicSimplifier::compare_with_itself(InstId i) {
  if (operand(i, 0) != operand(i, 1) || !integral(operand(i, 0))) return false;
  std::string_view d = direction(i);
  return becomes_truth(i, d != "GT" && d != "LT" && d != "NE");
}

bool AlgebraicSimplifier::not_equal_false(InstId i) {
  return type(operand(i, 0)) == ElementType::Pred && direction(i) == "NE" &&
         either(i, [&](InstId a, InstId zero) { return is_all(m_, zero, 0) && replace_if_compatible(i, a); });
}

bool AlgebraicSimplifier::equal_true(InstId i) {
  return type(operand(i, 0)) == ElementType::Pred && direction(i) == "EQ" &&
         either(i, [&](InstId a, InstId truth) { return is_all(m_, truth, 1) && replace_if_compatible(i, a); });
}

bool AlgebraicSimplifier::truth_value_as_number(InstId i) {
  InstId l = operand(i, 0);
  return direction(i) == "NE" && op(l) == Opcode::Select && op(operand(l, 0)) == Opcode::Compare &&
         is_all(m_, operand(i, 1), 0) && is_all(m_, operand(l, 1), 1) && is_all(m_, operand(l, 2), 0) &&
         direction(operand(l, 0)) == "GE" && replace_if_compatible(i, operand(l, 0));
}

bool AlgebraicSimplifier::compare_with_extremum(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (direction(i) != "GT") return false;
  auto in_place = [&](size_t side, InstId extremum, InstId itself) {
    for (size_t s : {size_t{0}, size_t{1}}) {
      if (operand(extremum, s) != itself) continue;
      if (!spend(i)) return true;
      m_.set_operand(i, side, operand(extremum, 1 - s));
      changed_ = true;
      return true;
    }
    return false;
  };
  return (op(l) == Opcode::Maximum && in_place(0, l, r)) || (op(r) == Opcode::Minimum && in_place(1, r, l));
}

bool AlgebraicSimplifier::extremum_with_itself(InstId i) {
  return operand(i, 0) == operand(i, 1) && replace_if_compatible(i, operand(i, 0));
}

// Is it the least value of its type, or with `most` the largest?
bool AlgebraicSimplifier::is_extreme(InstId v, bool most) const {
  ElementType t = type(v);
  if (is_float(t)) {
    const FloatFormat* f = float_format(t);
    if (f && !f->has_inf) return false;
    return is_all(m_, v, most ? INFINITY : -INFINITY);
  }
  if (!is_integral(t)) return false;
  while (op(v) == Opcode::Broadcast) v = operand(v, 0);
  if (!is_constant(v) || m_.literal(v).elided) return false;
  int bits = type_bits(t);
  int64_t least = is_signed_int(t) ? (bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1))) : 0;
  int64_t largest = is_signed_int(t) ? (bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1)
                    : bits == 64     ? -1
                                     : (int64_t{1} << bits) - 1;
  size_t width = static_cast<size_t>(storage_bytes(t));
  const std::string& bytes = m_.literal(v).bytes;
  for (size_t at = 0; at < bytes.size(); at += width)
    if (load_int(t, bytes.data() + at) != (most ? largest : least)) return false;
  return !bytes.empty();
}

bool AlgebraicSimplifier::extremum_with_identity(InstId i) {
  bool most = op(i) == Opcode::Minimum;
  return either(i, [&](InstId v, InstId a) { return is_extreme(v, most) && replace_if_compatible(i, a); });
}

bool AlgebraicSimplifier::extremum_twice(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  return (op(l) == op(i) && (operand(l, 0) == r || operand(l, 1) == r) && replace_if_compatible(i, l)) ||
         (op(r) == op(i) && operand(r, 0) == l && replace_if_compatible(i, r));
}

bool AlgebraicSimplifier::extremum_twice_on_the_right(InstId i) {
  InstId r = operand(i, 1);
  if (op(r) != op(i) || operand(r, 1) != operand(i, 0)) return false;
  if (!spend(i)) return true;
  m_.set_operand(i, 1, operand(r, 0));
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::clamp_from_extrema(InstId i) {
  bool max = op(i) == Opcode::Maximum;
  return either(i, [&](InstId bound, InstId inner) {
    if (!is_broadcast_of_scalar_constant(bound) || op(inner) != (max ? Opcode::Minimum : Opcode::Maximum)) return false;
    return either(inner, [&](InstId other, InstId x) {
      if (!is_broadcast_of_scalar_constant(other) || is_complex(type(i))) return false;
      InstId least = max ? bound : other, most = max ? other : bound;
      if (!(scalar_value(least) < scalar_value(most))) return false;
      if (spend(i)) rewrite(i, Opcode::Clamp, {least, x, most});
      return true;
    });
  });
}

bool AlgebraicSimplifier::maximum_with_bound(InstId i) {
  return either(i, [&](InstId bound, InstId inner) {
    return op(inner) == Opcode::Clamp && operand(inner, 0) == bound && replace_if_compatible(i, inner);
  });
}

bool AlgebraicSimplifier::maximum_of_monotone(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  Opcode f = op(l);
  if (f != op(r) || l == r || (f != Opcode::Cbrt && f != Opcode::Erf && f != Opcode::Logistic && f != Opcode::Tanh))
    return false;
  if (spend(i)) rewrite(i, f, {make_op(i, Opcode::Maximum, {operand(l, 0), operand(r, 0)}, {}, m_.shape_id(i))});
  return true;
}

bool AlgebraicSimplifier::abs_of_non_negative(InstId i) {
  return non_negative(operand(i, 0)) && replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::same_twice(InstId i) {
  InstId a = operand(i, 0);
  return op(a) == op(i) && replace_if_compatible(i, operand(a, 0));
}

bool AlgebraicSimplifier::log_of_exp(InstId i) {
  InstId a = operand(i, 0);
  return op(a) == Opcode::Exp && replace_if_compatible(i, operand(a, 0));
}

bool AlgebraicSimplifier::log_of_power(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Power) return false;
  if (!spend(i)) return true;
  InstId x = operand(a, 0), y = operand(a, 1);
  InstId magnitude = is_complex(type(x)) ? x : make_op(i, Opcode::Abs, {x}, {}, m_.shape_id(x));
  InstId log = make_op(i, Opcode::Log, {magnitude}, {}, m_.shape_id(i));
  InstId product = make_op(i, Opcode::Multiply, {log, y}, {}, m_.shape_id(i));
  InstId zero = make_scalar_like(m_, y, 0);
  InstId is_zero =
      make_op(i, Opcode::Compare, {y, zero}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("EQ")}}),
              u_.with_type(m_.shape_id(i), ElementType::Pred));
  rewrite(i, Opcode::Select, {is_zero, make_scalar_like(m_, i, 0), product});
  return true;
}

bool AlgebraicSimplifier::log_of_root(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Sqrt && op(a) != Opcode::Rsqrt) return false;
  if (!spend(i)) return true;
  InstId log = make_op(i, Opcode::Log, {operand(a, 0)}, {}, m_.shape_id(i));
  rewrite(i, Opcode::Multiply, {log, make_scalar_like(m_, log, op(a) == Opcode::Sqrt ? 0.5 : -0.5)});
  return true;
}

bool AlgebraicSimplifier::exp_of_zero(InstId i) {
  if (!is_all(m_, operand(i, 0), 0)) return false;
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, 1));
  return true;
}

bool AlgebraicSimplifier::sqrt_of_square(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Multiply || operand(a, 0) != operand(a, 1) || is_complex(type(i))) return false;
  if (spend(i)) rewrite(i, Opcode::Abs, {operand(a, 0)});
  return true;
}

bool AlgebraicSimplifier::rsqrt_of_inverse_square(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Power || !is_all(m_, operand(a, 1), -2) || !non_negative(operand(a, 0))) return false;
  if (spend(i)) replace(i, operand(a, 0));
  return true;
}

bool AlgebraicSimplifier::rsqrt_of_inverse(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Divide || !is_all(m_, operand(a, 0), 1) || !non_negative(operand(a, 1))) return false;
  if (spend(i)) rewrite(i, Opcode::Sqrt, {operand(a, 1)});
  return true;
}

bool AlgebraicSimplifier::complex_of_parts(InstId i) {
  InstId real = operand(i, 0), imag = operand(i, 1);
  return op(real) == Opcode::Real && op(imag) == Opcode::Imag && operand(real, 0) == operand(imag, 0) &&
         replace_if_compatible(i, operand(real, 0));
}

bool AlgebraicSimplifier::real_of_real(InstId i) {
  return !is_complex(type(operand(i, 0))) && replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::real_of_complex(InstId i) {
  InstId a = operand(i, 0);
  return op(a) == Opcode::Complex && replace_if_compatible(i, operand(a, 0));
}

bool AlgebraicSimplifier::imag_of_complex(InstId i) {
  InstId a = operand(i, 0);
  return op(a) == Opcode::Complex && replace_if_compatible(i, operand(a, 1));
}

bool AlgebraicSimplifier::imag_of_real(InstId i) {
  if (is_complex(type(operand(i, 0)))) return false;
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, 0));
  return true;
}

bool AlgebraicSimplifier::reduce_precision_to_same(InstId i) {
  if (!remove_reduce_precision_) return false;
  const AttrSet& s = m_.attrs(i);
  ElementType t = type(operand(i, 0));
  int exponent = t == ElementType::F32   ? 8
                 : t == ElementType::F64 ? 11
                 : float_format(t)       ? float_format(t)->exponent_bits
                                         : 0;
  int mantissa = t == ElementType::F32   ? 23
                 : t == ElementType::F64 ? 52
                 : float_format(t)       ? float_format(t)->mantissa_bits
                                         : 0;
  return s.integer(Attr::exponent_bits) == exponent && s.integer(Attr::mantissa_bits) == mantissa &&
         replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::select_of_one_value(InstId i) {
  return operand(i, 1) == operand(i, 2) && replace_if_compatible(i, operand(i, 1));
}

bool AlgebraicSimplifier::select_by_true(InstId i) {
  return is_all(m_, operand(i, 0), 1) && replace_if_compatible(i, operand(i, 1));
}

bool AlgebraicSimplifier::select_by_false(InstId i) {
  return is_all(m_, operand(i, 0), 0) && replace_if_compatible(i, operand(i, 2));
}

bool AlgebraicSimplifier::select_by_negation(InstId i) {
  InstId p = operand(i, 0);
  if (op(p) != Opcode::Not) return false;
  if (spend(i)) rewrite(i, Opcode::Select, {operand(p, 0), operand(i, 2), operand(i, 1)});
  return true;
}

// Does it select of two truth values that do not change, by one for each element?
bool AlgebraicSimplifier::selects_truths(InstId i, bool on_true, bool on_false) const {
  return type(i) == ElementType::Pred && is_all(m_, operand(i, 1), on_true) && is_all(m_, operand(i, 2), on_false) &&
         m_.shape(operand(i, 0)).dims == m_.shape(i).dims;
}

bool AlgebraicSimplifier::select_of_true_and_false(InstId i) {
  if (!selects_truths(i, true, false)) return false;
  if (spend(i)) replace(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::select_of_false_and_true(InstId i) {
  if (!selects_truths(i, false, true)) return false;
  if (spend(i)) rewrite(i, Opcode::Not, {operand(i, 0)});
  return true;
}

bool AlgebraicSimplifier::select_by_comparing(InstId i) {
  InstId p = operand(i, 0), a = operand(i, 1), b = operand(i, 2);
  if (type(i) != ElementType::Pred || op(p) != Opcode::Compare || operand(p, 0) != a || operand(p, 1) != b)
    return false;
  if (!spend(i)) return true;
  std::string_view d = direction(p);
  if (d == "GT" || d == "GE")
    rewrite(i, Opcode::Or, {a, b});
  else if (d == "LT" || d == "LE")
    rewrite(i, Opcode::And, {a, b});
  else
    replace(i, d == "EQ" ? b : a);
  return true;
}

bool AlgebraicSimplifier::select_of_update(InstId i) {
  InstId p = operand(i, 0);
  for (bool first : {true, false}) {
    InstId base = operand(i, first ? 2 : 1), d = operand(i, first ? 1 : 2);
    if (op(d) != Opcode::DynamicUpdateSlice || operand(d, 0) != base || m_.use_count(d) != 1) continue;
    if (!spend(i)) return true;
    InstId update = operand(d, 1);
    std::vector<InstId> indices(m_.operands(d).begin() + 2, m_.operands(d).end()), taken{base}, mask{p};
    taken.insert(taken.end(), indices.begin(), indices.end());
    mask.insert(mask.end(), indices.begin(), indices.end());
    AttrsId sizes = attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, m_.shape(update).dims}});
    InstId old = make_op(i, Opcode::DynamicSlice, taken, sizes);
    InstId by = m_.shape(p).rank() ? make_op(i, Opcode::DynamicSlice, mask, sizes) : p;
    InstId chosen =
        make_op(i, Opcode::Select, {by, first ? update : old, first ? old : update}, {}, m_.shape_id(update));
    std::vector<InstId> updated{base, chosen};
    updated.insert(updated.end(), indices.begin(), indices.end());
    rewrite(i, Opcode::DynamicUpdateSlice, updated);
    return true;
  }
  return false;
}

bool AlgebraicSimplifier::clamp_twice(InstId i) {
  InstId inner = operand(i, 1);
  if (op(inner) != Opcode::Clamp || operand(inner, 0) != operand(i, 0) || operand(inner, 2) != operand(i, 2))
    return false;
  replace_if_compatible(i, inner);
  return true;
}

bool AlgebraicSimplifier::clamp_of_device(InstId i) {
  InstId least = operand(i, 0), id = operand(i, 1), most = operand(i, 2);
  if (op(id) != Opcode::PartitionId && op(id) != Opcode::ReplicaId) return false;
  if (!is_constant(least) || !is_constant(most) || type(least) != ElementType::U32 || scalar_value(least) != 0)
    return false;
  const int64_t count = op(id) == Opcode::PartitionId ? m_.config().num_partitions : m_.config().replica_count;
  return count != 1 && static_cast<double>(count) <= scalar_value(most) + 1 && replace_if_compatible(i, id);
}

}  // namespace hlo
