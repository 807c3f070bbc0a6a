// algsimp on dots.
#include <algorithm>
#include <numeric>
#include <optional>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kProductRules[] = {
    {"dot of nothing", Opcode::Dot, "dot(A, B) where A, B or the result has no elements", "broadcast(0)",
     &AlgebraicSimplifier::dot_of_nothing},
    {"dot without contraction", Opcode::Dot, "dot(A, B) without contracting dimensions",
     "multiply(broadcast(A), broadcast(B))", &AlgebraicSimplifier::dot_without_contraction},
    {"order of what is contracted", Opcode::Dot, "dot(reshape(transpose(A)), K)",
     "dot(reshape(A), reshape(transpose(reshape(K))))", &AlgebraicSimplifier::order_of_contracted},
    {"dot of a concatenate", Opcode::Dot, "dot(concatenate(A, B), K)", "add(dot(A, slice(K)), dot(B, slice(K)))",
     &AlgebraicSimplifier::dot_of_concatenate},
    {"dot of a row", Opcode::Dot, "dot(dynamic-slice(K1, i), K2) of one row", "dynamic-slice(dot(K1, K2), i)",
     &AlgebraicSimplifier::dot_of_row},
    {"dot drops dimensions of one", Opcode::Dot, "dot(A, B) where A or B has dimensions of one",
     "reshape(dot(reshape(A), reshape(B)))", &AlgebraicSimplifier::dot_drops_ones},
    {"dot of transposes", Opcode::Dot, "dot(transpose(A), transpose(B)) by one permutation",
     "transpose(dot(A, B)), or of dot(B, A) where it swaps the last two dimensions",
     &AlgebraicSimplifier::dot_of_transposes},
};

}  // namespace

std::span<const AlgebraicRule> product_rules() { return kProductRules; }

