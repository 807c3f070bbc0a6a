// algsimp on scatters, dynamic slices and windows under movement.
#include <algorithm>
#include <numeric>

#include "ir/query/reducer.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

namespace {

// Do the dimensions differ by ones alone?
bool ones_apart(const Dims& a, const Dims& b) {
  Dims x, y;
  std::copy_if(a.begin(), a.end(), std::back_inserter(x), [](int64_t d) { return d != 1; });
  std::copy_if(b.begin(), b.end(), std::back_inserter(y), [](int64_t d) { return d != 1; });
  return x == y && a != b;
}

}  // namespace

//   add(A, scatter-add(B, I, U))      →      scatter-add(add(A, B), I, U)
void A::add_of_scatters(InstId i) {
  InstId l = operand(i, 0), r = operand(i, 1);
  auto fits = [&](InstId s) {
    return op(s) == Opcode::Scatter && m_.use_count(s) == 1 && m_.operand_count(s) == 3 &&
           adds_its_parameters(m_, m_.called(s)[0]);
  };
  bool left = fits(l), right = fits(r);
  if (left && right && l != r) {
    InstId li = operand(l, 1), ri_ = operand(r, 1), lu = operand(l, 2), ru = operand(r, 2);
    const Dims ld = m_.shape(li).dims, rd = m_.shape(ri_).dims;
    if (ld.size() != rd.size() || ld.empty() || type(li) != type(ri_) || type(lu) != type(ru)) return;
    int64_t vector = m_.attrs(l).integer(Attr::index_vector_dim), joined = -1;
    bool unequal = false;
    for (int64_t d = static_cast<int64_t>(ld.size()) - 1; d >= 0; --d) {
      auto at = static_cast<size_t>(d);
      if (d == vector) {
        if (ld[at] != rd[at]) return;
        continue;
      }
      if (ld[at] == rd[at]) {
        if (!unequal) joined = d;
        continue;
      }
      if (unequal) return;
      unequal = true, joined = d;
    }
    if (joined < 0) return;
    if (m_.shape(lu).elements_count() + m_.shape(ru).elements_count() >= m_.shape(l).elements_count()) return;
    AttrSet al = m_.attrs(l), ar = m_.attrs(r);
    auto bare = [&](AttrSet set) {
      set.erase(Attr::to_apply);
      set.erase(Attr::indices_are_sorted), set.erase(Attr::unique_indices);
      return u_.attrs(std::move(set));
    };
    bool flags = al.flag(Attr::indices_are_sorted) || al.flag(Attr::unique_indices) ||
                 ar.flag(Attr::indices_are_sorted) || ar.flag(Attr::unique_indices);
    // Where the joined dimension of the indices lies in the updates.
    const Dims& window = al.ints(Attr::update_window_dims);
    bool same = bare(al) == bare(ar);
    int64_t nth = joined - (vector < joined ? 1 : 0), in_updates = -1;
    for (int64_t d = 0; d < m_.shape(lu).rank(); ++d)
      if (!contains(window, d) && nth-- == 0) in_updates = d;
    for (int64_t d = 0; d < m_.shape(lu).rank() && same; ++d)
      same =
          m_.shape(ru).rank() == m_.shape(lu).rank() &&
          (d == in_updates || m_.shape(lu).dims[static_cast<size_t>(d)] == m_.shape(ru).dims[static_cast<size_t>(d)]);
    if (!go("add of two scatters", i)) return;
    InstId sum = make_op(i, Opcode::Add, {operand(l, 0), operand(r, 0)});
    if (!flags && same && in_updates >= 0 && al.ints(Attr::input_batching_dims).empty()) {
      InstId indices = make_op(i, Opcode::Concatenate, {li, ri_}, dims_attr(u_, Opcode::Concatenate, {joined}));
      InstId updates = make_op(i, Opcode::Concatenate, {lu, ru}, dims_attr(u_, Opcode::Concatenate, {in_updates}));
      AttrSet set = al;
      set.erase(Attr::sharding);
      rw(i, Opcode::Scatter, {sum, indices, updates}, u_.attrs(std::move(set)));
    } else {
      m_.set_operand(r, 0, sum);
      m_.set_operand(l, 0, r);
      ri(i, l);
    }
    return;
  }
  InstId scatter = right ? r : l, other = right ? l : r;
  if ((!left && !right) || l == r) return;
  if (!go("add of a scatter", i)) return;
  InstId sum = right ? make_op(i, Opcode::Add, {other, operand(scatter, 0)})
                     : make_op(i, Opcode::Add, {operand(scatter, 0), other});
  m_.set_operand(scatter, 0, sum);
  ri(i, scatter);
}

