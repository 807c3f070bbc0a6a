// algsimp on what takes parts of arrays or puts them together.
#include <algorithm>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kSliceRules[] = {
    {"slice of everything", Opcode::Slice, "slice(A) of all of A", "A", &AlgebraicSimplifier::same_as_operand},
    {"slice of padding", Opcode::Slice, "slice(pad(A, v)) of padding alone", "broadcast(v)",
     &AlgebraicSimplifier::slice_of_padding},
    {"slice undoes a pad", Opcode::Slice, "slice(pad(A)) that is A", "A", &AlgebraicSimplifier::slice_undoes_pad},
    {"slice inside a pad", Opcode::Slice, "slice(pad(A)) within A", "slice(A)", &AlgebraicSimplifier::slice_inside_pad},
    {"slice twice", Opcode::Slice, "slice(slice(A)) without strides", "slice(A)", &AlgebraicSimplifier::slice_twice},
    {"slice of a broadcast", Opcode::Slice, "slice(broadcast(A))", "broadcast(slice(A))",
     &AlgebraicSimplifier::slice_of_broadcast},
    {"slice is a piece of a concatenate", Opcode::Slice, "slice(concatenate(A, B)) that is A", "A",
     &AlgebraicSimplifier::slice_is_piece},
    {"slice of a concatenate", Opcode::Slice, "slice(concatenate(A, B, C)) that meets some of them",
     "slice(concatenate of those)", &AlgebraicSimplifier::slice_of_concatenate},
    {"slice of a cumulative window", Opcode::Slice, "slice(reduce-window(A)) of the last of cumulative results",
     "reshape(reduce(A))", &AlgebraicSimplifier::slice_of_window},
    {"slice of a reshape", Opcode::Slice, "slice(reshape(A)) along the leading dimension", "reshape(slice(A))",
     &AlgebraicSimplifier::slice_of_reshape},
    {"slice of a reverse", Opcode::Slice, "slice(reverse(A))", "reverse(slice(A))",
     &AlgebraicSimplifier::slice_of_reverse},
    {"stride of one element", Opcode::Slice, "slice(A) whose stride takes one element", "slice(A) of stride 1",
     &AlgebraicSimplifier::stride_of_one_element},

    {"pad of nothing", Opcode::Pad, "pad(A, v) where A has no elements", "broadcast(v)",
     &AlgebraicSimplifier::pad_of_nothing},
    {"interior padding of one element", Opcode::Pad, "pad(A) between the elements of a dimension of one",
     "pad(A) without that", &AlgebraicSimplifier::interior_padding_of_one},
    {"pad by nothing", Opcode::Pad, "pad(A) by nothing", "A", &AlgebraicSimplifier::pad_by_nothing},
    {"pad of a broadcast", Opcode::Pad, "pad(broadcast(A)) along A's and some other dimensions",
     "broadcast(pad(broadcast(A)))", &AlgebraicSimplifier::pad_of_broadcast},
    {"negative padding", Opcode::Pad, "pad(A) with negative edges", "slice(pad(A))",
     &AlgebraicSimplifier::negative_padding},

    {"concatenate of one piece", Opcode::Concatenate, "concatenate(A)", "A", &AlgebraicSimplifier::concatenate_of_one},
    {"concatenate of nothing", Opcode::Concatenate, "concatenate(A, B) where none has elements", "A",
     &AlgebraicSimplifier::concatenate_of_nothing},
    {"empty pieces", Opcode::Concatenate, "concatenate(A, B, C) where B has no elements", "concatenate(A, C)",
     &AlgebraicSimplifier::empty_pieces},
    {"nested concatenate", Opcode::Concatenate, "concatenate(concatenate(A, B), C)", "concatenate(A, B, C)",
     &AlgebraicSimplifier::nested_concatenate},
    {"neighbouring slices joined", Opcode::Concatenate, "concatenate(slice(A), the slice of A next to it)", "slice(A)",
     &AlgebraicSimplifier::neighbouring_slices},
    {"concatenate of a spread scalar", Opcode::Concatenate, "concatenate(A, broadcast(scalar B))", "pad(A, B)",
     &AlgebraicSimplifier::concatenate_of_spread_scalar},
    {"concatenate of one array with itself", Opcode::Concatenate,
     "concatenate(A, A, A) along a dimension of one, three or more times", "broadcast(reshape(A))",
     &AlgebraicSimplifier::concatenate_with_itself},

    {"reverse of one element", Opcode::Reverse, "reverse(A) along dimensions of one", "A",
     &AlgebraicSimplifier::reverse_of_one},
    {"reverse twice", Opcode::Reverse, "reverse(reverse(A))", "reverse(A) along what one of them turns, or A",
     &AlgebraicSimplifier::reverse_twice},
    {"reverse of added dimensions", Opcode::Reverse, "reverse(reshape(A)) that at most adds ones",
     "reshape(reverse(A))", &AlgebraicSimplifier::reverse_of_reshape},
    {"reverse next to a broadcast scalar", Opcode::Reverse, "reverse(f(A, broadcast(scalar B))) for elementwise f",
     "f(reverse(A), broadcast(B))", &AlgebraicSimplifier::reverse_of_elementwise},
};

