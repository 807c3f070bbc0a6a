// algsimp on what takes parts of arrays or puts them together.
#include <algorithm>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

void A::slice(InstId i) {
  InstId a = operand(i, 0);
  if (ric(i, a, "slice of everything")) return;
  const std::vector<SliceDim> s = *m_.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
  bool unstrided = std::all_of(s.begin(), s.end(), [](const SliceDim& d) { return d.stride == 1; });
  const Dims out = m_.shape(i).dims;
  //   slice(pad(A))      →      broadcast(value), A, or slice(A)
  if (op(a) == Opcode::Pad && unstrided) {
    const auto pads = *m_.attrs(a).get<std::vector<PaddingDim>>(Attr::padding);
    const Dims in = m_.shape(operand(a, 0)).dims;
    bool interior = std::any_of(pads.begin(), pads.end(), [](const PaddingDim& d) { return d.interior != 0; });
    bool outside = false, inside = !interior;
    for (size_t d = 0; d < s.size(); ++d) {
      int64_t first = pads[d].low, last = first + in[d] + std::max<int64_t>(in[d] - 1, 0) * pads[d].interior;
      if (s[d].limit <= first || s[d].start >= last) outside = true;
      if (s[d].start < first || s[d].limit > last) inside = false;
    }
    if (outside) {
      if (go("slice of padding", i)) rw(i, Opcode::Broadcast, {operand(a, 1)}, dims_attr(u_, Opcode::Broadcast, {}));
      return;
    }
    if (inside) {
      if (in == out && ric(i, operand(a, 0), "slice undoes a pad")) return;
      if (!go("slice inside a pad", i)) return;
      auto moved = s;
      for (size_t d = 0; d < s.size(); ++d) moved[d].start -= pads[d].low, moved[d].limit -= pads[d].low;
      rw(i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, moved}}));
      return;
    }
  }
  //   slice(slice(A))      →      slice(A)
  if (op(a) == Opcode::Slice && unstrided) {
    auto inner = *m_.attrs(a).get<std::vector<SliceDim>>(Attr::slice);
    if (std::all_of(inner.begin(), inner.end(), [](const SliceDim& d) { return d.stride == 1; })) {
      if (!go("slice twice", i)) return;
      for (size_t d = 0; d < s.size(); ++d) inner[d].limit = inner[d].start + s[d].limit, inner[d].start += s[d].start;
      rw(i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, inner}}));
      return;
    }
  }
  //   slice(broadcast(A))      →      broadcast(slice(A))
  if (op(a) == Opcode::Broadcast) {
    const Dims map = m_.attrs(a).ints(Attr::dimensions);
    InstId source = operand(a, 0);
    bool touched = false;
    std::vector<SliceDim> inner;
    for (int64_t d : map) {
      inner.push_back(s[static_cast<size_t>(d)]);
      touched |= out[static_cast<size_t>(d)] != m_.shape(a).dims[static_cast<size_t>(d)];
    }
    if (!go("slice of a broadcast", i)) return;
    if (touched)
      source = make_derived(m_, a, Opcode::Slice, {source}, attrs_of(u_, Opcode::Slice, {{Attr::slice, inner}}));
    rw(i, Opcode::Broadcast, {source}, dims_attr(u_, Opcode::Broadcast, map));
    return;
  }
  //   slice(concatenate(A, B, …))      →      slice of the pieces it meets
  if (op(a) == Opcode::Concatenate && unstrided) {
    size_t dim = static_cast<size_t>(m_.attrs(a).ints(Attr::dimensions)[0]);
    std::vector<InstId> pieces;
    int64_t at = 0, first = -1;
    for (InstId o : m_.operands(a)) {
      int64_t n = m_.shape(o).dims[dim];
      if (at < s[dim].limit && at + n > s[dim].start) {
        if (first < 0) first = at;
        pieces.push_back(o);
      }
      at += n;
    }
    if (!pieces.empty() && pieces.size() < m_.operand_count(a)) {
      if (pieces.size() == 1 && m_.shape(pieces[0]).dims == out &&
          ric(i, pieces[0], "slice is a piece of a concatenate"))
        return;
      if (!go("slice of a concatenate", i)) return;
      auto moved = s;
      moved[dim].start -= first, moved[dim].limit -= first;
      InstId joined = pieces[0];
      if (pieces.size() > 1) {
        Dims dims = m_.shape(a).dims;
        dims[dim] = 0;
        for (InstId o : pieces) dims[dim] += m_.shape(o).dims[dim];
        Shape shape = m_.shape(a);
        shape.dims = dims;
        joined = m_.add_derived(a, {.op = Opcode::Concatenate,
                                    .shape = u_.shape(shape),
                                    .operands = pieces,
                                    .attrs = dims_attr(u_, Opcode::Concatenate, {static_cast<int64_t>(dim)})});
      }
      rw(i, Opcode::Slice, {joined}, attrs_of(u_, Opcode::Slice, {{Attr::slice, moved}}));
      return;
    }
  }
  //   slice(reduce-window(A)) of the last sum      →      reshape(reduce(A))
  if (op(a) == Opcode::ReduceWindow && unstrided && m_.use_count(a) == 1 && !m_.shape(a).is_tuple() &&
      last_of_window(i, s))
    return;
  //   slice(reshape(A)) along the leading dimension      →      reshape(slice(A))
  if (!ls_ && op(a) == Opcode::Reshape && unstrided && !s.empty()) {
    const Dims &from = m_.shape(operand(a, 0)).dims, &to = m_.shape(a).dims;
    bool leading = s[0].start == 0 && s[0].limit != to[0];
    for (size_t d = 1; d < s.size(); ++d) leading &= s[d].start == 0 && s[d].limit == to[d];
    // As many elements, counted off from the minor dimension of A: whole dimensions, then a part of one, then ones.
    int64_t left = m_.shape(i).elements_count();
    std::vector<SliceDim> inner(from.size());
    for (size_t d = from.size(); d-- > 0;) {
      int64_t taken = std::min(left, from[d]);
      leading = leading && taken > 0 && left % taken == 0;
      if (!leading) break;
      inner[d] = {0, taken, 1};
      left /= taken;
    }
    if (leading && left == 1) {
      if (!go("slice of a reshape", i)) return;
      InstId small =
          make_derived(m_, i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, inner}}));
      rw(i, Opcode::Reshape, {small});
      return;
    }
  }
  //   slice(reverse(A))      →      reverse(slice(A))
  if (op(a) == Opcode::Reverse) {
    const Dims turned = m_.attrs(a).ints(Attr::dimensions), in = m_.shape(a).dims;
    if (!go("slice of a reverse", i)) return;
    auto moved = s;
    for (int64_t d : turned) {
      SliceDim& e = moved[static_cast<size_t>(d)];
      if (out[static_cast<size_t>(d)] == 0) continue;  // nothing is taken, from wherever
      int64_t last = e.start + (out[static_cast<size_t>(d)] - 1) * e.stride;
      e.start = in[static_cast<size_t>(d)] - 1 - last;
      e.limit = e.start + (out[static_cast<size_t>(d)] - 1) * e.stride + 1;
    }
    InstId inner =
        make_derived(m_, i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, moved}}));
    rw(i, Opcode::Reverse, {inner}, dims_attr(u_, Opcode::Reverse, turned));
    return;
  }
  //   strides that take one element      →      stride 1
  auto plain = s;
  for (SliceDim& d : plain)
    if (d.stride != 1 && d.start < d.limit && d.start + d.stride >= d.limit) d.limit = d.start + 1, d.stride = 1;
  if (plain != s) {
    if (go("stride of one element", i)) rw(i, Opcode::Slice, {a}, attrs_of(u_, Opcode::Slice, {{Attr::slice, plain}}));
  }
}

