// algsimp on gathers, scatters and what is indexed at run time.
#include <algorithm>
#include <numeric>

#include "ir/query/reducer.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kIndexingRules[] = {
    {"dynamic-slice of a scalar", Opcode::DynamicSlice, "dynamic-slice(scalar A)", "A",
     &AlgebraicSimplifier::dynamic_slice_of_scalar},
    {"dynamic-slice of everything", Opcode::DynamicSlice, "dynamic-slice(A, idx) of all of A", "A",
     &AlgebraicSimplifier::dynamic_slice_of_everything},
    {"index of a whole dimension", Opcode::DynamicSlice, "dynamic-slice(A, i, j) of all of A along i",
     "dynamic-slice(A, 0, j)", &AlgebraicSimplifier::index_of_whole_dimension},
    {"dynamic-slice of a broadcast", Opcode::DynamicSlice, "dynamic-slice(broadcast(A), idx)",
     "broadcast(dynamic-slice(A, idx))", &AlgebraicSimplifier::dynamic_slice_of_broadcast},
    {"dynamic-slice of a reshape", Opcode::DynamicSlice, "dynamic-slice(reshape(A), idx) that adds or drops ones",
     "reshape(dynamic-slice(A, idx))", &AlgebraicSimplifier::dynamic_slice_of_reshape},
    {"dynamic-slice of a transpose", Opcode::DynamicSlice, "dynamic-slice(transpose(A), idx)",
     "transpose(dynamic-slice(A, idx))", &AlgebraicSimplifier::dynamic_slice_of_transpose},
    {"dynamic-slice at constant indices", Opcode::DynamicSlice, "dynamic-slice(A, K)", "slice(A)",
     &AlgebraicSimplifier::dynamic_slice_at_constants},
    {"dynamic-slice of an iota", Opcode::DynamicSlice, "dynamic-slice(iota of N, i) of one element",
     "reshape(convert(clamp(0, i, N - 1)))", &AlgebraicSimplifier::dynamic_slice_of_iota},
    {"dynamic-slice twice", Opcode::DynamicSlice, "dynamic-slice(dynamic-slice(A, i), j)",
     "dynamic-slice(A, add(j, clamp(i)))", &AlgebraicSimplifier::dynamic_slice_twice},

    {"update of a spread scalar", Opcode::DynamicUpdateSlice, "dynamic-update-slice(broadcast(scalar A), U, K)",
     "pad(U, A)", &AlgebraicSimplifier::update_of_spread_scalar},
    {"update of everything", Opcode::DynamicUpdateSlice, "dynamic-update-slice(A, U, idx) of all of A", "U",
     &AlgebraicSimplifier::update_of_everything},
    {"index of a whole updated dimension", Opcode::DynamicUpdateSlice,
     "dynamic-update-slice(A, U, i, j) of all of A along i", "dynamic-update-slice(A, U, 0, j)",
     &AlgebraicSimplifier::index_of_updated_dimension},
    {"update without elements", Opcode::DynamicUpdateSlice, "dynamic-update-slice(A, U, idx) where U has no elements",
     "A", &AlgebraicSimplifier::update_without_elements},
    {"update of a part of a slice", Opcode::DynamicUpdateSlice,
     "dynamic-update-slice(A, dynamic-update-slice(dynamic-slice(A, i), U, j), i)",
     "dynamic-update-slice(A, U, add(i, clamp(j)))", &AlgebraicSimplifier::update_of_part},

    {"gather from nothing", Opcode::Gather, "gather(A, I) where A has no elements", "broadcast(0)",
     &AlgebraicSimplifier::gather_from_nothing},
    {"gather from one element", Opcode::Gather, "gather(A, I) where A has one element", "broadcast(reshape(A))",
     &AlgebraicSimplifier::gather_from_one},
    {"gather of a pad", Opcode::Gather, "gather(pad(A), I) of all of the padded dimensions, or gather(pad(A), pad(I))",
     "pad(gather(A, I))", &AlgebraicSimplifier::gather_of_pad},
    {"gather from few elements", Opcode::Gather, "gather(A, I) where A has at most four elements",
     "select(I >= 1, A[1], select(I >= 0, A[0], A[0])) and so on", &AlgebraicSimplifier::gather_from_few},

    {"scatter of nothing", Opcode::Scatter, "scatter(A, I, U) where U has no elements", "A",
     &AlgebraicSimplifier::scatter_of_nothing},
    {"scatter of everything", Opcode::Scatter, "scatter(A, I, U) where I has no elements and U is as large as A",
     "map(A, U)", &AlgebraicSimplifier::scatter_of_everything},
};

