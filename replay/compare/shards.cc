#include "replay/compare/shards.h"

#include <algorithm>
#include <optional>

#include "ir/eval/kernels.h"
#include "ir/sharding.h"
#include "parser/parser.h"

namespace hlo {
namespace {

// Tiles a dimension and where each partition's tile lies; one tile everywhere for what is not tiled.
struct Tiling {
  Dims counts;
  std::vector<Dims> place;  // by partition; empty: all zeros
};

Tiling tiling_of(const Sharding& s, size_t rank) {
  Tiling out;
  out.counts.assign(rank, 1);
  if (s.kind != Sharding::Kind::kTiled) return out;
  if (s.tiles.dims.size() < rank) fail(FailureKind::kUsage, "sharding {} has too few dimensions", s.text(false));
  DeviceDims devices = s.tiles.list();
  std::copy_n(s.tiles.dims.begin(), rank, out.counts.begin());
  out.place.resize(devices.size());
  for (size_t k = 0; k < devices.size(); ++k) {
    Dims at(s.tiles.dims.size());
    int64_t rest = static_cast<int64_t>(k);
    for (size_t d = at.size(); d-- > 0; rest /= s.tiles.dims[d]) at[d] = rest % s.tiles.dims[d];
    at.resize(rank);
    if (devices[k] < 0 || devices[k] >= static_cast<int64_t>(out.place.size()))
      fail(FailureKind::kUsage, "sharding {} names device {}", s.text(false), devices[k]);
    out.place[static_cast<size_t>(devices[k])] = std::move(at);
  }
  return out;
}

Dims place_of(const Tiling& t, int64_t device) {
  if (t.place.empty()) return Dims(t.counts.size(), 0);
  if (device < 0 || device >= static_cast<int64_t>(t.place.size()))
    fail(FailureKind::kUsage, "a sharding over {} devices has no device {}", t.place.size(), device);
  return t.place[static_cast<size_t>(device)];
}

// Copies the overlap of the tile at `place` between the whole array and the share.
void move_tile(const Shape& whole, const Shape& local, const Dims& place, const char* from, char* to, bool gather) {
  Dims whole_strides = row_major_strides(whole.dims), local_strides = row_major_strides(local.dims), dims = local.dims;
  int64_t start = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t first = place[d] * local.dims[d];
    dims[d] = std::clamp<int64_t>(whole.dims[d] - first, 0, local.dims[d]);
    if (!dims[d]) return;
    start += first * whole_strides[d];
  }
  int width = storage_bytes(whole.type);
  if (gather)
    copy_nd(dims, from, local_strides, to + start * width, whole_strides, width);
  else
    copy_nd(dims, from + start * width, whole_strides, to, local_strides, width);
}

Value blank(const Universe& u, ShapeId shape) {
  Value v;
  v.shape = shape;
  const Shape& s = u[shape];
  v.data = std::make_shared<std::vector<char>>(static_cast<size_t>(s.elements_count() * storage_bytes(s.type)));
  return v;
}

Value shard(Universe& u, const Value& whole, ShapeId local, const std::vector<Sharding>& leaves, size_t& leaf,
            int64_t device) {
  if (u[whole.shape].is_tuple()) {
    Value out;
    out.shape = local;
    for (size_t k = 0; k < whole.elements.size(); ++k)
      out.elements.push_back(shard(u, whole.elements[k], u[local].elements[k], leaves, leaf, device));
    return out;
  }
  const Sharding& s = leaves[std::min(leaf++, leaves.size() - 1)];
  const Shape &ws = u[whole.shape], &ls = u[local];
  if (!ws.is_array()) return whole;
  if (ws.type != ls.type || ws.dims.size() != ls.dims.size())
    fail(FailureKind::kUsage, "{} is no share of {}", u.shape_text_plain(local), u.shape_text_plain(whole.shape));
  Tiling tiling = tiling_of(s, ls.dims.size());
  for (size_t d = 0; d < ls.dims.size(); ++d)
    if ((ws.dims[d] + tiling.counts[d] - 1) / tiling.counts[d] != ls.dims[d])
      fail(FailureKind::kUsage, "{} is no share of {} under {}", u.shape_text_plain(local),
           u.shape_text_plain(whole.shape), s.text(false));
  Value out = blank(u, local);
  move_tile(ws, ls, place_of(tiling, device), whole.bytes(), out.data->data(), false);
  return out;
}

}  // namespace

Value shard_of(Universe& u, const Value& whole, ShapeId local, std::string_view sharding, int64_t device) {
  std::vector<Sharding> leaves{Sharding()};
  if (!sharding.empty()) {
    Sharding s = parse_sharding(sharding);
    leaves = s.kind == Sharding::Kind::kTuple ? s.elements : std::vector<Sharding>{s};
  }
  size_t leaf = 0;
  return shard(u, whole, local, leaves, leaf, device);
}

Value assembled(Universe& u, const std::vector<Value>& shards, ShapeId whole, std::string_view sharding) {
  std::vector<Sharding> leaves;
  if (!sharding.empty()) {
    Sharding s = parse_sharding(sharding);
    leaves = s.kind == Sharding::Kind::kTuple ? s.elements : std::vector<Sharding>{s};
  }
  size_t leaf = 0;
  auto build = [&](auto&& self, const std::vector<const Value*>& parts, ShapeId to) -> Value {
    if (u[to].is_tuple()) {
      Value out;
      out.shape = to;
      for (size_t k = 0; k < u[to].elements.size(); ++k) {
        std::vector<const Value*> inner;
        for (const Value* p : parts) inner.push_back(&p->elements.at(k));
        out.elements.push_back(self(self, inner, u[to].elements[k]));
      }
      return out;
    }
    const Sharding* s = leaves.empty() ? nullptr : &leaves[std::min(leaf++, leaves.size() - 1)];
    const Shape &ws = u[to], &ls = u[parts[0]->shape];
    if (!ws.is_array() || ws.dims == ls.dims) {
      Value out = *parts[0];
      out.shape = to;
      return out;
    }
    Tiling tiling;
    if (s && s->kind == Sharding::Kind::kTiled) {
      tiling = tiling_of(*s, ls.dims.size());
    } else {
      for (size_t d = 0; d < ls.dims.size(); ++d)
        tiling.counts.push_back(ls.dims[d] ? (ws.dims[d] + ls.dims[d] - 1) / ls.dims[d] : 1);
      for (size_t k = 0; k < parts.size(); ++k) {
        Dims at(tiling.counts.size());
        int64_t rest = static_cast<int64_t>(k);
        for (size_t d = at.size(); d-- > 0; rest /= tiling.counts[d]) at[d] = rest % tiling.counts[d];
        tiling.place.push_back(std::move(at));
      }
    }
    Value out = blank(u, to);
    for (size_t k = 0; k < parts.size(); ++k)
      move_tile(ws, ls, place_of(tiling, static_cast<int64_t>(k)), parts[k]->bytes(), out.data->data(), true);
    return out;
  };
  std::vector<const Value*> parts;
  for (const Value& v : shards) parts.push_back(&v);
  return build(build, parts, whole);
}

}  // namespace hlo
