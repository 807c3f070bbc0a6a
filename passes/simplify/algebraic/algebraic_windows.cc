// algsimp on windows.
#include <algorithm>
#include <optional>

#include "ir/query/reducer.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kWindowRules[] = {
    {"window over a scalar", Opcode::ReduceWindow, "reduce-window(scalar A)", "A",
     &AlgebraicSimplifier::window_over_scalar},
    {"reduce-window of nothing", Opcode::ReduceWindow, "reduce-window(A, init) where A or the result has no elements",
     "broadcast(init)", &AlgebraicSimplifier::window_of_nothing},
    {"windows of one element", Opcode::ReduceWindow, "reduce-window(A, init) of size 1 by add, minimum, maximum",
     "add(A, broadcast(init)), padded", &AlgebraicSimplifier::windows_of_one},
    {"cumulative sum of one value", Opcode::ReduceWindow, "reduce-window(broadcast(K)) that is a cumulative sum",
     "multiply(K, add(iota, 1))", &AlgebraicSimplifier::cumulative_sum_of_one_value},
    {"window is a reduction", Opcode::ReduceWindow, "reduce-window(A) over whole dimensions, without padding",
     "reshape(reduce(A))", &AlgebraicSimplifier::window_is_reduction},
    {"windows that see one element", Opcode::ReduceWindow,
     "reduce-window(pad(A, init)) whose windows see one element of A each", "broadcast(reshape(A))",
     &AlgebraicSimplifier::windows_see_one},
    {"padding into the window", Opcode::ReduceWindow, "reduce-window(pad(A, init), init)",
     "reduce-window(A, init) with padding in the window", &AlgebraicSimplifier::padding_into_window},
};

// Does each place of a dimension see one element, or padding?
bool sees_one_place(const WindowDim& d) {
  return d.size == 1 && d.stride == 1 && d.lhs_dilate == 1 && d.rhs_dilate == 1;
}

}  // namespace

std::span<const AlgebraicRule> window_rules() { return kWindowRules; }

bool AlgebraicSimplifier::window_over_scalar(InstId i) {
  // Nothing is known of windows over several arrays.
  if (m_.operand_count(i) != 2 || m_.shape(i).is_tuple()) return true;
  if (m_.shape(operand(i, 0)).rank() != 0) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::window_of_nothing(InstId i) {
  if (m_.shape(operand(i, 0)).elements_count() != 0 && m_.shape(i).elements_count() != 0) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {operand(i, 1)}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::windows_of_one(InstId i) {
  InstId a = operand(i, 0), init = operand(i, 1);
  const Window w = *m_.attrs(i).get<Window>(Attr::window);
  if (type(a) != type(i) || !std::all_of(w.dims.begin(), w.dims.end(), sees_one_place)) return false;
  const std::optional<Opcode> kind = reducer_operation(m_, m_.called(i)[0]);
  if (kind != Opcode::Add && kind != Opcode::Minimum && kind != Opcode::Maximum) return false;
  // XLA leaves those of a scalar that is spread but not known.
  if (op(a) == Opcode::Broadcast && m_.shape(operand(a, 0)).rank() == 0 && !is_constant(operand(a, 0))) return false;
  if (!spend(i)) return true;
  InstId each = make_op(i, *kind, {a, make_broadcast(m_, m_.parent(i), init, {}, m_.shape_id(a))}, {}, m_.shape_id(a));
  std::vector<PaddingDim> pads;
  bool padded = false;
  for (const WindowDim& e : w.dims) pads.push_back({e.pad_low, e.pad_high, 0}), padded |= e.pad_low || e.pad_high;
  // In the default layout, whatever that of the windows.
  rewrite_to(i,
             padded ? make_op(i, Opcode::Pad, {each, init}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}})) : each);
  return true;
}

bool AlgebraicSimplifier::cumulative_sum_of_one_value(InstId i) {
  InstId a = operand(i, 0);
  if (!is_broadcast_of_scalar_constant(a) || !is_all(m_, operand(i, 1), 0) || is_complex(type(i)) ||
      reducer_operation(m_, m_.called(i)[0]) != Opcode::Add)
    return false;
  const Window& w = *m_.attrs(i).get<Window>(Attr::window);
  size_t scan = w.dims.size();
  for (size_t d = 0; d < w.dims.size(); ++d) {
    const WindowDim& e = w.dims[d];
    if (sees_one_place(e) && !e.pad_low && !e.pad_high) continue;
    if (scan != w.dims.size()) return false;
    scan = d;
  }
  if (scan == w.dims.size()) return false;
  const WindowDim& e = w.dims[scan];
  int64_t n = m_.shape(a).dims[scan];
  if (e.size != n || e.pad_low != n - 1 || e.pad_high || e.stride != 1 || e.reversal || e.lhs_dilate != 1 ||
      e.rhs_dilate != 1)
    return false;
  if (!spend(i)) return true;
  CompId c = m_.parent(i);
  ElementType counter = type(i) == ElementType::S64 ? ElementType::S64 : ElementType::S32;
  ShapeId shape = u_.with_type(m_.shape_id(i), counter);
  InstId iota = make_op(i, Opcode::Iota, {},
                        attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, static_cast<int64_t>(scan)}}), shape);
  InstId ones = make_broadcast(m_, c, make_scalar(m_, c, counter, 1), {}, shape);
  InstId count = make_convert(m_, make_op(i, Opcode::Add, {iota, ones}, {}, shape), type(i));
  InstId value = make_broadcast(m_, c, operand(a, 0), {}, m_.shape_id(i));
  rewrite(i, Opcode::Multiply, {value, count});
  return true;
}

