// algsimp on sums, products, quotients and powers.

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/eval/kernels.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

namespace {
// f on both operand orders of a binary instruction; true where one succeeds.
template <class F>
bool either(const Module& m, InstId i, F f) {
  InstId a = m.operand(i, 0), b = m.operand(i, 1);
  return f(a, b) || f(b, a);
}
}  // namespace

void A::add(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  CompId c = m_.parent(i);
  //   add(add(convolution, broadcast(K0)), broadcast(K1))      →      add(broadcast(add(K0, K1)), convolution)
  if (either(m_, i, [&](InstId inner, InstId second) {
        return op(inner) == Opcode::Add && is_broadcast_of_constant(m_, second) &&
               either(m_, inner, [&](InstId conv, InstId first) {
                 if (op(conv) != Opcode::Convolution || !is_broadcast_of_constant(m_, first) ||
                     m_.attrs(first).ints(Attr::dimensions) != m_.attrs(second).ints(Attr::dimensions) ||
                     !same_shape(operand(first, 0), operand(second, 0)))
                   return false;
                 if (!go("two biases of a convolution", i)) return true;
                 InstId sum = make_op(i, Opcode::Add, {operand(first, 0), operand(second, 0)});
                 const Dims map = m_.attrs(first).ints(Attr::dimensions);
                 InstId wide = make_broadcast(m_, c, sum, map, m_.shape_id(i));
                 rw(i, Opcode::Add, {wide, conv});
                 return true;
               });
      }))
    return;
  //   add(A, 0)      →      A
  if (is_all(m_, r, 0) && ric(i, l, "add zero")) return;
  if (is_all(m_, l, 0) && ric(i, r, "add zero")) return;
  //   add(constant, A)      →      add(A, constant)
  if (k(l) && !k(r)) {
    if (go("constant to the right", i)) rw(i, Opcode::Add, {r, l});
    return;
  }
  //   add(add(A, K1), K2)      →      add(A, add(K1, K2))
  if (op(l) == Opcode::Add) {
    InstId a = operand(l, 0), k1 = operand(l, 1);
    bool plain = k(k1) && k(r) && !k(a), spread = bck(k1) && bck(r) && !k(a);
    if (plain || spread) {
      if (!go("add of constants joined", i)) return;
      InstId x = plain ? k1 : operand(k1, 0), y = plain ? r : operand(r, 0);
      InstId sum = make_op(i, Opcode::Add, {x, y});
      if (m_.shape(sum).rank() == 0 && m_.shape(i).rank() != 0) sum = make_broadcast(m_, c, sum, {}, m_.shape_id(i));
      rw(i, Opcode::Add, {a, sum});
      return;
    }
  }
  //   add(subtract(K1, A), K2)      →      subtract(add(K1, K2), A)
  if (op(l) == Opcode::Subtract) {
    InstId k1 = operand(l, 0), a = operand(l, 1);
    bool plain = k(k1) && k(r) && !k(a), spread = bck(k1) && bck(r) && !k(a);
    if (plain || spread) {
      if (!go("add of constants joined", i)) return;
      InstId sum = make_op(i, Opcode::Add, {plain ? k1 : operand(k1, 0), plain ? r : operand(r, 0)});
      if (m_.shape(sum).rank() == 0 && m_.shape(i).rank() != 0) sum = make_broadcast(m_, c, sum, {}, m_.shape_id(i));
      rw(i, Opcode::Subtract, {sum, a});
      return;
    }
  }
  //   A + (B - A)      →      B       for integers
  if (integral(i) && either(m_, i, [&](InstId a, InstId d) {
        return op(d) == Opcode::Subtract && operand(d, 1) == a && ric(i, operand(d, 0), "x + (y - x)");
      }))
    return;
  //   add(A, dynamic-update-slice(broadcast(0), U, idx))      →      dynamic-update-slice(A, add(dynamic-slice(A, idx),
  //   U), idx)
  for (auto [a, d] : {std::pair{l, r}, std::pair{r, l}}) {
    if (op(d) != Opcode::DynamicUpdateSlice) continue;
    InstId base = operand(d, 0);
    if (op(base) != Opcode::Broadcast || !is_scalar_constant(m_, operand(base, 0)) || !is_all(m_, base, 0)) continue;
    if (!go("add of an update of zeros", i)) return;
    InstId update = operand(d, 1);
    std::vector<InstId> idx(m_.operands(d).begin() + 2, m_.operands(d).end());
    std::vector<InstId> ds{a};
    ds.insert(ds.end(), idx.begin(), idx.end());
    InstId s = make_derived(m_, a, Opcode::DynamicSlice, ds,
                            attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, m_.shape(update).dims}}));
    InstId sum = make_derived(m_, d, Opcode::Add, {s, update});
    std::vector<InstId> dus{a, sum};
    dus.insert(dus.end(), idx.begin(), idx.end());
    InstId out = make_derived(m_, d, Opcode::DynamicUpdateSlice, dus, {}, m_.shape_id(i));
    rw_to(i, out);
    return;
  }
  //   A*C + B*C      →      (A + B)*C       for integers, and for floats where C is a power of two
  if (op(l) == Opcode::Multiply && op(r) == Opcode::Multiply && one_user(l) && one_user(r)) {
    auto exact = [&](InstId common) {
      if (is_integral(type(i))) return true;
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
      if (!go("A*C + B*C", i)) return;
      InstId sum = make_derived(m_, i, Opcode::Add, {a, b}, {}, m_.shape_id(i));
      rw(i, Opcode::Multiply, {sum, common});
      return;
    }
  }
  if (!ls_) add_of_scatters(i);
}

