// Shardings: device lists, meshes, their axes, and the texts in XLA's normal form.
#include <algorithm>
#include <cctype>

#include "ir/print/print.h"
#include "ir/sharding/sharding.h"
#include "parser/parser_impl.h"

namespace hlo {

// --- device lists ---

Dims Parser::number_list(char open, char close, const char* what) {
  expect(open, what);
  Dims out{integer(what)};
  while (eat(',')) out.push_back(integer(what));
  expect(close, what);
  return out;
}

// Behind `<=`: `[4]`, `[2,2]T(1,0)`.
void Parser::iota_tiles(TileAssignment& tiles, bool needs_transpose) {
  skip();
  size_t place = at_;
  tiles.iota = true;
  tiles.reshape = number_list('[', ']', "the dimensions of an iota");
  int64_t total = 1;
  for (int64_t d : tiles.reshape) {
    if (d < 0 || (d > 0 && total > (int64_t{1} << 32) / d)) error_at(place, "an iota of that size is not supported");
    total *= d;
  }
  if (peek_word() == "T") {
    word();
    skip();
    size_t at = at_;
    tiles.perm = number_list('(', ')', "the transposition of an iota");
    if (tiles.perm.size() != tiles.reshape.size())
      error_at(at, "the transposition names {} dimensions of {}", tiles.perm.size(), tiles.reshape.size());
    for (int64_t p : tiles.perm)
      if (p < 0 || p >= static_cast<int64_t>(tiles.reshape.size())) error_at(at, "the iota has no dimension {}", p);
  } else {
    if (needs_transpose && tiles.reshape.size() > 1) error_here("expected the transposition `T(…)` of the iota");
    for (size_t i = 0; i < tiles.reshape.size(); ++i) tiles.perm.push_back(static_cast<int64_t>(i));
  }
  tiles.canonicalize();
}

// --- meshes ---

Mesh Parser::mesh() {
  Mesh m;
  skip();
  m.maximal = is_maximal_mesh(word());
  expect('[', "before the axes of a mesh");
  if (m.maximal) {
    skip();
    size_t place = at_;
    if (word() != "device_id" || peek() != '=') error_at(place, "expected device_id=");
    ++at_;
    m.device = integer("a device");
    expect(']', "after a maximal mesh");
    return m;
  }
  int64_t total = 1;
  if (!eat(']')) {
    for (;;) {
      skip();
      size_t place = at_;
      std::string name = quoted("the name of an axis");
      for (const auto& axis : m.axes)
        if (axis.first == name) error_at(place, "axis '{}' is given twice", name);
      expect('=', "after the name of an axis");
      int64_t size = integer("the size of an axis");
      if (m.axes.size() >= 1000) error_at(place, "a mesh of more than 1000 axes");
      if (size <= 0 || total > (int64_t{1} << 32) / size)
        error_at(place, "an axis of size {} is not possible here", size);
      total *= size;
      m.axes.emplace_back(std::move(name), size);
      if (eat(']')) break;
      expect(',', "between the axes of a mesh");
    }
  }
  size_t save = at_;
  eat(',');
  if (peek_word() == "device_ids") {
    word();
    expect('=', "after device_ids");
    expect('(', "before the devices of a mesh");
    skip();
    size_t place = at_;
    m.has_devices = true;
    if (peek() == '[') {
      iota_tiles(m.devices, true);
      if (m.devices.reshape.size() == 1) m.has_devices = false;
    } else {
      m.devices.devices.push_back(integer("a device"));
      while (eat(',')) m.devices.devices.push_back(integer("a device"));
      Dims sorted = m.devices.devices;
      if (std::is_sorted(sorted.begin(), sorted.end())) error_at(place, "devices in their own order are not listed");
      std::sort(sorted.begin(), sorted.end());
      for (size_t i = 0; i < sorted.size(); ++i)
        if (sorted[i] != static_cast<int64_t>(i)) error_at(place, "the list is no permutation of the devices");
      if (static_cast<int64_t>(sorted.size()) != total)
        error_at(place, "{} devices for a mesh of {}", sorted.size(), total);
    }
    expect(')', "after the devices of a mesh");
  } else {
    at_ = save;
  }
  return m;
}

// `{'x', 'y':(2)4}`; with `open`, `?` may end it. `taken` collects what other lists use.
std::vector<AxisRef> Parser::axis_list(const Mesh& m, std::vector<AxisRef>& taken, bool* open) {
  std::vector<AxisRef> out;
  expect('{', "before axes");
  while (!eat('}')) {
    if (!out.empty()) expect(',', "between axes");
    skip();
    size_t place = at_;
    if (open && peek() == '?') {
      ++at_;
      *open = true;
      expect('}', "after '?'");
      break;
    }
    std::string name = quoted("the name of an axis");
    AxisRef ref;
    auto found = std::find_if(m.axes.begin(), m.axes.end(), [&](const auto& a) { return a.first == name; });
    if (found == m.axes.end() && !name.empty() && name.size() < 6 &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      size_t index = std::stoul(name);
      if (index < m.axes.size()) found = m.axes.begin() + static_cast<ptrdiff_t>(index);
    }
    if (found == m.axes.end()) error_at(place, "the mesh has no axis '{}'", name);
    ref.axis = static_cast<size_t>(found - m.axes.begin());
    int64_t size = found->second;
    if (eat(':')) {
      expect('(', "before the offset of a part of an axis");
      ref.pre = integer("the offset of a part of an axis");
      expect(')', "after the offset of a part of an axis");
      ref.size = integer("the size of a part of an axis");
      if (ref.pre < 1 || ref.size < 1 || ref.pre > size || ref.size > size || size % (ref.pre * ref.size) != 0 ||
          ref.size == size)
        error_at(place, "({}){} is no part of axis '{}' of size {}", ref.pre, ref.size, found->first, size);
    }
    int64_t end = ref.size ? ref.pre * ref.size : size;
    for (const AxisRef& other : taken) {
      if (other.axis != ref.axis) continue;
      int64_t other_end = other.size ? other.pre * other.size : size;
      if (std::max(ref.pre, other.pre) < std::min(end, other_end)) error_at(place, "axis '{}' is used twice", name);
    }
    if (!out.empty() && out.back().axis == ref.axis && out.back().size && out.back().pre * out.back().size == ref.pre)
      error_at(place, "two parts of axis '{}' that follow each other are written as one", name);
    taken.push_back(ref);
    out.push_back(ref);
  }
  return out;
}

// --- shardings ---

std::string Parser::sharding_metadata(bool always_list) {
  skip();
  size_t save = at_;
  std::vector<std::string> all;
  bool list = false;
  expect('{', "before metadata");
  skip();
  if (peek() == '{') {
    list = true;
    do all.push_back(metadata_text(u_, u_[metadata()]));
    while (eat(','));
    expect('}', "after metadata");
  } else {
    at_ = save;
    all.push_back(metadata_text(u_, u_[metadata()]));
  }
  if (!always_list && !(list && all.size() > 1)) return all[0];
  std::string out = "{";
  for (size_t i = 0; i < all.size(); ++i) out += (i ? ", " : "") + all[i];
  return out + "}";
}

Sharding Parser::named_sharding() {
  Sharding s;
  s.kind = Sharding::Kind::kNamed;
  s.mesh = mesh();
  std::vector<AxisRef> taken;
  if (!s.mesh.maximal) {
    eat(',');
    skip();
    if (peek() == '[') {
      ++at_;
      if (!eat(']')) {
        for (;;) {
          Sharding::Dim d;
          d.axes = axis_list(s.mesh, taken, &d.open);
          s.dims.push_back(std::move(d));
          if (eat(']')) break;
          expect(',', "between dimensions");
        }
      } else {
        s.whole = true, s.whole_kind = "replicated";
      }
    } else {
      size_t place = at_;
      s.whole_kind = std::string(word());
      s.whole = true;
      if (s.whole_kind != "replicated" && s.whole_kind != "unreduced" && s.whole_kind != "manual")
        error_at(place, "expected the axes of each dimension in [ ], or replicated, unreduced or manual");
    }
  }
  std::vector<std::string> seen;
  while (!eat('}')) {
    expect(',', "between the fields of a sharding");
    skip();
    size_t place = at_;
    std::string key(field_name("a sharding"));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) error_at(place, "field '{}' is given twice", key);
    seen.push_back(key);
    if (key == "metadata")
      s.metadata = sharding_metadata(true);
    else if (s.whole || s.mesh.maximal)
      error_at(place, "unexpected field '{}' of a sharding", key);
    else if (key == "replicated")
      s.replicated = axis_list(s.mesh, taken, nullptr);
    else if (key == "manual")
      s.manual = axis_list(s.mesh, taken, nullptr);
    else if (key == "unreduced") {
      s.reduction = std::string(peek_word());
      word();
      static constexpr std::string_view kKinds[] = {"", "sum", "prod", "product", "max", "min", "and", "or", "xor"};
      if (std::find(std::begin(kKinds), std::end(kKinds), s.reduction) == std::end(kKinds))
        error_at(place, "unknown reduction '{}'", s.reduction);
      s.unreduced = axis_list(s.mesh, taken, nullptr);
    } else {
      error_at(place, "unexpected field '{}' of a sharding", key);
    }
  }
  return s;
}

