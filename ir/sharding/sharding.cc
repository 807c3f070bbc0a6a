#include "ir/sharding/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/sharding/aliasing.h"

namespace hlo {
namespace {

std::string bracketed(const DeviceDims& d) { return fmt::format("[{}]", fmt::join(d, ",")); }

int64_t product(const DeviceDims& d) {
  int64_t p = 1;
  for (int64_t v : d) p *= v;
  return p;
}

// out[i] = in[…] of an array of dimensions `dims` transposed by `perm`.
// Empty where `perm` is no permutation or the array has other than the listed elements.
DeviceDims transpose_list(const DeviceDims& in, const DeviceDims& dims, const DeviceDims& perm) {
  DeviceDims sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) return {};
  if (perm.size() != dims.size() || product(dims) != static_cast<int64_t>(in.size())) return {};
  DeviceDims strides(dims.size(), 1), out(in.size());
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  DeviceDims at(dims.size(), 0);
  for (size_t n = 0; n < in.size(); ++n) {
    int64_t from = 0;
    for (size_t d = 0; d < perm.size(); ++d) from += at[d] * strides[static_cast<size_t>(perm[d])];
    out[n] = in[static_cast<size_t>(from)];
    for (size_t d = perm.size(); d-- > 0;) {
      if (++at[d] < dims[static_cast<size_t>(perm[d])]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace

int64_t TileAssignment::size() const { return product(dims); }

void TileAssignment::canonicalize() {
  if (!iota || reshape.size() <= 1) return;
  for (bool changed = true; changed && reshape.size() > 1;) {
    changed = false;
    std::vector<int64_t> fresh(reshape.size(), -1);
    DeviceDims kept, order;
    for (size_t i = 0; i < reshape.size(); ++i)
      if (reshape[i] != 1) fresh[i] = static_cast<int64_t>(kept.size()), kept.push_back(reshape[i]);
    for (int64_t p : perm)
      if (fresh[static_cast<size_t>(p)] >= 0) order.push_back(fresh[static_cast<size_t>(p)]);
    reshape = kept.empty() ? DeviceDims{1} : kept;
    perm = kept.empty() ? DeviceDims{0} : order;
    for (size_t i = 1, base = 0; i < perm.size(); ++i) {
      auto at = static_cast<size_t>(perm[base]), next = static_cast<size_t>(perm[i]);
      if (next == at + (i - base)) {
        reshape[at] *= reshape[next];
        reshape[next] = 1;
        changed = true;
      } else {
        base = i;
      }
    }
  }
}

DeviceDims TileAssignment::list() const {
  if (!iota) return devices;
  DeviceDims all(static_cast<size_t>(product(reshape)));
  std::iota(all.begin(), all.end(), 0);
  return transpose_list(all, reshape, perm);
}

TileAssignment TileAssignment::reshaped(DeviceDims to) const {
  TileAssignment out = *this;
  out.dims = std::move(to);
  return out;
}

TileAssignment TileAssignment::transposed(const DeviceDims& order) const {
  TileAssignment out = *this;
  for (size_t i = 0; i < order.size(); ++i) out.dims[i] = dims[static_cast<size_t>(order[i])];
  // Does any dimension of more than one move?
  DeviceDims moving;
  for (int64_t d : order)
    if (dims[static_cast<size_t>(d)] != 1) moving.push_back(d);
  if (std::is_sorted(moving.begin(), moving.end())) return out;
  if (iota && reshape.size() == 1) {
    out.reshape = dims;
    out.perm = order;
    out.canonicalize();
    return out;
  }
  if (iota) {
    // The dimensions are those of the transposed iota, further split: both transpositions become one.
    DeviceDims parts, source;  // parts in the order of dims; source: which reshape dimension each is of
    std::vector<DeviceDims> of_dim(dims.size());
    DeviceDims transposed_dims;
    for (int64_t p : perm) transposed_dims.push_back(reshape[static_cast<size_t>(p)]);
    size_t t = 0;
    int64_t left = transposed_dims.empty() ? 1 : transposed_dims[0];
    bool fits = true;
    for (size_t d = 0; d < dims.size() && fits; ++d) {
      int64_t need = dims[d];
      while (need > 1) {
        while (left == 1 && t + 1 < transposed_dims.size()) left = transposed_dims[++t];
        int64_t part = std::gcd(need, left);
        if (part == 1 || (part != need && part != left)) {
          fits = false;
          break;
        }
        of_dim[d].push_back(static_cast<int64_t>(parts.size()));
        parts.push_back(part);
        source.push_back(perm[t]);
        need /= part, left /= part;
      }
    }
    if (fits) {
      // Parts in the iota's own order: by source dimension, those of one in order.
      DeviceDims by_source(parts.size());
      std::iota(by_source.begin(), by_source.end(), 0);
      std::stable_sort(by_source.begin(), by_source.end(), [&](int64_t a, int64_t b) {
        return source[static_cast<size_t>(a)] < source[static_cast<size_t>(b)];
      });
      DeviceDims place(parts.size());
      out.reshape.clear(), out.perm.clear();
      for (size_t i = 0; i < by_source.size(); ++i) {
        place[static_cast<size_t>(by_source[i])] = static_cast<int64_t>(i);
        out.reshape.push_back(parts[static_cast<size_t>(by_source[i])]);
      }
      for (int64_t d : order)
        for (int64_t part : of_dim[static_cast<size_t>(d)]) out.perm.push_back(place[static_cast<size_t>(part)]);
      out.canonicalize();
      return out;
    }
  }
  out.devices = transpose_list(list(), dims, order);
  out.iota = false;
  out.reshape.clear(), out.perm.clear();
  return out;
}

std::string TileAssignment::text() const {
  if (!iota) return bracketed(dims) + fmt::format("{}", fmt::join(devices, ","));
  std::string out = bracketed(dims) + "<=" + bracketed(reshape);
  if (reshape.size() > 1) out += fmt::format("T({})", fmt::join(perm, ","));
  return out;
}

std::string Mesh::text() const {
  if (maximal) return fmt::format("maximal_mesh[device_id={}]", device);
  std::string out = "mesh[";
  for (size_t i = 0; i < axes.size(); ++i) out += fmt::format("{}'{}'={}", i ? "," : "", axes[i].first, axes[i].second);
  out += "]";
  if (has_devices) {
    if (devices.iota)
      out += ", device_ids=(" + bracketed(devices.reshape) + fmt::format("T({}))", fmt::join(devices.perm, ","));
    else
      out += fmt::format(", device_ids=({})", fmt::join(devices.devices, ","));
  }
  return out;
}

Sharding Sharding::partial_tile(TileAssignment tiles) {
  Sharding s;
  const DeviceDims& d = tiles.dims;
  if (std::all_of(d.begin(), d.end() - 1, [](int64_t v) { return v == 1; })) return s;
  s.kind = Kind::kTiled;
  if (d.back() == 1) {
    s.tiles = tiles.reshaped(DeviceDims(d.begin(), d.end() - 1));
    return s;
  }
  s.replicate_last = true;
  if (!tiles.iota) {
    // Replicas of one tile in order.
    auto step = static_cast<ptrdiff_t>(d.back());
    for (auto at = tiles.devices.begin(); at != tiles.devices.end(); at += step) std::sort(at, at + step);
  }
  s.tiles = std::move(tiles);
  return s;
}

Sharding Sharding::subgroup(TileAssignment tiles, std::vector<Sub> types) {
  Sharding s;
  s.kind = Kind::kTiled;
  size_t data = tiles.dims.size() - types.size();
  bool one_type = std::all_of(types.begin(), types.end(), [&](Sub t) { return t == types[0]; });
  if (!types.empty() && one_type &&
      product(DeviceDims(tiles.dims.begin(), tiles.dims.begin() + static_cast<ptrdiff_t>(data))) == 1) {
    s.kind = types[0] == Sub::kManual      ? Kind::kManual
             : types[0] == Sub::kUnreduced ? Kind::kUnreduced
                                           : Kind::kReplicated;
    return s;
  }
  bool merge = false;
  std::vector<DeviceDims> of_type(3);
  for (size_t i = 0; i < types.size(); ++i) {
    if (tiles.dims[data + i] == 1) {
      merge = true;
      continue;
    }
    DeviceDims& list = of_type[static_cast<size_t>(types[i])];
    merge |= !list.empty();
    list.push_back(static_cast<int64_t>(data + i));
  }
  merge |= std::count_if(of_type.begin(), of_type.end(), [](const DeviceDims& d) { return !d.empty(); }) > 1;
  if (merge) {
    DeviceDims order(data), shape(tiles.dims.begin(), tiles.dims.begin() + static_cast<ptrdiff_t>(data));
    std::iota(order.begin(), order.end(), 0);
    types.clear();
    for (size_t t = 0; t < of_type.size(); ++t) {
      if (of_type[t].empty()) continue;
      int64_t size = 1;
      for (int64_t d : of_type[t]) order.push_back(d), size *= tiles.dims[static_cast<size_t>(d)];
      shape.push_back(size);
      types.push_back(static_cast<Sub>(t));
    }
    for (size_t d = data; d < tiles.dims.size(); ++d)
      if (tiles.dims[d] == 1) order.push_back(static_cast<int64_t>(d));
    tiles = tiles.transposed(order).reshaped(shape);
  }
  if (types.size() == 1 && types[0] == Sub::kReplicated) return partial_tile(std::move(tiles));
  s.tiles = std::move(tiles);
  s.last = std::move(types);
  return s;
}

std::string Sharding::text(bool with_metadata) const {
  bool meta = with_metadata && !metadata.empty();
  if (kind == Kind::kTuple) {
    std::string out = "{";
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i) out += ", ";
      if (i && i % 5 == 0) out += fmt::format("/*index={}*/", i);
      out += elements[i].text(with_metadata);
    }
    return out + "}";
  }
  if (kind == Kind::kNamed) {
    std::string out = "{" + mesh.text();
    auto refs = [&](const std::vector<AxisRef>& list, bool open) {
      std::string text = "{";
      for (size_t i = 0; i < list.size(); ++i) {
        text += fmt::format("{}'{}'", i ? ", " : "", mesh.axes[list[i].axis].first);
        if (list[i].size) text += fmt::format(":({}){}", list[i].pre, list[i].size);
      }
      if (open) text += list.empty() ? "?" : ", ?";
      return text + "}";
    };
    if (whole) {
      out += ", " + whole_kind;
    } else if (!mesh.maximal) {
      out += ", [";
      for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + refs(dims[i].axes, dims[i].open);
      out += "]";
      if (!replicated.empty()) out += ", replicated=" + refs(replicated, false);
      if (!unreduced.empty()) out += ", unreduced=" + reduction + refs(unreduced, false);
      if (!manual.empty()) out += ", manual=" + refs(manual, false);
    }
    if (meta) out += ", metadata=" + metadata;
    return out + "}";
  }
  std::string out = "{";
  switch (kind) {
    case Kind::kReplicated:
      out += "replicated";
      break;
    case Kind::kMaximal:
      out += fmt::format("maximal device={}", device);
      break;
    case Kind::kManual:
      out += "manual";
      break;
    case Kind::kUnknown:
      out += "unknown";
      break;
    case Kind::kUnreduced:
      out += "unreduced";
      break;
    default:
      out += "devices=" + tiles.text();
      if (replicate_last) out += " last_tile_dim_replicate";
      if (!last.empty()) {
        static constexpr const char* kNames[] = {"manual", "unreduced", "replicated"};
        out += " last_tile_dims={";
        for (size_t i = 0; i < last.size(); ++i)
          out += fmt::format("{}{}", i ? ", " : "", kNames[static_cast<int>(last[i])]);
        out += "}";
      }
  }
  if (group != Group::kNone) out += fmt::format(" shard_{} {}", group == Group::kAs ? "as" : "like", group_id);
  if (meta) out += " metadata=" + metadata;
  return out + "}";
}

std::string without_metadata(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') {
      size_t end = std::min(text.find('\'', i + 1), text.size() - 1);
      out += text.substr(i, end - i + 1);
      i = end;
      continue;
    }
    size_t skip = text.substr(i).starts_with(", metadata={") ? 11 : text.substr(i).starts_with(" metadata={") ? 10 : 0;
    if (!skip) {
      out += text[i];
      continue;
    }
    int depth = 0;
    for (i += skip; i < text.size(); ++i) {
      if (text[i] == '"')
        for (++i; i < text.size() && text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
      if (i < text.size() && text[i] == '{') ++depth;
      if (i < text.size() && text[i] == '}' && --depth == 0) break;
    }
  }
  return out;
}

// --- groups from canonical text ---

namespace {

// `[2,2]<=[4]`.
bool expand_tile_groups(std::string_view text, std::vector<DeviceDims>* groups) {
  size_t arrow = text.find("<="), t = text.find('T');
  if (arrow == std::string_view::npos) return false;
  TileAssignment tiles;
  tiles.dims = integers_in(text.substr(0, arrow));
  tiles.iota = true;
  tiles.reshape = integers_in(text.substr(arrow, t == std::string_view::npos ? t : t - arrow));
  if (t != std::string_view::npos) tiles.perm = integers_in(text.substr(t));
  if (tiles.perm.empty())
    for (size_t i = 0; i < tiles.reshape.size(); ++i) tiles.perm.push_back(static_cast<int64_t>(i));
  if (tiles.dims.size() != 2 || product(tiles.reshape) > (int64_t{1} << 24)) return false;
  DeviceDims all = tiles.list();
  if (static_cast<int64_t>(all.size()) < tiles.size()) return false;
  for (int64_t g = 0; g < tiles.dims[0]; ++g)
    groups->emplace_back(all.begin() + g * tiles.dims[1], all.begin() + (g + 1) * tiles.dims[1]);
  return true;
}

// `mesh['a'=2,'b'=4], device_ids=(…) {'b', 'a':(1)2}`: axes, devices, and the axes or parts of them that run inside a
// group.
class MeshGroups {
 public:
  // False where the text is none.
  bool read(std::string_view text) {
    size_t close = text.find(']'), brace = text.rfind('{');
    if (close == std::string_view::npos || brace == std::string_view::npos) return false;
    return read_axes(text, close) && read_devices(text, brace) && read_named(text, brace) && split();
  }

