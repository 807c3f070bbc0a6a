#include "ir/analysis/fusion/tiling.h"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>

#include "ir/analysis/fusion/tile_maps.h"

namespace hlo {
namespace {

constexpr int64_t kManyElements = int64_t{1} << 31;  // more than any block has

int64_t padded(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

using Places = std::span<const uint8_t>;  // dimensions of a shape, major first

// The one dimension that several make up: leading ones, a part, whole ones, then ones again, which make strides.
bool merge(const Dims& dims, const Tile& t, Places places, int64_t* size, int64_t* stride) {
  *size = 1;
  size_t k = places.size();
  int64_t step = 1;
  for (; k > 0 && t.sizes[places[k - 1]] == 1; --k) step *= dims[places[k - 1]];
  bool whole = true;
  for (; k > 0; --k) {
    const int64_t n = t.sizes[places[k - 1]];
    if (n == 1) break;
    if (!whole || (t.strides[places[k - 1]] != 1 && places.size() > 1)) return false;
    *size *= n;
    whole = n == dims[places[k - 1]];  // more, rounded up, leaves holes between what several rows make up
  }
  for (; k > 0; --k)
    if (t.sizes[places[k - 1]] != 1) return false;
  if (places.size() == 1)
    *stride = t.strides[places[0]];
  else
    *stride = *size == 1 ? 1 : step;
  return true;
}

// A part of one dimension as parts of those that make it up: it must hold whole rows, or lie within one.
bool split(const Dims& dims, int64_t size, int64_t stride, Places places, Tile* of) {
  if (places.size() > 1 && stride > 1) return false;
  for (size_t k = places.size(); k-- > 0;) {
    const int64_t d = dims[places[k]];
    of->strides[places[k]] = places.size() == 1 ? stride : 1;
    if (k == 0) {
      of->sizes[places[k]] = size;
      break;
    }
    if (size % d != 0 && d % size != 0) return false;
    of->sizes[places[k]] = std::min(size, d);
    size = std::max<int64_t>(1, size / d);
  }
  return true;
}

// Of a bitcast or reshape: its operand's tile.
bool regroup(const OperandDims& how, const Shape& out, const Shape& in, const Tile& t, Tile* of) {
  for (size_t k = 0; k < of->rank; ++k) of->sizes[k] = of->strides[k] = 1;
  for (const OperandDims::Group& g : how.groups) {
    int64_t size = 0, stride = 0;
    if (!merge(out.dims, t, Places(how.outs).subspan(g.out, g.out_end - g.out), &size, &stride)) return false;
    if (!split(in.dims, size, stride, Places(how.ins).subspan(g.in, g.in_end - g.in), of)) return false;
  }
  return true;
}

bool operand_tile(const OperandDims& how, const Shape& out, const Shape& in, const Tile& t, Tile* of) {
  of->rank = in.dims.size();
  switch (how.kind) {
    case OperandDims::kUnknown:
      return false;
    case OperandDims::kAlike:
      *of = t;
      break;
    case OperandDims::kOneByOne:
      for (size_t k = 0; k < of->rank; ++k) {
        const bool summed = how.of[k] == OperandDims::kSummed;
        of->sizes[k] = summed ? in.dims[k] : t.sizes[how.of[k]];
        of->strides[k] = summed ? 1 : t.strides[how.of[k]] * how.step[k];
      }
      break;
    case OperandDims::kRegrouped: {
      Tile rounded = t, unused;
      unused.rank = of->rank;
      for (size_t k = 0; k < t.rank; ++k) rounded.sizes[k] = padded(t.sizes[k]);
      if (!regroup(how, out, in, rounded, &unused) || !regroup(how, out, in, t, of)) return false;
      break;
    }
  }
  // Where a dimension has one element there is nothing to stride over: XLA's expression for it is a constant, the
  // stride of which is 0. So rows that end with such a dimension count as read element by element. The result's own
  // tile keeps its strides: its map is the identity, which nothing simplifies.
  for (size_t k = 0; k < of->rank; ++k)
    if (in.dims[k] == 1) of->strides[k] = 0;
  return true;
}

}  // namespace

bool can_be_cut(const FusionView& view) {
  Tile one;
  one.rank = view.module().shape(view.roots()[0]).dims.size();
  if (one.rank > kMostTileRank) return false;
  for (size_t k = 0; k < one.rank; ++k) one.sizes[k] = one.strides[k] = 1;
  TiledFusion fusion(view);
  return fusion.cut(one) != nullptr && fusion.has_maps();
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
    std::vector<Operand> operands;
    for (size_t n = 0; n < m_.operand_count(nodes_[k].inst); ++n)
      operands.push_back({place(view.operand(nodes_[k].inst, n)), {}});
    nodes_[k].operands = std::move(operands);
  }
  for (Node& node : nodes_)
    for (size_t n = 0; small_ && n < node.operands.size(); ++n)
      node.operands[n].dims = operand_dims(m_, node.inst, n, m_.shape(nodes_[node.operands[n].node].inst));
  asked_.resize(nodes_.size());
}

// Each value once for each part of it that is asked for, the root first; false where `through`, which says the part
// that is asked of an operand, knows none.
template <class Part, class Through>
bool TiledFusion::follow(const Part& root, std::vector<Asked<Part>>* out, const Through& through) {
  out->clear();
  if (!small_) return false;
  for (std::vector<uint32_t>& a : asked_) a.clear();
  auto ask = [&](uint32_t node, Part part) {
    asked_[node].push_back(static_cast<uint32_t>(out->size()));
    out->push_back({nodes_[node].inst, node, nodes_[node].inside, std::move(part)});
  };
  ask(0, root);
  for (size_t k = 0; k < out->size(); ++k) {
    if (!(*out)[k].inside) continue;
    const Node& node = nodes_[(*out)[k].node];
    for (const Operand& o : node.operands) {
      Part part;
      if (!through(o.dims, m_.shape(node.inst), m_.shape(nodes_[o.node].inst), (*out)[k].part, &part)) return false;
      const std::vector<uint32_t>& known = asked_[o.node];
      if (std::none_of(known.begin(), known.end(), [&](uint32_t p) { return (*out)[p].part == part; }))
        ask(o.node, std::move(part));
    }
  }
  return true;
}

bool TiledFusion::has_maps() {
  TileMaps maps;
  std::vector<Asked<TileMaps::Terms>> values;
  return follow(TileMaps::of_result(m_.shape(nodes_[0].inst)), &values,
                [&](const OperandDims& how, const Shape& out, const Shape& in, const TileMaps::Terms& terms,
                    TileMaps::Terms* of) { return maps.through(how, out, in, terms, of); });
}

const std::vector<Asked<Tile>>* TiledFusion::cut(const Tile& root) {
  return follow(root, &out_, operand_tile) ? &out_ : nullptr;
}

}  // namespace hlo
