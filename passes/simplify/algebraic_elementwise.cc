// algsimp on elementwise operations.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/eval/kernels.h"
#include "passes/simplify/algebraic_simplifier.h"

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

void A::logic(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  bool pred = type(i) == ElementType::Pred;
  if (op(i) == Opcode::And) {
    if (pred && is_all(m_, r, 1) && ric(i, l, "and true")) return;
    if (pred && is_all(m_, l, 1) && ric(i, r, "and true")) return;
    if (is_all(m_, r, 0) && ric(i, r, "and zero")) return;
    if (is_all(m_, l, 0) && ric(i, l, "and zero")) return;
    //   and(A < K1, A < K2)      →      A < min(K1, K2)
    auto bound = [&](InstId x, InstId* value, int64_t* limit) {
      if (op(x) != Opcode::Compare || type(operand(x, 0)) != ElementType::S32) return false;
      std::string_view d = u_.text(m_.attrs(x).text(Attr::direction));
      if (d != "LT" && d != "GT") return false;
      *value = operand(x, d == "LT" ? 0 : 1);
      InstId constant = operand(x, d == "LT" ? 1 : 0);
      return is_scalar_constant(m_, constant) && scalar_int(constant, limit) && !k(*value);
    };
    InstId a, b;
    int64_t ka, kb;
    if (bound(l, &a, &ka) && bound(r, &b, &kb) && a == b) {
      if (!go("and of two bounds", i)) return;
      InstId smaller = operand(ka <= kb ? l : r, operand(ka <= kb ? l : r, 0) == a ? 1 : 0);
      rw(i, Opcode::Compare, {a, smaller}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("LT")}}));
      return;
    }
  } else if (op(i) == Opcode::Or) {
    if (pred && is_all(m_, r, 1) && ric(i, r, "or true")) return;
    if (pred && is_all(m_, l, 1) && ric(i, l, "or true")) return;
    if (is_all(m_, r, 0) && ric(i, l, "or zero")) return;
    if (is_all(m_, l, 0) && ric(i, r, "or zero")) return;
  }
}

void A::compare(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  std::string_view d = u_.text(m_.attrs(i).text(Attr::direction));
  auto to_bool = [&](bool v, std::string_view rule) {
    if (go(rule, i)) rw_to(i, make_scalar_like(m_, i, v));
  };
  bool total = m_.attrs(i).has(Attr::type);
  if (is_unsigned_int(type(l)) || type(l) == ElementType::Pred) {
    if (d == "LT" && is_all(m_, r, 0)) return to_bool(false, "unsigned below zero");
    if (d == "GE" && is_all(m_, r, 0)) return to_bool(true, "unsigned below zero");
    if (d == "GT" && is_all(m_, l, 0)) return to_bool(false, "unsigned below zero");
    if (d == "LE" && is_all(m_, l, 0)) return to_bool(true, "unsigned below zero");
  }
  if (!total) {
    if (d == "LT" && is_all(m_, r, 0) && non_negative(l)) return to_bool(false, "non-negative below zero");
    if (d == "GT" && is_all(m_, l, 0) && non_negative(r)) return to_bool(false, "non-negative below zero");
    if (d == "GE" && is_all(m_, r, 0) && non_negative(l)) return to_bool(true, "non-negative below zero");
    if (d == "LE" && is_all(m_, l, 0) && non_negative(r)) return to_bool(true, "non-negative below zero");
  }
  if (l == r && integral(l)) {
    if (d == "GT" || d == "LT" || d == "NE") return to_bool(false, "compare with itself");
    return to_bool(true, "compare with itself");
  }
  if (type(l) == ElementType::Pred) {
    if (d == "NE") {
      if (is_all(m_, r, 0) && ric(i, l, "not equal false")) return;
      if (is_all(m_, l, 0) && ric(i, r, "not equal false")) return;
    } else if (d == "EQ") {
      if (is_all(m_, r, 1) && ric(i, l, "equal true")) return;
      if (is_all(m_, l, 1) && ric(i, r, "equal true")) return;
    }
  }
  //   select(A >= B, 1, 0) != 0      →      A >= B
  if (d == "NE" && op(l) == Opcode::Select && op(operand(l, 0)) == Opcode::Compare && is_all(m_, r, 0) &&
      is_all(m_, operand(l, 1), 1) && is_all(m_, operand(l, 2), 0) &&
      u_.text(m_.attrs(operand(l, 0)).text(Attr::direction)) == "GE" &&
      ric(i, operand(l, 0), "truth value as a number"))
    return;
  auto in_place = [&](size_t side, InstId v) {
    if (!go("compare with an extremum of itself", i)) return;
    m_.set_operand(i, side, v);
    changed_ = true;
  };
  if (d == "GT" && op(l) == Opcode::Maximum) {
    if (operand(l, 0) == r) return in_place(0, operand(l, 1));
    if (operand(l, 1) == r) return in_place(0, operand(l, 0));
  }
  if (d == "GT" && op(r) == Opcode::Minimum) {
    if (operand(r, 0) == l) return in_place(1, operand(r, 1));
    if (operand(r, 1) == l) return in_place(1, operand(r, 0));
  }
}