  bool expand(std::vector<DeviceDims>* groups) const {
    std::vector<Part> outer, inner;
    for (const Part& p : parts_) (p.order < 0 ? outer : inner).push_back(p);
    std::stable_sort(inner.begin(), inner.end(), [](const Part& x, const Part& y) { return x.order < y.order; });
    for (int64_t base : offsets(outer)) {
      groups->emplace_back();
      for (int64_t o : offsets(inner)) {
        if (static_cast<size_t>(base + o) >= devices_.size()) return false;
        groups->back().push_back(devices_[static_cast<size_t>(base + o)]);
      }
    }
    return true;
  }

 private:
  struct Part {
    int64_t size, stride;
    int64_t order;  // among the named, or -1
  };
  struct Ref {
    size_t axis;
    int64_t pre, size;
  };

  bool read_axes(std::string_view text, size_t close) {
    for (size_t at = 5; at < close;) {
      size_t end = text.find('\'', at + 1);
      if (text[at] != '\'' || end > close) return false;
      DeviceDims size = integers_in(text.substr(end + 2, close - end - 2));
      if (size.empty()) return false;
      axes_.emplace_back(text.substr(at + 1, end - at - 1), size[0]);
      at = std::min(text.find('\'', end + 1), close);
    }
    return true;
  }

