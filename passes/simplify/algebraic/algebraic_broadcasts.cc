// algsimp on constants, iotas and broadcasts.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kBroadcastRules[] = {
    {"tuple constant", Opcode::Constant, "constant((a, b))", "tuple(constant(a), constant(b))",
     &AlgebraicSimplifier::tuple_constant},
    {"constant of one value", Opcode::Constant, "constant({v, v, v})", "broadcast(constant(v))",
     &AlgebraicSimplifier::constant_of_one_value},
    {"constant is an iota", Opcode::Constant, "constant({0, 1, 2})", "iota", &AlgebraicSimplifier::constant_is_iota},
    {"constant is an iota with a step", Opcode::Constant, "constant({0, k, 2k}) of integers",
     "multiply(iota, broadcast(k))", &AlgebraicSimplifier::constant_is_strided_iota},

    {"iota of one element", Opcode::Iota, "iota along a dimension of one", "0", &AlgebraicSimplifier::iota_of_one},

    {"broadcast is a reshape", Opcode::Broadcast, "broadcast(A) of as many elements, in order", "reshape(A)",
     &AlgebraicSimplifier::broadcast_is_reshape},
    {"broadcast is a transpose", Opcode::Broadcast, "broadcast(A) of as many elements and dimensions", "transpose(A)",
     &AlgebraicSimplifier::broadcast_is_transpose},
    {"broadcast of inserted ones", Opcode::Broadcast, "broadcast(reshape(A)) that inserts ones", "broadcast(A)",
     &AlgebraicSimplifier::broadcast_of_inserted_ones},
    {"broadcast sunk below its user", Opcode::Broadcast, "f(broadcast(A), broadcast(B)) for elementwise f",
     "broadcast(f(A, B))", &AlgebraicSimplifier::sink_broadcast},
    {"movement of a spread scalar", Opcode::Broadcast,
     "reshape, reverse, transpose, sort, slice or dynamic-slice of broadcast(scalar A)", "broadcast(A)",
     &AlgebraicSimplifier::movement_of_spread_scalar},
    {"broadcast of an iota", Opcode::Broadcast, "broadcast(iota)", "iota", &AlgebraicSimplifier::broadcast_of_iota},
    {"broadcast twice", Opcode::Broadcast, "broadcast(broadcast(A))", "broadcast(A)",
     &AlgebraicSimplifier::broadcast_twice},
    {"broadcast drops ones", Opcode::Broadcast, "broadcast(A) where A has dimensions of one", "broadcast(reshape(A))",
     &AlgebraicSimplifier::broadcast_drops_ones},
};

}  // namespace

std::span<const AlgebraicRule> broadcast_rules() { return kBroadcastRules; }

bool AlgebraicSimplifier::tuple_constant(InstId i) {
  if (!m_.shape(i).is_tuple() || m_.literal(i).elided) return false;
  if (!spend(i)) return true;
  std::vector<LitId> parts = m_.literal(i).elements;
  std::vector<InstId> ops;
  for (LitId e : parts)
    ops.push_back(m_.add(m_.parent(i), {.op = Opcode::Constant, .shape = u_[e].shape, .payload = e.value}));
  rewrite(i, Opcode::Tuple, ops);
  return true;
}

bool AlgebraicSimplifier::constant_of_one_value(InstId i) {
  const Literal& lit = m_.literal(i);
  const Shape& s = m_.shape(i);
  if (lit.elided || !s.is_array() || s.elements_count() < 2) return false;
  const ElementType t = s.type;
  const auto width = static_cast<size_t>(storage_bytes(t));
  for (size_t at = width; at < lit.bytes.size(); at += width)
    if (std::memcmp(lit.bytes.data(), lit.bytes.data() + at, width) != 0) return false;
  if (!spend(i)) return true;
  Literal one;
  one.shape = u_.scalar(t);
  one.bytes = m_.literal(i).bytes.substr(0, width);
  LitId id = u_.literal(std::move(one));
  InstId scalar = m_.add_derived(i, {.op = Opcode::Constant, .shape = u_.scalar(t), .payload = id.value});
  rewrite_to(i, m_.add_derived(i, {.op = Opcode::Broadcast,
                                   .shape = m_.shape_id(i),
                                   .operands = {scalar},
                                   .attrs = dims_attr(u_, Opcode::Broadcast, {})}));
  return true;
}

// Is it a list of two or more numbers that are all known?
bool AlgebraicSimplifier::known_list(InstId i) const {
  const Shape& s = m_.shape(i);
  return s.is_array() && s.rank() == 1 && s.dims[0] >= 2 && s.type != ElementType::Pred && !m_.literal(i).elided;
}

