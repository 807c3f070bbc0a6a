// algsimp on reshapes and transposes.
#include <algorithm>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kMovementRules[] = {
    {"reshape without elements", Opcode::Reshape, "reshape(A) of no elements", "constant({})",
     &AlgebraicSimplifier::reshape_without_elements},
    {"reshape to the same shape", Opcode::Reshape, "reshape(A) to A's shape", "A",
     &AlgebraicSimplifier::reshape_to_same},
    {"reshape twice", Opcode::Reshape, "reshape(reshape(A))", "reshape(A)", &AlgebraicSimplifier::reshape_twice},
    {"reshape of rng", Opcode::Reshape, "reshape(rng)", "rng", &AlgebraicSimplifier::movement_of_rng},
    {"movements that cancel", Opcode::Reshape, "reshape(transpose(reshape(A))), a chain that moves nothing in the end",
     "A, or with layouts bitcast(A)", &AlgebraicSimplifier::remove_chain},
    {"reshape of a broadcast", Opcode::Reshape, "reshape(broadcast(A)) that leaves A's dimensions alone",
     "broadcast(A)", &AlgebraicSimplifier::reshape_of_broadcast},
    {"reshape of an iota", Opcode::Reshape, "reshape(iota) that leaves the counted dimension alone", "iota",
     &AlgebraicSimplifier::reshape_of_iota},
    {"reshape of an iota into digits", Opcode::Reshape, "s32[3,4] reshape(s32[12] iota)",
     "add(iota over 4, multiply(iota over 3, 4))", &AlgebraicSimplifier::split_iota},
    {"reshape of an update", Opcode::Reshape, "reshape(dynamic-update-slice(A, U, idx)) that adds or drops ones",
     "dynamic-update-slice(reshape(A), reshape(U), idx)", &AlgebraicSimplifier::reshape_of_update},
    {"transpose after the reshape", Opcode::Reshape, "reshape(transpose(reshape(A))) that joins neighbours of A",
     "transpose(reshape(A))", &AlgebraicSimplifier::transpose_of_reshape},
    {"reshape is a bitcast", Opcode::Reshape, "reshape(A) that moves nothing", "bitcast(A)",
     &AlgebraicSimplifier::reshape_as_bitcast},

    {"transpose into a scatter", Opcode::Transpose, "transpose(scatter(A, I, U)) of whole windows in A's order",
     "scatter(transpose(A), I, transpose(U))", &AlgebraicSimplifier::transpose_into_scatter},
    {"transpose that permutes nothing", Opcode::Transpose, "transpose(A) that permutes nothing", "A",
     &AlgebraicSimplifier::transpose_of_nothing},
    {"transpose twice", Opcode::Transpose, "transpose(transpose(A))", "transpose(A)",
     &AlgebraicSimplifier::transpose_twice},
    {"transposes that cancel", Opcode::Transpose,
     "transpose(reshape(transpose(A))), a chain that moves nothing in the end", "A, or with layouts bitcast(A)",
     &AlgebraicSimplifier::remove_chain},
    {"transpose of a dot", Opcode::Transpose, "transpose(dot(A, B)) that swaps rows and columns", "dot(B, A)",
     &AlgebraicSimplifier::transpose_of_dot},
    {"transpose of ones is a reshape", Opcode::Transpose, "transpose(A) that only moves ones", "reshape(A)",
     &AlgebraicSimplifier::transpose_of_ones},
    {"transpose of rng", Opcode::Transpose, "transpose(rng)", "rng", &AlgebraicSimplifier::movement_of_rng},
    {"transpose is a bitcast", Opcode::Transpose, "transpose(A) that moves nothing", "bitcast(A)",
     &AlgebraicSimplifier::transpose_as_bitcast},
    {"transpose of a broadcast", Opcode::Transpose, "transpose(broadcast(A)), A's dimensions in order", "broadcast(A)",
     &AlgebraicSimplifier::transpose_of_broadcast},
};

// A reshape that only adds or drops dimensions of size one.
bool only_ones(const Dims& a, const Dims& b) {
  Dims x, y;
  for (int64_t d : a)
    if (d != 1) x.push_back(d);
  for (int64_t d : b)
    if (d != 1) y.push_back(d);
  return x == y;
}

}  // namespace

