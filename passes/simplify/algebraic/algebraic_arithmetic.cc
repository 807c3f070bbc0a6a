// algsimp on sums and products.

#include <cmath>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kArithmeticRules[] = {
    {"two biases of a convolution", Opcode::Add, "add(add(convolution, broadcast(K0)), broadcast(K1))",
     "add(broadcast(add(K0, K1)), convolution)", &AlgebraicSimplifier::two_biases},
    {"add zero", Opcode::Add, "add(A, 0)", "A", &AlgebraicSimplifier::add_zero},
    {"constant to the right", Opcode::Add, "add(K, A)", "add(A, K)", &AlgebraicSimplifier::constant_to_the_right},
    {"add of constants joined", Opcode::Add, "add(add(A, K1), K2)", "add(A, add(K1, K2))",
     &AlgebraicSimplifier::add_of_constants},
    {"add to a constant's difference joined", Opcode::Add, "add(subtract(K1, A), K2)", "subtract(add(K1, K2), A)",
     &AlgebraicSimplifier::add_to_difference},
    {"x + (y - x)", Opcode::Add, "add(A, subtract(B, A)) of integers", "B", &AlgebraicSimplifier::add_undoes_subtract},
    {"add of an update of zeros", Opcode::Add, "add(A, dynamic-update-slice(broadcast(0), U, idx))",
     "dynamic-update-slice(A, add(dynamic-slice(A, idx), U), idx)", &AlgebraicSimplifier::add_of_update},
    {"A*C + B*C", Opcode::Add, "add(multiply(A, C), multiply(B, C)) of integers, or of floats with a power of two C",
     "multiply(add(A, B), C)", &AlgebraicSimplifier::common_factor},
    {"add of two scatters", Opcode::Add, "add(scatter-add(A, I, U), scatter-add(B, J, V))",
     "scatter-add(add(A, B), concatenate(I, J), concatenate(U, V)), or one scatter-add after the other",
     &AlgebraicSimplifier::add_of_two_scatters},
    {"add of a scatter", Opcode::Add, "add(A, scatter-add(B, I, U))", "scatter-add(add(A, B), I, U)",
     &AlgebraicSimplifier::add_of_scatter},

    {"x - x", Opcode::Subtract, "subtract(A, A) of integers", "0", &AlgebraicSimplifier::subtract_itself},
    {"subtract zero", Opcode::Subtract, "subtract(A, 0)", "A", &AlgebraicSimplifier::subtract_zero},
    {"subtract of a constant", Opcode::Subtract, "subtract(A, K)", "add(A, negate(K))",
     &AlgebraicSimplifier::subtract_constant},
    {"x - (x - y)", Opcode::Subtract, "subtract(A, subtract(A, B)) of integers", "B",
     &AlgebraicSimplifier::subtract_difference},
    {"x - (x + y)", Opcode::Subtract, "subtract(A, add(A, B)) of integers", "negate(B)",
     &AlgebraicSimplifier::subtract_sum},
    {"(x + y) - x", Opcode::Subtract, "subtract(add(A, B), A) of integers", "B",
     &AlgebraicSimplifier::subtract_from_sum},

    {"multiply by one", Opcode::Multiply, "multiply(A, 1)", "A", &AlgebraicSimplifier::multiply_by_one},
    {"multiply by zero", Opcode::Multiply, "multiply(A, 0) of integers", "0", &AlgebraicSimplifier::multiply_by_zero},
    {"product of negations", Opcode::Multiply, "multiply(negate(A), negate(B))", "multiply(A, B)",
     &AlgebraicSimplifier::product_of_negations},
    {"square of abs", Opcode::Multiply, "multiply(abs(A), abs(A))", "multiply(A, A)",
     &AlgebraicSimplifier::square_of_abs},
    {"multiply by a converted pred", Opcode::Multiply, "multiply(A, convert(pred P))", "select(P, A, 0)",
     &AlgebraicSimplifier::multiply_by_pred},
    {"constants of products joined", Opcode::Multiply, "multiply(multiply(A, K1), multiply(B, K2))",
     "multiply(multiply(A, B), multiply(K1, K2))", &AlgebraicSimplifier::constants_of_two_products},
    {"constants of a product joined", Opcode::Multiply, "multiply(multiply(A, K1), K2)",
     "multiply(A, multiply(K1, K2))", &AlgebraicSimplifier::constants_of_product},
    {"scalar factor into a broadcast", Opcode::Multiply, "multiply(multiply(A, scalar K), broadcast(B))",
     "multiply(A, broadcast(multiply(B, K)))", &AlgebraicSimplifier::scalar_factor},
    {"spread constants of a product joined", Opcode::Multiply, "multiply(multiply(A, broadcast(K1)), broadcast(K2))",
     "multiply(A, broadcast(multiply(K1, K2)))", &AlgebraicSimplifier::spread_constants_of_product},
    {"product of exponentials", Opcode::Multiply, "multiply(exponential(A), exponential(B))", "exponential(add(A, B))",
     &AlgebraicSimplifier::product_of_exponentials},
    {"square of sqrt", Opcode::Multiply, "multiply(sqrt(A), sqrt(A)) where A is not negative", "A",
     &AlgebraicSimplifier::square_of_sqrt},
    {"square of rsqrt", Opcode::Multiply, "multiply(rsqrt(A), rsqrt(A)) where A is not negative", "divide(1, A)",
     &AlgebraicSimplifier::square_of_rsqrt},
    {"scale into the filter", Opcode::Multiply, "multiply(add(convolution(A, F), B), broadcast(K))",
     "add(convolution(A, multiply(F, K)), multiply(B, K))", &AlgebraicSimplifier::scale_into_filter},
};

}  // namespace

