// algsimp on products whose operands were moved, on windows that see little, and on collectives of one value.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "ir/query/reducer.h"
#include "passes/collectives/collectives.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

bool A::dot_of_movement(InstId i) {
  const AttrSet d = m_.attrs(i);
  const Dims contract[2] = {d.ints(Attr::lhs_contracting_dims), d.ints(Attr::rhs_contracting_dims)};
  bool batched = !d.ints(Attr::lhs_batch_dims).empty();
  if (batched || contract[0].size() != 1) return false;
  AttrSet bare = d;
  for (Attr key : {Attr::sharding, Attr::origin}) bare.erase(key);
  AttrsId attrs = u_.attrs(bare);
  auto product = [&](size_t side, InstId x, InstId y, ShapeId shape) {
    std::vector<InstId> ops = side ? std::vector<InstId>{y, x} : std::vector<InstId>{x, y};
    return make_op(i, Opcode::Dot, ops, attrs, shape);
  };
  for (size_t side : {size_t{0}, size_t{1}}) {
    InstId x = operand(i, side), y = operand(i, 1 - side);
    auto cx = static_cast<size_t>(contract[side][0]), cy = static_cast<size_t>(contract[1 - side][0]);
    if (!k(y)) continue;
    //   dot(reshape(transpose(A)), K)      →      dot(reshape(A), reshape(transpose(reshape(K))))
    if (op(x) == Opcode::Reshape && op(operand(x, 0)) == Opcode::Transpose) {
      InstId t = operand(x, 0);
      const Dims p = m_.attrs(t).ints(Attr::dimensions), middle = m_.shape(t).dims;
      auto bounds = common_factors(middle, m_.shape(x).dims);
      size_t from = 0, to = 0;
      for (size_t n = 0; n + 1 < bounds.size(); ++n)
        if (bounds[n].second == cx && bounds[n + 1].second == cx + 1) from = bounds[n].first, to = bounds[n + 1].first;
      bool inside = to > from + 1, moved = false;
      for (size_t k2 = 0; k2 < p.size() && inside; ++k2) {
        bool in_run = k2 >= from && k2 < to;
        if (in_run)
          inside = p[k2] >= static_cast<int64_t>(from) && p[k2] < static_cast<int64_t>(to),
          moved |= p[k2] != static_cast<int64_t>(k2);
        else
          inside = p[k2] == static_cast<int64_t>(k2);
      }
      if (inside && moved) {
        if (!go("order of what is contracted", i)) return true;
        InstId flat = make_reshape(m_, operand(t, 0), m_.shape(x).dims);
        // The constant's rows in the order that A had.
        Dims split = m_.shape(y).dims, order;
        split.erase(split.begin() + static_cast<ptrdiff_t>(cy));
        split.insert(split.begin() + static_cast<ptrdiff_t>(cy), middle.begin() + static_cast<ptrdiff_t>(from),
                     middle.begin() + static_cast<ptrdiff_t>(to));
        for (size_t k2 = 0; k2 < split.size(); ++k2) order.push_back(static_cast<int64_t>(k2));
        for (size_t k2 = from; k2 < to; ++k2)
          order[cy + static_cast<size_t>(p[k2]) - from] = static_cast<int64_t>(cy + (k2 - from));
        Dims turned;
        for (int64_t d2 : order) turned.push_back(split[static_cast<size_t>(d2)]);
        InstId rows = make_reshape(m_, y, split);
        rows = make_derived(m_, rows, Opcode::Transpose, {rows}, dims_attr(u_, Opcode::Transpose, order),
                            u_.array(type(y), turned));
        rows = make_reshape(m_, rows, m_.shape(y).dims);
        rw_to(i, product(side, flat, rows, m_.shape_id(i)));
        return true;
      }
    }
    if (m_.shape(x).rank() != 2 || m_.shape(y).rank() != 2) continue;
    //   dot(concatenate(A, B), K)      →      add(dot(A, slice(K)), dot(B, slice(K)))
    if (op(x) == Opcode::Concatenate && m_.attrs(x).ints(Attr::dimensions)[0] == contract[side][0]) {
      if (!go("dot of a concatenate", i)) return true;
      int64_t at = 0;
      InstId sum;
      for (InstId piece : std::vector<InstId>(m_.operands(x).begin(), m_.operands(x).end())) {
        int64_t n = m_.shape(piece).dims[cx];
        std::vector<SliceDim> s;
        for (int64_t size : m_.shape(y).dims) s.push_back({0, size, 1});
        s[cy] = {at, at + n, 1};
        at += n;
        InstId part = make_op(i, Opcode::Slice, {y}, attrs_of(u_, Opcode::Slice, {{Attr::slice, s}}));
        InstId one = product(side, piece, part, m_.shape_id(i));
        sum = sum.valid() ? make_op(i, Opcode::Add, {sum, one}, {}, m_.shape_id(i)) : one;
      }
      rw_to(i, sum);
      return true;
    }
    //   dot(dynamic-slice(K1), K2) of one row      →      dynamic-slice(dot(K1, K2))
    if (op(x) == Opcode::DynamicSlice && k(operand(x, 0)) && m_.operand_count(x) == 3) {
      size_t row = 1 - cx;
      InstId table = operand(x, 0);
      if (m_.shape(x).dims[row] != 1 || m_.shape(x).dims[cx] != m_.shape(table).dims[cx]) continue;
      if (!go("dot of a row", i)) return true;
      size_t row_out = side, column_out = 1 - side;
      Dims out(2);
      out[row_out] = m_.shape(table).dims[row], out[column_out] = m_.shape(i).dims[column_out];
      InstId all = product(side, table, y, u_.array(type(i), out));
      InstId zero = make_scalar(m_, m_.parent(i), type(operand(x, row + 1)), 0);
      std::vector<InstId> ops{all, zero, zero};
      ops[row_out + 1] = operand(x, row + 1);
      rw(i, Opcode::DynamicSlice, ops,
         attrs_of(u_, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, m_.shape(i).dims}}));
      return true;
    }
  }
  return false;
}