bool AlgebraicSimplifier::constant_is_iota(InstId i) {
  if (!known_list(i)) return false;
  const Shape& s = m_.shape(i);
  const auto width = static_cast<size_t>(storage_bytes(s.type));
  for (int64_t n = 0; n < s.dims[0]; ++n) {
    const char* at = m_.literal(i).bytes.data() + static_cast<size_t>(n) * width;
    const bool counts = is_integral(s.type)  ? load_int(s.type, at) == n
                        : is_complex(s.type) ? load_complex(s.type, at) == static_cast<double>(n)
                                             : is_float(s.type) && load_double(s.type, at) == static_cast<double>(n);
    if (!counts) return false;
  }
  if (spend(i)) rewrite(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}));
  return true;
}

bool AlgebraicSimplifier::constant_is_strided_iota(InstId i) {
  if (!known_list(i)) return false;
  const Shape& s = m_.shape(i);
  if (!is_integral(s.type)) return false;
  const ElementType t = s.type;
  const std::string& bytes = m_.literal(i).bytes;
  const auto width = static_cast<size_t>(storage_bytes(t));
  const int64_t step = load_int(t, bytes.data() + width);
  if (load_int(t, bytes.data()) != 0 || step == 0) return false;
  for (int64_t n = 0; n < s.dims[0]; ++n)
    if (load_int(t, bytes.data() + static_cast<size_t>(n) * width) != n * step) return false;
  if (!spend(i)) return true;
  InstId scale = m_.add(m_.parent(i), {.op = Opcode::Constant,
                                       .shape = u_.scalar(t),
                                       .payload = m_.scalar_literal(t, static_cast<double>(step)).value});
  InstId spread = make_broadcast(m_, m_.parent(i), scale, {}, m_.shape_id(i));
  InstId count =
      make_op(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}), m_.shape_id(i));
  rewrite(i, Opcode::Multiply, {count, spread});
  return true;
}

bool AlgebraicSimplifier::iota_of_one(InstId i) {
  if (m_.shape(i).dims[static_cast<size_t>(m_.attrs(i).integer(Attr::iota_dimension))] > 1) return false;
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, 0));
  return true;
}

bool AlgebraicSimplifier::broadcast_is_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(i).elements_count() != m_.shape(a).elements_count() || !ascending(m_.attrs(i).ints(Attr::dimensions)))
    return false;
  if (spend(i)) rewrite(i, Opcode::Reshape, {a});
  return true;
}

bool AlgebraicSimplifier::broadcast_is_transpose(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(i).rank() != m_.shape(a).rank() || m_.shape(i).elements_count() != m_.shape(a).elements_count())
    return false;
  if (spend(i))
    rewrite(i, Opcode::Transpose, {a},
            dims_attr(u_, Opcode::Transpose, inverse_permutation(m_.attrs(i).ints(Attr::dimensions))));
  return true;
}

bool AlgebraicSimplifier::broadcast_of_inserted_ones(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Reshape) return false;
  const Dims &from = m_.shape(operand(a, 0)).dims, &to = m_.shape(a).dims, &dims = m_.attrs(i).ints(Attr::dimensions);
  Dims kept;
  size_t f = 0;
  for (size_t t = 0; t < to.size(); ++t) {
    if (f < from.size() && from[f] == to[t])
      ++f, kept.push_back(dims[t]);
    else if (to[t] != 1)
      return false;
  }
  if (f != from.size()) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, kept));
  return true;
}

// Is every operand of it broadcast as `like`, or a scalar?
bool AlgebraicSimplifier::broadcasts_alike(InstId user, InstId like) const {
  const Dims& dims = m_.attrs(like).ints(Attr::dimensions);
  for (InstId o : m_.operands(user)) {
    if (op(o) != Opcode::Broadcast) return false;
    bool scalar = m_.shape(operand(o, 0)).rank() == 0;
    bool alike = m_.attrs(o).ints(Attr::dimensions) == dims && same_shape(operand(o, 0), operand(like, 0));
    if (!scalar && !alike) return false;
  }
  return true;
}