void A::minmax(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  bool max = op(i) == Opcode::Maximum;
  if (l == r && ric(i, l, "extremum with itself")) return;
  // The identity of the operation: the least (max) or largest (min) value of the type.
  auto identity = [&](InstId v) {
    ElementType t = type(v);
    if (is_float(t)) {
      const FloatFormat* f = float_format(t);
      if (f && !f->has_inf) return false;
      return is_all(m_, v, max ? -INFINITY : INFINITY);
    }
    if (!is_integral(t)) return false;
    while (op(v) == Opcode::Broadcast) v = operand(v, 0);
    if (!k(v) || m_.literal(v).elided) return false;
    int bits = type_bits(t);
    int64_t least = is_signed_int(t) ? (bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1))) : 0;
    int64_t most = is_signed_int(t) ? (bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1)
                   : bits == 64     ? -1
                                    : (int64_t{1} << bits) - 1;
    size_t width = static_cast<size_t>(storage_bytes(t));
    const std::string& bytes = m_.literal(v).bytes;
    for (size_t at = 0; at < bytes.size(); at += width)
      if (load_int(t, bytes.data() + at) != (max ? least : most)) return false;
    return !bytes.empty();
  };
  if (identity(l) && ric(i, r, "extremum with its identity")) return;
  if (identity(r) && ric(i, l, "extremum with its identity")) return;
  //   max(max(A, B), A)      →      max(A, B)
  if (op(l) == op(i) && (operand(l, 0) == r || operand(l, 1) == r) && ric(i, l, "extremum twice")) return;
  if (op(r) == op(i) && operand(r, 0) == l && ric(i, r, "extremum twice")) return;
  if (op(r) == op(i) && operand(r, 1) == l) {
    if (!go("extremum twice", i)) return;
    m_.set_operand(i, 1, operand(r, 0));
    changed_ = true;
    return;
  }
  //   max(lo, min(A, hi))      →      clamp(lo, A, hi)
  for (auto [bound, inner] : {std::pair{l, r}, std::pair{r, l}}) {
    if (!is_broadcast_of_scalar_constant(m_, bound) || op(inner) != (max ? Opcode::Minimum : Opcode::Maximum)) continue;
    for (size_t s : {size_t{0}, size_t{1}}) {
      InstId other = operand(inner, s), x = operand(inner, 1 - s);
      if (!is_broadcast_of_scalar_constant(m_, other) || is_complex(type(i))) continue;
      InstId lo = max ? bound : other, hi = max ? other : bound;
      if (!(scalar_value(lo) < scalar_value(hi))) continue;
      if (!go("clamp from extrema", i)) return;
      rw(i, Opcode::Clamp, {lo, x, hi});
      return;
    }
  }
  //   max(lo, clamp(lo, A, hi))      →      clamp(lo, A, hi)
  if (max)
    for (auto [lo, inner] : {std::pair{l, r}, std::pair{r, l}})
      if (op(inner) == Opcode::Clamp && operand(inner, 0) == lo && ric(i, inner, "maximum with a clamp's bound"))
        return;
  //   max(f(A), f(B))      →      f(max(A, B))       for monotone f
  if (max && op(l) == op(r) && l != r &&
      (op(l) == Opcode::Cbrt || op(l) == Opcode::Erf || op(l) == Opcode::Logistic || op(l) == Opcode::Tanh)) {
    if (!go("maximum of monotone functions", i)) return;
    rw(i, op(l), {make_op(i, Opcode::Maximum, {operand(l, 0), operand(r, 0)}, {}, m_.shape_id(i))});
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

void A::unary(InstId i) {
  InstId a = operand(i, 0);
  switch (op(i)) {
    case Opcode::Abs:
      if (non_negative(a)) {
        if (ctx_.fuel > 0) ric(i, a, "abs of a non-negative value");
      }
      return;
    case Opcode::Negate:
      if (op(a) == Opcode::Negate) ric(i, operand(a, 0), "negate twice");
      return;
    case Opcode::Not:
      if (op(a) == Opcode::Not) ric(i, operand(a, 0), "not twice");
      return;
    case Opcode::Log:
      if (op(a) == Opcode::Exp && ric(i, operand(a, 0), "log of exp")) return;
      //   log(pow(A, B))      →      select(B == 0, 0, log(|A|) * B)
      if (op(a) == Opcode::Power) {
        InstId x = operand(a, 0), y = operand(a, 1);
        if (!go("log of a power", i)) return;
        InstId magnitude = is_complex(type(x)) ? x : make_op(i, Opcode::Abs, {x}, {}, m_.shape_id(x));
        InstId log = make_op(i, Opcode::Log, {magnitude}, {}, m_.shape_id(i));
        InstId product = make_op(i, Opcode::Multiply, {log, y}, {}, m_.shape_id(i));
        InstId zero_b = make_scalar_like(m_, y, 0);
        InstId is_zero =
            make_op(i, Opcode::Compare, {y, zero_b}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("EQ")}}),
                    u_.with_type(m_.shape_id(i), ElementType::Pred));
        rw(i, Opcode::Select, {is_zero, make_scalar_like(m_, i, 0), product});
        return;
      }
      if (op(a) == Opcode::Sqrt || op(a) == Opcode::Rsqrt) {
        if (!go("log of a root", i)) return;
        InstId log = make_op(i, Opcode::Log, {operand(a, 0)}, {}, m_.shape_id(i));
        rw(i, Opcode::Multiply, {log, make_scalar_like(m_, log, op(a) == Opcode::Sqrt ? 0.5 : -0.5)});
      }
      return;
    case Opcode::Exp:
      if (is_all(m_, a, 0)) {
        if (go("exp of zero", i)) rw_to(i, make_scalar_like(m_, i, 1));
      }
      return;
    case Opcode::Sqrt:
      //   sqrt(A * A)      →      |A|
      if (op(a) == Opcode::Multiply && operand(a, 0) == operand(a, 1) && !is_complex(type(i))) {
        if (go("sqrt of a square", i)) rw(i, Opcode::Abs, {operand(a, 0)});
      }
      return;
    case Opcode::Rsqrt:
      if (op(a) == Opcode::Power && is_all(m_, operand(a, 1), -2) && non_negative(operand(a, 0))) {
        if (go("rsqrt of an inverse square", i)) ri(i, operand(a, 0));
        return;
      }
      if (op(a) == Opcode::Divide && is_all(m_, operand(a, 0), 1) && non_negative(operand(a, 1))) {
        if (go("rsqrt of an inverse", i)) rw(i, Opcode::Sqrt, {operand(a, 1)});
      }
      return;
    case Opcode::Complex:
      if (op(a) == Opcode::Real && op(operand(i, 1)) == Opcode::Imag && operand(a, 0) == operand(operand(i, 1), 0))
        ric(i, operand(a, 0), "complex of its parts");
      return;
    case Opcode::Real:
      if (!is_complex(type(a)))
        ric(i, a, "real part of a real value");
      else if (op(a) == Opcode::Complex)
        ric(i, operand(a, 0), "real part of complex");
      return;
    case Opcode::Imag:
      if (op(a) == Opcode::Complex)
        ric(i, operand(a, 1), "imaginary part of complex");
      else if (!is_complex(type(a)) && go("imaginary part of a real value", i))
        rw_to(i, make_scalar_like(m_, i, 0));
      return;
    case Opcode::ReducePrecision: {
      if (!remove_reduce_precision_) return;
      const AttrSet& s = m_.attrs(i);
      ElementType t = type(a);
      int e = t == ElementType::F32   ? 8
              : t == ElementType::F64 ? 11
              : float_format(t)       ? float_format(t)->exponent_bits
                                      : 0;
      int mantissa = t == ElementType::F32   ? 23
                     : t == ElementType::F64 ? 52
                     : float_format(t)       ? float_format(t)->mantissa_bits
                                             : 0;
      if (s.integer(Attr::exponent_bits) == e && s.integer(Attr::mantissa_bits) == mantissa)
        ric(i, a, "reduce-precision to the same precision");
      return;
    }
    default:
      return;
  }
}