void A::subtract(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  //   subtract(A, A)      →      0       for integers
  if (l == r && integral(i)) {
    if (go("x - x", i)) rw_to(i, make_scalar_like(m_, i, 0));
    return;
  }
  if (is_all(m_, r, 0) && ric(i, l, "subtract zero")) return;
  //   subtract(A, K)      →      add(A, negate(K))
  if (!k(l) && (k(r) || is_broadcast_of_constant(m_, r))) {
    if (!go("subtract of a constant", i)) return;
    InstId x = k(r) ? r : operand(r, 0);
    InstId n = make_op(i, Opcode::Negate, {x}, {}, m_.shape_id(x));
    if (x != r) n = make_broadcast(m_, m_.parent(i), n, m_.attrs(r).ints(Attr::dimensions), m_.shape_id(r));
    rw(i, Opcode::Add, {l, n});
    return;
  }
  if (!integral(i)) return;
  //   A - (A - B)  →  B,   A - (A + B)  →  -B,   (A + B) - A  →  B,   (A - B) - A  →  -B
  if (op(r) == Opcode::Subtract && operand(r, 0) == l && ric(i, operand(r, 1), "x - (x - y)")) return;
  if (op(r) == Opcode::Add && (operand(r, 0) == l || operand(r, 1) == l)) {
    InstId y = operand(r, 0) == l ? operand(r, 1) : operand(r, 0);
    if (go("x - (x + y)", i)) rw(i, Opcode::Negate, {y});
    return;
  }
  if (op(l) == Opcode::Add && (operand(l, 0) == r || operand(l, 1) == r)) {
    if (ric(i, operand(l, 1) == r ? operand(l, 0) : operand(l, 1), "(x + y) - x")) return;
  }
}

