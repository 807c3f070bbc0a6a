// Shardings: as many of them as the shape has leaves, tiles that hold the devices listed for them, each device once
// and one that exists (xla/hlo/ir/hlo_sharding.cc, named_sharding.cc), and groups of devices that are written like
// tiles.
#include <algorithm>
#include <set>

#include "ir/base/checked.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "ir/verify/operation_rules.h"

namespace hlo {
namespace {

constexpr int64_t kListed = int64_t{1} << 20;  // devices that are looked at one by one

// `[4,2]<=[8]T(…)` or `[4,2]0,1,…` as values; `at` is the first bracket. Stops at what is neither.
TileAssignment tiles_at(std::string_view text, size_t at) {
  TileAssignment out;
  size_t close = std::min(text.find(']', at), text.size() - 1);
  out.dims = integers_in(text.substr(at, close - at));
  size_t next = close + 1;
  if (text.substr(next).starts_with("<=[")) {
    out.iota = true;
    size_t end = std::min(text.find(']', next), text.size() - 1);
    out.reshape = integers_in(text.substr(next, end - next));
    if (text.substr(end + 1).starts_with("T("))
      out.perm = integers_in(text.substr(end + 1, text.find(')', end) - end - 1));
    return out;
  }
  size_t end = next;
  while (end < text.size() && (text[end] == ',' || text[end] == '-' || (text[end] >= '0' && text[end] <= '9'))) ++end;
  out.devices = integers_in(text.substr(next, end - next));
  return out;
}

int64_t first_integer(std::string_view text) {
  const DeviceDims all = integers_in(text);
  return all.empty() ? -1 : all[0];
}

int64_t product_of(const DeviceDims& dims) {
  Checked product = 1;
  for (int64_t d : dims) product = product * d;
  return product.capped();
}

// What is wrong with an iota's transposition, if anything.
std::string permutation_error(const DeviceDims& perm, size_t rank) {
  if (perm.empty()) return "";
  DeviceDims sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t k = 0; k < sorted.size(); ++k)
    if (sorted[k] != static_cast<int64_t>(k))
      return fmt::format("transposes by ({}), no permutation", fmt::join(perm, ","));
  return perm.size() == rank ? "" : fmt::format("transposes {} dimensions of {}", perm.size(), rank);
}

// Devices 0 … limit - 1 exist; 0: it is not known how many.
std::string tiles_error(const TileAssignment& tiles, int64_t limit) {
  int64_t count = product_of(tiles.dims);
  for (int64_t d : tiles.dims)
    if (d < 1) return fmt::format("has [{}] tiles", fmt::join(tiles.dims, ","));
  if (tiles.iota) {
    for (int64_t d : tiles.reshape)
      if (d < 1) return fmt::format("has an iota of [{}] devices", fmt::join(tiles.reshape, ","));
    int64_t listed = product_of(tiles.reshape);
    if (listed != count) return fmt::format("has {} tiles for {} devices", count, listed);
    if (std::string why = permutation_error(tiles.perm, tiles.reshape.size()); !why.empty()) return why;
    return limit && count > limit ? fmt::format("names device {}, the module has {}", count - 1, limit) : "";
  }
  if (static_cast<int64_t>(tiles.devices.size()) != count)
    return fmt::format("has {} tiles for {} devices", count, tiles.devices.size());
  std::set<int64_t> seen;
  for (int64_t d : tiles.devices) {
    if (d < 0 || (limit && d >= limit)) return fmt::format("names device {}, the module has {}", d, limit);
    if (count <= kListed && !seen.insert(d).second) return fmt::format("names device {} twice", d);
  }
  return "";
}

// `mesh['a'=2,'b'=4], device_ids=(…)`: of the devices alone; the axes were judged where the text was read.
std::string mesh_error(std::string_view text, int64_t limit) {
  size_t close = std::min(text.find(']'), text.size());
  DeviceDims sizes;
  for (size_t at = text.find("'="); at < close; at = text.find("'=", at + 2))
    sizes.push_back(first_integer(text.substr(at + 2, text.find_first_of(",]", at) - at - 2)));
  int64_t count = product_of(sizes);
  if (size_t ids = text.find("device_ids=("); ids != std::string_view::npos) {
    std::string_view list = text.substr(ids + 12, text.find(')', text.find(')', ids) + 1) - ids - 12);
    if (list.starts_with("[")) {
      DeviceDims dims = integers_in(list.substr(0, list.find(']')));
      if (product_of(dims) != count) return fmt::format("has {} devices for a mesh of {}", product_of(dims), count);
      if (size_t t = list.find("T("); t != std::string_view::npos)
        if (std::string why = permutation_error(integers_in(list.substr(t, list.find(')', t) - t)), dims.size());
            !why.empty())
          return why;
    }
  }
  return limit && count > limit ? fmt::format("has a mesh of {} devices, the module has {}", count, limit) : "";
}

// Of `[{'a'}, {}, {'b', ?}]`: how many dimensions it shards; -1 without one.
int64_t mesh_dimensions(std::string_view text) {
  size_t close = text.find(']');
  if (size_t ids = text.find("device_ids=("); ids != std::string_view::npos) close = text.find("), ", ids);
  size_t open = close == std::string_view::npos ? close : text.find('[', close);
  if (open == std::string_view::npos) return -1;
  std::string_view list = text.substr(open, text.find(']', open) - open);
  return std::count(list.begin(), list.end(), '{');
}

size_t tile_rank(std::string_view text, const TileAssignment& tiles) {
  size_t rank = tiles.dims.size();
  if (text.find("last_tile_dim_replicate") != std::string_view::npos) return rank - 1;
  if (size_t last = text.find("last_tile_dims={"); last != std::string_view::npos) {
    std::string_view kinds = text.substr(last, text.find('}', last) - last);
    rank -= std::min(rank, static_cast<size_t>(std::count(kinds.begin(), kinds.end(), ',')) + 1);
  }
  return rank;
}

// Of a single sharding, on `shape`.
std::string sharding_error(std::string_view text, const Shape& shape, const std::string& shape_text, int64_t limit) {
  if (size_t at = text.find("device="); text.starts_with("{maximal ") && at != std::string_view::npos) {
    int64_t device = first_integer(text.substr(at, text.find_first_of(" }", at) - at));
    if (device < 0 || (limit && device >= limit))
      return fmt::format("names device {}, the module has {}", device, limit);
    return "";
  }
  if (text.starts_with("{mesh[")) {
    if (std::string why = mesh_error(text, limit); !why.empty()) return why;
    int64_t dims = mesh_dimensions(text);
    if (dims >= 0 && shape.is_array() && dims != shape.rank())
      return fmt::format("has a sharding of {} dimensions on {}", dims, shape_text);
    return "";
  }
  if (!text.starts_with("{devices=[")) return "";
  TileAssignment tiles = tiles_at(text, 9);
  if (std::string why = tiles_error(tiles, limit); !why.empty()) return why;
  size_t rank = tile_rank(text, tiles);
  if (shape.is_array() && static_cast<int>(rank) != shape.rank())
    return fmt::format("has a sharding of {} dimensions on {}", rank, shape_text);
  return "";
}

void leaves_of(const Universe& u, ShapeId s, std::vector<ShapeId>& out) {
  if (!u[s].is_tuple()) return out.push_back(s);
  for (ShapeId e : u[s].elements) leaves_of(u, e, out);
}

// `{{replicated}, {manual}}`: the single ones.
std::vector<std::string_view> elements_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t from = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    } else if (text[at] == '{' && ++depth == 2) {
      from = at;
    } else if (text[at] == '}' && depth-- == 2) {
      out.push_back(text.substr(from, at - from + 1));
    }
  }
  return out;
}

}  // namespace

