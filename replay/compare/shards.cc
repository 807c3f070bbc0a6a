#include "replay/compare/shards.h"

#include <algorithm>
#include <optional>

#include "ir/eval/kernels.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"

namespace hlo {
namespace {

// Where each device of a mesh lies along a dimension's axes, the first of them the major one.
std::optional<ShardTiling> named_tiling(const Sharding& s, size_t rank) {
  ShardTiling out;
  out.counts.assign(rank, 1);
  if (s.whole) return s.whole_kind == "replicated" ? std::optional(out) : std::nullopt;
  if (s.mesh.maximal || s.dims.size() != rank || !s.unreduced.empty() || !s.manual.empty()) return {};
  int64_t count = 1;
  for (const auto& [name, size] : s.mesh.axes) count *= size;
  DeviceDims devices = s.mesh.has_devices ? s.mesh.devices.list() : DeviceDims();
  for (int64_t k = 0; k < count && !s.mesh.has_devices; ++k) devices.push_back(k);
  if (static_cast<int64_t>(devices.size()) != count) return {};
  for (size_t d = 0; d < rank; ++d)
    for (const AxisRef& ref : s.dims[d].axes) {
      if (ref.axis >= s.mesh.axes.size()) return {};
      out.counts[d] *= ref.size ? ref.size : s.mesh.axes[ref.axis].second;
    }
  out.place.resize(devices.size());
  for (size_t k = 0; k < devices.size(); ++k) {
    if (devices[k] < 0 || devices[k] >= count || !out.place[static_cast<size_t>(devices[k])].empty()) return {};
    Dims along(s.mesh.axes.size()), at(rank, 0);
    int64_t rest = static_cast<int64_t>(k);
    for (size_t x = along.size(); x-- > 0; rest /= s.mesh.axes[x].second) along[x] = rest % s.mesh.axes[x].second;
    for (size_t d = 0; d < rank; ++d)
      for (const AxisRef& ref : s.dims[d].axes) {
        const int64_t whole = s.mesh.axes[ref.axis].second, size = ref.size ? ref.size : whole;
        // Of `pre · size · rest` steps along the axis, those in the middle.
        at[d] = at[d] * size + along[ref.axis] / (whole / ref.pre / size) % size;
      }
    out.place[static_cast<size_t>(devices[k])] = std::move(at);
  }
  return out;
}

Dims place_of(const ShardTiling& t, int64_t device) {
  if (t.place.empty()) return Dims(t.counts.size(), 0);
  if (device < 0 || device >= static_cast<int64_t>(t.place.size()))
    fail(FailureKind::kUsage, "a sharding over {} devices has no device {}", t.place.size(), device);
  return t.place[static_cast<size_t>(device)];
}

ShardTiling tiling_or_fail(const Sharding& s, size_t rank) {
  if (s.kind != Sharding::Kind::kTiled && s.kind != Sharding::Kind::kNamed) return {Dims(rank, 1), {}};
  std::optional<ShardTiling> told = shard_tiling(s, rank);
  if (!told)
    fail(FailureKind::kUsage, "sharding {} does not say how an array of rank {} is divided", s.text(false), rank);
  return *std::move(told);
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
  const ShardTiling tiling = tiling_or_fail(s, ls.dims.size());
  for (size_t d = 0; d < ls.dims.size(); ++d)
    if ((ws.dims[d] + tiling.counts[d] - 1) / tiling.counts[d] != ls.dims[d])
      fail(FailureKind::kUsage, "{} is no share of {} under {}", u.shape_text_plain(local),
           u.shape_text_plain(whole.shape), s.text(false));
  Value out = blank(u, local);
  move_tile(ws, ls, place_of(tiling, device), whole.bytes(), out.data->data(), false);
  return out;
}

}  // namespace

std::optional<ShardTiling> shard_tiling(const Sharding& s, size_t rank) {
  ShardTiling out;
  out.counts.assign(rank, 1);
  if (s.kind == Sharding::Kind::kReplicated) return out;
  if (s.kind == Sharding::Kind::kNamed) return named_tiling(s, rank);
  if (s.kind != Sharding::Kind::kTiled || s.tiles.dims.size() < rank) return {};
  const DeviceDims devices = s.tiles.list();
  std::copy_n(s.tiles.dims.begin(), rank, out.counts.begin());
  out.place.resize(devices.size());
  for (size_t k = 0; k < devices.size(); ++k) {
    Dims at(s.tiles.dims.size());
    int64_t rest = static_cast<int64_t>(k);
    for (size_t d = at.size(); d-- > 0; rest /= s.tiles.dims[d]) at[d] = rest % s.tiles.dims[d];
    at.resize(rank);
    if (devices[k] < 0 || devices[k] >= static_cast<int64_t>(out.place.size())) return {};
    out.place[static_cast<size_t>(devices[k])] = std::move(at);
  }
  return out;
}

const Sharding* leaf_sharding(const Sharding& s, size_t leaf) {
  if (s.kind != Sharding::Kind::kTuple) return &s;
  return leaf < s.elements.size() ? &s.elements[leaf] : nullptr;
}

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
    ShardTiling tiling;
    if (s && (s->kind == Sharding::Kind::kTiled || s->kind == Sharding::Kind::kNamed)) {
      tiling = tiling_or_fail(*s, ls.dims.size());
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