void A::multiply(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  CompId c = m_.parent(i);
  if (is_all(m_, r, 1) && ric(i, l, "multiply by one")) return;
  if (is_all(m_, l, 1) && ric(i, r, "multiply by one")) return;
  if (integral(i)) {
    if (is_all(m_, l, 0) && ric(i, l, "multiply by zero")) return;
    if (is_all(m_, r, 0) && ric(i, r, "multiply by zero")) return;
  }
  //   negate(A) * negate(B)      →      A * B
  if (op(l) == Opcode::Negate && op(r) == Opcode::Negate) {
    if (!go("product of negations", i)) return;
    m_.set_operand(i, 0, operand(l, 0));
    m_.set_operand(i, 1, operand(r, 0));
    changed_ = true;
    return;
  }
  //   abs(A) * abs(A)      →      A * A
  if (op(l) == Opcode::Abs && l == r && !is_complex(type(operand(l, 0)))) {
    if (!go("square of abs", i)) return;
    InstId a = operand(l, 0);
    m_.set_operand(i, 0, a);
    m_.set_operand(i, 1, a);
    changed_ = true;
    return;
  }
  //   A * convert(pred P)      →      select(P, A, 0)
  for (auto [a, v] : {std::pair{l, r}, std::pair{r, l}})
    if (op(v) == Opcode::Convert && type(operand(v, 0)) == ElementType::Pred) {
      if (!go("multiply by a converted pred", i)) return;
      InstId zero = make_scalar(m_, c, type(i), 0);
      InstId zeros = make_broadcast(m_, c, zero, {}, m_.shape_id(i));
      rw(i, Opcode::Select, {operand(v, 0), a, zeros});
      return;
    }
  auto split = [&](InstId p, InstId* a, InstId* c1) {  // p = a * K, a not constant
    if (op(p) != Opcode::Multiply) return false;
    for (size_t s : {size_t{0}, size_t{1}})
      if (k(operand(p, s)) && !k(operand(p, 1 - s))) {
        *c1 = operand(p, s), *a = operand(p, 1 - s);
        return true;
      }
    return false;
  };
  InstId a, b, k1, k2;
  //   (A * K1) * (B * K2)      →      (A * B) * (K1 * K2)
  if (split(l, &a, &k1) && split(r, &b, &k2)) {
    if (!go("constants of products joined", i)) return;
    InstId ab = make_op(i, Opcode::Multiply, {a, b}), kk = make_op(i, Opcode::Multiply, {k1, k2});
    rw(i, Opcode::Multiply, {ab, kk});
    return;
  }
  //   (A * K1) * K2      →      A * (K1 * K2)
  for (auto [p, q] : {std::pair{l, r}, std::pair{r, l}})
    if (k(q) && split(p, &a, &k1)) {
      if (!go("constants of products joined", i)) return;
      InstId kk = make_op(i, Opcode::Multiply, {k1, q});
      rw(i, Opcode::Multiply, {a, kk});
      return;
    }
  //   (A * s) * broadcast(B)      →      A * broadcast(B * s)       s a scalar constant
  for (auto [p, q] : {std::pair{l, r}, std::pair{r, l}}) {
    if (op(p) != Opcode::Multiply || op(q) != Opcode::Broadcast || k(operand(q, 0))) continue;
    for (size_t s : {size_t{0}, size_t{1}}) {
      InstId f = operand(p, s), other = operand(p, 1 - s);
      InstId scalar = op(f) == Opcode::Broadcast ? operand(f, 0) : f;
      if (!k(scalar) || m_.shape(scalar).rank() != 0) continue;
      if (!go("scalar factor into a broadcast", i)) return;
      InstId base = operand(q, 0);
      InstId sb = m_.shape(base).rank() ? make_broadcast(m_, c, scalar, {}, m_.shape_id(base)) : scalar;
      InstId product = make_op(i, Opcode::Multiply, {base, sb});
      InstId spread = make_broadcast(m_, c, product, m_.attrs(q).ints(Attr::dimensions), m_.shape_id(i));
      rw(i, Opcode::Multiply, {other, spread});
      return;
    }
  }
  //   (A * K1) * K2 with both spread      →      A * spread(K1 * K2)
  if (op(l) == Opcode::Multiply && bck(operand(l, 1)) && bck(r)) {
    if (!go("constants of products joined", i)) return;
    InstId kk = make_op(i, Opcode::Multiply, {operand(operand(l, 1), 0), operand(r, 0)});
    if (m_.shape(i).rank()) kk = make_broadcast(m_, c, kk, {}, m_.shape_id(i));
    rw(i, Opcode::Multiply, {operand(l, 0), kk});
    return;
  }
  //   exp(A) * exp(B)      →      exp(A + B)
  if (op(l) == Opcode::Exp && op(r) == Opcode::Exp) {
    if (!go("product of exponentials", i)) return;
    InstId sum = make_op(i, Opcode::Add, {operand(l, 0), operand(r, 0)}, {}, m_.shape_id(i));
    rw(i, Opcode::Exp, {sum});
    return;
  }
  //   sqrt(A) * sqrt(A)      →      A,      rsqrt(A) * rsqrt(A)      →      1 / A       for A ≥ 0
  if (l == r && op(l) == Opcode::Sqrt && non_negative(operand(l, 0))) {
    if (go("square of sqrt", i)) ri(i, operand(l, 0));
    return;
  }
  if (l == r && op(l) == Opcode::Rsqrt && non_negative(operand(l, 0))) {
    if (!go("square of rsqrt", i)) return;
    InstId one = make_scalar_like(m_, operand(l, 0), 1);
    rw(i, Opcode::Divide, {one, operand(l, 0)});
    return;
  }
  scaled_convolution(i);
}

//   f(A)  on a signed A      →      select(A < 0, -op(|A|, k), op(|A|, k))
void A::on_magnitude(InstId i, Opcode operation, int64_t k) {
  InstId a = operand(i, 0), zero = make_scalar_like(m_, a, 0);
  // XLA spreads the zero of a remainder over a scalar, too.
  if (op(i) == Opcode::Remainder && m_.shape(a).rank() == 0)
    zero = make_broadcast(m_, m_.parent(i), zero, {}, m_.shape_id(a));
  InstId negative =
      make_op(i, Opcode::Compare, {a, zero}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("LT")}}),
              u_.with_type(m_.shape_id(i), ElementType::Pred));
  InstId minus = make_op(i, Opcode::Negate, {a}, {}, m_.shape_id(a));
  InstId magnitude = make_op(i, Opcode::Select, {negative, minus, a}, {}, m_.shape_id(i));
  InstId result = make_op(i, operation, {magnitude, make_scalar_like(m_, a, k)}, {}, m_.shape_id(i));
  InstId back = make_op(i, Opcode::Negate, {result}, {}, m_.shape_id(i));
  rw(i, Opcode::Select, {negative, back, result});
}