  bool read_devices(std::string_view text, size_t brace) {
    DeviceDims sizes;
    for (const auto& a : axes_) sizes.push_back(a.second);
    if (product(sizes) > (int64_t{1} << 24)) return false;
    devices_.resize(static_cast<size_t>(product(sizes)));
    std::iota(devices_.begin(), devices_.end(), 0);
    if (size_t ids = text.find("device_ids=("); ids != std::string_view::npos) {
      std::string_view list = text.substr(ids + 12, brace - ids - 12);
      if (list.starts_with("[")) {
        size_t t = list.find('T');
        TileAssignment tiles{{}, true, integers_in(list.substr(0, t)), {}, {}};
        if (t != std::string_view::npos) tiles.perm = integers_in(list.substr(t));
        devices_ = tiles.list();
      } else {
        devices_ = integers_in(list);
      }
    }
    return true;
  }

  bool read_named(std::string_view text, size_t brace) {
    for (size_t at = text.find('\'', brace); at != std::string_view::npos; at = text.find('\'', at)) {
      size_t end = text.find('\'', at + 1);
      std::string_view name = text.substr(at + 1, end - at - 1);
      auto axis = std::find_if(axes_.begin(), axes_.end(), [&](const auto& a) { return a.first == name; });
      if (axis == axes_.end()) return false;
      Ref ref{static_cast<size_t>(axis - axes_.begin()), 1, axis->second};
      at = end + 1;
      if (text.substr(at).starts_with(":(")) {
        DeviceDims n = integers_in(text.substr(at, text.find_first_of(",}", at) - at));
        if (n.size() != 2) return false;
        ref.pre = n[0], ref.size = n[1];
      }
      refs_.push_back(ref);
    }
    return true;
  }

