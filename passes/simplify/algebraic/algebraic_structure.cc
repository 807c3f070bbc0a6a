// algsimp on contractions, reductions, indexing and control flow.
#include <algorithm>
#include <cmath>

#include "ir/query/reducer.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

void A::reduce(InstId i) {
  size_t n = m_.operand_count(i) / 2;
  InstId a = operand(i, 0), init = operand(i, n);
  CompId c = m_.parent(i), f = m_.called(i)[0];
  const Dims dims = m_.attrs(i).ints(Attr::dimensions);
  const Shape& in = m_.shape(a);
  bool variadic = m_.shape(i).is_tuple();
  //   reduce of nothing      →      broadcast(init)
  const Shape& first_out = variadic ? u_[m_.shape(i).elements[0]] : m_.shape(i);
  if (in.elements_count() == 0 || first_out.elements_count() == 0) {
    if (!go("reduce of nothing", i)) return;
    std::vector<InstId> parts;
    for (size_t k = 0; k < n; ++k)
      parts.push_back(
          make_broadcast(m_, c, operand(i, n + k), {}, variadic ? m_.shape(i).elements[k] : m_.shape_id(i)));
    if (variadic)
      rw(i, Opcode::Tuple, parts);
    else
      rw_to(i, parts[0]);
    return;
  }
  if (reduce_of_several(i)) return;
  if (variadic) {
    if (!reduce_of_single_elements(i)) place_in_constant(i);
    return;
  }
  auto reduce_attrs = [&](const Dims& d) {
    return attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, d}, {Attr::to_apply, f}});
  };
  //   reduce over dimensions of one      →      reshape
  if (in.elements_count() == first_out.elements_count() && in.type == first_out.type &&
      (!ls_ || reshape_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i)))) {
    if (go("reduce of single elements", i)) rw(i, Opcode::Reshape, {a});
    return;
  }
  if (ls_) return;
  const std::optional<Opcode> kind = reducer_operation(m_, f);
  //   reduce-add(negate(A))      →      negate(reduce-add(A))
  if (kind == Opcode::Add && is_float(type(i)) && op(a) == Opcode::Negate && is_all(m_, init, 0)) {
    if (!go("reduce of a negation", i)) return;
    // The reduction stays, and takes what was negated; the negation is left, dead.
    InstId outer = make_op(i, Opcode::Negate, {i}, {}, m_.shape_id(i));
    m_.replace_all_uses(i, outer);
    m_.set_operand(outer, 0, i);
    m_.set_operand(i, 0, operand(a, 0));
    changed_ = true;
    return;
  }
  //   reduce(transpose(A))      →      transpose(reduce(A))
  if (op(a) == Opcode::Transpose && (reduce_of_transpose_ || one_user(a))) {
    const Dims p = m_.attrs(a).ints(Attr::dimensions);
    Dims mapped, kept;
    for (int64_t d : dims) mapped.push_back(p[static_cast<size_t>(d)]);
    for (int64_t d = 0; d < in.rank(); ++d)
      if (!contains(dims, d)) kept.push_back(p[static_cast<size_t>(d)]);
    // Where the kept dimensions land after the reduction of the operand.
    Dims order;
    for (int64_t d : kept) order.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t e) { return e < d; }));
    if (!go("reduce of a transpose", i)) return;
    InstId r = make_op(i, Opcode::Reduce, {operand(a, 0), init}, reduce_attrs(mapped));
    rw_to(i, is_identity(order) ? r : make_op(i, Opcode::Transpose, {r}, dims_attr(u_, Opcode::Transpose, order)));
    return;
  }
  //   reduce(reduce(A))      →      reduce(A)
  if (op(a) == Opcode::Reduce && !m_.shape(a).is_tuple() && m_.operand_count(a) == 2) {
    InstId inner_init = operand(a, 1);
    bool same_init =
        inner_init == init || (k(inner_init) && k(init) && m_.literal_id(inner_init) == m_.literal_id(init));
    if (kind && reducer_operation(m_, m_.called(a)[0]) == kind && same_init) {
      const Dims inner = m_.attrs(a).ints(Attr::dimensions);
      Dims all = inner, left;
      for (int64_t d = 0; d < m_.shape(operand(a, 0)).rank(); ++d)
        if (!contains(inner, d)) left.push_back(d);
      for (int64_t d : dims) all.push_back(left[static_cast<size_t>(d)]);
      std::sort(all.begin(), all.end());
      if (go("reduce of a reduce", i)) rw(i, Opcode::Reduce, {operand(a, 0), init}, reduce_attrs(all));
      return;
    }
  }
  //   reduce(reshape(A))      →      reduce(A)       where all kept dimensions are A's own
  if (op(a) == Opcode::Reshape) {
    auto pairs = unmodified_dims(m_.shape(operand(a, 0)).dims, in.dims);
    Dims kept_from;
    bool all_kept = true;
    for (int64_t d = 0; d < in.rank(); ++d) {
      if (contains(dims, d)) continue;
      auto at = std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == d; });
      if (at == pairs.end())
        all_kept = false;
      else
        kept_from.push_back(at->first);
    }
    if (all_kept) {
      Dims mapped;
      for (int64_t d = 0; d < m_.shape(operand(a, 0)).rank(); ++d)
        if (!contains(kept_from, d)) mapped.push_back(d);
      if (go("reduce of a reshape", i)) rw(i, Opcode::Reduce, {operand(a, 0), init}, reduce_attrs(mapped));
      return;
    }
    if (one_user(a) || reduce_of_transpose_) {
      Dims mapped;
      for (int64_t d : dims) {
        auto at = std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == d; });
        if (at == pairs.end()) break;
        mapped.push_back(at->first);
      }
      if (mapped.size() == dims.size()) {
        if (!go("reduce of a reshape", i)) return;
        InstId r = make_op(i, Opcode::Reduce, {operand(a, 0), init}, reduce_attrs(mapped));
        rw(i, Opcode::Reshape, {r});
        return;
      }
    }
  }
  //   reduce(concatenate(A, B)) along the joined dimension      →      f(reduce(A), reduce(B))
  if (op(a) == Opcode::Concatenate && contains(dims, m_.attrs(a).ints(Attr::dimensions)[0])) {
    std::vector<InstId> pieces(m_.operands(a).begin(), m_.operands(a).end());
    bool alike = std::all_of(pieces.begin(), pieces.end(),
                             [&](InstId p) { return m_.shape(p).dims == m_.shape(pieces[0]).dims; });
    if (alike || m_.shape(i).rank() == 0) {
      if (!go("reduce of a concatenate", i)) return;
      InstId acc;
      Dims every;
      for (int64_t d = 0; d < m_.shape(i).rank(); ++d) every.push_back(d);
      for (InstId p : pieces) {
        InstId r = make_op(i, Opcode::Reduce, {p, init}, reduce_attrs(dims), m_.shape_id(i));
        acc = acc.valid()
                  ? make_op(i, Opcode::Map, {acc, r},
                            attrs_of(u_, Opcode::Map, {{Attr::dimensions, every}, {Attr::to_apply, f}}), m_.shape_id(i))
                  : r;
      }
      rw_to(i, acc);
      return;
    }
  }
  if (kind && (value_beside_place(i, *kind) || reduce_of_scalar(i, *kind))) return;
  if (op(a) == Opcode::Broadcast) {
    const Dims map = m_.attrs(a).ints(Attr::dimensions);
    //   reduce(broadcast(A)) over dimensions that are A's own      →      broadcast(reduce(A))
    bool own = std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return contains(map, d); });
    if (own && !dims.empty() && std::is_sorted(map.begin(), map.end())) {
      Dims inner, kept_map;
      for (size_t d = 0; d < map.size(); ++d) {
        if (contains(dims, map[d]))
          inner.push_back(static_cast<int64_t>(d));
        else
          kept_map.push_back(map[d] - std::count_if(dims.begin(), dims.end(), [&](int64_t e) { return e < map[d]; }));
      }
      if (static_cast<int64_t>(map.size()) < in.rank()) {
        if (!go("reduce of a broadcast", i)) return;
        InstId r = make_op(i, Opcode::Reduce, {operand(a, 0), init}, reduce_attrs(inner));
        rw(i, Opcode::Broadcast, {r}, dims_attr(u_, Opcode::Broadcast, kept_map));
        return;
      }
    }
    //   reduce-add(broadcast(A)) over dimensions that the broadcast made      →      broadcast(init + A * count)
    bool added = std::none_of(dims.begin(), dims.end(), [&](int64_t d) { return contains(map, d); });
    if (kind == Opcode::Add && added && std::is_sorted(map.begin(), map.end()) && type(i) != ElementType::Pred) {
      int64_t count = 1;
      for (int64_t d : dims) count *= in.dims[static_cast<size_t>(d)];
      InstId source = operand(a, 0);
      if (!go("sum of a broadcast", i)) return;
      Dims kept_map;
      for (int64_t d : map)
        kept_map.push_back(d - std::count_if(dims.begin(), dims.end(), [&](int64_t e) { return e < d; }));
      InstId product = make_op(i, Opcode::Multiply, {source, make_scalar_like(m_, source, count)});
      InstId start = make_broadcast(m_, c, init, {}, m_.shape_id(source));
      InstId sum = make_op(i, Opcode::Add, {start, product});
      rw(i, Opcode::Broadcast, {sum}, dims_attr(u_, Opcode::Broadcast, kept_map));
    }
  }
}