// What stands in a sharding that no mesh names.
struct Parser::ShardingText {
  bool replicated = false, maximal = false, manual = false, unknown = false, unreduced = false, replicate_last = false;
  bool has_last = false, listed = false;
  std::vector<Sharding::Sub> last;
  TileAssignment tiles;
  std::string meta;
  Sharding::Group group = Sharding().group;
  int64_t group_id = Sharding().group_id;
};

void Parser::last_tile_kinds(std::vector<Sharding::Sub>& last) {
  expect('{', "before the kinds of the last dimensions");
  while (!eat('}')) {
    if (!last.empty()) expect(',', "between the kinds of the last dimensions");
    skip();
    size_t at = at_;
    std::string_view kind = word();
    if (kind == "manual")
      last.push_back(Sharding::Sub::kManual);
    else if (kind == "replicated")
      last.push_back(Sharding::Sub::kReplicated);
    else if (kind == "unreduced")
      last.push_back(Sharding::Sub::kUnreduced);
    else
      error_at(at, "a last dimension is manual, replicated or unreduced");
  }
}

// `w=…`; the sign is eaten.
void Parser::sharding_field(std::string_view w, size_t place, ShardingText& t) {
  if (w == "device") {
    t.tiles.devices.push_back(integer("a device"));
  } else if (w == "devices") {
    t.tiles.dims = number_list('[', ']', "the dimensions of a device array");
    if (eat("<=")) {
      iota_tiles(t.tiles, false);
    } else {
      t.listed = true;
      do t.tiles.devices.push_back(integer("a device"));
      while (eat(','));
    }
  } else if (w == "metadata") {
    t.meta = sharding_metadata(false);
  } else if (w == "last_tile_dims") {
    t.has_last = true;
    last_tile_kinds(t.last);
  } else {
    error_at(place, "unknown field '{}' of a sharding", w);
  }
}