std::span<const AlgebraicRule> movement_rules() { return kMovementRules; }

bool AlgebraicSimplifier::reshape_without_elements(InstId i) {
  if (m_.shape(i).elements_count() != 0) return false;
  if (!spend(i)) return true;
  Literal empty;
  empty.shape = m_.shape_id(i);
  replace(i, m_.constant(m_.parent(i), std::move(empty)));
  return true;
}

bool AlgebraicSimplifier::reshape_to_same(InstId i) {
  InstId a = operand(i, 0);
  if (!same_shape(i, a)) return false;
  if (spend(i)) replace(i, a);
  return true;
}

bool AlgebraicSimplifier::reshape_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Reshape) return false;
  if (spend(i))
    replace(i, m_.add(m_.parent(i), {.op = Opcode::Reshape, .shape = m_.shape_id(i), .operands = {operand(a, 0)}}));
  return true;
}

bool AlgebraicSimplifier::movement_of_rng(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Rng || !one_user(a)) return false;
  if (!spend(i)) return true;
  m_.set_shape(a, m_.shape_id(i));
  replace(i, a);
  return true;
}

bool AlgebraicSimplifier::remove_chain(InstId i) {
  // Follows where each dimension that is not one goes; drops the chain when nothing has moved in the end.
  // Behind layout assignment only arrays in row-major order count, whose bitcasts are reshapes.
  auto plain = [&](InstId x) { return !layout_sensitive_ || u_.with_default_layout(m_.shape_id(x)) == m_.shape_id(x); };
  if (!plain(i)) return false;
  InstId at = i;
  size_t steps = 0;
  bool permuted = false;
  // labels[d]: dimension of `i` that dimension d of `at` is, -1 for ones.
  std::vector<int64_t> labels;
  const Dims& end = m_.shape(i).dims;
  for (size_t d = 0; d < end.size(); ++d) labels.push_back(end[d] == 1 ? -1 : static_cast<int64_t>(d));
  size_t ones_moved = 0;
  for (;;) {
    Opcode o = op(at);
    if (o == Opcode::Transpose) {
      const Dims& p = m_.attrs(at).ints(Attr::dimensions);
      std::vector<int64_t> before(labels.size());
      for (size_t d = 0; d < p.size(); ++d) before[static_cast<size_t>(p[d])] = labels[d];
      labels = before;
      permuted = true;
    } else if (o == Opcode::Reshape ||
               (layout_sensitive_ && o == Opcode::Bitcast && type(at) == type(operand(at, 0)))) {
      const Dims &from = m_.shape(operand(at, 0)).dims, &to = m_.shape(at).dims;
      auto ones = [](const Dims& d) { return std::count(d.begin(), d.end(), 1); };
      if (!only_ones(from, to) || ones(from) > 1 || ones(to) > 1) break;
      std::vector<int64_t> before, live;
      for (int64_t l : labels)
        if (l >= 0) live.push_back(l);
      size_t n = 0;
      for (int64_t d : from) before.push_back(d == 1 ? -1 : live[n++]);
      labels = before;
      ++ones_moved;
    } else {
      break;
    }
    at = operand(at, 0);
    if (!plain(at)) return false;
    ++steps;
    if (steps > 16) break;
  }
  // The chain as a whole counts, not what cancels at its end.
  if (steps < 2 || !permuted) return false;
  if (m_.shape(at).dims == end && type(at) == type(i)) {
    bool identity = true;
    for (size_t d = 0; d < labels.size(); ++d) identity &= labels[d] < 0 || labels[d] == static_cast<int64_t>(d);
    if (identity) {
      if (spend(i)) replace(i, at);
      return true;
    }
  }
  Dims order;
  for (int64_t l : labels)
    if (l >= 0) order.push_back(l);
  if (!layout_sensitive_ || !ascending(order)) return false;
  if (spend(i)) rewrite(i, Opcode::Bitcast, {at});
  return true;
}