void A::divide(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  CompId c = m_.parent(i);
  if (is_all(m_, b, 1) && ric(i, a, "divide by one")) return;
  int64_t value;
  //   A / 2^k      →      shifts       for integers
  if (integral(i)) {
    if (scalar_int(b, &value) && value > 0 && std::has_single_bit(static_cast<uint64_t>(value))) {
      int shift = std::countr_zero(static_cast<uint64_t>(value));
      if (!go("divide by a power of two", i)) return;
      if (is_unsigned_int(type(i))) {
        rw(i, Opcode::ShiftRightLogical, {a, make_scalar_like(m_, a, shift)});
        return;
      }
      on_magnitude(i, Opcode::ShiftRightLogical, shift);
      return;
    }
  }
  //   exp(A) / exp(B)      →      exp(A - B)
  if (op(a) == Opcode::Exp && op(b) == Opcode::Exp) {
    if (!go("quotient of exponentials", i)) return;
    rw(i, Opcode::Exp, {make_op(i, Opcode::Subtract, {operand(a, 0), operand(b, 0)}, {}, m_.shape_id(i))});
    return;
  }
  //   A / exp(B)      →      A * exp(-B)
  if (op(b) == Opcode::Exp) {
    if (!go("divide by an exponential", i)) return;
    InstId n = make_op(i, Opcode::Negate, {operand(b, 0)}, {}, m_.shape_id(b));
    rw(i, Opcode::Multiply, {a, make_op(i, Opcode::Exp, {n}, {}, m_.shape_id(b))});
    return;
  }
  //   A / pow(B, C)      →      A * pow(B, -C)
  if (op(b) == Opcode::Power) {
    if (!go("divide by a power", i)) return;
    InstId n = make_op(i, Opcode::Negate, {operand(b, 1)}, {}, m_.shape_id(operand(b, 1)));
    rw(i, Opcode::Multiply, {a, make_op(i, Opcode::Power, {operand(b, 0), n}, {}, m_.shape_id(b))});
    return;
  }
  //   A / sqrt(B)      →      A * rsqrt(B),      A / rsqrt(B)      →      A * sqrt(B)
  if ((op(b) == Opcode::Sqrt || op(b) == Opcode::Rsqrt) && m_.use_count(b) == 1) {
    if (!go("divide by a root", i)) return;
    Opcode other = op(b) == Opcode::Sqrt ? Opcode::Rsqrt : Opcode::Sqrt;
    InstId root = m_.add(c, {.op = other, .shape = m_.shape_id(b), .operands = {operand(b, 0)}, .meta = m_[b].meta});
    rw(i, Opcode::Multiply, {a, root});
    return;
  }
  if (integral(i)) return;
  //   A / K      →      A * (1 / K)
  InstId kb = k(b) ? b : is_broadcast_of_constant(m_, b) ? operand(b, 0) : InstId();
  if (!k(a) && kb.valid() && (is_float(type(i)) || is_complex(type(i))) && !m_.literal(kb).elided) {
    if (!go("divide by a constant", i)) return;
    Literal inverse = m_.literal(kb);
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
    InstId reciprocal = m_.add_derived(kb, {.op = Opcode::Constant, .shape = m_.shape_id(kb), .payload = lit.value});
    if (kb != b)
      reciprocal = m_.add_derived(b, {.op = Opcode::Broadcast,
                                      .shape = m_.shape_id(b),
                                      .operands = {reciprocal},
                                      .attrs = dims_attr(u_, Opcode::Broadcast, m_.attrs(b).ints(Attr::dimensions))});
    rw(i, Opcode::Multiply, {a, reciprocal});
    return;
  }
  //   (A / B) / (C / D)      →      (A * D) / (B * C)
  if (op(a) == Opcode::Divide && op(b) == Opcode::Divide) {
    if (!go("quotient of quotients", i)) return;
    InstId n = make_op(i, Opcode::Multiply, {operand(a, 0), operand(b, 1)}),
           d = make_op(i, Opcode::Multiply, {operand(a, 1), operand(b, 0)});
    rw(i, Opcode::Divide, {n, d});
    return;
  }
  if (op(a) == Opcode::Divide) {
    if (!go("(a / b) / c", i)) return;
    rw(i, Opcode::Divide, {operand(a, 0), make_op(i, Opcode::Multiply, {operand(a, 1), b})});
    return;
  }
  if (op(b) == Opcode::Divide) {
    if (!go("a / (b / c)", i)) return;
    rw(i, Opcode::Divide, {make_op(i, Opcode::Multiply, {a, operand(b, 1)}), operand(b, 0)});
    return;
  }
  //   divide(convert(pred P), broadcast(Y))      →      multiply(broadcast(divide(1, Y)), convert(P))
  if (op(a) == Opcode::Convert && type(operand(a, 0)) == ElementType::Pred && op(b) == Opcode::Broadcast &&
      m_.shape(operand(b, 0)).rank() == 0) {
    if (!go("divide of a converted pred", i)) return;
    InstId y = operand(b, 0);
    InstId inverse = make_op(i, Opcode::Divide, {make_scalar_like(m_, y, 1), y});
    InstId wide = make_broadcast(m_, m_.parent(i), inverse, {}, m_.shape_id(i));
    rw(i, Opcode::Multiply, {wide, a});
  }
}

