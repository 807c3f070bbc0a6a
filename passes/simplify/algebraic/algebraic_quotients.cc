// algsimp on quotients, remainders and powers.

#include <bit>

#include "ir/eval/kernels.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kQuotientRules[] = {
    {"divide by one", Opcode::Divide, "divide(A, 1)", "A", &AlgebraicSimplifier::divide_by_one},
    {"divide by a power of two", Opcode::Divide, "divide(A, 2^k) of integers",
     "shift-right-logical(A, k), the sign of A kept apart", &AlgebraicSimplifier::divide_by_power_of_two},
    {"quotient of exponentials", Opcode::Divide, "divide(exponential(A), exponential(B))",
     "exponential(subtract(A, B))", &AlgebraicSimplifier::quotient_of_exponentials},
    {"divide by an exponential", Opcode::Divide, "divide(A, exponential(B))", "multiply(A, exponential(negate(B)))",
     &AlgebraicSimplifier::divide_by_exponential},
    {"divide by a power", Opcode::Divide, "divide(A, power(B, C))", "multiply(A, power(B, negate(C)))",
     &AlgebraicSimplifier::divide_by_power},
    {"divide by a root", Opcode::Divide, "divide(A, sqrt(B)), or by rsqrt(B)", "multiply(A, rsqrt(B)), or by sqrt(B)",
     &AlgebraicSimplifier::divide_by_root},
    {"divide by a constant", Opcode::Divide, "divide(A, K) of floats", "multiply(A, 1 / K)",
     &AlgebraicSimplifier::divide_by_constant},
    {"quotient of quotients", Opcode::Divide, "divide(divide(A, B), divide(C, D))",
     "divide(multiply(A, D), multiply(B, C))", &AlgebraicSimplifier::quotient_of_quotients},
    {"(a / b) / c", Opcode::Divide, "divide(divide(A, B), C)", "divide(A, multiply(B, C))",
     &AlgebraicSimplifier::divide_quotient},
    {"a / (b / c)", Opcode::Divide, "divide(A, divide(B, C))", "divide(multiply(A, C), B)",
     &AlgebraicSimplifier::divide_by_quotient},
    {"divide of a converted pred", Opcode::Divide, "divide(convert(pred P), broadcast(B))",
     "multiply(broadcast(divide(1, B)), convert(P))", &AlgebraicSimplifier::divide_pred},

    {"remainder twice", Opcode::Remainder, "remainder(remainder(A, B), B)", "remainder(A, B)",
     &AlgebraicSimplifier::remainder_twice},
    {"remainder of a power of two", Opcode::Remainder, "remainder(A, 2^k) of integers",
     "and(A, 2^k - 1), the sign of A kept apart", &AlgebraicSimplifier::remainder_of_power_of_two},
    {"remainder of a short iota", Opcode::Remainder, "remainder(iota, N) that never reaches N", "iota",
     &AlgebraicSimplifier::remainder_of_short_iota},
    {"remainder of an iota moved by the divisor", Opcode::Remainder, "remainder(add(iota, N), N) without overflow",
     "remainder(iota, N)", &AlgebraicSimplifier::remainder_of_moved_iota},

    {"power of zero", Opcode::Power, "power(A, 0)", "1", &AlgebraicSimplifier::power_of_zero},
    {"power of one", Opcode::Power, "power(A, 1)", "A", &AlgebraicSimplifier::power_of_one},
    {"power of an exponential", Opcode::Power, "power(exponential(A), B)", "exponential(multiply(A, B))",
     &AlgebraicSimplifier::power_of_exponential},
    {"square", Opcode::Power, "power(A, 2)", "multiply(A, A)", &AlgebraicSimplifier::square},
    {"cube", Opcode::Power, "power(A, 3)", "multiply(A, multiply(A, A))", &AlgebraicSimplifier::cube},
    {"inverse", Opcode::Power, "power(A, -1)", "divide(1, A)", &AlgebraicSimplifier::inverse},
    {"square root", Opcode::Power, "power(A, 0.5) where A is not negative", "sqrt(A)",
     &AlgebraicSimplifier::square_root},
};