void A::select(InstId i) {
  InstId p = operand(i, 0), a = operand(i, 1), b = operand(i, 2);
  if (a == b && ric(i, a, "select of one value")) return;
  if (is_all(m_, p, 1) && ric(i, a, "select by true")) return;
  if (is_all(m_, p, 0) && ric(i, b, "select by false")) return;
  //   select(not(P), A, B)      →      select(P, B, A)
  if (op(p) == Opcode::Not) {
    if (go("select by a negation", i)) rw(i, Opcode::Select, {operand(p, 0), b, a});
    return;
  }
  if (type(i) == ElementType::Pred) {
    if (is_all(m_, a, 1) && is_all(m_, b, 0) && m_.shape(p).dims == m_.shape(i).dims) {
      if (go("select of true and false", i)) ri(i, p);
      return;
    }
    if (is_all(m_, a, 0) && is_all(m_, b, 1) && m_.shape(p).dims == m_.shape(i).dims) {
      if (go("select of false and true", i)) rw(i, Opcode::Not, {p});
      return;
    }
    //   select(compare(A, B), A, B) of truth values      →      and, or, A or B
    if (op(p) == Opcode::Compare && operand(p, 0) == a && operand(p, 1) == b) {
      std::string_view d = u_.text(m_.attrs(p).text(Attr::direction));
      if (!go("select by comparing truth values", i)) return;
      if (d == "GT" || d == "GE")
        rw(i, Opcode::Or, {a, b});
      else if (d == "LT" || d == "LE")
        rw(i, Opcode::And, {a, b});
      else
        ri(i, d == "EQ" ? b : a);
      return;
    }
  }
  //   select(P, A, dynamic-update-slice(A, U, idx))      →      dynamic-update-slice(A, select(P, slice of A, U), idx)
  for (bool first : {true, false}) {
    InstId base = first ? b : a, d = first ? a : b;
    if (op(d) != Opcode::DynamicUpdateSlice || operand(d, 0) != base || m_.use_count(d) != 1) continue;
    if (!go("select of an update", i)) return;
    InstId update = operand(d, 1);
    std::vector<InstId> idx(m_.operands(d).begin() + 2, m_.operands(d).end()), taken{base}, mask{p};
    taken.insert(taken.end(), idx.begin(), idx.end());
    mask.insert(mask.end(), idx.begin(), idx.end());
    AttrsId sizes = attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, m_.shape(update).dims}});
    InstId old = make_op(i, Opcode::DynamicSlice, taken, sizes);
    InstId by = m_.shape(p).rank() ? make_op(i, Opcode::DynamicSlice, mask, sizes) : p;
    InstId chosen =
        make_op(i, Opcode::Select, {by, first ? update : old, first ? old : update}, {}, m_.shape_id(update));
    std::vector<InstId> ops{base, chosen};
    ops.insert(ops.end(), idx.begin(), idx.end());
    rw(i, Opcode::DynamicUpdateSlice, ops);
    return;
  }
}