// Do the dimensions differ by ones alone?
bool ones_apart(const Dims& a, const Dims& b) {
  Dims x, y;
  std::copy_if(a.begin(), a.end(), std::back_inserter(x), [](int64_t d) { return d != 1; });
  std::copy_if(b.begin(), b.end(), std::back_inserter(y), [](int64_t d) { return d != 1; });
  return x == y && a != b;
}

}  // namespace

std::span<const AlgebraicRule> indexing_rules() { return kIndexingRules; }

// A dimension taken whole starts at 0 whatever its index says; the indices follow operand `first - 1`.
bool AlgebraicSimplifier::zero_whole_indices(InstId i, size_t first, const Dims& taken, const Dims& all) {
  std::vector<InstId> ops(m_.operands(i).begin(), m_.operands(i).end());
  auto replaced = [&](size_t d) { return taken[d] == all[d] && !is_all(m_, ops[first + d], 0); };
  bool whole = false;
  for (size_t d = 0; d < taken.size(); ++d) whole |= replaced(d);
  if (!whole) return false;
  if (!spend(i)) return true;
  // One constant for all of a type.
  InstId zero;
  for (size_t d = 0; d < taken.size(); ++d) {
    if (!replaced(d)) continue;
    if (!zero.valid() || type(zero) != type(ops[first + d]))
      zero = make_scalar(m_, m_.parent(i), type(ops[first + d]), 0);
    ops[first + d] = zero;
  }
  replace(i, m_.clone_inst(i, m_.parent(i), ops));
  return true;
}

bool AlgebraicSimplifier::dynamic_slice_of_scalar(InstId i) {
  if (m_.shape(i).rank() != 0) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::dynamic_slice_of_everything(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(i).dims != m_.shape(a).dims) return false;
  replace_if_compatible(i, a);
  return true;
}

bool AlgebraicSimplifier::index_of_whole_dimension(InstId i) {
  // All indices may stand in one operand, in old modules: none of these rules knows that form.
  if (m_.operand_count(i) != m_.shape(i).dims.size() + 1) return true;
  const Dims taken = m_.shape(i).dims, all = m_.shape(operand(i, 0)).dims;
  return zero_whole_indices(i, 1, taken, all);
}

bool AlgebraicSimplifier::dynamic_slice_of_broadcast(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast) return false;
  if (!spend(i)) return true;
  const Dims map = m_.attrs(a).ints(Attr::dimensions), sizes = m_.shape(i).dims;
  InstId source = operand(a, 0);
  if (!map.empty()) {
    std::vector<InstId> inner{source};
    Dims inner_sizes;
    for (int64_t d : map)
      inner.push_back(operand(i, static_cast<size_t>(d) + 1)), inner_sizes.push_back(sizes[static_cast<size_t>(d)]);
    source = make_op(i, Opcode::DynamicSlice, inner,
                     attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, inner_sizes}}));
  }
  rewrite(i, Opcode::Broadcast, {source}, dims_attr(u_, Opcode::Broadcast, map));
  return true;
}