// A dimension taken whole starts at 0 whatever its index says; the indices follow operand `first - 1`.
bool A::zero_whole_indices(InstId i, size_t first, const Dims& taken, const Dims& all) {
  std::vector<InstId> ops(m_.operands(i).begin(), m_.operands(i).end());
  auto replaced = [&](size_t d) { return taken[d] == all[d] && !is_all(m_, ops[first + d], 0); };
  bool whole = false;
  for (size_t d = 0; d < taken.size(); ++d) whole |= replaced(d);
  if (!whole) return false;
  if (!go("index of a whole dimension", i)) return true;
  // One constant for all of a type.
  InstId zero;
  for (size_t d = 0; d < taken.size(); ++d) {
    if (!replaced(d)) continue;
    if (!zero.valid() || type(zero) != type(ops[first + d]))
      zero = make_scalar(m_, m_.parent(i), type(ops[first + d]), 0);
    ops[first + d] = zero;
  }
  ri(i, m_.clone_inst(i, m_.parent(i), ops));
  return true;
}

void A::dynamic_slice(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(i).rank() == 0) {
    ric(i, a, "dynamic-slice of a scalar");
    return;
  }
  if (m_.shape(i).dims == m_.shape(a).dims) {
    ric(i, a, "dynamic-slice of everything");
    return;
  }
  size_t rank = m_.shape(i).dims.size();
  if (m_.operand_count(i) != rank + 1) return;
  const Dims sizes = m_.shape(i).dims, in = m_.shape(a).dims;
  if (zero_whole_indices(i, 1, sizes, in)) return;
  //   dynamic-slice(broadcast(A))      →      broadcast(dynamic-slice(A))
  if (op(a) == Opcode::Broadcast) {
    if (!go("dynamic-slice of a broadcast", i)) return;
    const Dims map = m_.attrs(a).ints(Attr::dimensions);
    InstId source = operand(a, 0);
    if (!map.empty()) {
      std::vector<InstId> inner{source};
      Dims inner_sizes;
      for (int64_t d : map)
        inner.push_back(operand(i, static_cast<size_t>(d) + 1)), inner_sizes.push_back(sizes[static_cast<size_t>(d)]);
      source = make_op(i, Opcode::DynamicSlice, inner,
                       attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, inner_sizes}}));
    }
    rw(i, Opcode::Broadcast, {source}, dims_attr(u_, Opcode::Broadcast, map));
    return;
  }
  if (!ls_ && dynamic_slice_of_movement(i)) return;
  //   dynamic-slice at constant indices      →      slice
  bool constant = !k(a);
  std::vector<SliceDim> s;
  for (size_t d = 0; d < rank && constant; ++d) {
    int64_t v;
    constant = scalar_int(operand(i, d + 1), &v) && v >= 0;
    if (constant) {
      v = std::clamp<int64_t>(v, 0, in[d] - sizes[d]);
      s.push_back({v, v + sizes[d], 1});
    }
  }
  if (constant) {
    if (go("dynamic-slice at constant indices", i))
      rw(i, Opcode::Slice, {a}, attrs_of(u_, Opcode::Slice, {{Attr::slice, s}}));
    return;
  }
  if (dynamic_slice_of_iota(i)) return;
  //   dynamic-slice(dynamic-slice(A, i), j)      →      dynamic-slice(A, j + clamp(i))
  if (op(a) != Opcode::DynamicSlice || m_.operand_count(a) != rank + 1) return;
  if (!go("dynamic-slice twice", i)) return;
  const Dims whole = m_.shape(operand(a, 0)).dims;
  for (size_t d = 0; d < rank; ++d) {
    // XLA clamps the inner index as if what is taken last were taken at once: it must be in range where that is less.
    InstId inner = operand(a, d + 1), outer = operand(i, d + 1);
    InstId lo = make_scalar(m_, m_.parent(i), type(inner), 0),
           hi = make_scalar(m_, m_.parent(i), type(inner), whole[d] - sizes[d]);
    InstId clamped = make_convert(m_, make_op(i, Opcode::Clamp, {lo, inner, hi}, {}, m_.shape_id(inner)), type(outer));
    m_.set_operand(i, d + 1, make_op(i, Opcode::Add, {outer, clamped}, {}, m_.shape_id(outer)));
  }
  m_.set_operand(i, 0, operand(a, 0));
  changed_ = true;
}