std::span<const AlgebraicRule> arithmetic_rules() { return kArithmeticRules; }

bool AlgebraicSimplifier::two_biases(InstId i) {
  return either(i, [&](InstId inner, InstId second) {
    return op(inner) == Opcode::Add && is_broadcast_of_constant(m_, second) &&
           either(inner, [&](InstId convolution, InstId first) {
             if (op(convolution) != Opcode::Convolution || !is_broadcast_of_constant(m_, first) ||
                 m_.attrs(first).ints(Attr::dimensions) != m_.attrs(second).ints(Attr::dimensions) ||
                 !same_shape(operand(first, 0), operand(second, 0)))
               return false;
             if (!spend(i)) return true;
             InstId sum = make_op(i, Opcode::Add, {operand(first, 0), operand(second, 0)});
             const Dims map = m_.attrs(first).ints(Attr::dimensions);
             InstId wide = make_broadcast(m_, m_.parent(i), sum, map, m_.shape_id(i));
             rewrite(i, Opcode::Add, {wide, convolution});
             return true;
           });
  });
}

bool AlgebraicSimplifier::add_zero(InstId i) {
  return either(i, [&](InstId a, InstId zero) { return is_all(m_, zero, 0) && replace_if_compatible(i, a); });
}

bool AlgebraicSimplifier::constant_to_the_right(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (!is_constant(l) || is_constant(r)) return false;
  if (spend(i)) rewrite(i, Opcode::Add, {r, l});
  return true;
}

bool AlgebraicSimplifier::alike_constants(InstId a, InstId b) const {
  return (is_constant(a) && is_constant(b)) ||
         (is_broadcast_of_scalar_constant(a) && is_broadcast_of_scalar_constant(b));
}

InstId AlgebraicSimplifier::sum_of_constants(InstId i, InstId a, InstId b) {
  if (!is_constant(a)) a = operand(a, 0), b = operand(b, 0);
  InstId sum = make_op(i, Opcode::Add, {a, b});
  if (m_.shape(sum).rank() != 0 || m_.shape(i).rank() == 0) return sum;
  return make_broadcast(m_, m_.parent(i), sum, {}, m_.shape_id(i));
}

bool AlgebraicSimplifier::add_of_constants(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Add) return false;
  InstId a = operand(l, 0), first = operand(l, 1);
  if (!alike_constants(first, r) || is_constant(a)) return false;
  if (spend(i)) rewrite(i, Opcode::Add, {a, sum_of_constants(i, first, r)});
  return true;
}

bool AlgebraicSimplifier::add_to_difference(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Subtract) return false;
  InstId first = operand(l, 0), a = operand(l, 1);
  if (!alike_constants(first, r) || is_constant(a)) return false;
  if (spend(i)) rewrite(i, Opcode::Subtract, {sum_of_constants(i, first, r), a});
  return true;
}

bool AlgebraicSimplifier::add_undoes_subtract(InstId i) {
  return integral(i) && either(i, [&](InstId a, InstId d) {
           return op(d) == Opcode::Subtract && operand(d, 1) == a && replace_if_compatible(i, operand(d, 0));
         });
}

