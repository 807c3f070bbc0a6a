// algsimp on reductions and windows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "ir/query/reducer.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kReductionRules[] = {
    {"reduce of nothing", Opcode::Reduce, "reduce(A, init) where A or the result has no elements", "broadcast(init)",
     &AlgebraicSimplifier::reduce_of_nothing},
    {"tuple of one reduction", Opcode::Reduce, "reduce(A) by a reducer that returns a tuple", "tuple(reduce(A))",
     &AlgebraicSimplifier::tuple_of_one_reduction},
    {"variadic reduce of single elements", Opcode::Reduce, "reduce(A, B) over dimensions of one",
     "tuple(reshape(A), reshape(B))", &AlgebraicSimplifier::reduce_several_of_single_elements},
    {"largest of equal values", Opcode::Reduce, "reduce(broadcast(K), iota) to the largest value and its place",
     "tuple(broadcast(K), broadcast(0))", &AlgebraicSimplifier::place_in_constant},
    {"reduce of single elements", Opcode::Reduce, "reduce(A) over dimensions of one", "reshape(A)",
     &AlgebraicSimplifier::reduce_of_single_elements},
    {"reduce of a negation", Opcode::Reduce, "reduce-add(negate(A))", "negate(reduce-add(A))",
     &AlgebraicSimplifier::reduce_of_negation},
    {"reduce of a transpose", Opcode::Reduce, "reduce(transpose(A))", "transpose(reduce(A))",
     &AlgebraicSimplifier::reduce_of_transpose},
    {"reduce of a reduce", Opcode::Reduce, "reduce(reduce(A)) by one reducer from one value", "reduce(A)",
     &AlgebraicSimplifier::reduce_of_reduce},
    {"reduce of a reshape", Opcode::Reduce, "reduce(reshape(A)) where all kept dimensions are A's own", "reduce(A)",
     &AlgebraicSimplifier::reduce_of_reshape},
    {"reduce of a reshape's own dimensions", Opcode::Reduce,
     "reduce(reshape(A)) where all reduced dimensions are A's own", "reshape(reduce(A))",
     &AlgebraicSimplifier::reduce_before_reshape},
    {"reduce of a concatenate", Opcode::Reduce, "reduce(concatenate(A, B)) along the joined dimension",
     "map(reduce(A), reduce(B))", &AlgebraicSimplifier::reduce_of_concatenate},
    {"value next to its place", Opcode::Reduce,
     "reduce-max(A) next to reduce(A, iota) to the largest value and its place", "get-tuple-element(that, 0)",
     &AlgebraicSimplifier::value_next_to_place},
    {"reduce of a spread scalar", Opcode::Reduce,
     "reduce(broadcast(scalar A), init) to a scalar by maximum, minimum, and, or", "maximum(A, init)",
     &AlgebraicSimplifier::reduce_of_spread_scalar},
    {"reduce of a broadcast", Opcode::Reduce, "reduce(broadcast(A)) over dimensions that are A's own",
     "broadcast(reduce(A))", &AlgebraicSimplifier::reduce_of_broadcast},
    {"sum of a broadcast", Opcode::Reduce, "reduce-add(broadcast(A), init) over dimensions that the broadcast made",
     "broadcast(add(init, multiply(A, count)))", &AlgebraicSimplifier::sum_of_broadcast},
};