void A::dynamic_update_slice(InstId i) {
  InstId a = operand(i, 0), update = operand(i, 1);
  size_t rank = m_.shape(i).dims.size();
  if (m_.operand_count(i) != rank + 2) return;
  const Dims out = m_.shape(i).dims, up = m_.shape(update).dims;
  //   dynamic-update-slice(broadcast(v), U, constants)      →      pad(U, v)
  if (op(a) == Opcode::Broadcast && m_.shape(operand(a, 0)).rank() == 0) {
    bool constant = true;
    std::vector<PaddingDim> pads;
    for (size_t d = 0; d < rank && constant; ++d) {
      int64_t v;
      constant = scalar_int(operand(i, d + 2), &v);
      if (constant) {
        v = std::clamp<int64_t>(v, 0, out[d] - up[d]);
        pads.push_back({v, out[d] - up[d] - v, 0});
      }
    }
    if (constant) {
      if (go("update of a spread scalar", i))
        rw(i, Opcode::Pad, {update, operand(a, 0)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}}));
      return;
    }
  }
  if (same_shape(i, update)) {
    if (ric(i, update, "update of everything")) return;
  }
  if (zero_whole_indices(i, 2, up, out)) return;
  if (m_.shape(update).elements_count() == 0 && ric(i, a, "update without elements")) return;
  //   dynamic-update-slice(A, dynamic-update-slice(dynamic-slice(A, i), C, j), i)
  //   →  dynamic-update-slice(A, C, i + clamp(j))
  if (op(update) != Opcode::DynamicUpdateSlice || op(operand(update, 0)) != Opcode::DynamicSlice) return;
  InstId piece = operand(update, 0);
  if (operand(piece, 0) != a || m_.operand_count(piece) != rank + 1 || m_.operand_count(update) != rank + 2) return;
  for (size_t d = 0; d < rank; ++d)
    if (operand(piece, d + 1) != operand(i, d + 2)) return;
  if (!go("update of a part of a slice", i)) return;
  InstId small = operand(update, 1);
  for (size_t d = 0; d < rank; ++d) {
    InstId inner = operand(update, d + 2), outer = operand(i, d + 2);
    // XLA takes the outer index to be in range; where it is not, the update lands elsewhere than it did.
    InstId lo = make_scalar(m_, m_.parent(i), type(inner), 0),
           hi = make_scalar(m_, m_.parent(i), type(inner), up[d] - m_.shape(small).dims[d]);
    InstId clamped = make_convert(m_, make_op(i, Opcode::Clamp, {lo, inner, hi}, {}, m_.shape_id(inner)), type(outer));
    m_.set_operand(i, d + 2, make_op(i, Opcode::Add, {outer, clamped}, {}, m_.shape_id(outer)));
  }
  m_.set_operand(i, 1, small);
  changed_ = true;
}