bool unstrided(const std::vector<SliceDim>& slice) {
  return std::all_of(slice.begin(), slice.end(), [](const SliceDim& d) { return d.stride == 1; });
}

}  // namespace

std::span<const AlgebraicRule> slice_rules() { return kSliceRules; }

std::vector<SliceDim> AlgebraicSimplifier::slice_dims(InstId i) const {
  return *m_.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
}

std::vector<PaddingDim> AlgebraicSimplifier::padding_dims(InstId i) const {
  return *m_.attrs(i).get<std::vector<PaddingDim>>(Attr::padding);
}

AlgebraicSimplifier::SlicedPad AlgebraicSimplifier::sliced_pad(InstId i) const {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Pad) return SlicedPad::kNone;
  const std::vector<SliceDim> s = slice_dims(i);
  if (!unstrided(s)) return SlicedPad::kNone;
  const std::vector<PaddingDim> pads = padding_dims(a);
  const Dims& in = m_.shape(operand(a, 0)).dims;
  bool inside = std::none_of(pads.begin(), pads.end(), [](const PaddingDim& d) { return d.interior != 0; });
  for (size_t d = 0; d < s.size(); ++d) {
    int64_t first = pads[d].low, last = first + in[d] + std::max<int64_t>(in[d] - 1, 0) * pads[d].interior;
    if (s[d].limit <= first || s[d].start >= last) return SlicedPad::kOutside;
    if (s[d].start < first || s[d].limit > last) inside = false;
  }
  return inside ? SlicedPad::kInside : SlicedPad::kNone;
}

bool AlgebraicSimplifier::slice_of_padding(InstId i) {
  if (sliced_pad(i) != SlicedPad::kOutside) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {operand(operand(i, 0), 1)}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::slice_undoes_pad(InstId i) {
  InstId a = operand(i, 0);
  return sliced_pad(i) == SlicedPad::kInside && m_.shape(operand(a, 0)).dims == m_.shape(i).dims &&
         replace_if_compatible(i, operand(a, 0));
}

bool AlgebraicSimplifier::slice_inside_pad(InstId i) {
  if (sliced_pad(i) != SlicedPad::kInside) return false;
  if (!spend(i)) return true;
  InstId a = operand(i, 0);
  const std::vector<PaddingDim> pads = padding_dims(a);
  std::vector<SliceDim> moved = slice_dims(i);
  for (size_t d = 0; d < moved.size(); ++d) moved[d].start -= pads[d].low, moved[d].limit -= pads[d].low;
  rewrite(i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, moved}}));
  return true;
}

bool AlgebraicSimplifier::slice_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Slice) return false;
  const std::vector<SliceDim> s = slice_dims(i);
  std::vector<SliceDim> inner = slice_dims(a);
  if (!unstrided(s) || !unstrided(inner)) return false;
  if (!spend(i)) return true;
  for (size_t d = 0; d < s.size(); ++d) inner[d].limit = inner[d].start + s[d].limit, inner[d].start += s[d].start;
  rewrite(i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, inner}}));
  return true;
}

bool AlgebraicSimplifier::slice_of_broadcast(InstId i) {
  InstId a = operand(i, 0), source;
  if (op(a) != Opcode::Broadcast) return false;
  if (!spend(i)) return true;
  const Dims map = m_.attrs(a).ints(Attr::dimensions), out = m_.shape(i).dims;
  const std::vector<SliceDim> s = slice_dims(i);
  source = operand(a, 0);
  bool touched = false;
  std::vector<SliceDim> inner;
  for (int64_t d : map) {
    inner.push_back(s[static_cast<size_t>(d)]);
    touched |= out[static_cast<size_t>(d)] != m_.shape(a).dims[static_cast<size_t>(d)];
  }
  if (touched)
    source = make_derived(m_, a, Opcode::Slice, {source}, attrs_of(u_, Opcode::Slice, {{Attr::slice, inner}}));
  rewrite(i, Opcode::Broadcast, {source}, dims_attr(u_, Opcode::Broadcast, map));
  return true;
}

