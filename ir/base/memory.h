// What this machine can still give this process.
#pragma once
#include <cstdint>

namespace hlo {

struct AvailableMemory {
  int64_t bytes = INT64_MAX;
  const char* limit = "";  // what sets it, in words: "free on this machine", "limit of address space" …
};

// The least of what the system has free (swap too), the limits of address space (ulimit -v) and of data (ulimit -d)
// less what is mapped, and the limits of control groups less what they use; asked anew at each call.
AvailableMemory available_memory();

}  // namespace hlo
