// occupancy: how full a module's kernels make a GPU.
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "gpu_exec/emit/gpu_code.h"
#include "ir/cost/cost.h"
#include "ir/print/print.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/process/ptxas.h"
#include "replay/record/files/run.h"
#include "replay/report/kernels/occupancy.h"
#include "replay/report/kernels/ptx_entries.h"

namespace hlo {

namespace {

const DeviceSpec& gpu_spec(const std::string& name) {
  const DeviceSpec& d = device_spec(name);
  if (!d.is_gpu()) fail(FailureKind::kUsage, "{} has no multiprocessors to fill: occupancy is a GPU's", d.name);
  return d;
}

void occupancy_header(const DeviceSpec& d, const std::string& whose) {
  fmt::print("{} ({} multiprocessors, {} warps each); {}:\n", d.name, d.sms, d.warps_per_sm, whose);
  fmt::print("{:<44} {:>9} {:>7} {:>9} {:>9} {:>10}  {}\n", "kernel", "registers", "shared", "block", "blocks",
             "occupancy", "limited by");
}

// What is not known of a kernel is null: XLA's PTX does not say how many blocks run, nor always how many threads.
Json empty_kernel() {
  Json out;
  for (const char* key :
       {"gpu", "kernel", "made_by", "file", "target", "instruction", "schedule", "registers", "shared_bytes",
        "spill_bytes", "threads", "blocks", "occupancy", "limiter", "matters", "advice", "least_seconds"})
    out[key] = Json();
  return out;
}

// Where kernels come from: XLA's own PTX of a folder or file, else the module that ours are compiled from.
struct KernelSource {
  std::vector<std::string> ptx;  // files; empty: `module` it is
  std::string module;
};

KernelSource kernel_source(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (given.ends_with(".ptx") && fs::is_regular_file(given, error)) return {{given}, {}};
  std::optional<Selector> named = split_selector(given);
  KernelSource out{{}, given};
  if (!named) return out;
  // A module of a run, or the only one; a stage is compiled by us where XLA left no code of its own.
  const bool of_module = !named->parts.empty() && names_modules(given);
  std::string start, folder = named->folder;
  if (!named->parts.empty()) {
    const Recording module = of_module ? select_module(given) : select_stage(*named).module;
    start = fmt::format("module_{:04}.", module.module_number), folder = module.folder;
  }
  // What we wrote into a recording of ours is ours.
  if (!fs::exists(folder + "/recording.json", error))
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.is_regular_file() && entry.path().extension() == ".ptx" &&
          entry.path().filename().string().starts_with(start))
        out.ptx.push_back(entry.path().string());
  std::sort(out.ptx.begin(), out.ptx.end());
  if (!out.ptx.empty() || (!named->parts.empty() && !of_module)) return out;
  StageChoice last = final_stage(select_module(given));
  out.module = confined_path(last.module.folder, last.file);
  return out;
}

int occupancy_of_ptx(const OccupancyArgs& a, const std::vector<std::string>& files) {
  Json all = Json::array();
  for (const std::string& file : files) {
    std::string text = read_file(file);
    const std::vector<PtxEntry> entries = read_ptx_entries(text);
    const std::string target = ptx_target(text);
    if (entries.empty() || target.empty())
      fail(FailureKind::kUnsupported, "{} holds no kernel: PTX has a .target and entries", file);
    if (cuda_tool("ptxas").empty()) {
      std::string names;
      for (size_t k = 0; k < entries.size() && k < 5; ++k) names += (k ? ", " : "") + entries[k].name;
      fail(FailureKind::kUnsupported,
           "{} holds {} kernels of XLA's own ({}{}), but what they need is known to ptxas (of the CUDA toolkit) alone, "
           "which is not to be found",
           file, entries.size(), names, entries.size() > 5 ? ", …" : "");
    }
    std::map<std::string, KernelResources> report = assembled(text, target, false).kernels;
    for (const std::string& name : words(a.gpus)) {
      const DeviceSpec& d = gpu_spec(name);
      if (!a.json) occupancy_header(d, fmt::format("XLA's own kernels, {} for {}", file, target));
      for (const PtxEntry& k : entries) {
        const KernelResources& r = report[k.name];
        Json row = complete(empty_kernel(), {{"gpu", d.name},
                                             {"kernel", k.name},
                                             {"made_by", "xla"},
                                             {"file", file},
                                             {"target", target},
                                             {"registers", r.registers},
                                             {"shared_bytes", r.shared},
                                             {"spill_bytes", r.spills}});
        std::string full = "unknown", limiter = "the PTX does not say how many threads a block has";
        if (k.block() > 0) {
          Occupancy o = occupancy_of(d, r.registers, r.shared, k.block());
          row["threads"] = k.block(), row["occupancy"] = o.share, row["limiter"] = o.limiter;
          full = fmt::format("{:.0f} %", 100 * o.share), limiter = o.limiter;
        }
        all.push_back(std::move(row));
        if (!a.json)
          fmt::print("{:<44} {:>9} {:>7} {:>9} {:>9} {:>10}  {}{}\n", k.name, r.registers, r.shared,
                     k.block() ? std::to_string(k.block()) : "?", "?", full, limiter,
                     r.spills ? fmt::format("; {} bytes of registers spill", r.spills) : "");
      }
    }
  }
  if (a.json) print_json({{"kernels", all}, {"without", Json::array()}});
  return kYes;
}

}  // namespace

