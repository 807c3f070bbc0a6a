// How many of a multiprocessor's warps a kernel leaves room for.
#pragma once
#include "ir/cost/cost.h"

namespace hlo {

struct Occupancy {
  double share = 0;  // of the warps that a multiprocessor can hold
  const char* limiter = "";
};

// `registers` of a thread, `shared` bytes and `threads` of a block; of a GPU.
Occupancy occupancy_of(const DeviceSpec& device, int64_t registers, int64_t shared, int64_t threads);

}  // namespace hlo
