#include "ir/base/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace hlo {
namespace {

// The number behind `key` in a file of lines "KEY NUMBER"; -1 where there is none.
int64_t number_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  int64_t n = -1;
  while (file >> word)
    if (word == key) return file >> n ? n : -1;
  return -1;
}

// A file that holds one number; -1 for "max" and where there is none.
int64_t number_of(const std::string& path) {
  std::ifstream file(path);
  int64_t n = -1;
  return file >> n ? n : -1;
}

// From the process' own group to the root: each may have a limit.
int64_t left_by_control_groups() {
  int64_t left = INT64_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    size_t controllers = line.find(':'), path = line.find(':', controllers + 1);
    if (controllers == std::string::npos || path == std::string::npos) continue;
    std::string names = line.substr(controllers + 1, path - controllers - 1), group = line.substr(path + 1);
    bool second = names.empty();
    if (!second && ("," + names + ",").find(",memory,") == std::string::npos) continue;
    const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (;;) {
      std::string at = root + (group == "/" ? "" : group);
      int64_t limit = number_of(at + (second ? "/memory.max" : "/memory.limit_in_bytes")),
              used = number_of(at + (second ? "/memory.current" : "/memory.usage_in_bytes")),
              cached = number_in(at + "/memory.stat", second ? "inactive_file" : "total_inactive_file");
      if (limit >= 0 && used >= 0)
        left = std::min(left, std::max<int64_t>(limit - std::max<int64_t>(used - std::max<int64_t>(cached, 0), 0), 0));
      if (group.empty() || group == "/") break;
      group.resize(group.rfind('/'));
    }
  }
  return left;
}

}  // namespace

AvailableMemory available_memory() {
  AvailableMemory out;
  auto least = [&](int64_t bytes, const char* limit) {
    if (bytes < out.bytes) out = {bytes, limit};
  };
  int64_t free = number_in("/proc/meminfo", "MemAvailable:"), swap = number_in("/proc/meminfo", "SwapFree:");
  if (free >= 0) least((free + std::max<int64_t>(swap, 0)) * 1024, "free on this machine");
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    int64_t pages = std::max<int64_t>(number_of("/proc/self/statm"), 0);
    least(std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - pages * ::sysconf(_SC_PAGE_SIZE), 0),
          "left of the limit of address space (ulimit -v)");
  }
  // Counts what is mapped to be written alone: what triage gives to each of its rungs.
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const int64_t data = std::max<int64_t>(number_in("/proc/self/status", "VmData:"), 0) * 1024;
    least(std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - data, 0), "left of the limit of data (ulimit -d)");
  }
  least(left_by_control_groups(), "left of the control group's limit");
  return out;
}

}  // namespace hlo