//   multiply(add(convolution(A, F), B), broadcast(K))      →      add(convolution(A, F·K), B·K)
bool A::scaled_convolution(InstId i) {
  for (size_t s : {size_t{0}, size_t{1}}) {
    InstId sum = operand(i, s), scale = operand(i, 1 - s);
    if (op(sum) != Opcode::Add || !is_broadcast_of_constant(m_, scale) || m_.shape(operand(scale, 0)).rank() != 1 ||
        !one_user(scale))
      continue;
    for (size_t t : {size_t{0}, size_t{1}}) {
      InstId conv = operand(sum, t), bias = operand(sum, 1 - t);
      if (op(conv) != Opcode::Convolution || !one_user(conv) || !one_user(bias) || !k(operand(conv, 1))) continue;
      const DimLabels& labels = *m_.attrs(conv).get<DimLabels>(Attr::dim_labels);
      if (m_.attrs(scale).ints(Attr::dimensions) != Dims{labels.output_feature}) continue;
      if (!go("scale into the filter", i)) return true;
      InstId filter = operand(conv, 1);
      InstId wide = make_broadcast(m_, m_.parent(i), operand(scale, 0), {labels.kernel_output}, m_.shape_id(filter));
      InstId scaled = make_op(i, Opcode::Multiply, {filter, wide}, {}, m_.shape_id(filter));
      InstId fresh = m_.clone_inst(conv, m_.parent(i), std::vector<InstId>{operand(conv, 0), scaled});
      InstId shifted = make_op(i, Opcode::Multiply, {bias, scale}, {}, m_.shape_id(bias));
      rw(i, Opcode::Add, {fresh, shifted});
      return true;
    }
  }
  return false;
}