// Is `i` a reduction to the largest or smallest value and its first place, written as jax does, the first NaN being
// the largest and the smallest of all? Then Maximum or Minimum.
std::optional<Opcode> value_and_place(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Reduce || !m.shape(i).is_tuple() || m.operand_count(i) != 4) return {};
  const Dims& dims = m.attrs(i).ints(Attr::dimensions);
  InstId places = m.operand(i, 1);
  if (dims.size() != 1 || m.op(places) != Opcode::Iota || m.attrs(places).integer(Attr::iota_dimension) != dims[0])
    return {};
  const Computation& f = m.comp(m.called(i)[0]);
  const std::vector<InstId>& p = f.params;
  auto is = [&](InstId x, Opcode op, size_t operands) { return m.op(x) == op && m.operand_count(x) == operands; };
  // Operands of a commutative operation, whichever of them `first` takes first.
  auto either = [&](InstId x, Opcode op, const std::function<bool(InstId)>& first,
                    const std::function<bool(InstId)>& second) {
    if (!is(x, op, 2)) return false;
    InstId a = m.operand(x, 0), b = m.operand(x, 1);
    return (first(a) && second(b)) || (first(b) && second(a));
  };
  auto compares = [&](InstId x, size_t a, size_t b, std::string_view direction) {
    return m.op(x) == Opcode::Compare && m.operand(x, 0) == p[a] && m.operand(x, 1) == p[b] &&
           m.u().text(m.attrs(x).text(Attr::direction)) == direction;
  };
  if (!is(f.root, Opcode::Tuple, 2)) return {};
  InstId value = m.operand(f.root, 0), place = m.operand(f.root, 1);
  if (!is(value, Opcode::Select, 3) || !is(place, Opcode::Select, 3) || m.operand(value, 1) != p[0] ||
      m.operand(value, 2) != p[2] || m.operand(place, 1) != p[1] || m.operand(place, 2) != p[3])
    return {};
  InstId better = m.operand(value, 0);
  auto nan = [&](InstId x) { return compares(x, 0, 0, "NE"); };
  auto first_of_equals = [&](InstId x) {
    return either(
        x, Opcode::And, [&](InstId y) { return compares(y, 0, 2, "EQ"); },
        [&](InstId y) { return compares(y, 1, 3, "LT"); });
  };
  if (!either(
          m.operand(place, 0), Opcode::Or, [&](InstId x) { return x == better; }, first_of_equals))
    return {};
  auto replaces = [&](const char* direction) {
    return either(
        better, Opcode::Or, [&](InstId x) { return compares(x, 0, 2, direction); }, nan);
  };
  if (replaces("GT")) return Opcode::Maximum;
  if (replaces("LT")) return Opcode::Minimum;
  return {};
}

}  // namespace

std::span<const AlgebraicRule> reduction_rules() { return kReductionRules; }

bool AlgebraicSimplifier::reduce_of_nothing(InstId i) {
  const size_t n = m_.operand_count(i) / 2;
  const bool variadic = m_.shape(i).is_tuple();
  const Shape& out = variadic ? u_[m_.shape(i).elements[0]] : m_.shape(i);
  if (m_.shape(operand(i, 0)).elements_count() != 0 && out.elements_count() != 0) return false;
  if (!spend(i)) return true;
  std::vector<InstId> parts;
  for (size_t k = 0; k < n; ++k)
    parts.push_back(
        make_broadcast(m_, m_.parent(i), operand(i, n + k), {}, variadic ? m_.shape(i).elements[k] : m_.shape_id(i)));
  if (variadic)
    rewrite(i, Opcode::Tuple, parts);
  else
    rewrite_to(i, parts[0]);
  return true;
}

bool AlgebraicSimplifier::tuple_of_one_reduction(InstId i) {
  if (!m_.shape(i).is_tuple() || m_.operand_count(i) != 2) return false;
  CompId f = m_.called(i)[0];
  if (m_.op(m_.comp(f).root) != Opcode::Tuple || m_.operand_count(m_.comp(f).root) != 1) return false;
  if (!spend(i)) return true;
  CompId copy = m_.clone_computation(f, "clone");
  m_.set_root(copy, m_.operand(m_.comp(copy).root, 0));
  AttrSet set = m_.attrs(i);
  set.set(Attr::to_apply, copy);
  set.erase(Attr::sharding);
  InstId r = make_op(i, op(i), {operand(i, 0), operand(i, 1)}, u_.attrs(std::move(set)), m_.shape(i).elements[0]);
  rewrite(i, Opcode::Tuple, {r});
  return true;
}