void OperationRules::sharding() {
  StrId t = a_.text(Attr::sharding);
  if (!t.valid()) return;
  const std::string kept = without_metadata(u_.text(t));
  const std::string_view text = kept;
  const ModuleConfig& config = m_.config();
  int64_t limit = config.num_partitions > 1 ? (Checked(config.num_partitions) * config.replica_count).capped() : 0;
  auto judge = [&](std::string_view one, ShapeId s) {
    std::string why = sharding_error(one, u_[s], u_.shape_text_plain(s), limit);
    if (!why.empty()) error_("sharding", why);
    return why.empty();
  };
  if (!text.starts_with("{{") && text != "{}") {
    judge(text, m_.shape_id(i_));
    return;
  }
  if (!out().is_tuple()) return error_("sharding", "has the sharding of a tuple on an array");
  std::vector<ShapeId> leaves;
  leaves_of(u_, m_.shape_id(i_), leaves);
  std::vector<std::string_view> elements = elements_of(text);
  if (elements.size() != std::max<size_t>(leaves.size(), 1))
    return error_("sharding", fmt::format("has {} shardings for {} leaves", elements.size(), leaves.size()));
  for (size_t k = 0; k < leaves.size(); ++k)
    if (!judge(elements[k], leaves[k])) return;
}

std::string OperationRules::groups_text_error(std::string_view text) {
  if (text.starts_with("mesh[")) return mesh_error(text, 0);
  if (!text.starts_with("[") || text.find("<=") == std::string_view::npos) return "";
  TileAssignment tiles = tiles_at(text, 0);
  return tiles_error(tiles, 0);
}

}  // namespace hlo