bool AlgebraicSimplifier::add_of_update(InstId i) {
  return either(i, [&](InstId a, InstId d) {
    if (op(d) != Opcode::DynamicUpdateSlice) return false;
    InstId base = operand(d, 0);
    if (op(base) != Opcode::Broadcast || !is_scalar_constant(m_, operand(base, 0)) || !is_all(m_, base, 0))
      return false;
    if (!spend(i)) return true;
    InstId update = operand(d, 1);
    std::vector<InstId> indices(m_.operands(d).begin() + 2, m_.operands(d).end());
    std::vector<InstId> taken{a};
    taken.insert(taken.end(), indices.begin(), indices.end());
    InstId old = make_derived(m_, a, Opcode::DynamicSlice, taken,
                              attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, m_.shape(update).dims}}));
    InstId sum = make_derived(m_, d, Opcode::Add, {old, update});
    std::vector<InstId> updated{a, sum};
    updated.insert(updated.end(), indices.begin(), indices.end());
    rewrite_to(i, make_derived(m_, d, Opcode::DynamicUpdateSlice, updated, {}, m_.shape_id(i)));
    return true;
  });
}

bool AlgebraicSimplifier::common_factor(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Multiply || op(r) != Opcode::Multiply || !one_user(l) || !one_user(r)) return false;
  auto exact = [&](InstId common) {
    if (integral(i)) return true;
    InstId s = op(common) == Opcode::Broadcast ? operand(common, 0) : common;
    if (!is_scalar_constant(m_, s) || !is_float(type(s))) return false;
    double v = load_double(type(s), m_.literal(s).bytes.data());
    int e;
    return v != 0 && std::isfinite(v) && std::fabs(std::frexp(v, &e)) == 0.5;
  };
  for (size_t side : {size_t{1}, size_t{0}}) {
    InstId common = operand(l, side), a = operand(l, 1 - side), b;
    if (operand(r, 0) == common)
      b = operand(r, 1);
    else if (operand(r, 1) == common)
      b = operand(r, 0);
    else
      continue;
    if (!exact(common)) continue;
    if (!spend(i)) return true;
    InstId sum = make_derived(m_, i, Opcode::Add, {a, b}, {}, m_.shape_id(i));
    rewrite(i, Opcode::Multiply, {sum, common});
    return true;
  }
  return false;
}

bool AlgebraicSimplifier::subtract_itself(InstId i) {
  if (operand(i, 0) != operand(i, 1) || !integral(i)) return false;
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, 0));
  return true;
}

