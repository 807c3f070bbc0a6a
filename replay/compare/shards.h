// Whole arrays and the shards of them that partitions hold (xla/hlo/ir/hlo_sharding.cc, TileOffsetForDevice).
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ir/eval/value.h"
#include "ir/sharding/sharding.h"

namespace hlo {

// Tiles along each dimension, and where each partition's tile lies; no places: each partition has the whole array.
struct ShardTiling {
  Dims counts;
  std::vector<Dims> place;
};
// Of an array of that rank; subgroups are taken for replicas. Nothing where the sharding does not say it (manual,
// unreduced, unknown, of one device alone, of another rank).
std::optional<ShardTiling> shard_tiling(const Sharding& s, size_t rank);
// A sharding's leaf; of one that is no tuple it is that. Null: there is none.
const Sharding* leaf_sharding(const Sharding& s, size_t leaf);

// The share of `whole` that partition `device` holds under a sharding, of shape `local`: zeros where a tile reaches
// over the end. Tuples leaf by leaf. Throws Failure(kUsage) where the shapes do not fit the sharding.
Value shard_of(Universe& u, const Value& whole, ShapeId local, std::string_view sharding, int64_t device);

// The array of shape `whole` from every partition's share. An empty sharding is read off the shapes: tiles in the
// devices' order.
Value assembled(Universe& u, const std::vector<Value>& shards, ShapeId whole, std::string_view sharding);

}  // namespace hlo