bool AlgebraicSimplifier::reduce_several_of_single_elements(InstId i) {
  if (!m_.shape(i).is_tuple()) return false;
  const std::vector<ShapeId> out = m_.shape(i).elements;
  for (size_t k = 0; k < out.size(); ++k) {
    const Shape &from = m_.shape(operand(i, k)), &to = u_[out[k]];
    if (from.elements_count() != to.elements_count() || from.type != to.type ||
        (layout_sensitive_ && !reshape_is_bitcast(u_, m_.shape_id(operand(i, k)), out[k])))
      return false;
  }
  if (!spend(i)) return true;
  std::vector<InstId> parts;
  for (size_t k = 0; k < out.size(); ++k) parts.push_back(make_op(i, Opcode::Reshape, {operand(i, k)}, {}, out[k]));
  rewrite(i, Opcode::Tuple, parts);
  return true;
}

bool AlgebraicSimplifier::place_in_constant(InstId i) {
  if (!m_.shape(i).is_tuple()) return false;
  // Nothing else is known of reductions of several arrays.
  if (layout_sensitive_ || !value_and_place(m_, i) || !is_broadcast_of_scalar_constant(operand(i, 0))) return true;
  if (!spend(i)) return true;
  const std::vector<ShapeId> out = m_.shape(i).elements;
  CompId c = m_.parent(i);
  InstId value = make_broadcast(m_, c, operand(operand(i, 0), 0), {}, out[0]);
  InstId zero = make_scalar(m_, c, u_[out[1]].type, 0);
  rewrite(i, Opcode::Tuple, {value, make_broadcast(m_, c, zero, {}, out[1])});
  return true;
}

bool AlgebraicSimplifier::reduce_of_single_elements(InstId i) {
  InstId a = operand(i, 0);
  const Shape &in = m_.shape(a), &out = m_.shape(i);
  if (in.elements_count() != out.elements_count() || in.type != out.type ||
      (layout_sensitive_ && !reshape_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i))))
    return false;
  if (spend(i)) rewrite(i, Opcode::Reshape, {a});
  return true;
}

AttrsId AlgebraicSimplifier::reduce_attrs(InstId i, Dims dims) {
  return attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, std::move(dims)}, {Attr::to_apply, m_.called(i)[0]}});
}

bool AlgebraicSimplifier::reduce_of_negation(InstId i) {
  if (layout_sensitive_) return true;  // with layouts the others stay
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Negate || !is_float(type(i)) || !is_all(m_, operand(i, 1), 0) ||
      reducer_operation(m_, m_.called(i)[0]) != Opcode::Add)
    return false;
  if (!spend(i)) return true;
  // The reduction stays, and takes what was negated; the negation is left, dead.
  InstId outer = make_op(i, Opcode::Negate, {i}, {}, m_.shape_id(i));
  m_.replace_all_uses(i, outer);
  m_.set_operand(outer, 0, i);
  m_.set_operand(i, 0, operand(a, 0));
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::reduce_of_transpose(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Transpose || (!reduce_of_transpose_ && !one_user(a))) return false;
  if (!spend(i)) return true;
  const Dims p = m_.attrs(a).ints(Attr::dimensions), dims = m_.attrs(i).ints(Attr::dimensions);
  Dims mapped, kept;
  for (int64_t d : dims) mapped.push_back(p[static_cast<size_t>(d)]);
  for (int64_t d = 0; d < m_.shape(a).rank(); ++d)
    if (!contains(dims, d)) kept.push_back(p[static_cast<size_t>(d)]);
  // Where the kept dimensions land after the reduction of the operand.
  Dims order;
  for (int64_t d : kept) order.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t e) { return e < d; }));
  InstId r = make_op(i, Opcode::Reduce, {operand(a, 0), operand(i, 1)}, reduce_attrs(i, mapped));
  rewrite_to(i, is_identity(order) ? r : make_op(i, Opcode::Transpose, {r}, dims_attr(u_, Opcode::Transpose, order)));
  return true;
}