bool AlgebraicSimplifier::subtract_zero(InstId i) {
  return is_all(m_, operand(i, 1), 0) && replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::subtract_constant(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (is_constant(l) || (!is_constant(r) && !is_broadcast_of_constant(m_, r))) return false;
  if (!spend(i)) return true;
  InstId x = is_constant(r) ? r : operand(r, 0);
  InstId n = make_op(i, Opcode::Negate, {x}, {}, m_.shape_id(x));
  if (x != r) n = make_broadcast(m_, m_.parent(i), n, m_.attrs(r).ints(Attr::dimensions), m_.shape_id(r));
  rewrite(i, Opcode::Add, {l, n});
  return true;
}

bool AlgebraicSimplifier::subtract_difference(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  return integral(i) && op(r) == Opcode::Subtract && operand(r, 0) == l && replace_if_compatible(i, operand(r, 1));
}

bool AlgebraicSimplifier::subtract_sum(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (!integral(i) || op(r) != Opcode::Add || (operand(r, 0) != l && operand(r, 1) != l)) return false;
  InstId y = operand(r, 0) == l ? operand(r, 1) : operand(r, 0);
  if (spend(i)) rewrite(i, Opcode::Negate, {y});
  return true;
}

bool AlgebraicSimplifier::subtract_from_sum(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  return integral(i) && op(l) == Opcode::Add && (operand(l, 0) == r || operand(l, 1) == r) &&
         replace_if_compatible(i, operand(l, 1) == r ? operand(l, 0) : operand(l, 1));
}

bool AlgebraicSimplifier::multiply_by_one(InstId i) {
  return either(i, [&](InstId a, InstId one) { return is_all(m_, one, 1) && replace_if_compatible(i, a); });
}

bool AlgebraicSimplifier::multiply_by_zero(InstId i) {
  return integral(i) &&
         either(i, [&](InstId zero, InstId) { return is_all(m_, zero, 0) && replace_if_compatible(i, zero); });
}

bool AlgebraicSimplifier::product_of_negations(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Negate || op(r) != Opcode::Negate) return false;
  if (!spend(i)) return true;
  m_.set_operand(i, 0, operand(l, 0));
  m_.set_operand(i, 1, operand(r, 0));
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::square_of_abs(InstId i) {
  InstId l = operand(i, 0);
  if (op(l) != Opcode::Abs || l != operand(i, 1) || is_complex(type(operand(l, 0)))) return false;
  if (!spend(i)) return true;
  InstId a = operand(l, 0);
  m_.set_operand(i, 0, a);
  m_.set_operand(i, 1, a);
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::multiply_by_pred(InstId i) {
  return either(i, [&](InstId a, InstId v) {
    if (op(v) != Opcode::Convert || type(operand(v, 0)) != ElementType::Pred) return false;
    if (!spend(i)) return true;
    InstId zero = make_scalar(m_, m_.parent(i), type(i), 0);
    InstId zeros = make_broadcast(m_, m_.parent(i), zero, {}, m_.shape_id(i));
    rewrite(i, Opcode::Select, {operand(v, 0), a, zeros});
    return true;
  });
}

// Is `product` one of a constant and what is none?
bool AlgebraicSimplifier::constant_factor(InstId product, InstId* a, InstId* constant) const {
  if (op(product) != Opcode::Multiply) return false;
  for (size_t s : {size_t{0}, size_t{1}})
    if (is_constant(operand(product, s)) && !is_constant(operand(product, 1 - s))) {
      *constant = operand(product, s), *a = operand(product, 1 - s);
      return true;
    }
  return false;
}

bool AlgebraicSimplifier::constants_of_two_products(InstId i) {
  InstId a, b, first, second;
  if (!constant_factor(operand(i, 0), &a, &first) || !constant_factor(operand(i, 1), &b, &second)) return false;
  if (!spend(i)) return true;
  InstId product = make_op(i, Opcode::Multiply, {a, b}), constants = make_op(i, Opcode::Multiply, {first, second});
  rewrite(i, Opcode::Multiply, {product, constants});
  return true;
}

bool AlgebraicSimplifier::constants_of_product(InstId i) {
  return either(i, [&](InstId product, InstId second) {
    InstId a, first;
    if (!is_constant(second) || !constant_factor(product, &a, &first)) return false;
    if (spend(i)) rewrite(i, Opcode::Multiply, {a, make_op(i, Opcode::Multiply, {first, second})});
    return true;
  });
}

bool AlgebraicSimplifier::scalar_factor(InstId i) {
  return either(i, [&](InstId p, InstId q) {
    if (op(p) != Opcode::Multiply || op(q) != Opcode::Broadcast || is_constant(operand(q, 0))) return false;
    for (size_t s : {size_t{0}, size_t{1}}) {
      InstId f = operand(p, s), other = operand(p, 1 - s);
      InstId scalar = op(f) == Opcode::Broadcast ? operand(f, 0) : f;
      if (!is_constant(scalar) || m_.shape(scalar).rank() != 0) continue;
      if (!spend(i)) return true;
      InstId base = operand(q, 0);
      InstId spread_scalar =
          m_.shape(base).rank() ? make_broadcast(m_, m_.parent(i), scalar, {}, m_.shape_id(base)) : scalar;
      InstId product = make_op(i, Opcode::Multiply, {base, spread_scalar});
      InstId spread = make_broadcast(m_, m_.parent(i), product, m_.attrs(q).ints(Attr::dimensions), m_.shape_id(i));
      rewrite(i, Opcode::Multiply, {other, spread});
      return true;
    }
    return false;
  });
}

bool AlgebraicSimplifier::spread_constants_of_product(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Multiply || !is_broadcast_of_scalar_constant(operand(l, 1)) ||
      !is_broadcast_of_scalar_constant(r))
    return false;
  if (!spend(i)) return true;
  InstId constants = make_op(i, Opcode::Multiply, {operand(operand(l, 1), 0), operand(r, 0)});
  if (m_.shape(i).rank()) constants = make_broadcast(m_, m_.parent(i), constants, {}, m_.shape_id(i));
  rewrite(i, Opcode::Multiply, {operand(l, 0), constants});
  return true;
}

bool AlgebraicSimplifier::product_of_exponentials(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Exp || op(r) != Opcode::Exp) return false;
  if (spend(i)) rewrite(i, Opcode::Exp, {make_op(i, Opcode::Add, {operand(l, 0), operand(r, 0)}, {}, m_.shape_id(i))});
  return true;
}

bool AlgebraicSimplifier::square_of_sqrt(InstId i) {
  InstId l = operand(i, 0);
  if (l != operand(i, 1) || op(l) != Opcode::Sqrt || !non_negative(operand(l, 0))) return false;
  if (spend(i)) replace(i, operand(l, 0));
  return true;
}

bool AlgebraicSimplifier::square_of_rsqrt(InstId i) {
  InstId l = operand(i, 0);
  if (l != operand(i, 1) || op(l) != Opcode::Rsqrt || !non_negative(operand(l, 0))) return false;
  if (spend(i)) rewrite(i, Opcode::Divide, {make_scalar_like(m_, operand(l, 0), 1), operand(l, 0)});
  return true;
}

}  // namespace hlo