// The power of two that `value` is, -1 where it is none.
int power_of_two(int64_t value) {
  auto bits = static_cast<uint64_t>(value);
  return value > 0 && std::has_single_bit(bits) ? std::countr_zero(bits) : -1;
}

}  // namespace

std::span<const AlgebraicRule> quotient_rules() { return kQuotientRules; }

// An operation on integers of a sign as one on their magnitudes: select(A < 0, -op(|A|, value), op(|A|, value)).
void AlgebraicSimplifier::on_magnitude(InstId i, Opcode operation, int64_t value) {
  InstId a = operand(i, 0), zero = make_scalar_like(m_, a, 0);
  // XLA spreads the zero of a remainder over a scalar, too.
  if (op(i) == Opcode::Remainder && m_.shape(a).rank() == 0)
    zero = make_broadcast(m_, m_.parent(i), zero, {}, m_.shape_id(a));
  InstId negative =
      make_op(i, Opcode::Compare, {a, zero}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("LT")}}),
              u_.with_type(m_.shape_id(i), ElementType::Pred));
  InstId minus = make_op(i, Opcode::Negate, {a}, {}, m_.shape_id(a));
  InstId magnitude = make_op(i, Opcode::Select, {negative, minus, a}, {}, m_.shape_id(i));
  InstId result = make_op(i, operation, {magnitude, make_scalar_like(m_, a, value)}, {}, m_.shape_id(i));
  InstId back = make_op(i, Opcode::Negate, {result}, {}, m_.shape_id(i));
  rewrite(i, Opcode::Select, {negative, back, result});
}

