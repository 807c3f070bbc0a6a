// What a device has of what others have: messages, a device's own number, its part of a whole array.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/sharding/sharding.h"
#include "replay/compare/shards.h"
#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

// One array of one message. Devices are numbered replica · partitions + partition.
struct DeviceMessage {
  enum Kind : uint8_t {
    kNumber,    // `numbers`, by device: of partition or replica; no operand
    kReduce,    // the same element of each of the group, taken together by `by`
    kGather,    // along `dim` the group's arrays, one behind the other
    kExchange,  // along `dim` of each of the group the part of one's own place
    kTake,      // the same element of one device's operand; of none: 0
    kPart,      // what lies from `starts` on, by device; what is outside of the operand is any value
  };
  Kind kind = kNumber;
  Opcode by = Opcode::Add;
  size_t dim = 0;
  Dims from, to;  // dimensions of an operand and of the result; neighbours are joined
  std::vector<DeviceDims> groups;
  std::vector<uint32_t> group_of, place;  // by device: in `groups`, and in that group
  DeviceDims source, numbers;             // of kTake and kNumber, by device; -1: none
  std::vector<uint32_t> operand;          // of kTake, by device
  std::vector<Dims> starts;               // of kPart, by device

  const DeviceDims& group(int64_t device) const { return groups[group_of[static_cast<size_t>(device)]]; }
  // Where a device has its element from; not of kNumber and kReduce.
  struct Element {
    size_t operand;
    int64_t device, element;  // row-major; -1: none, it is 0, or any value of kPart
  };
  Element element(int64_t device, int64_t index) const;
  uint64_t key() const;  // of all of it
};

using Message = std::shared_ptr<const DeviceMessage>;

// Of a collective that gives one array for each of its operands: operand `k`, an array that is given as `to`. Null and
// why where it has no such meaning.
Message message_of(const Module& m, InstId i, size_t k, ShapeId from, ShapeId to, std::string* why);
// Of an all-to-all of as many arrays as there are devices in a group: result `k`.
Message exchanged_arrays(const Module& m, InstId i, size_t k, ShapeId shape, std::string* why);
// What `devices` devices have of an array, by where their tiles lie. Null where the shapes do not fit.
Message part_message(const Dims& whole, const Dims& local, const ShardTiling& tiling, int64_t devices);
// partition-id, replica-id.
Message device_number(const Module& m, Opcode op);
// Behind a reduction, what a reduce-scatter leaves each device of it.
Message scattered(const DeviceMessage& reduced);

// Where the partitions' shares of an entry's parameter lie, by its sharding. `leaf`: among the leaves of all
// parameters. Nothing where no sharding says it, and where replicas are more than one.
std::optional<ShardTiling> parameter_tiling(const Module& m, InstId parameter, uint32_t leaf);

// Do devices that each have that part of one array, which is the same on all of them, gather all of it, in its order?
bool gathers_whole(const DeviceMessage& gather, const DeviceMessage& part, int64_t elements);

// Is that part one box of the whole array, both of these dimensions?
bool is_box(const DeviceMessage& part, int64_t device, const Dims& local, const Dims& whole);

// Is that message each device's own operand?
bool is_own(const DeviceMessage& message);

}  // namespace hlo