bool AlgebraicSimplifier::reshape_of_broadcast(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast) return false;
  const Shape& s = m_.shape(i);
  if (layout_sensitive_ && !is_default_layout(s.layout)) return false;
  auto kept = unmodified_dims(m_.shape(a).dims, s.dims);
  Dims mapped;
  for (int64_t d : m_.attrs(a).ints(Attr::dimensions)) {
    auto at = std::find_if(kept.begin(), kept.end(), [&](const auto& p) { return p.first == d; });
    if (at == kept.end()) return false;
    mapped.push_back(at->second);
  }
  if (!spend(i)) return true;
  replace(i, m_.add(m_.parent(i), {.op = Opcode::Broadcast,
                                   .shape = m_.shape_id(i),
                                   .operands = {operand(a, 0)},
                                   .attrs = dims_attr(u_, Opcode::Broadcast, mapped)}));
  return true;
}

bool AlgebraicSimplifier::reshape_of_iota(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Iota) return false;
  const int64_t counted = m_.attrs(a).integer(Attr::iota_dimension);
  for (auto [from, to] : unmodified_dims(m_.shape(a).dims, m_.shape(i).dims))
    if (from == counted) {
      if (spend(i)) rewrite(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, to}}));
      return true;
    }
  return false;
}

bool AlgebraicSimplifier::split_iota(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Iota) return false;
  const Dims from = m_.shape(a).dims, to = m_.shape(i).dims;
  const auto counted = static_cast<size_t>(m_.attrs(a).integer(Attr::iota_dimension));
  auto bounds = common_factors(from, to);
  for (size_t n = 0; n + 1 < bounds.size(); ++n) {
    auto [f0, t0] = bounds[n];
    auto [f1, t1] = bounds[n + 1];
    if (counted < f0 || counted >= f1) continue;
    for (size_t d = f0; d < f1; ++d)
      if (d != counted && from[d] != 1) return false;
    if (t0 == t1) return false;
    if (!spend(i)) return true;
    InstId sum;
    int64_t step = 1;
    for (size_t d = t1; d-- > t0;) {
      InstId digit =
          make_op(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, static_cast<int64_t>(d)}}),
                  m_.shape_id(i));
      if (sum.valid()) {
        InstId scaled = make_op(i, Opcode::Multiply, {digit, make_scalar_like(m_, digit, step)}, {}, m_.shape_id(i));
        sum = make_op(i, Opcode::Add, {sum, scaled}, {}, m_.shape_id(i));
      } else {
        sum = digit;
      }
      step *= to[d];
    }
    rewrite_to(i, sum);
    return true;
  }
  return false;
}

bool AlgebraicSimplifier::reshape_of_update(InstId i) {
  InstId a = operand(i, 0);
  if (layout_sensitive_ || op(a) != Opcode::DynamicUpdateSlice || !one_user(a) || m_.attrs(a).has(Attr::sharding))
    return false;
  const Dims from = m_.shape(a).dims, to = m_.shape(i).dims, update = m_.shape(operand(a, 1)).dims;
  if (!only_ones(from, to) || m_.operand_count(a) != 2 + from.size()) return false;
  // Each dimension of the result is one of the operand or new.
  Dims source(to.size(), -1);
  size_t f = 0;
  for (size_t t = 0; t < to.size(); ++t) {
    while (f < from.size() && from[f] != to[t] && from[f] == 1) ++f;
    if (f < from.size() && from[f] == to[t])
      source[t] = static_cast<int64_t>(f++);
    else if (to[t] != 1)
      return false;
  }
  for (; f < from.size(); ++f)
    if (from[f] != 1) return false;
  if (!spend(i)) return true;
  // Dropped dimensions hold one element, so their index is clamped to 0.
  Dims new_update;
  for (int64_t d : source) new_update.push_back(d < 0 ? 1 : update[static_cast<size_t>(d)]);
  std::vector<InstId> indices(m_.operands(a).begin() + 2, m_.operands(a).end());
  InstId zero = make_scalar(m_, m_.parent(i), indices.empty() ? ElementType::S32 : type(indices[0]), 0);
  InstId base =
      m_.add_derived(operand(a, 0), {.op = Opcode::Reshape, .shape = m_.shape_id(i), .operands = {operand(a, 0)}});
  InstId up = m_.add_derived(operand(a, 1), {.op = Opcode::Reshape,
                                             .shape = u_.with_dims(m_.shape_id(operand(a, 1)), new_update),
                                             .operands = {operand(a, 1)}});
  std::vector<InstId> ops{base, up};
  for (int64_t d : source) ops.push_back(d >= 0 ? indices[static_cast<size_t>(d)] : zero);
  rewrite(i, Opcode::DynamicUpdateSlice, ops);
  return true;
}