bool AlgebraicSimplifier::divide_by_one(InstId i) {
  return is_all(m_, operand(i, 1), 1) && replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::divide_by_power_of_two(InstId i) {
  int64_t value;
  if (!integral(i) || !scalar_int(operand(i, 1), &value)) return false;
  int shift = power_of_two(value);
  if (shift < 0) return false;
  if (!spend(i)) return true;
  InstId a = operand(i, 0);
  if (is_unsigned_int(type(i)))
    rewrite(i, Opcode::ShiftRightLogical, {a, make_scalar_like(m_, a, shift)});
  else
    on_magnitude(i, Opcode::ShiftRightLogical, shift);
  return true;
}

bool AlgebraicSimplifier::quotient_of_exponentials(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  if (op(a) != Opcode::Exp || op(b) != Opcode::Exp) return false;
  if (spend(i))
    rewrite(i, Opcode::Exp, {make_op(i, Opcode::Subtract, {operand(a, 0), operand(b, 0)}, {}, m_.shape_id(i))});
  return true;
}

bool AlgebraicSimplifier::divide_by_exponential(InstId i) {
  InstId b = operand(i, 1);
  if (op(b) != Opcode::Exp) return false;
  if (!spend(i)) return true;
  InstId n = make_op(i, Opcode::Negate, {operand(b, 0)}, {}, m_.shape_id(b));
  rewrite(i, Opcode::Multiply, {operand(i, 0), make_op(i, Opcode::Exp, {n}, {}, m_.shape_id(b))});
  return true;
}

bool AlgebraicSimplifier::divide_by_power(InstId i) {
  InstId b = operand(i, 1);
  if (op(b) != Opcode::Power) return false;
  if (!spend(i)) return true;
  InstId n = make_op(i, Opcode::Negate, {operand(b, 1)}, {}, m_.shape_id(operand(b, 1)));
  rewrite(i, Opcode::Multiply, {operand(i, 0), make_op(i, Opcode::Power, {operand(b, 0), n}, {}, m_.shape_id(b))});
  return true;
}

bool AlgebraicSimplifier::divide_by_root(InstId i) {
  InstId b = operand(i, 1);
  if ((op(b) != Opcode::Sqrt && op(b) != Opcode::Rsqrt) || m_.use_count(b) != 1) return false;
  if (!spend(i)) return true;
  Opcode other = op(b) == Opcode::Sqrt ? Opcode::Rsqrt : Opcode::Sqrt;
  InstId root =
      m_.add(m_.parent(i), {.op = other, .shape = m_.shape_id(b), .operands = {operand(b, 0)}, .meta = m_[b].meta});
  rewrite(i, Opcode::Multiply, {operand(i, 0), root});
  return true;
}

bool AlgebraicSimplifier::divide_by_constant(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  if (is_constant(a) || (!is_float(type(i)) && !is_complex(type(i)))) return false;
  InstId constant = is_constant(b) ? b : is_broadcast_of_constant(m_, b) ? operand(b, 0) : InstId();
  if (!constant.valid() || m_.literal(constant).elided) return false;
  if (!spend(i)) return true;
  Literal inverse = m_.literal(constant);
  const Shape s = u_[inverse.shape];
  Literal ones = inverse;
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  for (size_t at = 0; at < ones.bytes.size(); at += width) {
    if (is_complex(s.type))
      store_complex(s.type, ones.bytes.data() + at, 1.0);
    else
      store_double(s.type, ones.bytes.data() + at, 1.0);
  }
  EwArgs e;
  e.op = Opcode::Divide, e.in = e.out = s.type, e.n = s.elements_count();
  std::string denominator = inverse.bytes;
  e.a = ones.bytes.data(), e.b = denominator.data(), e.result = inverse.bytes.data();
  elementwise_kernel(e);
  LitId lit = u_.literal(std::move(inverse));
  InstId reciprocal =
      m_.add_derived(constant, {.op = Opcode::Constant, .shape = m_.shape_id(constant), .payload = lit.value});
  if (constant != b)
    reciprocal = m_.add_derived(b, {.op = Opcode::Broadcast,
                                    .shape = m_.shape_id(b),
                                    .operands = {reciprocal},
                                    .attrs = dims_attr(u_, Opcode::Broadcast, m_.attrs(b).ints(Attr::dimensions))});
  rewrite(i, Opcode::Multiply, {a, reciprocal});
  return true;
}

bool AlgebraicSimplifier::quotient_of_quotients(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  if (integral(i) || op(a) != Opcode::Divide || op(b) != Opcode::Divide) return false;
  if (!spend(i)) return true;
  InstId n = make_op(i, Opcode::Multiply, {operand(a, 0), operand(b, 1)}),
         d = make_op(i, Opcode::Multiply, {operand(a, 1), operand(b, 0)});
  rewrite(i, Opcode::Divide, {n, d});
  return true;
}

bool AlgebraicSimplifier::divide_quotient(InstId i) {
  InstId a = operand(i, 0);
  if (integral(i) || op(a) != Opcode::Divide) return false;
  if (spend(i))
    rewrite(i, Opcode::Divide, {operand(a, 0), make_op(i, Opcode::Multiply, {operand(a, 1), operand(i, 1)})});
  return true;
}

bool AlgebraicSimplifier::divide_by_quotient(InstId i) {
  InstId b = operand(i, 1);
  if (integral(i) || op(b) != Opcode::Divide) return false;
  if (spend(i))
    rewrite(i, Opcode::Divide, {make_op(i, Opcode::Multiply, {operand(i, 0), operand(b, 1)}), operand(b, 0)});
  return true;
}

bool AlgebraicSimplifier::divide_pred(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  if (integral(i) || op(a) != Opcode::Convert || type(operand(a, 0)) != ElementType::Pred ||
      op(b) != Opcode::Broadcast || m_.shape(operand(b, 0)).rank() != 0)
    return false;
  if (!spend(i)) return true;
  InstId y = operand(b, 0);
  InstId inverse = make_op(i, Opcode::Divide, {make_scalar_like(m_, y, 1), y});
  InstId wide = make_broadcast(m_, m_.parent(i), inverse, {}, m_.shape_id(i));
  rewrite(i, Opcode::Multiply, {wide, a});
  return true;
}

bool AlgebraicSimplifier::remainder_twice(InstId i) {
  InstId a = operand(i, 0);
  return op(a) == Opcode::Remainder && operand(a, 1) == operand(i, 1) && replace_if_compatible(i, a);
}

bool AlgebraicSimplifier::remainder_of_power_of_two(InstId i) {
  int64_t value;
  if (!integral(i) || !scalar_int(operand(i, 1), &value) || power_of_two(value) < 0) return false;
  if (!spend(i)) return true;
  InstId a = operand(i, 0);
  if (is_unsigned_int(type(i)))
    rewrite(i, Opcode::And, {a, make_scalar_like(m_, a, value - 1)});
  else
    on_magnitude(i, Opcode::And, value - 1);
  return true;
}

bool AlgebraicSimplifier::remainder_of_short_iota(InstId i) {
  InstId a = operand(i, 0);
  int64_t value;
  return op(a) == Opcode::Iota && integral(i) && scalar_int(operand(i, 1), &value) &&
         value >= m_.shape(a).dims[static_cast<size_t>(m_.attrs(a).integer(Attr::iota_dimension))] &&
         replace_if_compatible(i, a);
}

bool AlgebraicSimplifier::remainder_of_moved_iota(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  int64_t value;
  if (op(a) != Opcode::Add || op(b) != Opcode::Broadcast || !integral(i) || !scalar_int(b, &value)) return false;
  return either(a, [&](InstId x, InstId n) {
    if (op(x) != Opcode::Iota || op(n) != Opcode::Broadcast || operand(n, 0) != operand(b, 0) || value <= 0)
      return false;
    int64_t size = m_.shape(x).dims[static_cast<size_t>(m_.attrs(x).integer(Attr::iota_dimension))];
    int bits = type_bits(type(i)) - (is_signed_int(type(i)) ? 1 : 0);
    if (bits < 63 && value + size > (int64_t{1} << bits) - 1) return false;
    if (spend(i)) rewrite(i, Opcode::Remainder, {x, b});
    return true;
  });
}

bool AlgebraicSimplifier::power_of_zero(InstId i) {
  if (!is_all(m_, operand(i, 1), 0)) return false;
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, 1));
  return true;
}