bool AlgebraicSimplifier::reduce_of_reduce(InstId i) {
  InstId a = operand(i, 0), init = operand(i, 1);
  if (op(a) != Opcode::Reduce || m_.shape(a).is_tuple() || m_.operand_count(a) != 2) return false;
  InstId inner_init = operand(a, 1);
  if (inner_init != init &&
      (!is_constant(inner_init) || !is_constant(init) || m_.literal_id(inner_init) != m_.literal_id(init)))
    return false;
  const std::optional<Opcode> kind = reducer_operation(m_, m_.called(i)[0]);
  if (!kind || reducer_operation(m_, m_.called(a)[0]) != kind) return false;
  if (!spend(i)) return true;
  const Dims inner = m_.attrs(a).ints(Attr::dimensions);
  Dims all = inner, left;
  for (int64_t d = 0; d < m_.shape(operand(a, 0)).rank(); ++d)
    if (!contains(inner, d)) left.push_back(d);
  for (int64_t d : m_.attrs(i).ints(Attr::dimensions)) all.push_back(left[static_cast<size_t>(d)]);
  std::sort(all.begin(), all.end());
  rewrite(i, Opcode::Reduce, {operand(a, 0), init}, reduce_attrs(i, all));
  return true;
}

bool AlgebraicSimplifier::reduce_of_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Reshape) return false;
  const Dims& dims = m_.attrs(i).ints(Attr::dimensions);
  auto pairs = unmodified_dims(m_.shape(operand(a, 0)).dims, m_.shape(a).dims);
  Dims kept, mapped;
  for (int64_t d = 0; d < m_.shape(a).rank(); ++d) {
    if (contains(dims, d)) continue;
    auto at = std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == d; });
    if (at == pairs.end()) return false;
    kept.push_back(at->first);
  }
  for (int64_t d = 0; d < m_.shape(operand(a, 0)).rank(); ++d)
    if (!contains(kept, d)) mapped.push_back(d);
  if (spend(i)) rewrite(i, Opcode::Reduce, {operand(a, 0), operand(i, 1)}, reduce_attrs(i, mapped));
  return true;
}

bool AlgebraicSimplifier::reduce_before_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Reshape || (!one_user(a) && !reduce_of_transpose_)) return false;
  auto pairs = unmodified_dims(m_.shape(operand(a, 0)).dims, m_.shape(a).dims);
  Dims mapped;
  for (int64_t d : m_.attrs(i).ints(Attr::dimensions)) {
    auto at = std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == d; });
    if (at == pairs.end()) return false;
    mapped.push_back(at->first);
  }
  if (!spend(i)) return true;
  InstId r = make_op(i, Opcode::Reduce, {operand(a, 0), operand(i, 1)}, reduce_attrs(i, mapped));
  rewrite(i, Opcode::Reshape, {r});
  return true;
}

bool AlgebraicSimplifier::reduce_of_concatenate(InstId i) {
  InstId a = operand(i, 0), init = operand(i, 1);
  const Dims dims = m_.attrs(i).ints(Attr::dimensions);
  if (op(a) != Opcode::Concatenate || !contains(dims, m_.attrs(a).ints(Attr::dimensions)[0])) return false;
  std::vector<InstId> pieces(m_.operands(a).begin(), m_.operands(a).end());
  bool alike =
      std::all_of(pieces.begin(), pieces.end(), [&](InstId p) { return m_.shape(p).dims == m_.shape(pieces[0]).dims; });
  if (!alike && m_.shape(i).rank() != 0) return false;
  if (!spend(i)) return true;
  InstId joined;
  Dims every;
  for (int64_t d = 0; d < m_.shape(i).rank(); ++d) every.push_back(d);
  for (InstId p : pieces) {
    InstId r = make_op(i, Opcode::Reduce, {p, init}, reduce_attrs(i, dims), m_.shape_id(i));
    joined = joined.valid()
                 ? make_op(i, Opcode::Map, {joined, r},
                           attrs_of(u_, Opcode::Map, {{Attr::dimensions, every}, {Attr::to_apply, m_.called(i)[0]}}),
                           m_.shape_id(i))
                 : r;
  }
  rewrite_to(i, joined);
  return true;
}