namespace {
// Does a conversion to `to` keep every value of `from`?
bool preserves(ElementType from, ElementType to) {
  if (from == to) return true;
  auto mantissa = [](ElementType t) {
    return t == ElementType::F32   ? 24
           : t == ElementType::F64 ? 53
           : float_format(t)       ? float_format(t)->mantissa_bits + 1
                                   : 0;
  };
  auto exponent = [](ElementType t) {
    return t == ElementType::F32   ? 8
           : t == ElementType::F64 ? 11
           : float_format(t)       ? float_format(t)->exponent_bits
                                   : 0;
  };
  if (is_complex(to) && !is_complex(from)) return preserves(from, component_type(to));
  if (is_complex(from)) return is_complex(to) && type_bits(to) >= type_bits(from);
  if (from == ElementType::Pred) return is_integral(to) || is_float(to);
  if (to == ElementType::Pred) return false;
  if (is_float(from)) {
    if (!is_float(to) || to == ElementType::F8E8M0FNU || from == ElementType::F8E8M0FNU) return false;
    return mantissa(to) >= mantissa(from) && exponent(to) >= exponent(from);
  }
  if (is_float(to))
    return mantissa(to) >= type_bits(from) - is_signed_int(from) && (1 << (exponent(to) - 1)) >= type_bits(from);
  if (is_unsigned_int(from)) return type_bits(to) - is_signed_int(to) >= type_bits(from);
  return is_signed_int(to) && type_bits(to) >= type_bits(from);
}
}  // namespace