void A::reduce_window(InstId i) {
  if (m_.operand_count(i) != 2 || reduce_of_several(i) || m_.shape(i).is_tuple()) return;
  if (m_.shape(operand(i, 0)).rank() == 0) {
    ric(i, operand(i, 0), "window over a scalar");
    return;
  }
  InstId a = operand(i, 0), init = operand(i, 1);
  if (m_.shape(a).elements_count() == 0 || m_.shape(i).elements_count() == 0) {
    if (go("reduce-window of nothing", i)) rw(i, Opcode::Broadcast, {init}, dims_attr(u_, Opcode::Broadcast, {}));
    return;
  }
  Window w = *m_.attrs(i).get<Window>(Attr::window);
  CompId f = m_.called(i)[0];
  if (window_of_constant(i)) return;
  //   a window over whole dimensions, without padding      →      reshape(reduce)
  bool plain = true;
  Dims dims;
  for (size_t d = 0; d < w.dims.size(); ++d) {
    const WindowDim& e = w.dims[d];
    plain &= !e.pad_low && !e.pad_high && e.lhs_dilate == 1 && e.rhs_dilate == 1 && !e.reversal;
    if (e.size == m_.shape(a).dims[d] && m_.shape(i).dims[d] == 1) {
      if (e.size != 1) dims.push_back(static_cast<int64_t>(d));
    } else if (e.size != 1 || e.stride != 1) {
      plain = false;
    }
    plain &= e.stride == 1;
  }
  if (plain && !dims.empty() && m_.shape(a).type == m_.shape(i).type) {
    if (!go("window is a reduction", i)) return;
    InstId r = make_op(i, Opcode::Reduce, {a, init},
                       attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, dims}, {Attr::to_apply, f}}));
    if (m_.shape(r).dims == m_.shape(i).dims)
      rw_to(i, r);
    else
      rw(i, Opcode::Reshape, {r});
    return;
  }
  //   reduce-window(pad(A, init))      →      reduce-window(A) with padding in the window
  InstId p = a, cast;
  if (op(p) == Opcode::Convert) cast = p, p = operand(p, 0);
  if (op(p) != Opcode::Pad) return;
  if (window_sees_one(i, p, cast)) return;
  const auto pads = *m_.attrs(p).get<std::vector<PaddingDim>>(Attr::padding);
  for (size_t d = 0; d < pads.size(); ++d)
    if (pads[d].low < 0 || pads[d].high < 0 || (pads[d].interior && w.dims[d].lhs_dilate != 1)) return;
  InstId value = operand(p, 1);
  if (!k(value) || !k(init) || m_.literal(value).elided || m_.literal(init).elided) return;
  if (cast.valid() ? scalar_value(value) != scalar_value(init) : m_.literal_id(value) != m_.literal_id(init)) return;
  if (cast.valid()) {
    // Conversion of a little padding costs nothing; where a single dimension is scanned, it must be a tenth.
    size_t scanned = w.dims.size(), moving = 0;
    for (size_t d = 0; d < w.dims.size(); ++d)
      if (w.dims[d].size != 1) scanned = d, ++moving;
    if (is_complex(type(i)) || moving == 0) return;
    if (moving == 1 && 10 * (pads[scanned].low + pads[scanned].high) < m_.shape(p).dims[scanned]) return;
  }
  // Padding around elements that the window spreads out would have to be spread out, too.
  for (size_t d = 0; d < w.dims.size(); ++d)
    if (w.dims[d].lhs_dilate != 1 && (pads[d].low || pads[d].high)) return;
  if (!go("padding into the window", i)) return;
  for (size_t d = 0; d < w.dims.size(); ++d) {
    w.dims[d].pad_low += pads[d].low, w.dims[d].pad_high += pads[d].high;
    if (pads[d].interior) w.dims[d].lhs_dilate = pads[d].interior + 1;
  }
  InstId source = operand(p, 0);
  if (cast.valid()) source = make_convert(m_, source, type(cast));
  rw(i, Opcode::ReduceWindow, {source, init},
     attrs_of(u_, Opcode::ReduceWindow, {{Attr::window, w}, {Attr::to_apply, f}}));
}

