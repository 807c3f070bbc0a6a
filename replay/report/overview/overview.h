// What an impatient person wants to know first about the modules of a run.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/record/files/run.h"
#include "replay/record/start/target.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/memory/memory_report.h"

namespace hlo {

struct ModuleOverview {
  const Recording* recording = nullptr;  // of the run, which must live as long
  std::string selector;                  // behind `DIR:`
  std::string function;
  Target target;
  std::string stage;             // name of the stage that was looked at, the last one with a text
  std::unique_ptr<Module> last;  // null where it cannot be read
  std::string unreadable;        // why
  ModuleCost cost;
  std::optional<MemoryReport> memory;
  int64_t compile_us = -1;  // sum over the passes; -1: the dump does not say
  size_t compiled_as = 0;   // modules of one number are one function (same_functions); 0: no other is
  // Device time: 0 where it is not known.
  double seconds() const { return last ? cost.seconds : 0; }
};

// Of one module: reads its last stage. Never throws for what the dump holds; `unreadable` says it. `memory`: whether
// to look for the values that are alive at the peak, too (else sums from the dump's files alone).
ModuleOverview module_overview(const Run& run, const Recording& r, const std::string& gpu, bool memory);
// Of one whose last stage is there, under the name `stage`; it has no selector.
ModuleOverview module_overview(const Recording& r, std::unique_ptr<Module> last, const std::string& stage,
                               const Target& target);
// Of all; those to look at first stand first: by least time on the device, those unreadable last.
std::vector<ModuleOverview> run_overview(const Run& run, const std::string& gpu);
// Why one stands where it stands: "43 % of the run's time", "most memory", "same name as 0034" …
std::string worth_looking(const std::vector<ModuleOverview>& all, size_t which);

// Files of one kind counted: "114 .ll", by what stands behind the module's name; most first.
std::vector<std::pair<std::string, size_t>> kinds_of_files(const std::vector<std::string>& files);

}  // namespace hlo