//   transpose(scatter(A, I, U))      →      scatter(transpose(A), I, transpose(U))       in the simple form
bool A::transpose_into_scatter(InstId i) {
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
  if (!go("transpose into a scatter", i)) return true;
  Dims wide{0}, map, back = inverse_permutation(p);
  for (int64_t d : p) wide.push_back(d + 1);
  for (int64_t d : a.ints(Attr::scatter_dims_to_operand_dims)) map.push_back(back[static_cast<size_t>(d)]);
  AttrSet set = a;
  set.set(Attr::scatter_dims_to_operand_dims, map);
  set.erase(Attr::sharding);
  AttrsId attrs = u_.attrs(std::move(set));
  InstId base = make_transpose(m_, operand(s, 0), p), moved = make_transpose(m_, updates, wide);
  m_.set_shape(base, m_.shape_id(i));
  rw(i, Opcode::Scatter, {base, operand(s, 1), moved}, attrs);
  return true;
}

bool A::last_of_window(InstId i, const std::vector<SliceDim>& s) {
  InstId w = operand(i, 0), a = operand(w, 0);
  const Window& window = *m_.attrs(w).get<Window>(Attr::window);
  Dims dims;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const WindowDim& e = window.dims[d];
    int64_t n = m_.shape(a).dims[d], out = m_.shape(w).dims[d];
    if (e.stride != 1 || e.reversal || e.lhs_dilate != 1 || e.rhs_dilate != 1) return false;
    if (e.size == 1 && !e.pad_low && !e.pad_high) {
      if (s[d].start != 0 || s[d].limit != out) return false;
      continue;
    }
    // The last place sees the whole dimension and padding, which is the initial value.
    if (e.size < n || e.pad_low != e.size - 1 || e.pad_high != 0 || s[d].start != out - 1 || s[d].limit != out)
      return false;
    dims.push_back(static_cast<int64_t>(d));
  }
  if (dims.empty()) return false;
  if (!go("slice of a cumulative window", i)) return true;
  InstId r = make_op(i, Opcode::Reduce, {a, operand(w, 1)},
                     attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, dims}, {Attr::to_apply, m_.called(w)[0]}}));
  rw(i, Opcode::Reshape, {r});
  return true;
}

bool A::dynamic_slice_of_movement(InstId i) {
  InstId a = operand(i, 0);
  const Dims sizes = m_.shape(i).dims;
  //   dynamic-slice(reshape(A)) where ones come or go      →      reshape(dynamic-slice(A))
  if (op(a) == Opcode::Reshape && ones_apart(m_.shape(a).dims, m_.shape(operand(a, 0)).dims)) {
    const Dims from = m_.shape(operand(a, 0)).dims, to = m_.shape(a).dims;
    if (!go("dynamic-slice of a reshape", i)) return true;
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
    rw(i, Opcode::Reshape, {small});
    return true;
  }
  //   dynamic-slice(transpose(A))      →      transpose(dynamic-slice(A))
  if (op(a) == Opcode::Transpose) {
    const Dims p = m_.attrs(a).ints(Attr::dimensions);
    if (!go("dynamic-slice of a transpose", i)) return true;
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
    rw(i, Opcode::Transpose, {small}, dims_attr(u_, Opcode::Transpose, p));
    return true;
  }
  return false;
}

//   dynamic-slice(iota, i) of one element      →      reshape(convert(clamp(0, i, size - 1)))
bool A::dynamic_slice_of_iota(InstId i) {
  InstId a = operand(i, 0), index = operand(i, 1), factor;
  if (m_.shape(i).dims != Dims{1} || (type(index) != ElementType::S32 && type(index) != ElementType::U32)) return false;
  InstId iota = a;
  if (op(a) == Opcode::Multiply)
    for (size_t s : {size_t{0}, size_t{1}})
      if (op(operand(a, s)) == Opcode::Iota && op(operand(a, 1 - s)) == Opcode::Broadcast &&
          m_.shape(operand(operand(a, 1 - s), 0)).rank() == 0)
        iota = operand(a, s), factor = operand(operand(a, 1 - s), 0);
  if (op(iota) != Opcode::Iota || (type(i) != ElementType::S32 && type(i) != ElementType::U32)) return false;
  if (!go("dynamic-slice of an iota", i)) return true;
  InstId lo = make_scalar_like(m_, index, 0), hi = make_scalar_like(m_, index, m_.shape(a).dims[0] - 1);
  InstId value = make_op(i, Opcode::Clamp, {lo, index, hi}, {}, m_.shape_id(index));
  value = make_convert(m_, value, type(i));
  if (factor.valid()) value = make_op(i, Opcode::Multiply, {value, factor});
  rw(i, Opcode::Reshape, {value});
  return true;
}

