#include "ir/analysis/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace hlo {
namespace {

constexpr int64_t kManyElements = int64_t{1} << 31;  // more than any block has

int64_t padded(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// Tile of dimensions in the order of memory, major first.
struct Flat {
  Dims dims, sizes, strides;
};

Dims majors(const Shape& s) {
  Dims order = s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                               : default_minor_to_major(s.rank());
  std::reverse(order.begin(), order.end());
  return order;
}

// The one dimension that several make up: leading ones, a part, whole ones, then ones again, which make strides.
bool merge(const Flat& f, size_t from, size_t to, int64_t* size, int64_t* stride) {
  *size = *stride = 1;
  size_t k = to;
  int64_t step = 1;
  for (; k > from && f.sizes[k - 1] == 1; --k) step *= f.dims[k - 1];
  bool whole = true;
  for (; k > from; --k) {
    const int64_t n = f.sizes[k - 1];
    if (f.strides[k - 1] != 1 && n > 1 && (k != to || to - from > 1)) return false;
    if (n == 1 && f.dims[k - 1] != 1) break;
    if (!whole) return false;
    *size *= n;
    whole = n >= f.dims[k - 1];
  }
  for (; k > from; --k)
    if (f.sizes[k - 1] != 1) return false;
  *stride = *size == 1 ? 1 : step * (to - from == 1 ? f.strides[from] : 1);
  return true;
}

// A part of one dimension as parts of those that make it up: it must hold whole rows, or lie within one.
bool split(int64_t size, int64_t stride, Flat* f, size_t from, size_t to) {
  if (to - from > 1 && stride != 1) return false;
  for (size_t k = to; k-- > from;) {
    const int64_t d = f->dims[k];
    f->strides[k] = to - from == 1 ? stride : 1;
    if (k == from) {
      f->sizes[k] = size;
      break;
    }
    if (size % d != 0 && d % size != 0) return false;
    f->sizes[k] = std::min(size, d);
    size = std::max<int64_t>(1, size / d);
  }
  return true;
}

// Of a bitcast or reshape: its operand's tile.
bool through_reshape(const Shape& out, const Shape& in, const Tile& t, Tile* of) {
  Flat a, b;
  const Dims to = majors(out), from = majors(in);
  for (int64_t d : to) {
    const auto k = static_cast<size_t>(d);
    a.dims.push_back(out.dims[k]), a.sizes.push_back(t.sizes[k]), a.strides.push_back(t.strides[k]);
  }
  for (int64_t d : from) b.dims.push_back(in.dims[static_cast<size_t>(d)]);
  b.sizes.assign(b.dims.size(), 1), b.strides.assign(b.dims.size(), 1);
  for (size_t i = 0, j = 0; i < a.dims.size() || j < b.dims.size();) {
    // The shortest groups of equal products; single ones by themselves.
    if (i < a.dims.size() && a.dims[i] == 1 && !(j < b.dims.size() && b.dims[j] == 1)) {
      ++i;
      continue;
    }
    if (j < b.dims.size() && b.dims[j] == 1 && !(i < a.dims.size() && a.dims[i] == 1)) {
      ++j;
      continue;
    }
    if (i == a.dims.size() || j == b.dims.size()) return false;
    const size_t first_a = i, first_b = j;
    int64_t x = a.dims[i++], y = b.dims[j++];
    while (x != y) {
      if (x < y) {
        if (i == a.dims.size()) return false;
        x *= a.dims[i++];
      } else {
        if (j == b.dims.size()) return false;
        y *= b.dims[j++];
      }
    }
    int64_t size = 0, stride = 0;
    if (!merge(a, first_a, i, &size, &stride) || !split(size, stride, &b, first_b, j)) return false;
  }
  of->sizes.assign(in.dims.size(), 1), of->strides.assign(in.dims.size(), 1);
  for (size_t k = 0; k < from.size(); ++k) {
    of->sizes[static_cast<size_t>(from[k])] = b.sizes[k];
    of->strides[static_cast<size_t>(from[k])] = b.strides[k];
  }
  return true;
}

bool operand_tile(const Module& m, InstId i, size_t n, const Shape& in, const Tile& t, Tile* of) {
  switch (m.op(i)) {
    case Opcode::Broadcast: {
      for (int64_t d : m.attrs(i).ints(Attr::dimensions)) {
        of->sizes.push_back(t.sizes[static_cast<size_t>(d)]);
        of->strides.push_back(t.strides[static_cast<size_t>(d)]);
      }
      return true;
    }
    case Opcode::Transpose: {
      const Dims& p = m.attrs(i).ints(Attr::dimensions);
      of->sizes.resize(p.size()), of->strides.resize(p.size());
      for (size_t k = 0; k < p.size(); ++k) {
        of->sizes[static_cast<size_t>(p[k])] = t.sizes[k];
        of->strides[static_cast<size_t>(p[k])] = t.strides[k];
      }
      return true;
    }
    case Opcode::Reduce: {
      if (n > 0) return true;
      const Dims& gone = m.attrs(i).ints(Attr::dimensions);
      for (int64_t d = 0, k = 0; d < in.rank(); ++d) {
        const bool reduced = std::find(gone.begin(), gone.end(), d) != gone.end();
        of->sizes.push_back(reduced ? in.dims[static_cast<size_t>(d)] : t.sizes[static_cast<size_t>(k)]);
        of->strides.push_back(reduced ? 1 : t.strides[static_cast<size_t>(k)]);
        k += !reduced;
      }
      return true;
    }
    case Opcode::Slice: {
      const auto* slices = m.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
      *of = t;
      for (size_t k = 0; slices && k < of->strides.size(); ++k) of->strides[k] *= (*slices)[k].stride;
      return slices != nullptr;
    }
    case Opcode::Bitcast:
    case Opcode::Reshape: {
      Tile rounded = t, unused;
      for (int64_t& s : rounded.sizes) s = padded(s);
      return through_reshape(m.shape(i), in, rounded, &unused) && through_reshape(m.shape(i), in, t, of);
    }
    default:
      *of = in.dims.empty() ? Tile() : t;
      return true;
  }
}

}  // namespace

int64_t padded_elements(const Dims& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n = std::min(n * padded(std::min(s, kManyElements)), kManyElements);
  return n;
}

std::string refuse_triton(const Module& m, InstId i) {
  const Opcode op = m.op(i);
  switch (op) {
    case Opcode::Parameter:
    case Opcode::Broadcast:
    case Opcode::Transpose:
    case Opcode::Bitcast:
    case Opcode::Reshape:
    case Opcode::Slice:
    case Opcode::Iota:
      return "";
    case Opcode::Constant:
      return m.shape(i).is_array() && m.shape(i).elements_count() == 1
                 ? ""
                 : "Only scalar constants are supported in Triton.";
    case Opcode::Reduce:
      return m.shape(i).is_array() && m.attrs(i).ints(Attr::dimensions).size() == 1
                 ? ""
                 : "Reduction is not a row-reduction of a single operand.";
    default:
      return op_info(op).elementwise && op != Opcode::Map ? "" : fmt::format("Unsupported opcode {}", op_text(op));
  }
}

std::optional<std::vector<TiledValue>> tiled_values(const FusionView& view, const Dims& root_tile) {
  const Module& m = view.module();
  const InstId root = view.roots()[0];
  std::vector<TiledValue> out = {{root, {root_tile, Dims(root_tile.size(), 1)}, view.contains(root)}};
  std::unordered_map<InstId, std::vector<size_t>> places = {{root, {0}}};
  for (size_t k = 0; k < out.size(); ++k) {
    const TiledValue at = out[k];
    if (!at.inside) continue;
    for (size_t n = 0; n < m.operand_count(at.inst); ++n) {
      const InstId o = view.operand(at.inst, n);
      Tile t;
      if (!operand_tile(m, at.inst, n, m.shape(o), at.tile, &t)) return std::nullopt;
      std::vector<size_t>& known = places[o];
      if (std::any_of(known.begin(), known.end(), [&](size_t p) { return out[p].tile == t; })) continue;
      known.push_back(out.size());
      out.push_back({o, std::move(t), view.contains(o)});
    }
  }
  return out;
}

}  // namespace hlo