//   reduce of one array by a reducer that returns a tuple      →      tuple(reduce)
bool A::reduce_of_several(InstId i) {
  if (!m_.shape(i).is_tuple() || m_.operand_count(i) != 2) return false;
  CompId f = m_.called(i)[0];
  if (m_.op(m_.comp(f).root) != Opcode::Tuple || m_.operand_count(m_.comp(f).root) != 1) return false;
  if (!go("tuple of one reduction", i)) return true;
  CompId copy = m_.clone_computation(f, "clone");
  m_.set_root(copy, m_.operand(m_.comp(copy).root, 0));
  AttrSet set = m_.attrs(i);
  set.set(Attr::to_apply, copy);
  set.erase(Attr::sharding);
  InstId r = make_op(i, op(i), {operand(i, 0), operand(i, 1)}, u_.attrs(std::move(set)), m_.shape(i).elements[0]);
  rw(i, Opcode::Tuple, {r});
  return true;
}

//   (a, b) reduce(A, B) over dimensions of one      →      tuple(reshape(A), reshape(B))
bool A::reduce_of_single_elements(InstId i) {
  const std::vector<ShapeId> out = m_.shape(i).elements;
  for (size_t k = 0; k < out.size(); ++k) {
    const Shape &from = m_.shape(operand(i, k)), &to = u_[out[k]];
    if (from.elements_count() != to.elements_count() || from.type != to.type ||
        (ls_ && !reshape_is_bitcast(u_, m_.shape_id(operand(i, k)), out[k])))
      return false;
  }
  if (!go("reduce of single elements", i)) return true;
  std::vector<InstId> parts;
  for (size_t k = 0; k < out.size(); ++k) parts.push_back(make_op(i, Opcode::Reshape, {operand(i, k)}, {}, out[k]));
  rw(i, Opcode::Tuple, parts);
  return true;
}