void A::pad(InstId i) {
  InstId a = operand(i, 0);
  if (m_.shape(a).elements_count() == 0) {
    if (go("pad of nothing", i)) rw(i, Opcode::Broadcast, {operand(i, 1)}, dims_attr(u_, Opcode::Broadcast, {}));
    return;
  }
  auto pads = *m_.attrs(i).get<std::vector<PaddingDim>>(Attr::padding);
  bool useless = false;
  for (size_t d = 0; d < pads.size(); ++d)
    if (pads[d].interior && m_.shape(a).dims[d] == 1) useless = true;
  if (useless) {
    if (!go("interior padding of one element", i)) return;
    for (size_t d = 0; d < pads.size(); ++d)
      if (m_.shape(a).dims[d] == 1) pads[d].interior = 0;
    rw(i, Opcode::Pad, {a, operand(i, 1)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}}));
    return;
  }
  bool nothing =
      std::all_of(pads.begin(), pads.end(), [](const PaddingDim& p) { return !p.low && !p.high && !p.interior; });
  if (nothing && ric(i, a, "pad by nothing")) return;
  if (pad_of_broadcast(i, pads)) return;
  bool negative = std::any_of(pads.begin(), pads.end(), [](const PaddingDim& p) { return p.low < 0 || p.high < 0; });
  //   pad with negative edges      →      slice(pad)
  if (negative) {
    if (!go("negative padding", i)) return;
    auto positive = pads;
    for (PaddingDim& p : positive) p.low = std::max<int64_t>(p.low, 0), p.high = std::max<int64_t>(p.high, 0);
    AttrsId attrs = attrs_of(u_, Opcode::Pad, {{Attr::padding, positive}});
    InstId wide = make_op(i, Opcode::Pad, {a, operand(i, 1)}, attrs);
    Shape s = m_.shape(wide);
    s.layout = m_.shape(i).layout;
    m_.set_shape(wide, u_.shape(s));
    std::vector<SliceDim> cut;
    for (size_t d = 0; d < pads.size(); ++d)
      cut.push_back(
          {std::max<int64_t>(-pads[d].low, 0), m_.shape(wide).dims[d] - std::max<int64_t>(-pads[d].high, 0), 1});
    rw(i, Opcode::Slice, {wide}, attrs_of(u_, Opcode::Slice, {{Attr::slice, cut}}));
  }
}