//   pad(broadcast(A)) along broadcast and other dimensions      →      broadcast(pad(broadcast(A)))
bool A::pad_of_broadcast(InstId i, const std::vector<PaddingDim>& pads) {
  InstId b = operand(i, 0);
  if (op(b) != Opcode::Broadcast || !one_user(b) || m_.is_root(b)) return false;
  const Dims map = m_.attrs(b).ints(Attr::dimensions);
  Dims padded, kept;
  for (size_t d = 0; d < pads.size(); ++d)
    if (pads[d].low || pads[d].high || pads[d].interior) padded.push_back(static_cast<int64_t>(d));
  if (padded.size() == pads.size() || padded.empty()) return false;
  for (int64_t d : map)
    if (!contains(padded, d)) return false;
  if (!go("pad of a broadcast", i)) return true;
  // Only what is padded is broadcast first, the rest behind.
  Dims dims, inner_map;
  std::vector<PaddingDim> inner;
  for (int64_t d : padded)
    dims.push_back(m_.shape(b).dims[static_cast<size_t>(d)]), inner.push_back(pads[static_cast<size_t>(d)]);
  for (int64_t d : map) inner_map.push_back(std::find(padded.begin(), padded.end(), d) - padded.begin());
  // The broadcast is this pad's alone: it is changed where it stands.
  AttrSet set = m_.attrs(b);
  set.set(Attr::dimensions, inner_map);
  set.erase(Attr::sharding);
  m_.set_attrs(b, u_.attrs(std::move(set)));
  m_.set_shape(b, u_.array(type(i), dims));
  InstId p = make_op(i, Opcode::Pad, {b, operand(i, 1)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, inner}}));
  rw(i, Opcode::Broadcast, {p}, dims_attr(u_, Opcode::Broadcast, padded));
  return true;
}

//   gather(pad(A), i) that takes the padded dimensions whole      →      pad(gather(A, i)); through a reshape, too
//   gather(pad(A), pad(i)) whose batch is padded on both sides      →      pad(gather(A, i))
bool A::gather_of_pad(InstId i) {
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
  if (!go("gather of a pad", i)) return true;
  InstId source = operand(p, 0);
  if (through.valid()) source = make_reshape(m_, source, bare);
  AttrSet set = s;
  set.set(Attr::slice_sizes, sizes);
  set.erase(Attr::sharding);
  InstId inner = make_op(i, Opcode::Gather, {source, indices}, u_.attrs(std::move(set)));
  rw(i, Opcode::Pad, {inner, operand(p, 1)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, out}}));
  return true;
}

//   scatter that takes nothing      →      what is left alone
void A::scatter(InstId i) {
  size_t n = m_.operand_count(i) / 2;
  bool nothing = true;
  for (size_t k = 0; k < n; ++k) nothing &= m_.shape(operand(i, n + 1 + k)).elements_count() == 0;
  if (nothing) {
    if (n == 1) {
      ric(i, operand(i, 0), "scatter of nothing");
    } else if (go("scatter of nothing", i)) {
      rw(i, Opcode::Tuple,
         std::vector<InstId>(m_.operands(i).begin(), m_.operands(i).begin() + static_cast<ptrdiff_t>(n)));
    }
    return;
  }
  //   scatter with indices of no dimension at all      →      map(A, U)
  if (n == 1 && m_.shape(operand(i, 1)).elements_count() == 0 && same_shape(i, operand(i, 2)) &&
      same_shape(i, operand(i, 0))) {
    if (!go("scatter of everything", i)) return;
    Dims every(m_.shape(i).dims.size());
    std::iota(every.begin(), every.end(), int64_t{0});
    rw(i, Opcode::Map, {operand(i, 0), operand(i, 2)},
       attrs_of(u_, Opcode::Map, {{Attr::dimensions, every}, {Attr::to_apply, m_.called(i)[0]}}));
  }
}

void A::gather(InstId i) {
  InstId a = operand(i, 0), indices = operand(i, 1);
  if (m_.shape(a).elements_count() == 0) {
    if (go("gather from nothing", i)) rw_to(i, make_scalar_like(m_, i, 0));
    return;
  }
  //   gather from one element      →      broadcast
  if (m_.shape(a).is_effective_scalar()) {
    if (!go("gather from one element", i)) return;
    InstId scalar = m_.shape(a).rank() ? make_reshape(m_, a, {}) : a;
    rw(i, Opcode::Broadcast, {scalar}, dims_attr(u_, Opcode::Broadcast, {}));
    return;
  }
  //   gather(A, i) from at most four elements      →      select(i >= 1, A[1], select(i >= 0, A[0], A[0])) and so on
  const AttrSet& s = m_.attrs(i);
  constexpr int64_t kFew = 4;
  if (gather_of_pad(i)) return;
  if (m_.shape(a).rank() != 1 || m_.shape(a).dims[0] > kFew || m_.shape(indices).rank() == 0 ||
      s.integer(Attr::index_vector_dim) != m_.shape(indices).rank() || s.ints(Attr::collapsed_slice_dims) != Dims{0} ||
      m_.shape(i).elements_count() == 0)
    return;
  if (!go("gather from few elements", i)) return;
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
  rw_to(i, result);
}

}  // namespace hlo