bool AlgebraicSimplifier::power_of_one(InstId i) {
  return is_all(m_, operand(i, 1), 1) && replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::power_of_exponential(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Exp) return false;
  if (spend(i))
    rewrite(i, Opcode::Exp, {make_op(i, Opcode::Multiply, {operand(a, 0), operand(i, 1)}, {}, m_.shape_id(i))});
  return true;
}

bool AlgebraicSimplifier::square(InstId i) {
  if (!is_all(m_, operand(i, 1), 2)) return false;
  if (spend(i)) rewrite(i, Opcode::Multiply, {operand(i, 0), operand(i, 0)});
  return true;
}

bool AlgebraicSimplifier::cube(InstId i) {
  InstId a = operand(i, 0);
  if (!is_all(m_, operand(i, 1), 3)) return false;
  if (spend(i)) rewrite(i, Opcode::Multiply, {a, make_op(i, Opcode::Multiply, {a, a}, {}, m_.shape_id(i))});
  return true;
}

bool AlgebraicSimplifier::inverse(InstId i) {
  InstId a = operand(i, 0);
  if (!is_all(m_, operand(i, 1), -1)) return false;
  if (spend(i)) rewrite(i, Opcode::Divide, {make_scalar_like(m_, a, 1), a});
  return true;
}

bool AlgebraicSimplifier::square_root(InstId i) {
  if (!is_all(m_, operand(i, 1), 0.5) || !non_negative(operand(i, 0))) return false;
  if (spend(i)) rewrite(i, Opcode::Sqrt, {operand(i, 0)});
  return true;
}

}  // namespace hlo
