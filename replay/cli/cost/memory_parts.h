// What `memory` tells beside a module's own memory: a log's complaints joined to it, its peak stage by stage, what
// would make it less. Each is told to a person, and as JSON.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/hunt/memory_log.h"
#include "replay/report/memory/memory_orders.h"
#include "replay/report/memory/memory_report.h"

namespace hlo {

// A module whose memory is known, as a log's complaints are held against it.
struct HeldMemory {
  std::string selector, name;
  MemoryReport report;
  std::vector<std::string> sources;  // of report.allocations: the line of the largest value; empty: unknown
};
// The line of the largest value of each allocation.
std::vector<std::string> allocation_sources(const Module& m, const MemoryReport& r);

struct MemoryLogAnswer {
  Json json;
  bool joined = false;  // something of the log is an allocation of a module
};
// What the log tells and which module, allocation, value and line that is. `print`: to a person, too.
MemoryLogAnswer tell_memory_log(const std::string& label, const MemoryLog& log, const std::vector<HeldMemory>& modules,
                                size_t most, bool print);

// --stages and --try, of one module with a folder of stages. `print`: to a person, else JSON alone.
Json tell_stage_peaks(const std::vector<StagePeak>& stages, size_t most, bool print);
Json try_levers(const MemoryArgs& a, LookedAt& l, const MemoryReport& r, const Target& target,
                const std::vector<StagePeak>& stages, bool print);

}  // namespace hlo
