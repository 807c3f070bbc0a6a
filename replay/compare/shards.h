// Whole arrays and the shards of them that partitions hold (xla/hlo/ir/hlo_sharding.cc, TileOffsetForDevice).
#pragma once
#include <string_view>

#include "ir/eval/value.h"

namespace hlo {

// The share of `whole` that partition `device` holds under a sharding, of shape `local`: zeros where a tile reaches
// over the end. Tuples leaf by leaf. Throws Failure(kUsage) where the shapes do not fit the sharding.
Value shard_of(Universe& u, const Value& whole, ShapeId local, std::string_view sharding, int64_t device);

// The array of shape `whole` from every partition's share. An empty sharding is read off the shapes: tiles in the
// devices' order.
Value assembled(Universe& u, const std::vector<Value>& shards, ShapeId whole, std::string_view sharding);

}  // namespace hlo