void Parser::sharding_word(std::string_view w, size_t place, ShardingText& t) {
  if (w == "replicated")
    t.replicated = true;
  else if (w == "maximal")
    t.maximal = true;
  else if (w == "manual")
    t.manual = true;
  else if (w == "unknown")
    t.unknown = true;
  else if (w == "unreduced")
    t.unreduced = true;
  else if (w == "last_tile_dim_replicate")
    t.replicate_last = true;
  else if (w == "shard_as" || w == "shard_like") {
    t.group = w == "shard_as" ? Sharding::Group::kAs : Sharding::Group::kLike;
    t.group_id = integer("the number of a shard group");
  } else {
    error_at(place, "unexpected '{}' in a sharding", w);
  }
}

Sharding Parser::tiled_sharding(ShardingText& t, size_t start) {
  Sharding s;
  if (t.tiles.dims.empty()) error_at(start, "a sharding that is not maximal needs devices=[…] with dimensions");
  if (!t.tiles.iota && t.tiles.devices.size() <= 1)
    error_at(start, "a sharding that is not maximal needs more than one device");
  int64_t total = 1;
  for (int64_t d : t.tiles.dims) {
    if (d < 0 || (d > 0 && total > (int64_t{1} << 32) / d))
      error_at(start, "a device array of that size is not possible");
    total *= d;
  }
  if (!t.tiles.iota && total != static_cast<int64_t>(t.tiles.devices.size()))
    error_at(start, "{} devices for an array of {}", t.tiles.devices.size(), total);
  int64_t listed = 1;
  for (int64_t d : t.tiles.reshape) listed *= d;
  if (t.tiles.iota && t.has_last && listed != total) error_at(start, "{} devices for an array of {}", listed, total);
  if (t.has_last && t.replicate_last) error_at(start, "last_tile_dims and last_tile_dim_replicate exclude each other");
  if (t.last.size() > t.tiles.dims.size()) error_at(start, "more last_tile_dims than dimensions");
  if (t.replicate_last) {
    s = Sharding::partial_tile(std::move(t.tiles));
  } else if (!t.last.empty()) {
    s = Sharding::subgroup(std::move(t.tiles), std::move(t.last));
  } else {
    s.kind = Sharding::Kind::kTiled;
    s.tiles = std::move(t.tiles);
  }
  return s;
}