bool AlgebraicSimplifier::dot_of_nothing(InstId i) {
  if (layout_sensitive_) return true;  // with layouts dots stay
  if (m_.shape(operand(i, 0)).elements_count() != 0 && m_.shape(operand(i, 1)).elements_count() != 0 &&
      m_.shape(i).elements_count() != 0)
    return false;
  if (spend(i))
    rewrite(i, Opcode::Broadcast, {make_scalar(m_, m_.parent(i), type(i), 0)}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::dot_without_contraction(InstId i) {
  const AttrSet& d = m_.attrs(i);
  std::string_view algorithm = u_.text(d.text(Attr::algorithm));
  if (!d.ints(Attr::lhs_contracting_dims).empty() || (!algorithm.empty() && algorithm != "dot_f32_f32_f32"))
    return false;
  if (!spend(i)) return true;
  const Dims lhs_batch = d.ints(Attr::lhs_batch_dims), rhs_batch = d.ints(Attr::rhs_batch_dims);
  auto side = [&](InstId x, const Dims& batch, int64_t first_free) {
    // Batch dimensions first, in the dot's order.
    Dims perm = batch;
    for (int64_t k = 0; k < m_.shape(x).rank(); ++k)
      if (!contains(batch, k)) perm.push_back(k);
    InstId t = is_identity(perm) ? x : make_transpose(m_, x, perm);
    t = make_convert(m_, t, type(i));
    Dims map;
    for (size_t k = 0; k < perm.size(); ++k)
      map.push_back(k < batch.size() ? static_cast<int64_t>(k) : first_free + static_cast<int64_t>(k - batch.size()));
    if (static_cast<int>(map.size()) == m_.shape(i).rank()) return t;
    return make_broadcast(m_, m_.parent(i), t, map, u_.with_default_layout(m_.shape_id(i)));
  };
  const int64_t lhs_rank = m_.shape(operand(i, 0)).rank();
  InstId x = side(operand(i, 0), lhs_batch, static_cast<int64_t>(lhs_batch.size()));
  InstId y = side(operand(i, 1), rhs_batch, lhs_rank);
  rewrite(i, Opcode::Multiply, {x, y});
  return true;
}

std::optional<AlgebraicSimplifier::DotByConstant> AlgebraicSimplifier::dot_by_constant(InstId i) const {
  const AttrSet& d = m_.attrs(i);
  const Dims &lhs = d.ints(Attr::lhs_contracting_dims), &rhs = d.ints(Attr::rhs_contracting_dims);
  if (!d.ints(Attr::lhs_batch_dims).empty() || lhs.size() != 1) return {};
  const size_t side = is_constant(operand(i, 1)) ? 0 : 1;
  InstId x = operand(i, side), y = operand(i, 1 - side);
  if (!is_constant(y)) return {};
  return DotByConstant{side, x, y, static_cast<size_t>((side ? rhs : lhs)[0]),
                       static_cast<size_t>((side ? lhs : rhs)[0])};
}

InstId AlgebraicSimplifier::make_dot(InstId i, size_t side, InstId x, InstId y, ShapeId shape) {
  AttrSet bare = m_.attrs(i);
  for (Attr key : {Attr::sharding, Attr::origin}) bare.erase(key);
  std::vector<InstId> ops = side ? std::vector<InstId>{y, x} : std::vector<InstId>{x, y};
  return make_op(i, Opcode::Dot, ops, u_.attrs(std::move(bare)), shape);
}

bool AlgebraicSimplifier::order_of_contracted(InstId i) {
  const auto dot = dot_by_constant(i);
  if (!dot || op(dot->x) != Opcode::Reshape || op(operand(dot->x, 0)) != Opcode::Transpose) return false;
  const auto [side, x, y, cx, cy] = *dot;
  InstId t = operand(x, 0);
  const Dims p = m_.attrs(t).ints(Attr::dimensions), middle = m_.shape(t).dims;
  auto bounds = common_factors(middle, m_.shape(x).dims);
  size_t from = 0, to = 0;
  for (size_t n = 0; n + 1 < bounds.size(); ++n)
    if (bounds[n].second == cx && bounds[n + 1].second == cx + 1) from = bounds[n].first, to = bounds[n + 1].first;
  bool moved = false;
  if (to <= from + 1) return false;
  for (size_t k = 0; k < p.size(); ++k) {
    if (k < from || k >= to) {
      if (p[k] != static_cast<int64_t>(k)) return false;
      continue;
    }
    if (p[k] < static_cast<int64_t>(from) || p[k] >= static_cast<int64_t>(to)) return false;
    moved |= p[k] != static_cast<int64_t>(k);
  }
  if (!moved) return false;
  if (!spend(i)) return true;
  InstId flat = make_reshape(m_, operand(t, 0), m_.shape(x).dims);
  // The constant's rows in the order that A had.
  Dims split = m_.shape(y).dims, order;
  split.erase(split.begin() + static_cast<ptrdiff_t>(cy));
  split.insert(split.begin() + static_cast<ptrdiff_t>(cy), middle.begin() + static_cast<ptrdiff_t>(from),
               middle.begin() + static_cast<ptrdiff_t>(to));
  for (size_t k = 0; k < split.size(); ++k) order.push_back(static_cast<int64_t>(k));
  for (size_t k = from; k < to; ++k)
    order[cy + static_cast<size_t>(p[k]) - from] = static_cast<int64_t>(cy + (k - from));
  Dims turned;
  for (int64_t d : order) turned.push_back(split[static_cast<size_t>(d)]);
  InstId rows = make_reshape(m_, y, split);
  rows = make_derived(m_, rows, Opcode::Transpose, {rows}, dims_attr(u_, Opcode::Transpose, order),
                      u_.array(type(y), turned));
  rows = make_reshape(m_, rows, m_.shape(y).dims);
  rewrite_to(i, make_dot(i, side, flat, rows, m_.shape_id(i)));
  return true;
}

bool AlgebraicSimplifier::dot_of_concatenate(InstId i) {
  const auto dot = dot_by_constant(i);
  if (!dot || op(dot->x) != Opcode::Concatenate) return false;
  const auto [side, x, y, cx, cy] = *dot;
  if (m_.shape(x).rank() != 2 || m_.shape(y).rank() != 2 ||
      m_.attrs(x).ints(Attr::dimensions)[0] != static_cast<int64_t>(cx))
    return false;
  if (!spend(i)) return true;
  int64_t at = 0;
  InstId sum;
  for (InstId piece : std::vector<InstId>(m_.operands(x).begin(), m_.operands(x).end())) {
    int64_t n = m_.shape(piece).dims[cx];
    std::vector<SliceDim> s;
    for (int64_t size : m_.shape(y).dims) s.push_back({0, size, 1});
    s[cy] = {at, at + n, 1};
    at += n;
    InstId part = make_op(i, Opcode::Slice, {y}, attrs_of(u_, Opcode::Slice, {{Attr::slice, s}}));
    InstId one = make_dot(i, side, piece, part, m_.shape_id(i));
    sum = sum.valid() ? make_op(i, Opcode::Add, {sum, one}, {}, m_.shape_id(i)) : one;
  }
  rewrite_to(i, sum);
  return true;
}

bool AlgebraicSimplifier::dot_of_row(InstId i) {
  const auto dot = dot_by_constant(i);
  if (!dot || op(dot->x) != Opcode::DynamicSlice) return false;
  const auto [side, x, y, cx, cy] = *dot;
  if (!is_constant(operand(x, 0)) || m_.operand_count(x) != 3 || m_.shape(x).rank() != 2 || m_.shape(y).rank() != 2)
    return false;
  const size_t row = 1 - cx;
  InstId table = operand(x, 0);
  if (m_.shape(x).dims[row] != 1 || m_.shape(x).dims[cx] != m_.shape(table).dims[cx]) return false;
  if (!spend(i)) return true;
  const size_t row_out = side, column_out = 1 - side;
  Dims out(2);
  out[row_out] = m_.shape(table).dims[row], out[column_out] = m_.shape(i).dims[column_out];
  InstId all = make_dot(i, side, table, y, u_.array(type(i), out));
  InstId zero = make_scalar(m_, m_.parent(i), type(operand(x, row + 1)), 0);
  std::vector<InstId> ops{all, zero, zero};
  ops[row_out + 1] = operand(x, row + 1);
  rewrite(i, Opcode::DynamicSlice, ops,
          attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, m_.shape(i).dims}}));
  return true;
}