void A::dot(InstId i) {
  if (ls_) return;
  InstId l = operand(i, 0), r = operand(i, 1);
  CompId c = m_.parent(i);
  const Shape &ls = m_.shape(l), &rs = m_.shape(r), &out = m_.shape(i);
  //   dot of nothing      →      0
  if (ls.elements_count() == 0 || rs.elements_count() == 0 || out.elements_count() == 0) {
    if (!go("dot of nothing", i)) return;
    InstId zero = make_scalar(m_, c, out.type, 0);
    rw(i, Opcode::Broadcast, {zero}, dims_attr(u_, Opcode::Broadcast, {}));
    return;
  }
  const AttrSet& d = m_.attrs(i);
  const Dims lb = d.ints(Attr::lhs_batch_dims), rb = d.ints(Attr::rhs_batch_dims),
             lc = d.ints(Attr::lhs_contracting_dims), rc = d.ints(Attr::rhs_contracting_dims);
  //   dot without contracting dimensions      →      multiply of broadcasts
  std::string_view algorithm = u_.text(d.text(Attr::algorithm));
  if (lc.empty() && (algorithm.empty() || algorithm == "dot_f32_f32_f32")) {
    if (!go("dot without contraction", i)) return;
    auto side = [&](InstId x, const Dims& batch, int64_t first_free) {
      // Batch dimensions first, in the dot's order.
      Dims perm = batch;
      for (int64_t k = 0; k < m_.shape(x).rank(); ++k)
        if (!contains(batch, k)) perm.push_back(k);
      InstId t = is_identity(perm) ? x : make_transpose(m_, x, perm);
      t = make_convert(m_, t, out.type);
      Dims map;
      for (size_t k = 0; k < perm.size(); ++k)
        map.push_back(k < batch.size() ? static_cast<int64_t>(k) : first_free + static_cast<int64_t>(k - batch.size()));
      if (static_cast<int>(map.size()) == out.rank()) return t;
      return make_broadcast(m_, c, t, map, u_.with_default_layout(m_.shape_id(i)));
    };
    InstId x = side(l, lb, static_cast<int64_t>(lb.size()));
    InstId y = side(r, rb, static_cast<int64_t>(ls.rank()));
    rw(i, Opcode::Multiply, {x, y});
    return;
  }
  if (dot_of_movement(i)) return;
  //   dimensions of one leave the operands
  bool ones = std::find(ls.dims.begin(), ls.dims.end(), 1) != ls.dims.end() ||
              std::find(rs.dims.begin(), rs.dims.end(), 1) != rs.dims.end();
  if (ones) {
    if (!go("dot drops dimensions of one", i)) return;
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
    Dims nlb, nrb, nlc, nrc;
    InstId x = strip(l, lb, lc, &nlb, &nlc), y = strip(r, rb, rc, &nrb, &nrc);
    AttrSet set = d;
    set.erase(Attr::lhs_batch_dims), set.erase(Attr::rhs_batch_dims);
    if (!nlb.empty()) set.set(Attr::lhs_batch_dims, nlb), set.set(Attr::rhs_batch_dims, nrb);
    set.set(Attr::lhs_contracting_dims, nlc), set.set(Attr::rhs_contracting_dims, nrc);
    for (Attr key : {Attr::sharding, Attr::origin}) set.erase(key);
    AttrsId attrs = u_.attrs(std::move(set));
    Dims small_dims;
    for (int64_t v : m_.shape(i).dims)
      if (v != 1) small_dims.push_back(v);
    InstId small = m_.add_derived(
        i, {.op = Opcode::Dot, .shape = u_.array(out.type, small_dims), .operands = {x, y}, .attrs = attrs});
    if (m_.shape(small).dims == m_.shape(i).dims)
      rw_to(i, small);
    else
      rw(i, Opcode::Reshape, {small});
    return;
  }
  dot_of_transposes(i);
}

