#include "replay/installed/figures.h"

#include "ir/base/check.h"
#include "replay/record/files/run.h"
#include "replay/report/overview/overview.h"

namespace hlo {

const Recording& main_recording(const std::vector<Recording>& all, const std::string& module) {
  HLO_CHECK(!all.empty(), "a dump without modules");
  const Recording* best = &all[0];
  auto rank = [&](const Recording& r) { return std::pair(r.module_name == module, r.rows.size()); };
  for (const Recording& r : all)
    if (rank(r) > rank(*best)) best = &r;
  return *best;
}

CompilationFigures figures_of(const Recording& recording) {
  CompilationFigures f;
  f.module = recording.module_name;
  for (const StageRow& row : recording.rows) f.stages += !row.file.empty(), f.pass_runs += row.kind == StageRow::kPass;
  Run run;
  run.folder = recording.folder, run.modules = {recording};
  const ModuleOverview o = module_overview(run, run.modules[0], "", false);
  f.unreadable = o.unreadable;
  if (o.last) {
    f.instructions = o.last->instruction_count(), f.kernels = o.cost.kernels.size();
    f.bytes = o.cost.all.bytes(), f.flops = o.cost.all.flops;
  }
  if (const std::optional<MemoryReport> files = memory_from_files(recording)) f.memory = files->allocated;
  if (o.compile_us >= 0) f.compile_ms = static_cast<double>(o.compile_us) / 1000;
  return f;
}

}  // namespace hlo