bool AlgebraicSimplifier::transpose_of_reshape(InstId i) {
  InstId t = operand(i, 0);
  if (layout_sensitive_ || op(t) != Opcode::Transpose || op(operand(t, 0)) != Opcode::Reshape) return false;
  const Dims p = m_.attrs(t).ints(Attr::dimensions), middle = m_.shape(t).dims, out = m_.shape(i).dims;
  // Runs of transposed dimensions, one for each dimension of the result.
  auto bounds = common_factors(middle, out);
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t n = 0; n + 1 < bounds.size(); ++n) {
    if (bounds[n + 1].second - bounds[n].second != 1 || bounds[n + 1].first == bounds[n].first) return false;
    for (size_t d = bounds[n].first + 1; d < bounds[n + 1].first; ++d)
      if (p[d] != p[d - 1] + 1) return false;
    runs.push_back({bounds[n].first, bounds[n + 1].first});
  }
  if (runs.size() != out.size() || runs.size() == middle.size()) return false;
  // The runs in the order in which they stand before the transposition.
  std::vector<size_t> order(runs.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[runs[a].first] < p[runs[b].first]; });
  Dims joined, permutation(runs.size());
  for (size_t n = 0; n < order.size(); ++n)
    joined.push_back(out[order[n]]), permutation[order[n]] = static_cast<int64_t>(n);
  if (!spend(i)) return true;
  InstId flat = make_reshape(m_, operand(operand(t, 0), 0), joined);
  rewrite(i, Opcode::Transpose, {flat}, dims_attr(u_, Opcode::Transpose, permutation));
  return true;
}

bool AlgebraicSimplifier::reshape_as_bitcast(InstId i) {
  InstId a = operand(i, 0);
  if (!layout_sensitive_ || !reshape_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i))) return false;
  if (spend(i)) rewrite(i, Opcode::Bitcast, {a});
  return true;
}

bool AlgebraicSimplifier::transpose_into_scatter(InstId i) {
  InstId s = operand(i, 0);
  if (op(s) != Opcode::Scatter || !one_user(s) || m_.operand_count(s) != 3) return false;
  const AttrSet& a = m_.attrs(s);
  InstId updates = operand(s, 2);
  const Dims p = m_.attrs(i).ints(Attr::dimensions), &window = a.ints(Attr::update_window_dims);
  if (!a.ints(Attr::input_batching_dims).empty() || !a.ints(Attr::inserted_window_dims).empty() ||
      a.integer(Attr::index_vector_dim) != 1 || m_.shape(operand(s, 1)).rank() != 2 ||
      m_.shape(updates).rank() != static_cast<int>(window.size()) + 1 || window.size() != p.size())
    return false;
  for (size_t d = 0; d < window.size(); ++d)
    if (window[d] != static_cast<int64_t>(d) + 1) return false;
  if (!spend(i)) return true;
  Dims wide{0}, map, back = inverse_permutation(p);
  for (int64_t d : p) wide.push_back(d + 1);
  for (int64_t d : a.ints(Attr::scatter_dims_to_operand_dims)) map.push_back(back[static_cast<size_t>(d)]);
  AttrSet set = a;
  set.set(Attr::scatter_dims_to_operand_dims, map);
  set.erase(Attr::sharding);
  AttrsId attrs = u_.attrs(std::move(set));
  InstId base = make_transpose(m_, operand(s, 0), p), moved = make_transpose(m_, updates, wide);
  m_.set_shape(base, m_.shape_id(i));
  rewrite(i, Opcode::Scatter, {base, operand(s, 1), moved}, attrs);
  return true;
}

bool AlgebraicSimplifier::transpose_of_nothing(InstId i) {
  InstId a = operand(i, 0);
  if (!is_identity(m_.attrs(i).ints(Attr::dimensions)) || (layout_sensitive_ && m_.shape_id(i) != m_.shape_id(a)))
    return false;
  if (spend(i)) replace(i, a);
  return true;
}