bool AlgebraicSimplifier::window_is_reduction(InstId i) {
  InstId a = operand(i, 0);
  if (type(a) != type(i)) return false;
  const Window& w = *m_.attrs(i).get<Window>(Attr::window);
  Dims dims;
  for (size_t d = 0; d < w.dims.size(); ++d) {
    const WindowDim& e = w.dims[d];
    if (e.pad_low || e.pad_high || e.lhs_dilate != 1 || e.rhs_dilate != 1 || e.reversal || e.stride != 1) return false;
    if (e.size == m_.shape(a).dims[d] && m_.shape(i).dims[d] == 1) {
      if (e.size != 1) dims.push_back(static_cast<int64_t>(d));
    } else if (e.size != 1) {
      return false;
    }
  }
  if (dims.empty()) return false;
  if (!spend(i)) return true;
  InstId r = make_op(i, Opcode::Reduce, {a, operand(i, 1)}, reduce_attrs(i, dims));
  if (m_.shape(r).dims == m_.shape(i).dims)
    rewrite_to(i, r);
  else
    rewrite(i, Opcode::Reshape, {r});
  return true;
}

// What is padded before the window, and the conversion between them, if there is one.
std::pair<InstId, InstId> AlgebraicSimplifier::windowed_pad(InstId i) const {
  InstId pad = operand(i, 0), cast;
  if (op(pad) == Opcode::Convert) cast = pad, pad = operand(pad, 0);
  return {op(pad) == Opcode::Pad ? pad : InstId(), cast};
}

bool AlgebraicSimplifier::windows_see_one(InstId i) {
  const auto [p, cast] = windowed_pad(i);
  if (!p.valid()) return false;
  InstId a = operand(p, 0), init = operand(i, 1), value = operand(p, 1);
  if (value != init && !(is_constant(value) && is_constant(init) && m_.shape(value).rank() == 0 &&
                         scalar_value(value) == scalar_value(init)))
    return false;
  const std::vector<PaddingDim> pads = padding_dims(p);
  const Window& w = *m_.attrs(i).get<Window>(Attr::window);
  const Dims in = m_.shape(a).dims;
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
  if (!spend(i)) return true;
  InstId source = cast.valid() ? make_convert(m_, a, type(i)) : a;
  InstId small = make_reshape(m_, source, kept);
  rewrite(i, Opcode::Broadcast, {small}, dims_attr(u_, Opcode::Broadcast, map));
  return true;
}

bool AlgebraicSimplifier::padding_into_window(InstId i) {
  const auto [p, cast] = windowed_pad(i);
  if (!p.valid()) return false;
  Window w = *m_.attrs(i).get<Window>(Attr::window);
  const std::vector<PaddingDim> pads = padding_dims(p);
  for (size_t d = 0; d < pads.size(); ++d)
    if (pads[d].low < 0 || pads[d].high < 0 || (pads[d].interior && w.dims[d].lhs_dilate != 1)) return false;
  InstId value = operand(p, 1), init = operand(i, 1);
  if (!is_constant(value) || !is_constant(init) || m_.literal(value).elided || m_.literal(init).elided) return false;
  if (cast.valid() ? scalar_value(value) != scalar_value(init) : m_.literal_id(value) != m_.literal_id(init))
    return false;
  if (cast.valid()) {
    // Conversion of a little padding costs nothing; where a single dimension is scanned, it must be a tenth.
    size_t scanned = w.dims.size(), moving = 0;
    for (size_t d = 0; d < w.dims.size(); ++d)
      if (w.dims[d].size != 1) scanned = d, ++moving;
    if (is_complex(type(i)) || moving == 0) return false;
    if (moving == 1 && 10 * (pads[scanned].low + pads[scanned].high) < m_.shape(p).dims[scanned]) return false;
  }
  // Padding around elements that the window spreads out would have to be spread out, too.
  for (size_t d = 0; d < w.dims.size(); ++d)
    if (w.dims[d].lhs_dilate != 1 && (pads[d].low || pads[d].high)) return false;
  if (!spend(i)) return true;
  for (size_t d = 0; d < w.dims.size(); ++d) {
    w.dims[d].pad_low += pads[d].low, w.dims[d].pad_high += pads[d].high;
    if (pads[d].interior) w.dims[d].lhs_dilate = pads[d].interior + 1;
  }
  InstId source = operand(p, 0);
  if (cast.valid()) source = make_convert(m_, source, type(cast));
  rewrite(i, Opcode::ReduceWindow, {source, operand(i, 1)},
          attrs_of(u_, Opcode::ReduceWindow, {{Attr::window, w}, {Attr::to_apply, m_.called(i)[0]}}));
  return true;
}

}  // namespace hlo