bool AlgebraicSimplifier::dynamic_slice_of_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (layout_sensitive_ || op(a) != Opcode::Reshape || !ones_apart(m_.shape(a).dims, m_.shape(operand(a, 0)).dims))
    return false;
  if (!spend(i)) return true;
  const Dims from = m_.shape(operand(a, 0)).dims, to = m_.shape(a).dims, sizes = m_.shape(i).dims;
  std::vector<InstId> ops{operand(a, 0)};
  Dims taken;
  InstId zero = make_scalar(m_, m_.parent(i), type(operand(i, 1)), 0);
  size_t t = 0;
  for (int64_t d : from) {
    while (d != 1 && t < to.size() && to[t] == 1) ++t;
    if (d == 1) {
      ops.push_back(zero), taken.push_back(1);
      continue;
    }
    ops.push_back(operand(i, t + 1)), taken.push_back(sizes[t]);
    ++t;
  }
  InstId small =
      make_op(i, Opcode::DynamicSlice, ops, attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, taken}}));
  rewrite(i, Opcode::Reshape, {small});
  return true;
}

bool AlgebraicSimplifier::dynamic_slice_of_transpose(InstId i) {
  InstId a = operand(i, 0);
  if (layout_sensitive_ || op(a) != Opcode::Transpose) return false;
  if (!spend(i)) return true;
  const Dims p = m_.attrs(a).ints(Attr::dimensions), sizes = m_.shape(i).dims;
  std::vector<InstId> ops(p.size() + 1);
  Dims taken(p.size());
  ops[0] = operand(a, 0);
  for (size_t d = 0; d < p.size(); ++d) {
    ops[static_cast<size_t>(p[d]) + 1] = operand(i, d + 1);
    taken[static_cast<size_t>(p[d])] = sizes[d];
  }
  // In memory the result lies as it did.
  Dims layout;
  for (int64_t d : m_.shape(i).layout.minor_to_major) layout.push_back(p[static_cast<size_t>(d)]);
  ShapeId shape = u_.with_layout(u_.array(type(i), taken), layout);
  InstId small = make_op(i, Opcode::DynamicSlice, ops,
                         attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, taken}}), shape);
  rewrite(i, Opcode::Transpose, {small}, dims_attr(u_, Opcode::Transpose, p));
  return true;
}

bool AlgebraicSimplifier::dynamic_slice_at_constants(InstId i) {
  InstId a = operand(i, 0);
  if (is_constant(a)) return false;
  const Dims &sizes = m_.shape(i).dims, &in = m_.shape(a).dims;
  std::vector<SliceDim> s;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t v;
    if (!scalar_int(operand(i, d + 1), &v) || v < 0) return false;
    v = std::clamp<int64_t>(v, 0, in[d] - sizes[d]);
    s.push_back({v, v + sizes[d], 1});
  }
  if (spend(i)) rewrite(i, Opcode::Slice, {a}, attrs_of(u_, Opcode::Slice, {{Attr::slice, s}}));
  return true;
}

bool AlgebraicSimplifier::dynamic_slice_of_iota(InstId i) {
  InstId a = operand(i, 0), index = operand(i, 1), factor;
  if (m_.shape(i).dims != Dims{1} || (type(index) != ElementType::S32 && type(index) != ElementType::U32)) return false;
  InstId iota = a;
  if (op(a) == Opcode::Multiply)
    for (size_t s : {size_t{0}, size_t{1}})
      if (op(operand(a, s)) == Opcode::Iota && op(operand(a, 1 - s)) == Opcode::Broadcast &&
          m_.shape(operand(operand(a, 1 - s), 0)).rank() == 0)
        iota = operand(a, s), factor = operand(operand(a, 1 - s), 0);
  if (op(iota) != Opcode::Iota || (type(i) != ElementType::S32 && type(i) != ElementType::U32)) return false;
  if (!spend(i)) return true;
  InstId lo = make_scalar_like(m_, index, 0), hi = make_scalar_like(m_, index, m_.shape(a).dims[0] - 1);
  InstId value = make_op(i, Opcode::Clamp, {lo, index, hi}, {}, m_.shape_id(index));
  value = make_convert(m_, value, type(i));
  if (factor.valid()) value = make_op(i, Opcode::Multiply, {value, factor});
  rewrite(i, Opcode::Reshape, {value});
  return true;
}