bool AlgebraicSimplifier::value_next_to_place(InstId i) {
  InstId a = operand(i, 0);
  const std::optional<Opcode> kind = reducer_operation(m_, m_.called(i)[0]);
  if (kind != Opcode::Maximum && kind != Opcode::Minimum) return false;
  for (InstId other : m_.users(a)) {
    if (value_and_place(m_, other) != kind || operand(other, 0) != a || operand(other, 2) != operand(i, 1) ||
        m_.attrs(other).ints(Attr::dimensions) != m_.attrs(i).ints(Attr::dimensions) ||
        m_.shape(other).elements[0] != m_.shape_id(i))
      continue;
    const double worst = kind == Opcode::Maximum ? -HUGE_VAL : HUGE_VAL;
    if (!is_all(m_, operand(i, 1), worst)) return false;
    if (spend(i)) rewrite_to(i, make_element(m_, other, 0));
    return true;
  }
  return false;
}

bool AlgebraicSimplifier::reduce_of_spread_scalar(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(i).rank() != 0 || op(a) != Opcode::Broadcast || m_.shape(operand(a, 0)).rank() != 0) return false;
  const std::optional<Opcode> kind = reducer_operation(m_, m_.called(i)[0]);
  if (kind != Opcode::Maximum && kind != Opcode::Minimum && kind != Opcode::And && kind != Opcode::Or) return false;
  if (spend(i)) rewrite(i, *kind, {operand(a, 0), operand(i, 1)});
  return true;
}

bool AlgebraicSimplifier::reduce_of_broadcast(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast) return false;
  const Dims &map = m_.attrs(a).ints(Attr::dimensions), &dims = m_.attrs(i).ints(Attr::dimensions);
  if (dims.empty() || !ascending(map) || static_cast<int64_t>(map.size()) >= m_.shape(a).rank() ||
      !std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return contains(map, d); }))
    return false;
  if (!spend(i)) return true;
  Dims inner, kept;
  for (size_t d = 0; d < map.size(); ++d) {
    if (contains(dims, map[d]))
      inner.push_back(static_cast<int64_t>(d));
    else
      kept.push_back(map[d] - std::count_if(dims.begin(), dims.end(), [&](int64_t e) { return e < map[d]; }));
  }
  InstId r = make_op(i, Opcode::Reduce, {operand(a, 0), operand(i, 1)}, reduce_attrs(i, inner));
  rewrite(i, Opcode::Broadcast, {r}, dims_attr(u_, Opcode::Broadcast, kept));
  return true;
}

bool AlgebraicSimplifier::sum_of_broadcast(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast || type(i) == ElementType::Pred) return false;
  const Dims map = m_.attrs(a).ints(Attr::dimensions), dims = m_.attrs(i).ints(Attr::dimensions);
  if (!ascending(map) || std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return contains(map, d); }) ||
      reducer_operation(m_, m_.called(i)[0]) != Opcode::Add)
    return false;
  if (!spend(i)) return true;
  int64_t count = 1;
  for (int64_t d : dims) count *= m_.shape(a).dims[static_cast<size_t>(d)];
  InstId source = operand(a, 0);
  Dims kept;
  for (int64_t d : map) kept.push_back(d - std::count_if(dims.begin(), dims.end(), [&](int64_t e) { return e < d; }));
  InstId product = make_op(i, Opcode::Multiply, {source, make_scalar_like(m_, source, count)});
  InstId start = make_broadcast(m_, m_.parent(i), operand(i, 1), {}, m_.shape_id(source));
  InstId sum = make_op(i, Opcode::Add, {start, product});
  rewrite(i, Opcode::Broadcast, {sum}, dims_attr(u_, Opcode::Broadcast, kept));
  return true;
}

}  // namespace hlo