// Pieces of the concatenate that the slice meets, where it meets some and not all of them; `first`: where they begin.
std::vector<InstId> AlgebraicSimplifier::sliced_pieces(InstId i, int64_t* first) const {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Concatenate) return {};
  const std::vector<SliceDim> s = slice_dims(i);
  if (!unstrided(s)) return {};
  const auto dim = static_cast<size_t>(m_.attrs(a).ints(Attr::dimensions)[0]);
  std::vector<InstId> pieces;
  int64_t at = 0;
  for (InstId o : m_.operands(a)) {
    int64_t n = m_.shape(o).dims[dim];
    if (at < s[dim].limit && at + n > s[dim].start) {
      if (pieces.empty()) *first = at;
      pieces.push_back(o);
    }
    at += n;
  }
  if (pieces.size() == m_.operand_count(a)) pieces.clear();
  return pieces;
}

bool AlgebraicSimplifier::slice_is_piece(InstId i) {
  int64_t first;
  const std::vector<InstId> pieces = sliced_pieces(i, &first);
  return pieces.size() == 1 && m_.shape(pieces[0]).dims == m_.shape(i).dims && replace_if_compatible(i, pieces[0]);
}

bool AlgebraicSimplifier::slice_of_concatenate(InstId i) {
  int64_t first;
  const std::vector<InstId> pieces = sliced_pieces(i, &first);
  if (pieces.empty()) return false;
  if (!spend(i)) return true;
  InstId a = operand(i, 0), joined = pieces[0];
  const auto dim = static_cast<size_t>(m_.attrs(a).ints(Attr::dimensions)[0]);
  std::vector<SliceDim> moved = slice_dims(i);
  moved[dim].start -= first, moved[dim].limit -= first;
  if (pieces.size() > 1) {
    Shape shape = m_.shape(a);
    shape.dims[dim] = 0;
    for (InstId o : pieces) shape.dims[dim] += m_.shape(o).dims[dim];
    joined = m_.add_derived(a, {.op = Opcode::Concatenate,
                                .shape = u_.shape(shape),
                                .operands = pieces,
                                .attrs = dims_attr(u_, Opcode::Concatenate, {static_cast<int64_t>(dim)})});
  }
  rewrite(i, Opcode::Slice, {joined}, attrs_of(u_, Opcode::Slice, {{Attr::slice, moved}}));
  return true;
}

bool AlgebraicSimplifier::slice_of_window(InstId i) {
  InstId w = operand(i, 0);
  if (op(w) != Opcode::ReduceWindow || m_.use_count(w) != 1 || m_.shape(w).is_tuple()) return false;
  const std::vector<SliceDim> s = slice_dims(i);
  if (!unstrided(s)) return false;
  InstId a = operand(w, 0);
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
  if (!spend(i)) return true;
  InstId r = make_op(i, Opcode::Reduce, {a, operand(w, 1)},
                     attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, dims}, {Attr::to_apply, m_.called(w)[0]}}));
  rewrite(i, Opcode::Reshape, {r});
  return true;
}

bool AlgebraicSimplifier::slice_of_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (layout_sensitive_ || op(a) != Opcode::Reshape) return false;
  const std::vector<SliceDim> s = slice_dims(i);
  if (s.empty() || !unstrided(s)) return false;
  const Dims &from = m_.shape(operand(a, 0)).dims, &to = m_.shape(a).dims;
  bool leading = s[0].start == 0 && s[0].limit != to[0];
  for (size_t d = 1; d < s.size(); ++d) leading &= s[d].start == 0 && s[d].limit == to[d];
  // As many elements, counted off from the minor dimension of A: whole dimensions, then a part of one, then ones.
  int64_t left = m_.shape(i).elements_count();
  std::vector<SliceDim> inner(from.size());
  for (size_t d = from.size(); d-- > 0;) {
    int64_t taken = std::min(left, from[d]);
    leading = leading && taken > 0 && left % taken == 0;
    if (!leading) return false;
    inner[d] = {0, taken, 1};
    left /= taken;
  }
  if (!leading || left != 1) return false;
  if (!spend(i)) return true;
  InstId small =
      make_derived(m_, i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, inner}}));
  rewrite(i, Opcode::Reshape, {small});
  return true;
}