//   dot(transpose(A), transpose(B)) by one permutation      →      transpose(dot(A, B)), or of dot(B, A) where it swaps
//   the last two dimensions
bool A::dot_of_transposes(InstId i) {
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
  if (!go("dot of transposes", i)) return true;
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
  rw(i, Opcode::Transpose, {product}, dims_attr(u_, Opcode::Transpose, p));
  return true;
}

void A::sort(InstId i) {
  size_t dim = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
  const Shape& in = m_.shape(operand(i, 0));
  if (in.dims[dim] > 1 && in.elements_count() != 0) return;
  if (!m_.shape(i).is_tuple()) {
    ric(i, operand(i, 0), "sort of one element");
    return;
  }
  if (!go("sort of one element", i)) return;
  std::vector<InstId> ops(m_.operands(i).begin(), m_.operands(i).end());
  rw(i, Opcode::Tuple, ops);
}

void A::map(InstId i) {
  const Computation& c = m_.comp(m_.called(i)[0]);
  if (m_.op(c.root) == Opcode::Parameter) {
    ric(i, operand(i, static_cast<size_t>(m_.parameter_number(c.root))), "map that returns a parameter");
    return;
  }
  if (m_.op(c.root) == Opcode::Constant && m_.shape(c.root).rank() == 0) {
    if (!go("map that returns a constant", i)) return;
    InstId copy = m_.clone_inst(c.root, m_.parent(i), {});
    if (m_.shape(i).rank())
      rw(i, Opcode::Broadcast, {copy}, dims_attr(u_, Opcode::Broadcast, {}));
    else
      rw_to(i, copy);
    return;
  }
  if (!op_info(m_.op(c.root)).elementwise) return;
  std::vector<InstId> ops;
  for (InstId o : m_.operands(c.root)) {
    if (m_.op(o) != Opcode::Parameter) return;
    ops.push_back(operand(i, static_cast<size_t>(m_.parameter_number(o))));
  }
  if (!go("map of one operation", i)) return;
  InstId to = m_.clone_inst(c.root, m_.parent(i), ops, m_.shape_id(i));
  rw_to(i, to);
}

