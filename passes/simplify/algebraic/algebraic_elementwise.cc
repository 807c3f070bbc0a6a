// algsimp on elementwise operations.

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

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

bool A::clamp_of_id(InstId i) {
  InstId lo = operand(i, 0), id = operand(i, 1), hi = operand(i, 2);
  if (op(id) != Opcode::PartitionId && op(id) != Opcode::ReplicaId) return false;
  if (op(lo) != Opcode::Constant || op(hi) != Opcode::Constant || type(lo) != ElementType::U32 || scalar_value(lo) != 0)
    return false;
  const int64_t count = op(id) == Opcode::PartitionId ? m_.config().num_partitions : m_.config().replica_count;
  return count != 1 && static_cast<double>(count) <= scalar_value(hi) + 1 && ric(i, id, "clamp of a device's number");
}

}  // namespace hlo