// The index `outer + clamp(0, inner, limit)`.
InstId AlgebraicSimplifier::added_index(InstId i, InstId outer, InstId inner, int64_t limit) {
  InstId least = make_scalar(m_, m_.parent(i), type(inner), 0),
         most = make_scalar(m_, m_.parent(i), type(inner), limit);
  InstId clamped =
      make_convert(m_, make_op(i, Opcode::Clamp, {least, inner, most}, {}, m_.shape_id(inner)), type(outer));
  return make_op(i, Opcode::Add, {outer, clamped}, {}, m_.shape_id(outer));
}

bool AlgebraicSimplifier::dynamic_slice_twice(InstId i) {
  InstId a = operand(i, 0);
  const size_t rank = m_.shape(i).dims.size();
  if (op(a) != Opcode::DynamicSlice || m_.operand_count(a) != rank + 1) return false;
  if (!spend(i)) return true;
  const Dims whole = m_.shape(operand(a, 0)).dims, sizes = m_.shape(i).dims;
  // XLA clamps the inner index as if what is taken last were taken at once: it must be in range where that is less.
  for (size_t d = 0; d < rank; ++d)
    m_.set_operand(i, d + 1, added_index(i, operand(i, d + 1), operand(a, d + 1), whole[d] - sizes[d]));
  m_.set_operand(i, 0, operand(a, 0));
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::update_of_spread_scalar(InstId i) {
  InstId a = operand(i, 0), update = operand(i, 1);
  const size_t rank = m_.shape(i).dims.size();
  // All indices may stand in one operand, in old modules: none of these rules knows that form.
  if (m_.operand_count(i) != rank + 2) return true;
  if (op(a) != Opcode::Broadcast || m_.shape(operand(a, 0)).rank() != 0) return false;
  const Dims &out = m_.shape(i).dims, &taken = m_.shape(update).dims;
  std::vector<PaddingDim> pads;
  for (size_t d = 0; d < rank; ++d) {
    int64_t v;
    if (!scalar_int(operand(i, d + 2), &v)) return false;
    v = std::clamp<int64_t>(v, 0, out[d] - taken[d]);
    pads.push_back({v, out[d] - taken[d] - v, 0});
  }
  if (spend(i)) rewrite(i, Opcode::Pad, {update, operand(a, 0)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}}));
  return true;
}

bool AlgebraicSimplifier::update_of_everything(InstId i) {
  return same_shape(i, operand(i, 1)) && replace_if_compatible(i, operand(i, 1));
}

bool AlgebraicSimplifier::index_of_updated_dimension(InstId i) {
  const Dims taken = m_.shape(operand(i, 1)).dims, all = m_.shape(i).dims;
  return zero_whole_indices(i, 2, taken, all);
}

