// Device assignments, shardings and replica groups as values; their canonical text is what attributes keep and what XLA
// prints (xla/hlo/ir/hlo_sharding.cc, tile_assignment.cc, mesh_and_axis.cc, replica_group.cc).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlo {

using DeviceDims = std::vector<int64_t>;

// Devices in an array of dimensions `dims`: listed, or an iota that was reshaped to `reshape` and transposed by `perm`.
struct TileAssignment {
  DeviceDims dims;
  bool iota = false;
  DeviceDims reshape, perm;
  DeviceDims devices;  // row-major, where !iota

  // Dimensions of one are dropped and neighbours that stay neighbours merged.
  void canonicalize();
  TileAssignment transposed(const DeviceDims& order) const;
  TileAssignment reshaped(DeviceDims to) const;
  DeviceDims list() const;   // all devices, row-major
  std::string text() const;  // `[2,2]<=[4]`, `[2,2]0,1,2,3`
  int64_t size() const;      // of dims
};

struct Mesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  bool maximal = false;
  int64_t device = 0;
  // Order of devices where it is not 0, 1, 2 …: an iota or a list.
  bool has_devices = false;
  TileAssignment devices;
  std::string text() const;
};

// A mesh axis or the part of it behind the first `pre` steps: `'x'`, `'x':(2)4`.
struct AxisRef {
  size_t axis = 0;
  int64_t pre = 1, size = 0;  // size 0: the whole axis
};

struct Sharding {
  enum class Kind : uint8_t { kTuple, kReplicated, kMaximal, kManual, kUnknown, kUnreduced, kTiled, kNamed };
  enum class Sub : uint8_t { kManual, kUnreduced, kReplicated };  // of the last tile dimensions, in XLA's order
  Kind kind = Kind::kReplicated;
  std::vector<Sharding> elements;  // of a tuple
  int64_t device = 0;              // maximal
  TileAssignment tiles;
  bool replicate_last = false;
  std::vector<Sub> last;
  enum class Group : uint8_t { kNone, kAs, kLike } group = Group::kNone;
  int64_t group_id = 0;
  std::string metadata;  // `{op_name="a"}` or `{{…}, {…}}`, as it is printed

  // Named meshes.
  Mesh mesh;
  bool whole = false;  // `{mesh[…], replicated}`
  std::string whole_kind;
  struct Dim {
    std::vector<AxisRef> axes;
    bool open = false;
  };
  std::vector<Dim> dims;
  std::vector<AxisRef> replicated, unreduced, manual;
  std::string reduction;  // of unreduced axes: `max`

  // Partial replication and subgroups in XLA's normal form.
  static Sharding partial_tile(TileAssignment tiles);
  static Sharding subgroup(TileAssignment tiles, std::vector<Sub> types);
  std::string text(bool with_metadata = true) const;
};

// `{{0,1},{2,3}}`, `[2,2]<=[4]`, `mesh['a'=2] {'a'}`: the groups in order; false when the text is none of these.
bool expand_replica_groups(std::string_view text, std::vector<DeviceDims>* groups);
// `{{0,1},{1,0}}` of source_target_pairs.
std::vector<std::pair<int64_t, int64_t>> expand_pairs(std::string_view text);

// A sharding's text without what it tells about its origin.
std::string without_metadata(std::string_view sharding);

}  // namespace hlo
