// How much memory this process may still take: what is unpacked or made anew is measured against it first.
#pragma once
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace hlo {

// Bytes that the machine, the limit of address space (ulimit -v) and the control group leave; at least 0. What cannot
// be asked for counts as no limit.
inline int64_t available_memory() {
  int64_t least = INT64_MAX;
  auto number_of = [](const char* path, const char* format) {
    int64_t found = -1;
    if (FILE* file = std::fopen(path, "r")) {
      char line[256];
      while (found < 0 && std::fgets(line, sizeof(line), file))
        if (std::sscanf(line, format, &found) != 1) found = -1;
      std::fclose(file);
    }
    return found;
  };
  if (int64_t kb = number_of("/proc/meminfo", "MemAvailable: %" SCNd64); kb >= 0) least = std::min(least, kb << 10);
  rlimit limit{};
  if (!::getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY) {
    int64_t kb = number_of("/proc/self/status", "VmSize: %" SCNd64);
    int64_t most = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
    least = std::min(least, most - (std::max<int64_t>(kb, 0) << 10));
  }
  int64_t group = number_of("/sys/fs/cgroup/memory.max", "%" SCNd64);
  int64_t taken = number_of("/sys/fs/cgroup/memory.current", "%" SCNd64);
  if (group >= 0 && taken >= 0) least = std::min(least, group - taken);
  return std::max<int64_t>(least, 0);
}

}  // namespace hlo
