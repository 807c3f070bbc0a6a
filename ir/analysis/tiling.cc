#include "ir/analysis/tiling.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ir/analysis/tile_maps.h"

namespace hlo {
namespace {

constexpr int64_t kManyElements = int64_t{1} << 31;  // more than any block has

int64_t padded(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// Tile of dimensions in the order of memory, major first.
struct Flat {
  size_t rank = 0;
  uint32_t summed = 0;
  std::array<int64_t, kMostTileRank> dims{}, sizes{}, strides{}, from{};
};

Flat flat(const Shape& s) {
  Flat f;
  f.rank = s.dims.size();
  const bool laid = s.has_layout && s.layout.minor_to_major.size() == f.rank;
  for (size_t k = 0; k < f.rank; ++k) {
    f.from[k] = laid ? s.layout.minor_to_major[f.rank - 1 - k] : static_cast<int64_t>(k);
    f.dims[k] = s.dims[static_cast<size_t>(f.from[k])];
    f.sizes[k] = f.strides[k] = 1;
  }
  return f;
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
    whole = n == f.dims[k - 1];  // more, rounded up, leaves holes between what several rows make up
  }
  for (; k > from; --k)
    if (f.sizes[k - 1] != 1) return false;
  if (to - from == 1)
    *stride = f.strides[from];
  else
    *stride = *size == 1 ? 1 : step;
  return true;
}

// A part of one dimension as parts of those that make it up: it must hold whole rows, or lie within one.
bool split(int64_t size, int64_t stride, Flat* f, size_t from, size_t to) {
  if (to - from > 1 && stride > 1) return false;
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

// Where XLA does not see tiles: what is summed all along one dimension, and comes of several.
bool splits_sum(const Flat& a, size_t first_a, size_t to_a, Flat* b, size_t first_b, size_t to_b) {
  uint32_t some = 0, all = 1;
  for (size_t k = first_a; k < to_a; ++k) {
    const uint32_t bit = a.summed >> k & 1;
    some |= bit, all &= bit;
  }
  if (all && to_a > first_a)
    for (size_t k = first_b; k < to_b; ++k) b->summed |= 1U << k;
  return some && to_b - first_b > 1;
}

// Of a bitcast or reshape: its operand's tile.
bool through_reshape(const Shape& out, const Shape& in, const Tile& t, Tile* of) {
  Flat a = flat(out), b = flat(in);
  for (size_t k = 0; k < a.rank; ++k) {
    a.sizes[k] = t.sizes[static_cast<size_t>(a.from[k])];
    a.strides[k] = t.strides[static_cast<size_t>(a.from[k])];
    a.summed |= (t.summed >> a.from[k] & 1) << k;
  }
  for (size_t i = 0, j = 0; i < a.rank || j < b.rank;) {
    // The shortest groups of equal products; dimensions of 1 by themselves.
    if (i < a.rank && a.dims[i] == 1 && !(j < b.rank && b.dims[j] == 1)) {
      ++i;
      continue;
    }
    if (j < b.rank && b.dims[j] == 1 && !(i < a.rank && a.dims[i] == 1)) {
      ++j;
      continue;
    }
    if (i == a.rank || j == b.rank) return false;
    const size_t first_a = i, first_b = j;
    int64_t x = a.dims[i++], y = b.dims[j++];
    while (x != y) {
      if (x < y ? i == a.rank : j == b.rank) return false;
      (x < y ? x : y) *= x < y ? a.dims[i++] : b.dims[j++];
    }
    int64_t size = 0, stride = 0;
    if (splits_sum(a, first_a, i, &b, first_b, j)) return false;
    if (!merge(a, first_a, i, &size, &stride) || !split(size, stride, &b, first_b, j)) return false;
  }
  *of = Tile();
  of->rank = b.rank;
  for (size_t k = 0; k < b.rank; ++k) {
    of->sizes[static_cast<size_t>(b.from[k])] = b.sizes[k];
    of->strides[static_cast<size_t>(b.from[k])] = b.strides[k];
    of->summed |= (b.summed >> k & 1) << b.from[k];
  }
  return true;
}

bool operand_tile_of(const Module& m, InstId i, size_t n, const Shape& in, const Tile& t, Tile* of) {
  auto put = [of](size_t to, int64_t size, int64_t stride, bool summed) {
    of->sizes[to] = size, of->strides[to] = stride, of->summed |= static_cast<uint32_t>(summed) << to;
  };
  auto summed = [&t](size_t k) { return (t.summed >> k & 1) != 0; };
  of->rank = in.dims.size();
  switch (m.op(i)) {
    case Opcode::Broadcast: {
      const Dims& map = m.attrs(i).ints(Attr::dimensions);
      for (size_t k = 0; k < map.size(); ++k)
        put(k, t.sizes[static_cast<size_t>(map[k])], t.strides[static_cast<size_t>(map[k])],
            summed(static_cast<size_t>(map[k])));
      return true;
    }
    case Opcode::Transpose: {
      const Dims& p = m.attrs(i).ints(Attr::dimensions);
      for (size_t k = 0; k < p.size(); ++k) put(static_cast<size_t>(p[k]), t.sizes[k], t.strides[k], summed(k));
      return true;
    }
    case Opcode::Reduce: {
      if (n > 0) return true;
      const Dims& gone = m.attrs(i).ints(Attr::dimensions);
      for (size_t d = 0, k = 0; d < in.dims.size(); ++d) {
        const bool reduced = std::find(gone.begin(), gone.end(), static_cast<int64_t>(d)) != gone.end();
        put(d, reduced ? in.dims[d] : t.sizes[k], reduced ? 1 : t.strides[k], reduced || summed(k));
        k += !reduced;
      }
      return true;
    }
    case Opcode::Slice: {
      const auto* slices = m.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
      *of = t;
      for (size_t k = 0; slices && k < t.rank; ++k) of->strides[k] *= (*slices)[k].stride;
      return slices != nullptr;
    }
    case Opcode::Bitcast:
    case Opcode::Reshape: {
      Tile rounded = t, unused;
      for (size_t k = 0; k < t.rank; ++k) rounded.sizes[k] = padded(t.sizes[k]);
      return through_reshape(m.shape(i), in, rounded, &unused) && through_reshape(m.shape(i), in, t, of);
    }
    default:
      if (!in.dims.empty()) *of = t;
      return true;
  }
}

// Where a dimension has one element there is nothing to stride over: XLA's expression for it is a constant, the stride
// of which is 0. So rows that end with such a dimension count as read element by element. The result's own tile keeps
// its strides: its map is the identity, which nothing simplifies.
void no_stride_of_ones(const Shape& s, Tile* t) {
  for (size_t k = 0; k < t->rank; ++k)
    if (s.dims[k] == 1) t->strides[k] = 0;
}

bool operand_tile(const Module& m, InstId i, size_t n, const Shape& in, const Tile& t, Tile* of) {
  if (!operand_tile_of(m, i, n, in, t, of)) return false;
  no_stride_of_ones(in, of);
  return true;
}

}  // namespace

bool can_be_cut(const FusionView& view) {
  Tile one;
  one.rank = view.module().shape(view.roots()[0]).dims.size();
  if (one.rank > kMostTileRank) return false;
  for (size_t k = 0; k < one.rank; ++k) one.sizes[k] = one.strides[k] = 1;
  TiledFusion fusion(view);
  return fusion.cut(one) != nullptr && has_tile_maps(view);
}

int64_t padded_elements(const Tile& t) {
  int64_t n = 1;
  for (size_t k = 0; k < t.rank; ++k) n = std::min(n * padded(std::min(t.sizes[k], kManyElements)), kManyElements);
  return n;
}

TiledFusion::TiledFusion(const FusionView& view) : m_(view.module()) {
  std::unordered_map<InstId, uint32_t> places;
  auto place = [&](InstId i) {
    auto [at, fresh] = places.emplace(i, static_cast<uint32_t>(nodes_.size()));
    if (fresh) nodes_.push_back({i, view.contains(i), {}});
    const Shape& s = m_.shape(i);
    small_ &= s.is_array() && s.dims.size() <= kMostTileRank;
    return at->second;
  };
  place(view.roots()[0]);
  for (size_t k = 0; k < nodes_.size(); ++k) {
    if (!nodes_[k].inside) continue;
    std::vector<uint32_t> operands;
    for (size_t n = 0; n < m_.operand_count(nodes_[k].inst); ++n)
      operands.push_back(place(view.operand(nodes_[k].inst, n)));
    nodes_[k].operands = std::move(operands);
  }
  tiled_.resize(nodes_.size());
}

const std::vector<TiledValue>* TiledFusion::cut(const Tile& root) {
  if (!small_) return nullptr;
  out_.clear(), node_of_.clear();
  for (std::vector<uint32_t>& t : tiled_) t.clear();
  out_.push_back({nodes_[0].inst, root, nodes_[0].inside});
  node_of_.push_back(0), tiled_[0].push_back(0);
  for (size_t k = 0; k < out_.size(); ++k) {
    if (!out_[k].inside) continue;
    const Node& node = nodes_[node_of_[k]];
    for (size_t n = 0; n < node.operands.size(); ++n) {
      const uint32_t to = node.operands[n];
      Tile t;
      if (!operand_tile(m_, node.inst, n, m_.shape(nodes_[to].inst), out_[k].tile, &t)) return nullptr;
      if (std::any_of(tiled_[to].begin(), tiled_[to].end(), [&](uint32_t p) { return out_[p].tile == t; })) continue;
      tiled_[to].push_back(static_cast<uint32_t>(out_.size()));
      node_of_.push_back(to);
      out_.push_back({nodes_[to].inst, t, nodes_[to].inside});
    }
  }
  return &out_;
}

}  // namespace hlo