void A::conditional(InstId i) {
  //   conditional(convert(pred P), two branches)      →      conditional(P, second, first)
  InstId index = operand(i, 0);
  if (op(index) != Opcode::Convert || type(operand(index, 0)) != ElementType::Pred || m_.called(i).size() != 2) return;
  const auto* branches = m_.attrs(i).get<std::vector<CompId>>(Attr::branch_computations);
  if (!branches) return;
  if (!go("conditional on a converted pred", i)) return;
  AttrsId attrs = attrs_of(u_, Opcode::Conditional,
                           {{Attr::true_computation, (*branches)[1]}, {Attr::false_computation, (*branches)[0]}});
  rw(i, Opcode::Conditional, {operand(index, 0), operand(i, 2), operand(i, 1)}, attrs);
}

void A::opt_barrier(InstId i) {
  InstId t = operand(i, 0);
  if (!m_.shape(i).is_tuple() || m_.is_root(i)) return;
  std::vector<bool> used(m_.shape(i).elements.size(), false);
  for (InstId user : m_.users(i)) {
    if (op(user) != Opcode::GetTupleElement) return;
    used[static_cast<size_t>(m_.attrs(user).integer(Attr::index))] = true;
  }
  bool made_here = op(t) == Opcode::Tuple;
  std::vector<InstId> kept;
  std::vector<int64_t> to(used.size(), -1);
  auto needed = [&](size_t k) {
    if (used[k] || !made_here) return static_cast<bool>(used[k]);
    InstId o = operand(t, k);
    return !one_user(o) || m_.is_root(o) || m_.has_side_effect(o);
  };
  size_t count = 0;
  for (size_t k = 0; k < used.size(); ++k) count += needed(k);
  if (count == used.size() || !count) return;
  if (!go("unused elements of a barrier", i)) return;
  for (size_t k = 0; k < used.size(); ++k)
    if (needed(k)) {
      to[k] = static_cast<int64_t>(kept.size());
      kept.push_back(made_here ? operand(t, k) : make_element(m_, t, static_cast<int64_t>(k)));
    }
  InstId small = make_op(i, Opcode::Tuple, kept);
  m_.set_operand(i, 0, small);
  m_.set_shape(i, m_.shape_id(small));
  for (InstId user : m_.users_copy(i))
    m_.set_attr(user, Attr::index, to[static_cast<size_t>(m_.attrs(user).integer(Attr::index))]);
  changed_ = true;
}

void A::get_tuple_element(InstId i) {
  InstId t = operand(i, 0);
  if (op(t) == Opcode::Tuple)
    ric(i, operand(t, static_cast<size_t>(m_.attrs(i).integer(Attr::index))), "element of a tuple");
}

}  // namespace hlo