void A::concatenate(InstId i) {
  if (m_.operand_count(i) == 1) {
    ric(i, operand(i, 0), "concatenate of one piece");
    return;
  }
  size_t dim = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
  AttrsId attrs = dims_attr(u_, Opcode::Concatenate, {static_cast<int64_t>(dim)});
  std::vector<InstId> ops(m_.operands(i).begin(), m_.operands(i).end()), kept;
  for (InstId o : ops)
    if (m_.shape(o).elements_count() != 0) kept.push_back(o);
  if (kept.size() != ops.size()) {
    if (kept.empty()) {
      ric(i, ops[0], "concatenate of nothing");
      return;
    }
    if (!go("empty pieces", i)) return;
    if (kept.size() == 1)
      ri(i, kept[0]);
    else
      rw(i, Opcode::Concatenate, kept, attrs);
    return;
  }
  if (ls_) return;  // behind layouts some passes take concatenates apart
  //   concatenate(concatenate(A, B), C)      →      concatenate(A, B, C)
  std::vector<InstId> flat;
  bool nested = false;
  for (InstId o : ops) {
    if (op(o) == Opcode::Concatenate && m_.attrs(o).ints(Attr::dimensions)[0] == static_cast<int64_t>(dim)) {
      nested = true;
      for (InstId p : m_.operands(o)) flat.push_back(p);
    } else {
      flat.push_back(o);
    }
  }
  if (nested) {
    if (go("nested concatenate", i)) rw(i, Opcode::Concatenate, flat, attrs);
    return;
  }
  //   neighbouring slices of one array      →      one slice
  std::vector<InstId> merged;
  bool joined = false;
  for (size_t n = 0; n < ops.size();) {
    InstId o = ops[n];
    if (op(o) == Opcode::Slice) {
      auto s = *m_.attrs(o).get<std::vector<SliceDim>>(Attr::slice);
      bool unstrided = std::all_of(s.begin(), s.end(), [](const SliceDim& d) { return d.stride == 1; });
      size_t last = n + 1;
      for (; unstrided && last < ops.size(); ++last) {
        if (op(ops[last]) != Opcode::Slice || operand(ops[last], 0) != operand(o, 0)) break;
        auto t = *m_.attrs(ops[last]).get<std::vector<SliceDim>>(Attr::slice);
        bool follows = true;
        for (size_t d = 0; d < s.size(); ++d)
          follows &= d == dim ? t[d].start == s[d].limit && t[d].stride == 1 : t[d] == s[d];
        if (!follows) break;
        s[dim].limit = t[dim].limit;
      }
      if (last > n + 1) {
        if (!joined && !go("neighbouring slices joined", i)) return;
        joined = true;
        merged.push_back(make_op(i, Opcode::Slice, {operand(o, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, s}})));
        n = last;
        continue;
      }
    }
    merged.push_back(o);
    ++n;
  }
  if (joined) {
    rw(i, Opcode::Concatenate, merged, attrs);
    return;
  }
  //   concatenate(A, broadcast(v))      →      pad(A, v)
  if (ops.size() == 2) {
    for (size_t side : {size_t{0}, size_t{1}}) {
      InstId b = ops[side];
      if (op(b) != Opcode::Broadcast || m_.shape(operand(b, 0)).rank() != 0) continue;
      if (!go("concatenate of a spread scalar", i)) return;
      std::vector<PaddingDim> pads(m_.shape(i).dims.size());
      (side ? pads[dim].high : pads[dim].low) = m_.shape(b).dims[dim];
      rw(i, Opcode::Pad, {ops[1 - side], operand(b, 0)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}}));
      return;
    }
  }
  //   concatenate(A, A, A, …) along a dimension of one      →      broadcast(reshape(A)); XLA leaves two
  if (ops.size() > 2 && std::all_of(ops.begin(), ops.end(), [&](InstId o) { return o == ops[0]; }) &&
      m_.shape(ops[0]).dims[dim] == 1) {
    if (!go("concatenate of one array with itself", i)) return;
    Dims dims, map;
    for (size_t d = 0; d < m_.shape(i).dims.size(); ++d)
      if (d != dim) dims.push_back(m_.shape(i).dims[d]), map.push_back(static_cast<int64_t>(d));
    InstId r = make_reshape(m_, ops[0], dims);
    rw(i, Opcode::Broadcast, {r}, dims_attr(u_, Opcode::Broadcast, map));
  }
}