// The brace is eaten.
Sharding Parser::single_sharding() {
  std::string_view first = peek_word();
  if (begins_mesh(first)) return named_sharding();
  size_t start = at_;
  ShardingText t;
  while (!eat('}')) {
    skip();
    size_t place = at_;
    std::string_view w = word();
    if (w.empty()) error_here("unexpected text in a sharding");
    if (peek() == '=') {
      ++at_;
      sharding_field(w, place, t);
    } else {
      sharding_word(w, place, t);
    }
  }
  Sharding s;
  bool devices = !t.tiles.devices.empty() || t.tiles.iota;
  auto plain = [&](const char* what, Sharding::Kind kind) {
    if (devices) error_at(start, "a {} sharding has no devices", what);
    s.kind = kind;
  };
  if (t.replicated) {
    plain("replicated", Sharding::Kind::kReplicated);
  } else if (t.maximal) {
    if (t.tiles.devices.size() != 1 || t.listed) error_at(start, "a maximal sharding has exactly one device");
    s.kind = Sharding::Kind::kMaximal;
    s.device = t.tiles.devices[0];
  } else if (t.manual) {
    plain("manual", Sharding::Kind::kManual);
  } else if (t.unknown) {
    plain("unknown", Sharding::Kind::kUnknown);
  } else if (t.unreduced) {
    plain("unreduced", Sharding::Kind::kUnreduced);
  } else {
    s = tiled_sharding(t, start);
  }
  s.group = t.group;
  s.group_id = t.group_id;
  s.metadata = std::move(t.meta);
  return s;
}

Sharding Parser::sharding() {
  expect('{', "before a sharding");
  skip();
  if (peek() != '{' && peek() != '}') return single_sharding();
  Sharding s;
  s.kind = Sharding::Kind::kTuple;
  if (eat('}')) return s;
  do {
    expect('{', "before a sharding");
    s.elements.push_back(single_sharding());
  } while (eat(','));
  expect('}', "after the shardings of a tuple");
  return s;
}

// As an instruction of that shape has it: one sharding stands for every leaf of a tuple.
StrId Parser::sharding_of(ShapeId shape) {
  Sharding s = sharding();
  if (s.kind != Sharding::Kind::kTuple && shape.valid() && u_[shape].is_tuple()) {
    Sharding tuple;
    tuple.kind = Sharding::Kind::kTuple;
    tuple.elements.assign(std::max<size_t>(u_.leaf_count(shape), 1), s);
    s = std::move(tuple);
  }
  return u_.str(s.text());
}

Sharding parse_sharding(std::string_view text) {
  auto universe = std::make_shared<Universe>();
  return Parser(text, universe, {}).lone_sharding();
}

Sharding Parser::lone_sharding() {
  return lone("sharding", [&] { return sharding(); });
}

}  // namespace hlo
