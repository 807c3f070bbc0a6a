// Who exchanges with whom in a message between devices (xla/service/collective_ops_utils.cc).
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/sharding/sharding.h"

namespace hlo {

// Devices are numbered replica · partitions + partition.
struct CollectiveGroups {
  std::vector<DeviceDims> groups;  // of devices, in the order in which their shares count; one may be in none
  std::string why;                 // they cannot be told, and that is why; empty: they can
};

// Of a collective that has replica_groups.
CollectiveGroups collective_groups(const Module& m, InstId i, int64_t replicas, int64_t partitions);

// By device, the one whose value a collective-permute gives it; -1: none, and zeros.
struct PermuteSources {
  DeviceDims of;
  std::string why;
};
PermuteSources permute_sources(const Module& m, InstId i, int64_t replicas, int64_t partitions);

}  // namespace hlo