bool AlgebraicSimplifier::transpose_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Transpose) return false;
  if (!spend(i)) return true;
  const Dims &p = m_.attrs(i).ints(Attr::dimensions), &q = m_.attrs(a).ints(Attr::dimensions);
  Dims composed;
  for (int64_t d : p) composed.push_back(q[static_cast<size_t>(d)]);
  rewrite(i, Opcode::Transpose, {operand(a, 0)}, dims_attr(u_, Opcode::Transpose, composed));
  return true;
}

bool AlgebraicSimplifier::transpose_of_dot(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Dot || !one_user(a)) return false;
  const Dims p = m_.attrs(i).ints(Attr::dimensions);
  const AttrSet& d = m_.attrs(a);
  const Dims lb = d.ints(Attr::lhs_batch_dims), rb = d.ints(Attr::rhs_batch_dims),
             lc = d.ints(Attr::lhs_contracting_dims), rc = d.ints(Attr::rhs_contracting_dims);
  const size_t b = lb.size();
  if (lb != rb || lc.empty() || p.size() != b + 2 ||
      m_.shape(operand(a, 0)).rank() != static_cast<int>(b + 1 + lc.size()) ||
      m_.shape(operand(a, 1)).rank() != static_cast<int>(b + 1 + rc.size()))
    return false;
  for (size_t k = 0; k < b; ++k)
    if (lb[k] != static_cast<int64_t>(k) || p[k] != static_cast<int64_t>(k)) return false;
  if (p[b] != static_cast<int64_t>(b + 1) || p[b + 1] != static_cast<int64_t>(b)) return false;
  if (!spend(i)) return true;
  AttrSet set = d;
  if (b) set.set(Attr::lhs_batch_dims, rb), set.set(Attr::rhs_batch_dims, lb);
  set.set(Attr::lhs_contracting_dims, rc), set.set(Attr::rhs_contracting_dims, lc);
  for (Attr key : {Attr::sharding, Attr::frontend_attributes, Attr::backend_config, Attr::origin}) set.erase(key);
  swap_precisions(&set);
  rewrite(i, Opcode::Dot, {operand(a, 1), operand(a, 0)}, u_.attrs(std::move(set)));
  return true;
}

bool AlgebraicSimplifier::transpose_of_ones(InstId i) {
  if (layout_sensitive_) return false;
  InstId a = operand(i, 0);
  const Dims& p = m_.attrs(i).ints(Attr::dimensions);
  Dims moved;
  for (int64_t d : p)
    if (m_.shape(a).dims[static_cast<size_t>(d)] != 1) moved.push_back(d);
  if (moved.size() == p.size() || !ascending(moved)) return false;
  if (spend(i)) rewrite(i, Opcode::Reshape, {a});
  return true;
}

bool AlgebraicSimplifier::transpose_as_bitcast(InstId i) {
  InstId a = operand(i, 0);
  if (!layout_sensitive_ ||
      !transpose_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i), m_.attrs(i).ints(Attr::dimensions)))
    return false;
  if (spend(i)) rewrite(i, Opcode::Bitcast, {a});
  return true;
}

bool AlgebraicSimplifier::transpose_of_broadcast(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast || !ascending(m_.attrs(a).ints(Attr::dimensions))) return false;
  const Dims& spread = m_.attrs(a).ints(Attr::dimensions);
  Dims inverse = inverse_permutation(m_.attrs(i).ints(Attr::dimensions)), dims;
  for (int64_t d : spread) dims.push_back(inverse[static_cast<size_t>(d)]);
  // With layouts they must lie in the same order, too.
  auto order = [&](const Shape& s, const Dims& of) {
    Dims out;
    for (int64_t d : s.layout.minor_to_major)
      if (auto at = std::find(of.begin(), of.end(), d); at != of.end()) out.push_back(at - of.begin());
    return out;
  };
  if (!ascending(dims) || (layout_sensitive_ && order(m_.shape(i), dims) != order(m_.shape(a), spread))) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, dims));
  return true;
}

}  // namespace hlo