bool AlgebraicSimplifier::dot_drops_ones(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  auto has_ones = [&](InstId x) { return contains(m_.shape(x).dims, 1); };
  if (!has_ones(l) && !has_ones(r)) return false;
  if (!spend(i)) return true;
  const AttrSet d = m_.attrs(i);
  auto strip = [&](InstId x, const Dims& batch, const Dims& contract, Dims* new_batch, Dims* new_contract) {
    const Dims dims = m_.shape(x).dims;
    Dims kept;
    std::vector<int64_t> to(dims.size(), -1);
    for (size_t k = 0; k < dims.size(); ++k)
      if (dims[k] != 1) to[k] = static_cast<int64_t>(kept.size()), kept.push_back(dims[k]);
    for (int64_t b : batch)
      if (to[static_cast<size_t>(b)] >= 0) new_batch->push_back(to[static_cast<size_t>(b)]);
    for (int64_t b : contract)
      if (to[static_cast<size_t>(b)] >= 0) new_contract->push_back(to[static_cast<size_t>(b)]);
    return kept.size() == dims.size() ? x : make_reshape(m_, x, kept);
  };
  Dims lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  InstId x = strip(l, d.ints(Attr::lhs_batch_dims), d.ints(Attr::lhs_contracting_dims), &lhs_batch, &lhs_contract);
  InstId y = strip(r, d.ints(Attr::rhs_batch_dims), d.ints(Attr::rhs_contracting_dims), &rhs_batch, &rhs_contract);
  AttrSet set = d;
  set.erase(Attr::lhs_batch_dims), set.erase(Attr::rhs_batch_dims);
  if (!lhs_batch.empty()) set.set(Attr::lhs_batch_dims, lhs_batch), set.set(Attr::rhs_batch_dims, rhs_batch);
  set.set(Attr::lhs_contracting_dims, lhs_contract), set.set(Attr::rhs_contracting_dims, rhs_contract);
  for (Attr key : {Attr::sharding, Attr::origin}) set.erase(key);
  AttrsId attrs = u_.attrs(std::move(set));
  Dims small_dims;
  for (int64_t v : m_.shape(i).dims)
    if (v != 1) small_dims.push_back(v);
  InstId small = m_.add_derived(
      i, {.op = Opcode::Dot, .shape = u_.array(type(i), small_dims), .operands = {x, y}, .attrs = attrs});
  if (m_.shape(small).dims == m_.shape(i).dims)
    rewrite_to(i, small);
  else
    rewrite(i, Opcode::Reshape, {small});
  return true;
}

bool AlgebraicSimplifier::dot_of_transposes(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (op(l) != Opcode::Transpose || op(r) != Opcode::Transpose) return false;
  const Dims p = m_.attrs(l).ints(Attr::dimensions);
  const AttrSet d = m_.attrs(i);
  const auto rank = static_cast<int64_t>(p.size());
  if (p != m_.attrs(r).ints(Attr::dimensions) || rank < 2 || m_.shape(i).rank() != rank) return false;
  Dims batch(static_cast<size_t>(rank) - 2);
  for (size_t k2 = 0; k2 < batch.size(); ++k2) batch[k2] = static_cast<int64_t>(k2);
  if (d.ints(Attr::lhs_batch_dims) != batch || d.ints(Attr::rhs_batch_dims) != batch ||
      d.ints(Attr::lhs_contracting_dims) != Dims{rank - 1} || d.ints(Attr::rhs_contracting_dims) != Dims{rank - 2})
    return false;
  const int64_t row = p[static_cast<size_t>(rank) - 2], column = p[static_cast<size_t>(rank) - 1];
  const bool swaps = row == rank - 1 && column == rank - 2;
  if (!swaps && (row != rank - 2 || column != rank - 1)) return false;
  if (!spend(i)) return true;
  AttrSet set = d;
  for (Attr key : {Attr::sharding, Attr::origin}) set.erase(key);
  if (swaps) swap_precisions(&set);
  // The product lies as the result does, so that the transposition moves nothing.
  Dims dims(p.size()), layout;
  for (size_t k2 = 0; k2 < p.size(); ++k2) dims[static_cast<size_t>(p[k2])] = m_.shape(i).dims[k2];
  for (int64_t m : m_.shape(i).layout.minor_to_major) layout.push_back(p[static_cast<size_t>(m)]);
  InstId x = operand(l, 0), y = operand(r, 0);
  InstId product = make_op(i, Opcode::Dot, swaps ? std::vector<InstId>{y, x} : std::vector<InstId>{x, y},
                           u_.attrs(std::move(set)), u_.with_layout(u_.array(type(i), dims), layout));
  rewrite(i, Opcode::Transpose, {product}, dims_attr(u_, Opcode::Transpose, p));
  return true;
}

}  // namespace hlo