void A::reverse(InstId i) {
  InstId a = operand(i, 0);
  const Dims& turned = m_.attrs(i).ints(Attr::dimensions);
  Dims real;
  for (int64_t d : turned)
    if (m_.shape(i).dims[static_cast<size_t>(d)] != 1) real.push_back(d);
  //   reverse along dimensions of one      →      operand
  if (real.empty()) {
    ric(i, a, "reverse of one element");
    return;
  }
  //   reverse(reverse(A))      →      reverse(A) along what one of them turns, or A
  if (op(a) == Opcode::Reverse) {
    const Dims& inner = m_.attrs(a).ints(Attr::dimensions);
    Dims once;
    for (int64_t d = 0; d < m_.shape(i).rank(); ++d)
      if (contains(turned, d) != contains(inner, d)) once.push_back(d);
    if (!go("reverse twice", i)) return;
    if (once.empty())
      ri(i, operand(a, 0));
    else
      rw(i, Opcode::Reverse, {operand(a, 0)}, dims_attr(u_, Opcode::Reverse, once));
    return;
  }
  //   reverse(reshape(A)) where the reshape at most adds ones      →      reshape(reverse(A))
  if (!ls_ && op(a) == Opcode::Reshape) {
    const Dims &from = m_.shape(operand(a, 0)).dims, &to = m_.shape(a).dims;
    Dims place(to.size(), -1);
    size_t at = 0;
    bool adds = true;
    for (size_t d = 0; d < to.size(); ++d) {
      if (at < from.size() && to[d] == from[at])
        place[d] = static_cast<int64_t>(at++);
      else
        adds &= to[d] == 1;
    }
    if (adds && at == from.size()) {
      Dims inner;
      for (int64_t d : real)
        if (place[static_cast<size_t>(d)] >= 0) inner.push_back(place[static_cast<size_t>(d)]);
      if (!go("reverse of added dimensions", i)) return;
      rw(i, Opcode::Reshape, {make_op(i, Opcode::Reverse, {operand(a, 0)}, dims_attr(u_, Opcode::Reverse, inner))});
      return;
    }
  }
  //   reverse(op(A, broadcast(scalar)))      →      op(reverse(A), broadcast(scalar))
  if (m_.operand_count(a) == 2 && op_info(op(a)).elementwise && type(a) == type(operand(a, 0)) &&
      type(a) == type(operand(a, 1)) && !m_.has_control(a)) {
    auto scalar = [&](InstId o) { return op(o) == Opcode::Broadcast && m_.shape(operand(o, 0)).rank() == 0; };
    for (size_t side : {size_t{0}, size_t{1}}) {
      if (!scalar(operand(a, 1 - side)) || scalar(operand(a, side))) continue;
      if (!go("reverse next to a broadcast scalar", i)) return;
      std::vector<InstId> ops(m_.operands(a).begin(), m_.operands(a).end());
      ops[side] = make_op(i, Opcode::Reverse, {ops[side]}, dims_attr(u_, Opcode::Reverse, turned));
      rw(i, op(a), ops, m_[a].attrs);
      return;
    }
  }
}

}  // namespace hlo