void AlgebraicSimplifier::sink_broadcast_below(InstId i, InstId user) {
  CompId c = m_.parent(user);
  const ShapeId shape = m_.shape_id(operand(i, 0));
  const std::vector<InstId> old(m_.operands(user).begin(), m_.operands(user).end());  // new instructions move lists
  std::vector<InstId> ops;
  for (InstId o : old) {
    InstId source = operand(o, 0);
    if (m_.shape(source).rank() == 0)
      ops.push_back(make_broadcast(m_, c, source, {}, u_.with_type(shape, type(source))));
    else
      ops.push_back(source);
  }
  InstId small = m_.clone_inst(user, c, ops, u_.with_type(shape, type(user)));
  if (op(user) == Opcode::Map) {
    Dims every(static_cast<size_t>(m_.shape(small).rank()));
    std::iota(every.begin(), every.end(), int64_t{0});
    m_.set_attr(small, Attr::dimensions, every);
  }
  InstId wide = m_.add(c, {.op = Opcode::Broadcast,
                           .shape = m_.shape_id(user),
                           .operands = {small},
                           .attrs = dims_attr(u_, Opcode::Broadcast, m_.attrs(i).ints(Attr::dimensions)),
                           .meta = m_[i].meta});
  m_.replace_all_uses(user, wide);
}

bool AlgebraicSimplifier::sink_broadcast(InstId i) {
  if (m_.shape(i).rank() == 0) return false;
  bool any = false;
  for (InstId user : m_.users_copy(i)) {
    if (!m_.alive(user) || (m_.users(user).empty() && !m_.is_root(user))) continue;
    if ((!op_info(op(user)).elementwise && op(user) != Opcode::Map) || op(user) == Opcode::Copy ||
        op(user) == Opcode::Fusion || !broadcasts_alike(user, i) || m_.has_control(user))
      continue;
    if (!spend(user)) return any;
    sink_broadcast_below(i, user);
    any = changed_ = true;
  }
  return any;
}

bool AlgebraicSimplifier::movement_of_spread_scalar(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(a).rank() != 0 || !m_.shape(a).is_array()) return false;
  for (InstId user : m_.users_copy(i)) {
    if ((m_.users(user).empty() && !m_.is_root(user)) || m_.has_control(user)) continue;
    Opcode o = op(user);
    bool moves = o == Opcode::Reshape || o == Opcode::Reverse || o == Opcode::Transpose ||
                 (o == Opcode::Sort && m_.operand_count(user) == 1) || o == Opcode::Slice ||
                 (o == Opcode::DynamicSlice && operand(user, 0) == i);
    if (!moves) continue;
    if (!spend(user)) return true;
    // The user keeps standing without users until its own visit, as in XLA.
    InstId b = m_.add(m_.parent(user), {.op = Opcode::Broadcast,
                                        .shape = m_.shape_id(user),
                                        .operands = {a},
                                        .attrs = dims_attr(u_, Opcode::Broadcast, {}),
                                        .meta = m_[i].meta});
    m_.replace_all_uses(user, b);
    changed_ = true;
    break;
  }
  return true;
}

bool AlgebraicSimplifier::broadcast_of_iota(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Iota) return false;
  const int64_t counted =
      m_.attrs(i).ints(Attr::dimensions)[static_cast<size_t>(m_.attrs(a).integer(Attr::iota_dimension))];
  if (spend(i)) rewrite(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, counted}}));
  return true;
}

bool AlgebraicSimplifier::broadcast_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast) return false;
  if (!spend(i)) return true;
  const Dims& dims = m_.attrs(i).ints(Attr::dimensions);
  Dims composed;
  for (int64_t d : m_.attrs(a).ints(Attr::dimensions)) composed.push_back(dims[static_cast<size_t>(d)]);
  rewrite(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, composed));
  return true;
}

bool AlgebraicSimplifier::broadcast_drops_ones(InstId i) {
  InstId a = operand(i, 0);
  const Shape in = m_.shape(a);
  if (layout_sensitive_ || std::find(in.dims.begin(), in.dims.end(), 1) == in.dims.end()) return false;
  if (!spend(i)) return true;
  const Dims dims = m_.attrs(i).ints(Attr::dimensions);
  Dims kept, small, place(in.dims.size(), -1);
  for (size_t d = 0; d < dims.size(); ++d)
    if (in.dims[d] != 1) {
      place[d] = static_cast<int64_t>(small.size());
      kept.push_back(dims[d]), small.push_back(in.dims[d]);
    }
  // In the order in which they lay.
  Dims order;
  for (int64_t d : in.layout.minor_to_major)
    if (place[static_cast<size_t>(d)] >= 0) order.push_back(place[static_cast<size_t>(d)]);
  InstId r = make_reshape(m_, a, small);
  m_.set_shape(r, u_.with_layout(m_.shape_id(r), order));
  rewrite(i, Opcode::Broadcast, {r}, dims_attr(u_, Opcode::Broadcast, kept));
  return true;
}

}  // namespace hlo