bool AlgebraicSimplifier::update_without_elements(InstId i) {
  return m_.shape(operand(i, 1)).elements_count() == 0 && replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::update_of_part(InstId i) {
  InstId update = operand(i, 1);
  const size_t rank = m_.shape(i).dims.size();
  if (op(update) != Opcode::DynamicUpdateSlice || op(operand(update, 0)) != Opcode::DynamicSlice) return false;
  InstId piece = operand(update, 0);
  if (operand(piece, 0) != operand(i, 0) || m_.operand_count(piece) != rank + 1 || m_.operand_count(update) != rank + 2)
    return false;
  for (size_t d = 0; d < rank; ++d)
    if (operand(piece, d + 1) != operand(i, d + 2)) return false;
  if (!spend(i)) return true;
  const Dims taken = m_.shape(update).dims;
  InstId small = operand(update, 1);
  // XLA takes the outer index to be in range; where it is not, the update lands elsewhere than it did.
  for (size_t d = 0; d < rank; ++d)
    m_.set_operand(i, d + 2,
                   added_index(i, operand(i, d + 2), operand(update, d + 2), taken[d] - m_.shape(small).dims[d]));
  m_.set_operand(i, 1, small);
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::gather_from_nothing(InstId i) {
  if (m_.shape(operand(i, 0)).elements_count() != 0) return false;
  if (spend(i)) rewrite_to(i, make_scalar_like(m_, i, 0));
  return true;
}

bool AlgebraicSimplifier::gather_from_one(InstId i) {
  InstId a = operand(i, 0);
  if (!m_.shape(a).is_effective_scalar()) return false;
  if (!spend(i)) return true;
  InstId scalar = m_.shape(a).rank() ? make_reshape(m_, a, {}) : a;
  rewrite(i, Opcode::Broadcast, {scalar}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::gather_of_pad(InstId i) {
  InstId p = operand(i, 0), through, indices = operand(i, 1);
  if (op(p) == Opcode::Reshape) through = p, p = operand(p, 0);
  if (op(p) != Opcode::Pad) return false;
  const AttrSet s = m_.attrs(i);
  const auto pads = *m_.attrs(p).get<std::vector<PaddingDim>>(Attr::padding);
  const Dims &taken = s.ints(Attr::slice_sizes), all = m_.shape(operand(i, 0)).dims;
  const Dims &batch = s.ints(Attr::operand_batching_dims), &by = s.ints(Attr::start_indices_batching_dims);
  // The padding of the gather's operand and of its indices, dimension by dimension.
  std::vector<PaddingDim> at(all.size()), index_pads(m_.shape(indices).dims.size());
  Dims bare = all, sizes = taken;
  for (size_t d = 0; d < pads.size(); ++d) {
    if (pads[d] == PaddingDim{}) continue;
    auto to = static_cast<int64_t>(d);
    if (through.valid()) {
      auto kept = unmodified_dims(m_.shape(p).dims, all);
      auto same = std::find_if(kept.begin(), kept.end(), [&](const auto& k) { return k.first == to; });
      if (same == kept.end()) return false;
      to = same->second;
    }
    const auto t = static_cast<size_t>(to);
    at[t] = pads[d], bare[t] = m_.shape(operand(p, 0)).dims[d];
    if (auto b = std::find(batch.begin(), batch.end(), to); b != batch.end()) {
      index_pads[static_cast<size_t>(by[static_cast<size_t>(b - batch.begin())])] = pads[d];
      continue;
    }
    if (contains(s.ints(Attr::start_index_map), to) || contains(s.ints(Attr::collapsed_slice_dims), to) ||
        taken[t] != all[t])
      return false;
    sizes[t] = bare[t];
  }
  const bool batch_padded =
      std::any_of(index_pads.begin(), index_pads.end(), [](const PaddingDim& d) { return d != PaddingDim{}; });
  if (batch_padded) {
    if (op(indices) != Opcode::Pad || *m_.attrs(indices).get<std::vector<PaddingDim>>(Attr::padding) != index_pads)
      return false;
    indices = operand(indices, 0);
  }
  // Where each dimension lies in the result: what is taken in the offset dimensions, those of the indices between them.
  const Dims& places = s.ints(Attr::offset_dims);
  std::vector<PaddingDim> out(m_.shape(i).dims.size());
  size_t nth = 0;
  for (size_t d = 0; d < all.size(); ++d)
    if (!contains(s.ints(Attr::collapsed_slice_dims), static_cast<int64_t>(d)) &&
        !contains(batch, static_cast<int64_t>(d)))
      out[static_cast<size_t>(places[nth++])] = at[d];
  size_t index_dim = 0;
  for (size_t d = 0; d < out.size(); ++d) {
    if (contains(places, static_cast<int64_t>(d))) continue;
    if (static_cast<int64_t>(index_dim) == s.integer(Attr::index_vector_dim)) ++index_dim;
    out[d] = index_pads[index_dim++];
  }
  if (!spend(i)) return true;
  InstId source = operand(p, 0);
  if (through.valid()) source = make_reshape(m_, source, bare);
  AttrSet set = s;
  set.set(Attr::slice_sizes, sizes);
  set.erase(Attr::sharding);
  InstId inner = make_op(i, Opcode::Gather, {source, indices}, u_.attrs(std::move(set)));
  rewrite(i, Opcode::Pad, {inner, operand(p, 1)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, out}}));
  return true;
}

bool AlgebraicSimplifier::gather_from_few(InstId i) {
  InstId a = operand(i, 0), indices = operand(i, 1);
  const AttrSet& s = m_.attrs(i);
  constexpr int64_t kFew = 4;
  if (m_.shape(a).rank() != 1 || m_.shape(a).dims[0] > kFew || m_.shape(indices).rank() == 0 ||
      s.integer(Attr::index_vector_dim) != m_.shape(indices).rank() || s.ints(Attr::collapsed_slice_dims) != Dims{0} ||
      m_.shape(i).elements_count() == 0)
    return false;
  if (!spend(i)) return true;
  CompId c = m_.parent(i);
  auto element = [&](int64_t k) {
    InstId piece = make_op(i, Opcode::Slice, {a},
                           attrs_of(u_, Opcode::Slice, {{Attr::slice, std::vector<SliceDim>{{k, k + 1, 1}}}}));
    return make_broadcast(m_, c, make_reshape(m_, piece, {}), {}, m_.shape_id(i));
  };
  InstId result = element(0);
  for (int64_t k = 0; k < m_.shape(a).dims[0]; ++k) {
    InstId limit = make_scalar(m_, c, type(indices), k);
    InstId wide = make_broadcast(m_, c, limit, {}, m_.shape_id(indices));
    InstId from =
        make_op(i, Opcode::Compare, {indices, wide}, attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("GE")}}));
    result = make_op(i, Opcode::Select, {from, element(k), result}, {}, m_.shape_id(i));
  }
  rewrite_to(i, result);
  return true;
}