bool AlgebraicSimplifier::slice_of_reverse(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Reverse) return false;
  if (!spend(i)) return true;
  const Dims turned = m_.attrs(a).ints(Attr::dimensions), in = m_.shape(a).dims, out = m_.shape(i).dims;
  std::vector<SliceDim> moved = slice_dims(i);
  for (int64_t d : turned) {
    SliceDim& e = moved[static_cast<size_t>(d)];
    if (out[static_cast<size_t>(d)] == 0) continue;  // nothing is taken, from wherever
    int64_t last = e.start + (out[static_cast<size_t>(d)] - 1) * e.stride;
    e.start = in[static_cast<size_t>(d)] - 1 - last;
    e.limit = e.start + (out[static_cast<size_t>(d)] - 1) * e.stride + 1;
  }
  InstId inner =
      make_derived(m_, i, Opcode::Slice, {operand(a, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, moved}}));
  rewrite(i, Opcode::Reverse, {inner}, dims_attr(u_, Opcode::Reverse, turned));
  return true;
}

bool AlgebraicSimplifier::stride_of_one_element(InstId i) {
  const std::vector<SliceDim> s = slice_dims(i);
  auto plain = s;
  for (SliceDim& d : plain)
    if (d.stride != 1 && d.start < d.limit && d.start + d.stride >= d.limit) d.limit = d.start + 1, d.stride = 1;
  if (plain == s) return false;
  if (spend(i)) rewrite(i, Opcode::Slice, {operand(i, 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, plain}}));
  return true;
}

bool AlgebraicSimplifier::pad_of_nothing(InstId i) {
  if (m_.shape(operand(i, 0)).elements_count() != 0) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {operand(i, 1)}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::interior_padding_of_one(InstId i) {
  InstId a = operand(i, 0);
  std::vector<PaddingDim> pads = padding_dims(i);
  bool useless = false;
  for (size_t d = 0; d < pads.size(); ++d) useless |= pads[d].interior && m_.shape(a).dims[d] == 1;
  if (!useless) return false;
  if (!spend(i)) return true;
  for (size_t d = 0; d < pads.size(); ++d)
    if (m_.shape(a).dims[d] == 1) pads[d].interior = 0;
  rewrite(i, Opcode::Pad, {a, operand(i, 1)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}}));
  return true;
}