int cmd_occupancy(const OccupancyArgs& a) {
  KernelSource from = kernel_source(a.file);
  if (!from.ptx.empty()) return occupancy_of_ptx(a, from.ptx);
  auto m = load_verified(from.module, true);
  CostAnalysis analysis(*m);
  Json all = Json::array(), without = Json::array();
  std::set<std::string> names = words(a.gpus);
  for (const std::string& name : names) {
    const DeviceSpec& d = gpu_spec(name);
    std::string sm(d.sm == "sm_70" ? "sm_75" : d.sm);
    GpuCode code = gpu_code(*m, sm);
    std::map<std::string, KernelResources> report = assembled(code.ptx, sm, false).kernels;
    if (!a.json)
      occupancy_header(d, fmt::format("kernels that hlo-replay compiles from {}, not XLA's own", from.module));
    for (const GpuKernelInfo& k : code.kernels) {
      const KernelResources& r = report[k.function];
      auto [occupancy, limiter] = occupancy_of(d, r.registers, r.shared, k.threads);
      bool few = k.blocks < d.sms;
      Cost cost = analysis.of(k.inst);
      bool by_memory = true;
      double seconds = least_seconds(cost, d, &by_memory);
      // Little's law: bytes that must be in flight at about 600 ns, 16 a thread at most in these kernels.
      double needed = std::min(1.0, d.memory_gb_s * 600 / (16.0 * 32 * d.warps_per_sm * d.sms));
      bool matters = by_memory && occupancy < needed && !few;
      std::string advice = few ? fmt::format("{} blocks leave {} multiprocessors idle", k.blocks, d.sms - k.blocks)
                           : r.spills ? fmt::format("{} bytes of registers spill", r.spills)
                           : matters
                               ? fmt::format("{:.0f} % would keep the memory busy: fewer {}", 100 * needed, limiter)
                               : "enough to keep the memory busy";
      all.push_back(complete(empty_kernel(), {{"gpu", d.name},
                                              {"kernel", k.function},
                                              {"made_by", "hlo-replay"},
                                              {"target", sm},
                                              {"instruction", m->inst_name(k.inst)},
                                              {"schedule", k.schedule},
                                              {"registers", r.registers},
                                              {"shared_bytes", r.shared},
                                              {"spill_bytes", r.spills},
                                              {"threads", k.threads},
                                              {"blocks", k.blocks},
                                              {"occupancy", occupancy},
                                              {"limiter", limiter},
                                              {"matters", matters || few},
                                              {"advice", advice},
                                              {"least_seconds", seconds}}));
      if (!a.json)
        fmt::print("{:<44} {:>9} {:>7} {:>9} {:>9} {:>8.0f} %  {}; {}\n", k.function, r.registers, r.shared, k.threads,
                   k.blocks, 100 * occupancy, limiter, advice);
    }
    for (const auto& [inst, why] : code.without) {
      if (!a.json) fmt::print(stderr, "warning: {}\n", why);
      without.push_back({{"gpu", d.name}, {"instruction", m->inst_name(inst)}, {"why", why}});
    }
  }
  if (a.json) print_json({{"kernels", all}, {"without", without}});
  return kYes;
}

}  // namespace hlo