bool AlgebraicSimplifier::scatter_of_nothing(InstId i) {
  const size_t n = m_.operand_count(i) / 2;
  for (size_t k = 0; k < n; ++k)
    if (m_.shape(operand(i, n + 1 + k)).elements_count() != 0) return false;
  if (n == 1)
    replace_if_compatible(i, operand(i, 0));
  else if (spend(i))
    rewrite(i, Opcode::Tuple,
            std::vector<InstId>(m_.operands(i).begin(), m_.operands(i).begin() + static_cast<ptrdiff_t>(n)));
  return true;
}

bool AlgebraicSimplifier::scatter_of_everything(InstId i) {
  if (m_.operand_count(i) != 3 || m_.shape(operand(i, 1)).elements_count() != 0 || !same_shape(i, operand(i, 2)) ||
      !same_shape(i, operand(i, 0)))
    return false;
  if (!spend(i)) return true;
  Dims every(m_.shape(i).dims.size());
  std::iota(every.begin(), every.end(), int64_t{0});
  rewrite(i, Opcode::Map, {operand(i, 0), operand(i, 2)},
          attrs_of(u_, Opcode::Map, {{Attr::dimensions, every}, {Attr::to_apply, m_.called(i)[0]}}));
  return true;
}

bool AlgebraicSimplifier::adding_scatter(InstId i) const {
  return op(i) == Opcode::Scatter && m_.use_count(i) == 1 && m_.operand_count(i) == 3 &&
         adds_its_parameters(m_, m_.called(i)[0]);
}