bool AlgebraicSimplifier::pad_by_nothing(InstId i) {
  const auto& pads = *m_.attrs(i).get<std::vector<PaddingDim>>(Attr::padding);
  return std::all_of(pads.begin(), pads.end(), [](const PaddingDim& p) { return p == PaddingDim{}; }) &&
         replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::pad_of_broadcast(InstId i) {
  InstId b = operand(i, 0);
  if (op(b) != Opcode::Broadcast || !one_user(b) || m_.is_root(b)) return false;
  const std::vector<PaddingDim> pads = padding_dims(i);
  const Dims map = m_.attrs(b).ints(Attr::dimensions);
  Dims padded, kept;
  for (size_t d = 0; d < pads.size(); ++d)
    if (pads[d].low || pads[d].high || pads[d].interior) padded.push_back(static_cast<int64_t>(d));
  if (padded.size() == pads.size() || padded.empty()) return false;
  for (int64_t d : map)
    if (!contains(padded, d)) return false;
  if (!spend(i)) return true;
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
  rewrite(i, Opcode::Broadcast, {p}, dims_attr(u_, Opcode::Broadcast, padded));
  return true;
}

bool AlgebraicSimplifier::negative_padding(InstId i) {
  const std::vector<PaddingDim> pads = padding_dims(i);
  if (std::none_of(pads.begin(), pads.end(), [](const PaddingDim& p) { return p.low < 0 || p.high < 0; })) return false;
  if (!spend(i)) return true;
  auto positive = pads;
  for (PaddingDim& p : positive) p.low = std::max<int64_t>(p.low, 0), p.high = std::max<int64_t>(p.high, 0);
  AttrsId attrs = attrs_of(u_, Opcode::Pad, {{Attr::padding, positive}});
  InstId wide = make_op(i, Opcode::Pad, {operand(i, 0), operand(i, 1)}, attrs);
  Shape s = m_.shape(wide);
  s.layout = m_.shape(i).layout;
  m_.set_shape(wide, u_.shape(s));
  std::vector<SliceDim> cut;
  for (size_t d = 0; d < pads.size(); ++d)
    cut.push_back(
        {std::max<int64_t>(-pads[d].low, 0), m_.shape(wide).dims[d] - std::max<int64_t>(-pads[d].high, 0), 1});
  rewrite(i, Opcode::Slice, {wide}, attrs_of(u_, Opcode::Slice, {{Attr::slice, cut}}));
  return true;
}

bool AlgebraicSimplifier::concatenate_of_one(InstId i) {
  if (m_.operand_count(i) != 1) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

std::vector<InstId> AlgebraicSimplifier::pieces_with_elements(InstId i) const {
  std::vector<InstId> kept;
  for (InstId o : m_.operands(i))
    if (m_.shape(o).elements_count() != 0) kept.push_back(o);
  return kept;
}

bool AlgebraicSimplifier::concatenate_of_nothing(InstId i) {
  if (m_.shape(i).elements_count() != 0 || !pieces_with_elements(i).empty()) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::empty_pieces(InstId i) {
  const std::vector<InstId> kept = pieces_with_elements(i);
  if (kept.size() == m_.operand_count(i)) return false;
  if (!spend(i)) return true;
  if (kept.size() == 1)
    replace(i, kept[0]);
  else
    rewrite(i, Opcode::Concatenate, kept, dims_attr(u_, Opcode::Concatenate, m_.attrs(i).ints(Attr::dimensions)));
  return true;
}

bool AlgebraicSimplifier::nested_concatenate(InstId i) {
  if (layout_sensitive_) return true;  // with layouts some passes take concatenates apart
  const Dims dims = m_.attrs(i).ints(Attr::dimensions);
  std::vector<InstId> flat;
  bool nested = false;
  for (InstId o : m_.operands(i)) {
    if (op(o) == Opcode::Concatenate && m_.attrs(o).ints(Attr::dimensions) == dims) {
      nested = true;
      for (InstId p : m_.operands(o)) flat.push_back(p);
    } else {
      flat.push_back(o);
    }
  }
  if (!nested) return false;
  if (spend(i)) rewrite(i, Opcode::Concatenate, flat, dims_attr(u_, Opcode::Concatenate, dims));
  return true;
}

// How many operands from the `n`th on are slices of one array, each beginning where the one before it ends; `s` gets
// what they take together.
size_t AlgebraicSimplifier::run_of_slices(InstId i, size_t n, std::vector<SliceDim>* s) const {
  InstId first = operand(i, n);
  if (op(first) != Opcode::Slice) return 1;
  *s = slice_dims(first);
  if (!unstrided(*s)) return 1;
  const auto dim = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
  size_t last = n + 1;
  for (; last < m_.operand_count(i); ++last) {
    InstId next = operand(i, last);
    if (op(next) != Opcode::Slice || operand(next, 0) != operand(first, 0)) break;
    const std::vector<SliceDim> t = slice_dims(next);
    bool follows = true;
    for (size_t d = 0; d < s->size(); ++d)
      follows &= d == dim ? t[d].start == (*s)[d].limit && t[d].stride == 1 : t[d] == (*s)[d];
    if (!follows) break;
    (*s)[dim].limit = t[dim].limit;
  }
  return last - n;
}

bool AlgebraicSimplifier::neighbouring_slices(InstId i) {
  std::vector<InstId> merged;
  std::vector<SliceDim> s;
  bool joined = false;
  for (size_t n = 0; n < m_.operand_count(i);) {
    const size_t run = run_of_slices(i, n, &s);
    if (run > 1) {
      if (!joined && !spend(i)) return true;
      joined = true;
      merged.push_back(
          make_op(i, Opcode::Slice, {operand(operand(i, n), 0)}, attrs_of(u_, Opcode::Slice, {{Attr::slice, s}})));
    } else {
      merged.push_back(operand(i, n));
    }
    n += run;
  }
  if (joined)
    rewrite(i, Opcode::Concatenate, merged, dims_attr(u_, Opcode::Concatenate, m_.attrs(i).ints(Attr::dimensions)));
  return joined;
}

bool AlgebraicSimplifier::concatenate_of_spread_scalar(InstId i) {
  if (m_.operand_count(i) != 2) return false;
  const auto dim = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
  for (size_t side : {size_t{0}, size_t{1}}) {
    InstId b = operand(i, side);
    if (op(b) != Opcode::Broadcast || m_.shape(operand(b, 0)).rank() != 0) continue;
    if (!spend(i)) return true;
    std::vector<PaddingDim> pads(m_.shape(i).dims.size());
    (side ? pads[dim].high : pads[dim].low) = m_.shape(b).dims[dim];
    rewrite(i, Opcode::Pad, {operand(i, 1 - side), operand(b, 0)}, attrs_of(u_, Opcode::Pad, {{Attr::padding, pads}}));
    return true;
  }
  return false;
}

bool AlgebraicSimplifier::concatenate_with_itself(InstId i) {
  const auto dim = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
  InstId a = operand(i, 0);
  // XLA leaves two.
  if (m_.operand_count(i) < 3 || m_.shape(a).dims[dim] != 1) return false;
  for (InstId o : m_.operands(i))
    if (o != a) return false;
  if (!spend(i)) return true;
  Dims dims, map;
  for (size_t d = 0; d < m_.shape(i).dims.size(); ++d)
    if (d != dim) dims.push_back(m_.shape(i).dims[d]), map.push_back(static_cast<int64_t>(d));
  InstId r = make_reshape(m_, a, dims);
  rewrite(i, Opcode::Broadcast, {r}, dims_attr(u_, Opcode::Broadcast, map));
  return true;
}

// What a reverse turns that is not a dimension of one.
Dims AlgebraicSimplifier::turned_dims(InstId i) const {
  Dims turned;
  for (int64_t d : m_.attrs(i).ints(Attr::dimensions))
    if (m_.shape(i).dims[static_cast<size_t>(d)] != 1) turned.push_back(d);
  return turned;
}

bool AlgebraicSimplifier::reverse_of_one(InstId i) {
  if (!turned_dims(i).empty()) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::reverse_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Reverse) return false;
  const Dims &outer = m_.attrs(i).ints(Attr::dimensions), &inner = m_.attrs(a).ints(Attr::dimensions);
  Dims once;
  for (int64_t d = 0; d < m_.shape(i).rank(); ++d)
    if (contains(outer, d) != contains(inner, d)) once.push_back(d);
  if (!spend(i)) return true;
  if (once.empty())
    replace(i, operand(a, 0));
  else
    rewrite(i, Opcode::Reverse, {operand(a, 0)}, dims_attr(u_, Opcode::Reverse, once));
  return true;
}

bool AlgebraicSimplifier::reverse_of_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (layout_sensitive_ || op(a) != Opcode::Reshape) return false;
  const Dims &from = m_.shape(operand(a, 0)).dims, &to = m_.shape(a).dims;
  Dims place(to.size(), -1);
  size_t at = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    if (at < from.size() && to[d] == from[at])
      place[d] = static_cast<int64_t>(at++);
    else if (to[d] != 1)
      return false;
  }
  if (at != from.size()) return false;
  if (!spend(i)) return true;
  Dims inner;
  for (int64_t d : turned_dims(i))
    if (place[static_cast<size_t>(d)] >= 0) inner.push_back(place[static_cast<size_t>(d)]);
  rewrite(i, Opcode::Reshape, {make_op(i, Opcode::Reverse, {operand(a, 0)}, dims_attr(u_, Opcode::Reverse, inner))});
  return true;
}

bool AlgebraicSimplifier::reverse_of_elementwise(InstId i) {
  InstId a = operand(i, 0);
  if (m_.operand_count(a) != 2 || !op_info(op(a)).elementwise || type(a) != type(operand(a, 0)) ||
      type(a) != type(operand(a, 1)) || m_.has_control(a))
    return false;
  auto scalar = [&](InstId o) { return op(o) == Opcode::Broadcast && m_.shape(operand(o, 0)).rank() == 0; };
  for (size_t side : {size_t{0}, size_t{1}}) {
    if (!scalar(operand(a, 1 - side)) || scalar(operand(a, side))) continue;
    if (!spend(i)) return true;
    const Dims turned = m_.attrs(i).ints(Attr::dimensions);
    std::vector<InstId> ops(m_.operands(a).begin(), m_.operands(a).end());
    ops[side] = make_op(i, Opcode::Reverse, {ops[side]}, dims_attr(u_, Opcode::Reverse, turned));
    rewrite(i, op(a), ops, m_[a].attrs);
    return true;
  }
  return false;
}

}  // namespace hlo