void A::remainder(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  //   (A % B) % B      →      A % B
  if (op(a) == Opcode::Remainder && operand(a, 1) == b && ric(i, a, "remainder twice")) return;
  if (!integral(i)) return;
  int64_t v;
  if (!scalar_int(b, &v)) return;
  //   A % 2^k      →      and(A, 2^k - 1), sign kept apart
  if (v > 0 && std::has_single_bit(static_cast<uint64_t>(v))) {
    if (!go("remainder of a power of two", i)) return;
    if (is_unsigned_int(type(i)))
      rw(i, Opcode::And, {a, make_scalar_like(m_, a, v - 1)});
    else
      on_magnitude(i, Opcode::And, v - 1);
    return;
  }
  if (op(a) == Opcode::Iota && v >= m_.shape(a).dims[static_cast<size_t>(m_.attrs(a).integer(Attr::iota_dimension))] &&
      ric(i, a, "remainder of a short iota"))
    return;
  //   (iota + N) % N      →      iota % N       where nothing runs over
  if (op(a) == Opcode::Add && op(b) == Opcode::Broadcast) {
    for (size_t s : {size_t{0}, size_t{1}}) {
      InstId x = operand(a, s), n = operand(a, 1 - s);
      if (op(x) != Opcode::Iota || op(n) != Opcode::Broadcast || operand(n, 0) != operand(b, 0) || v <= 0) continue;
      int64_t size = m_.shape(x).dims[static_cast<size_t>(m_.attrs(x).integer(Attr::iota_dimension))];
      int bits = type_bits(type(i)) - (is_signed_int(type(i)) ? 1 : 0);
      if (bits < 63 && v + size > (int64_t{1} << bits) - 1) continue;
      if (go("remainder of an iota moved by the divisor", i)) rw(i, Opcode::Remainder, {x, b});
      return;
    }
  }
}

void A::power(InstId i) {
  InstId a = operand(i, 0), b = operand(i, 1);
  if (is_all(m_, b, 0)) {
    if (go("power of zero", i)) rw_to(i, make_scalar_like(m_, i, 1));
    return;
  }
  if (is_all(m_, b, 1) && ric(i, a, "power of one")) return;
  //   pow(exp(A), B)      →      exp(A * B)
  if (op(a) == Opcode::Exp) {
    if (!go("power of an exponential", i)) return;
    rw(i, Opcode::Exp, {make_op(i, Opcode::Multiply, {operand(a, 0), b}, {}, m_.shape_id(i))});
    return;
  }
  if (is_all(m_, b, 2)) {
    if (go("square", i)) rw(i, Opcode::Multiply, {a, a});
    return;
  }
  if (is_all(m_, b, 3)) {
    if (!go("cube", i)) return;
    InstId square = make_op(i, Opcode::Multiply, {a, a}, {}, m_.shape_id(i));
    rw(i, Opcode::Multiply, {a, square});
    return;
  }
  if (is_all(m_, b, -1)) {
    if (!go("inverse", i)) return;
    InstId one = make_scalar_like(m_, a, 1);
    rw(i, Opcode::Divide, {one, a});
    return;
  }
  if (is_all(m_, b, 0.5) && non_negative(a)) {
    if (go("square root", i)) rw(i, Opcode::Sqrt, {a});
  }
}

}  // namespace hlo