// The dimension along which the indices of two scatters can be joined, -1 where there is none.
int64_t AlgebraicSimplifier::joined_dimension(InstId l, InstId r) const {
  const InstId lhs_indices = operand(l, 1), rhs_indices = operand(r, 1);
  const Dims &ld = m_.shape(lhs_indices).dims, &rd = m_.shape(rhs_indices).dims;
  if (ld.size() != rd.size() || ld.empty() || type(lhs_indices) != type(rhs_indices) ||
      type(operand(l, 2)) != type(operand(r, 2)))
    return -1;
  int64_t vector = m_.attrs(l).integer(Attr::index_vector_dim), joined = -1;
  bool unequal = false;
  for (int64_t d = static_cast<int64_t>(ld.size()) - 1; d >= 0; --d) {
    auto at = static_cast<size_t>(d);
    if (d == vector) {
      if (ld[at] != rd[at]) return -1;
    } else if (ld[at] == rd[at]) {
      if (!unequal) joined = d;
    } else {
      if (unequal) return -1;
      unequal = true, joined = d;
    }
  }
  return joined;
}

bool AlgebraicSimplifier::add_of_two_scatters(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (layout_sensitive_ || l == r || !adding_scatter(l) || !adding_scatter(r)) return false;
  const int64_t joined = joined_dimension(l, r);
  InstId lhs_updates = operand(l, 2), rhs_updates = operand(r, 2);
  const Shape &lu = m_.shape(lhs_updates), &ru = m_.shape(rhs_updates);
  if (joined < 0 || lu.elements_count() + ru.elements_count() >= m_.shape(l).elements_count()) return false;
  AttrSet al = m_.attrs(l), ar = m_.attrs(r);
  auto bare = [&](AttrSet set) {
    for (Attr key : {Attr::to_apply, Attr::indices_are_sorted, Attr::unique_indices}) set.erase(key);
    return u_.attrs(std::move(set));
  };
  bool flags = al.flag(Attr::indices_are_sorted) || al.flag(Attr::unique_indices) ||
               ar.flag(Attr::indices_are_sorted) || ar.flag(Attr::unique_indices);
  // Where the joined dimension of the indices lies in the updates.
  int64_t nth = joined - (al.integer(Attr::index_vector_dim) < joined ? 1 : 0), in_updates = -1;
  for (int64_t d = 0; d < lu.rank(); ++d)
    if (!contains(al.ints(Attr::update_window_dims), d) && nth-- == 0) in_updates = d;
  bool same = bare(al) == bare(ar);
  for (int64_t d = 0; d < lu.rank() && same; ++d)
    same = ru.rank() == lu.rank() &&
           (d == in_updates || lu.dims[static_cast<size_t>(d)] == ru.dims[static_cast<size_t>(d)]);
  if (!spend(i)) return true;
  InstId sum = make_op(i, Opcode::Add, {operand(l, 0), operand(r, 0)});
  if (!flags && same && in_updates >= 0 && al.ints(Attr::input_batching_dims).empty()) {
    InstId indices =
        make_op(i, Opcode::Concatenate, {operand(l, 1), operand(r, 1)}, dims_attr(u_, Opcode::Concatenate, {joined}));
    InstId updates =
        make_op(i, Opcode::Concatenate, {lhs_updates, rhs_updates}, dims_attr(u_, Opcode::Concatenate, {in_updates}));
    AttrSet set = al;
    set.erase(Attr::sharding);
    rewrite(i, Opcode::Scatter, {sum, indices, updates}, u_.attrs(std::move(set)));
  } else {
    m_.set_operand(r, 0, sum);
    m_.set_operand(l, 0, r);
    replace(i, l);
  }
  return true;
}

bool AlgebraicSimplifier::add_of_scatter(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  if (layout_sensitive_) return false;
  const bool left = adding_scatter(l), right = adding_scatter(r);
  if (left == right) return false;
  if (!spend(i)) return true;
  InstId scatter = right ? r : l;
  InstId sum =
      right ? make_op(i, Opcode::Add, {l, operand(scatter, 0)}) : make_op(i, Opcode::Add, {operand(scatter, 0), r});
  m_.set_operand(scatter, 0, sum);
  replace(i, scatter);
  return true;
}

}  // namespace hlo