namespace {

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

//   (value, place) reduce(broadcast(K), iota)      →      tuple(broadcast(K), broadcast(0))
bool A::place_in_constant(InstId i) {
  if (ls_ || !value_and_place(m_, i) || op(operand(i, 0)) != Opcode::Broadcast || !bck(operand(i, 0))) return false;
  if (!go("largest of equal values", i)) return true;
  const std::vector<ShapeId> out = m_.shape(i).elements;
  CompId c = m_.parent(i);
  InstId value = make_broadcast(m_, c, operand(operand(i, 0), 0), {}, out[0]);
  InstId zero = make_scalar(m_, c, u_[out[1]].type, 0);
  rw(i, Opcode::Tuple, {value, make_broadcast(m_, c, zero, {}, out[1])});
  return true;
}

//   reduce-max(A) beside (value, place) reduce(A, iota)      →      get-tuple-element(that, 0)
bool A::value_beside_place(InstId i, Opcode kind) {
  if (kind != Opcode::Maximum && kind != Opcode::Minimum) return false;
  for (InstId other : m_.users(operand(i, 0))) {
    if (value_and_place(m_, other) != kind || operand(other, 0) != operand(i, 0) ||
        operand(other, 2) != operand(i, 1) ||
        m_.attrs(other).ints(Attr::dimensions) != m_.attrs(i).ints(Attr::dimensions) ||
        m_.shape(other).elements[0] != m_.shape_id(i))
      continue;
    const double worst = kind == Opcode::Maximum ? -HUGE_VAL : HUGE_VAL;
    if (!is_all(m_, operand(i, 1), worst)) return false;
    if (go("value next to its place", i)) rw_to(i, make_element(m_, other, 0));
    return true;
  }
  return false;
}

//   reduce(broadcast(scalar)) to a scalar by max, min, and, or      →      op(scalar, init)
bool A::reduce_of_scalar(InstId i, Opcode kind) {
  InstId a = operand(i, 0);
  if (m_.shape(i).rank() != 0 || op(a) != Opcode::Broadcast || m_.shape(operand(a, 0)).rank() != 0 ||
      (kind != Opcode::Maximum && kind != Opcode::Minimum && kind != Opcode::And && kind != Opcode::Or))
    return false;
  if (go("reduce of a spread scalar", i)) rw(i, kind, {operand(a, 0), operand(i, 1)});
  return true;
}

//   reduce-window(pad(A, init)) whose windows see one element of A each      →      broadcast(reshape(A))
bool A::window_sees_one(InstId i, InstId p, InstId cast) {
  InstId a = operand(p, 0), init = operand(i, 1), value = operand(p, 1);
  if (value != init &&
      !(k(value) && k(init) && m_.shape(value).rank() == 0 && scalar_value(value) == scalar_value(init)))
    return false;
  const auto pads = *m_.attrs(p).get<std::vector<PaddingDim>>(Attr::padding);
  const Window& w = *m_.attrs(i).get<Window>(Attr::window);
  const Dims in = m_.shape(a).dims, out = m_.shape(i).dims;
  Dims kept, map;
  for (size_t d = 0; d < in.size(); ++d) {
    const WindowDim& e = w.dims[d];
    if (e.stride != 1 || e.lhs_dilate != 1 || e.rhs_dilate != 1 || pads[d].interior) return false;
    const int64_t low = pads[d].low + e.pad_low, high = pads[d].high + e.pad_high;
    if (e.size == 1 && !low && !high) {
      kept.push_back(in[d]), map.push_back(static_cast<int64_t>(d));
    } else if (in[d] != 1 || low < 0 || high < 0 || low > e.size - 1 || high > e.size - 1) {
      return false;
    }
  }
  if (map.size() == in.size()) return false;
  if (!go("windows that see one element", i)) return true;
  InstId source = cast.valid() ? make_convert(m_, a, type(i)) : a;
  InstId small = make_reshape(m_, source, kept);
  rw(i, Opcode::Broadcast, {small}, dims_attr(u_, Opcode::Broadcast, map));
  return true;
}

//   cumulative sum of broadcast(K)      →      K * (iota + 1)
//   windows of one element under add, min, max      →      op(A, broadcast(init))
bool A::window_of_constant(InstId i) {
  InstId a = operand(i, 0), init = operand(i, 1);
  CompId f = m_.called(i)[0];
  const std::optional<Opcode> reducer = reducer_operation(m_, f);
  if (!reducer) return false;
  const Opcode kind = *reducer;
  const Window& w = *m_.attrs(i).get<Window>(Attr::window);
  CompId c = m_.parent(i);
  size_t scan = w.dims.size();
  bool single = true, one = true;
  for (size_t d = 0; d < w.dims.size(); ++d) {
    const WindowDim& e = w.dims[d];
    bool alone = e.size == 1 && e.stride == 1 && e.lhs_dilate == 1 && e.rhs_dilate == 1;
    single &= alone;
    if (alone && !e.pad_low && !e.pad_high) continue;
    one = one && scan == w.dims.size();
    scan = d;
  }
  // XLA leaves those of a scalar that is spread but not known.
  bool spread = op(a) == Opcode::Broadcast && m_.shape(operand(a, 0)).rank() == 0 && !is_constant(m_, operand(a, 0));
  if (single && !spread && type(a) == type(i) &&
      (kind == Opcode::Add || kind == Opcode::Minimum || kind == Opcode::Maximum)) {
    if (!go("windows of one element", i)) return true;
    InstId each = make_op(i, kind, {a, make_broadcast(m_, c, init, {}, m_.shape_id(a))}, {}, m_.shape_id(a));
    std::vector<PaddingDim> pads;
    bool padded = false;
    for (const WindowDim& e : w.dims) pads.push_back({e.pad_low, e.pad_high, 0}), padded |= e.pad_low || e.pad_high;
    // In the default layout, whatever that of the windows.
    rw_to(i, padded ? make_op(i, Opcode::Pad, {each, init}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}})) : each);
    return true;
  }
  if (kind != Opcode::Add || !one || scan == w.dims.size() || !is_broadcast_of_scalar_constant(m_, a) ||
      !is_all(m_, init, 0) || is_complex(type(i)))
    return false;
  const WindowDim& e = w.dims[scan];
  int64_t n = m_.shape(a).dims[scan];
  if (e.size != n || e.pad_low != n - 1 || e.pad_high || e.stride != 1 || e.reversal || e.lhs_dilate != 1 ||
      e.rhs_dilate != 1)
    return false;
  if (!go("cumulative sum of one value", i)) return true;
  ElementType counter = type(i) == ElementType::S64 ? ElementType::S64 : ElementType::S32;
  ShapeId shape = u_.with_type(m_.shape_id(i), counter);
  InstId iota = make_op(i, Opcode::Iota, {},
                        attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, static_cast<int64_t>(scan)}}), shape);
  InstId ones = make_broadcast(m_, c, make_scalar(m_, c, counter, 1), {}, shape);
  InstId count = make_convert(m_, make_op(i, Opcode::Add, {iota, ones}, {}, shape), type(i));
  InstId value = make_broadcast(m_, c, operand(a, 0), {}, m_.shape_id(i));
  rw(i, Opcode::Multiply, {value, count});
  return true;
}