void A::convert(InstId i) {
  InstId a = operand(i, 0);
  if (type(i) == type(a)) {
    ric(i, a, "convert to the same type");
    return;
  }
  //   convert(convert(A)) back to A's type      →      A       where the middle type keeps all values
  if (op(a) == Opcode::Convert && type(operand(a, 0)) == type(i) && preserves(type(i), type(a))) {
    ric(i, operand(a, 0), "convert there and back");
    return;
  }
  //   convert(op(convert(A), convert(B)))      →      op(A, B)       in the narrow integer type
  Opcode inner = op(a);
  bool arithmetic = inner == Opcode::Add || inner == Opcode::Subtract || inner == Opcode::Multiply;
  bool division = inner == Opcode::Divide || inner == Opcode::Remainder;
  if ((arithmetic || division) && one_user(a) && integral(i) && integral(a)) {
    InstId x = operand(a, 0), y = operand(a, 1);
    if (op(x) == Opcode::Convert && op(y) == Opcode::Convert && one_user(x) && one_user(y) &&
        type(operand(x, 0)) == type(i) && type(operand(y, 0)) == type(i) && type_bits(type(i)) >= 8 &&
        is_signed_int(type(i)) == is_signed_int(type(a)) && preserves(type(i), type(a)) &&
        (arithmetic || is_unsigned_int(type(i)))) {
      if (!go("operation between converts in the narrow type", i)) return;
      rw(i, inner, {operand(x, 0), operand(y, 0)});
    }
  }
}

void A::bitcast_convert(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) == Opcode::BitcastConvert) {
    if (go("bitcast-convert twice", i)) rw(i, Opcode::BitcastConvert, {operand(a, 0)});
    return;
  }
  //   bitcast-convert(concatenate(bitcast-convert(A), …)) back to A's type      →      concatenate(A, …)
  if (op(a) == Opcode::Concatenate && type_bits(type(i)) == type_bits(type(a))) {
    std::vector<InstId> pieces;
    for (InstId o : m_.operands(a))
      if (op(o) == Opcode::BitcastConvert && type(operand(o, 0)) == type(i)) pieces.push_back(operand(o, 0));
    if (pieces.size() == m_.operand_count(a)) {
      if (go("bitcast-convert around a concatenate", i)) rw(i, Opcode::Concatenate, pieces, m_[a].attrs);
      return;
    }
  }
  if (ls_ && m_.shape(i).dims == m_.shape(a).dims && m_.shape(i).layout == m_.shape(a).layout &&
      type_bits(type(i)) == type_bits(type(a)) && type(i) != type(a)) {
    if (go("bitcast-convert is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
    return;
  }
  // Words cut into parts, or parts put together, along a minor-most dimension lie as they did.
  if (ls_ && m_.shape(i).rank() != m_.shape(a).rank()) {
    bool parts = m_.shape(i).rank() > m_.shape(a).rank();
    const Shape &more = parts ? m_.shape(i) : m_.shape(a), &less = parts ? m_.shape(a) : m_.shape(i);
    Dims outer(more.layout.minor_to_major.begin() + (more.layout.minor_to_major.empty() ? 0 : 1),
               more.layout.minor_to_major.end());
    if (more.rank() == less.rank() + 1 && more.dims.back() * type_bits(more.type) % 8 == 0 &&
        more.layout.minor_to_major.front() == more.rank() - 1 &&
        outer == Dims(less.layout.minor_to_major.begin(), less.layout.minor_to_major.end())) {
      if (go("bitcast-convert is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
      return;
    }
  }
  ric(i, a, "bitcast-convert to the same type");
}

//   clamp(0, partition-id, K)      →      partition-id      where there are at most K + 1 of them, and replicas
//   likewise
bool A::clamp_of_id(InstId i) {
  InstId lo = operand(i, 0), id = operand(i, 1), hi = operand(i, 2);
  if (op(id) != Opcode::PartitionId && op(id) != Opcode::ReplicaId) return false;
  if (op(lo) != Opcode::Constant || op(hi) != Opcode::Constant || type(lo) != ElementType::U32 || scalar_value(lo) != 0)
    return false;
  const int64_t count = op(id) == Opcode::PartitionId ? m_.config().num_partitions : m_.config().replica_count;
  return count != 1 && static_cast<double>(count) <= scalar_value(hi) + 1 && ric(i, id, "clamp of a device's number");
}

}  // namespace hlo