  // Every axis split into the parts that are named: the named ones run inside a group, in the order of naming.
  bool split() {
    int64_t stride = static_cast<int64_t>(devices_.size());
    for (size_t a = 0; a < axes_.size(); ++a) {
      int64_t done = 1;
      std::vector<size_t> mine;
      for (size_t r = 0; r < refs_.size(); ++r)
        if (refs_[r].axis == a) mine.push_back(r);
      std::sort(mine.begin(), mine.end(), [&](size_t x, size_t y) { return refs_[x].pre < refs_[y].pre; });
      auto part = [&](int64_t size, int64_t order) {
        if (size <= 0 || stride % size != 0) return false;
        stride /= size;
        parts_.push_back({size, stride, order});
        done *= size;
        return true;
      };
      for (size_t r : mine) {
        if (refs_[r].pre % done != 0 || !part(refs_[r].pre / done, -1)) return false;
        if (!part(refs_[r].size, static_cast<int64_t>(r))) return false;
      }
      if (axes_[a].second % done != 0 || !part(axes_[a].second / done, -1)) return false;
    }
    return true;
  }

  static DeviceDims offsets(const std::vector<Part>& list) {
    DeviceDims out{0};
    for (const Part& p : list) {
      DeviceDims next;
      for (int64_t base : out)
        for (int64_t i = 0; i < p.size; ++i) next.push_back(base + i * p.stride);
      out = std::move(next);
    }
    return out;
  }

  std::vector<std::pair<std::string_view, int64_t>> axes_;
  DeviceDims devices_;
  std::vector<Ref> refs_;
  std::vector<Part> parts_;
};

}  // namespace

bool expand_replica_groups(std::string_view text, std::vector<DeviceDims>* groups) {
  groups->clear();
  if (text.starts_with("{")) {
    for (size_t at = text.find('{', 1); at != std::string_view::npos; at = text.find('{', at + 1))
      groups->push_back(integers_in(text.substr(at, text.find('}', at) - at)));
    return true;
  }
  if (text.starts_with("[")) return expand_tile_groups(text, groups);
  MeshGroups mesh;
  return text.starts_with("mesh[") && mesh.read(text) && mesh.expand(groups);
}

std::vector<std::pair<int64_t, int64_t>> expand_pairs(std::string_view text) {
  DeviceDims all = integers_in(text);
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t i = 0; i + 1 < all.size(); i += 2) out.emplace_back(all[i], all[i + 1]);
  return out;
}

}  // namespace hlo