//   all-gather, all-to-all of broadcast(K)      →      broadcast(K)
//   all-reduce, reduce-scatter of broadcast(K)      →      broadcast(K), or K times the size of the group
void A::collective(InstId i) {
  if (m_.operand_count(i) != 1 || !m_.shape(i).is_array() || m_.has_side_effect(i)) return;
  InstId a = operand(i, 0);
  if (!is_broadcast_of_scalar_constant(m_, a)) return;
  InstId scalar = operand(a, 0);
  if (op(i) == Opcode::AllGather || op(i) == Opcode::AllToAll) {
    if (op(i) == Opcode::AllToAll && same_shape(i, a)) {
      ric(i, a, "all-to-all of one value");
      return;
    }
    if (go("all-gather of one value", i)) rw(i, Opcode::Broadcast, {scalar}, dims_attr(u_, Opcode::Broadcast, {}));
    return;
  }
  const std::optional<Opcode> kind = reducer_operation(m_, m_.called(i)[0]);
  if (kind == Opcode::Minimum || kind == Opcode::Maximum) {
    if (go("extremum of one value over devices", i))
      rw(i, Opcode::Broadcast, {scalar}, dims_attr(u_, Opcode::Broadcast, {}));
    return;
  }
  const int64_t n = named_group_size(m_, i);
  if (kind != Opcode::Add || n < 1 || m_.literal(scalar).elided || is_complex(type(scalar))) return;
  if (!go("sum of one value over devices", i)) return;
  const char* value = m_.literal(scalar).bytes.data();
  InstId total = is_integral(type(scalar))
                     ? make_scalar_like(m_, scalar, load_int(type(scalar), value) * n)
                     : make_scalar_like(m_, scalar, load_double(type(scalar), value) * static_cast<double>(n));
  rw(i, Opcode::Broadcast, {total}, dims_attr(u_, Opcode::Broadcast, {}));
}

//   SliceToDynamic(get-tuple-element(PadToStatic(A)), …)      →      A
void A::custom_call(InstId i) {
  if (u_.text(m_.attrs(i).text(Attr::custom_call_target)) != "SliceToDynamic" || m_.operand_count(i) == 0) return;
  InstId source;
  for (size_t k2 = 0; k2 < m_.operand_count(i); ++k2) {
    InstId g = operand(i, k2);
    if (op(g) != Opcode::GetTupleElement || m_.attrs(g).integer(Attr::index) != static_cast<int64_t>(k2)) return;
    InstId call = operand(g, 0);
    if (op(call) != Opcode::CustomCall || u_.text(m_.attrs(call).text(Attr::custom_call_target)) != "PadToStatic" ||
        (source.valid() && source != call))
      return;
    source = call;
  }
  if (source.valid() && m_.shape_id(operand(source, 0)) == m_.shape_id(i))
    ric(i, operand(source, 0), "dynamic size taken and given back");
}

}  // namespace hlo
