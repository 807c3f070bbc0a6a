#include "replay/report/compile/compile_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "ir/base/check.h"
#include "replay/os/confined_path.h"
#include "replay/record/files/dump_names.h"
#include "replay/report/compile/written_times.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/kernels/ptx_entries.h"

namespace hlo {
namespace {

constexpr const char* kPassesWanted =
    "times of passes (XLA_FLAGS=--xla_dump_module_metadata=true; of a GPU --xla_gpu_print_compilation_stats with "
    "TF_CPP_MIN_LOG_LEVEL=0)";
constexpr const char* kPhasesWanted =
    "emission, LLVM, ptxas (a log: TF_CPP_MIN_LOG_LEVEL=0 "
    "TF_CPP_VMODULE=gpu_compiler=1,nvptx_compiler=1,compile_module_to_llvm_ir=1,cpu_compiler=1,ir_compiler=1,"
    "hlo_pass_pipeline=1)";
constexpr const char* kTotalWanted = "the total (jax.config.update(\"jax_log_compiles\", True))";
constexpr const char* kKernelsWanted =
    "which kernel (XLA_FLAGS=--xla_dump_emitter_re=.* --xla_gpu_force_compilation_parallelism=1)";
constexpr size_t kMostKernels = 2000;  // whose code is read for its name

// `MODULE.12.ptx` and the .ll that stands in front of it, by what they have in common.
std::string code_stem(const std::string& file) {
  for (const char* end : {".ir-no-opt.ll", ".ir-with-opt.ll", ".ptx"})
    if (file.ends_with(end)) return file.substr(0, file.size() - std::string_view(end).size());
  return file;
}

int64_t bytes_of_file(const Recording& r, const std::string& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(r.folder + "/" + file, error);
  return error || !why_not_confined(r.folder, file).empty() ? 0 : static_cast<int64_t>(bytes);
}

KernelCode code_of_ptx(const Recording& r, const std::string& file) {
  KernelCode out{"", file, 0, -1};
  try {
    const std::string text = read_confined(r.folder, file);
    out.bytes = static_cast<int64_t>(text.size());
    const std::vector<PtxEntry> entries = read_ptx_entries(text);
    for (size_t k = 0; k < entries.size() && k < 3; ++k) out.kernel += (k ? ", " : "") + entries[k].name;
    if (entries.size() > 3) out.kernel += fmt::format(" and {} more", entries.size() - 3);
  } catch (const Failure&) {
    // told as empty
  }
  return out;
}

// Kernels of a dump with what their files tell.
void add_kernels(const Recording& r, const WrittenTimes& times, CompileTime* out) {
  std::map<std::string, double> optimized;  // by stem, when the optimized IR was written
  for (const WrittenFile& f : times.files)
    if (!times.whole_seconds && f.file.ends_with(".ir-with-opt.ll")) optimized[code_stem(f.file)] = f.seconds;
  for (const std::string& file : r.other_files) {
    const bool is_object = file.ends_with(".o") && file.find(".obj-file.") != std::string::npos;
    if ((!file.ends_with(".ptx") && !is_object) || out->kernels.size() >= kMostKernels) continue;
    if (is_object) {
      const size_t at = file.find(".obj-file.") + 10;
      out->kernels.push_back({file.substr(at, file.size() - 2 - at), file, bytes_of_file(r, file), -1});
      continue;
    }
    KernelCode k = code_of_ptx(r, file);
    if (k.kernel.empty()) continue;
    // The optimized IR is written when the thread has assembled its PTX.
    for (const WrittenFile& f : times.files)
      if (f.file == file)
        if (auto end = optimized.find(code_stem(file)); end != optimized.end() && end->second >= f.seconds)
          k.assembler = end->second - f.seconds;
    out->kernels.push_back(std::move(k));
  }
  for (const KernelCode& k : out->kernels)
    if (k.assembler >= 0) out->parts.push_back({CompilePhase::kAssembler, k.kernel, k.assembler, 1, "file times"});
  std::stable_sort(out->kernels.begin(), out->kernels.end(), [](const KernelCode& x, const KernelCode& y) {
    return std::pair(x.assembler, x.bytes) > std::pair(y.assembler, y.bytes);
  });
}

void sort_parts(std::vector<CompilePart>* parts) {
  std::stable_sort(parts->begin(), parts->end(), [](const CompilePart& x, const CompilePart& y) {
    return x.phase != y.phase ? x.phase < y.phase : x.seconds > y.seconds;
  });
}

// What the dump's record of passes, or a replay's own, tells.
void add_passes(const Recording& r, CompileTime* out) {
  std::map<std::string, CompilePart> passes;
  auto add = [&](const std::string& pass, int64_t us, const char* from) {
    if (us < 0 || pass.empty()) return;
    CompilePart& p = passes.try_emplace(pass, CompilePart{CompilePhase::kPass, pass, 0, 0, from}).first->second;
    p.seconds += static_cast<double>(us) * 1e-6, ++p.runs;
    out->passes = std::max(out->passes, 0.0) + static_cast<double>(us) * 1e-6;
  };
  if (!r.metadata.empty()) {
    for (const PassRun& run : read_metadata(read_confined(r.folder, r.metadata)))
      add(run.pass, run.us, "record of passes");
    out->passes_from = "XLA's record of passes";
  } else {
    for (const StageRow& row : r.rows) add(row.pass, row.microseconds, "recording");
    out->passes_from = "the recording";
  }
  if (out->passes < 0) out->passes_from.clear();
  for (auto& [name, part] : passes) out->parts.push_back(std::move(part));
}

}  // namespace

std::string_view phase_name(CompilePhase phase) {
  constexpr std::string_view kNames[] = {"pass", "candidates", "emission", "llvm", "assembler", "other"};
  return kNames[static_cast<size_t>(phase)];
}

std::string_view phase_in_words(CompilePhase phase) {
  constexpr std::string_view kWords[] = {
      "HLO passes", "kernels that the autotuner tries", "emission of kernels, and waiting for them", "LLVM", "ptxas",
      "other"};
  return kWords[static_cast<size_t>(phase)];
}

bool is_autotuning_pass(std::string_view pass) {
  return pass == "config-assigner" || pass.find("autotuner") != std::string_view::npos ||
         pass.find("algorithm-picker") != std::string_view::npos;
}

double CompileTime::autotuning() const {
  double sum = -1;
  for (const CompilePart& p : parts)
    if (p.phase == CompilePhase::kPass && is_autotuning_pass(p.name)) sum = std::max(sum, 0.0) + p.seconds;
  return sum;
}

double CompileTime::of(CompilePhase phase) const {
  double sum = -1;
  for (const CompilePart& p : parts)
    if (p.phase == phase) sum = std::max(sum, 0.0) + p.seconds;
  return sum;
}

CompileTime compile_time(const Recording& r) {
  CompileTime out;
  out.module = r.module_name, out.number = r.module_number;
  try {
    add_passes(r, &out);
  } catch (const Failure& e) {
    const std::string what = e.what();
    out.notes.push_back("the record of passes cannot be read: " + what.substr(0, what.find('\n')));
  }
  const WrittenTimes times = written_times(r);
  if (times.why_not.empty()) {
    if (times.behind >= 0) {
      out.behind = times.behind, out.behind_from = "the times of the dump's files";
      out.total = times.passes + times.behind, out.total_from = "the times of the dump's files";
    }
    // The record of passes has not what lies between and behind them.
    out.passes = times.passes, out.passes_from = "the times of the dump's files";
    if (times.whole_seconds) out.notes.emplace_back("the times of its files are whole seconds: these are right to one");
  } else if (r.source == "xla") {
    out.notes.push_back("times of files are not gone by: " + times.why_not);
  }
  add_kernels(r, times, &out);
  if (times.why_not.empty() && std::any_of(r.other_files.begin(), r.other_files.end(), [](const std::string& f) {
        return f.ends_with(".ttir.txt") || f.ends_with(".mlir-passes.log");
      }))
    out.notes.push_back("printing what the emitters do (--xla_dump_emitter_re) may be most of the time below HLO");
  out.gpu = std::any_of(r.other_files.begin(), r.other_files.end(), [](const std::string& f) {
    return f.find("gpu_after_optimizations") != std::string::npos || f.ends_with(".ptx");
  });
  sort_parts(&out.parts);
  return out;
}

int64_t passes_microseconds(const Recording& r) {
  CompileTime t;
  try {
    add_passes(r, &t);
  } catch (const Failure&) {
    return -1;  // its record cannot be read
  }
  return t.passes < 0 ? -1 : std::llround(t.passes * 1e6);
}

CompileTime joined_times(const CompileTime& dump, const CompileTime& log) {
  CompileTime out = dump;
  out.line = log.line, out.tracing = log.tracing, out.lowering = log.lowering, out.slow = log.slow;
  auto take = [](double seconds, const std::string& from, double* to, std::string* to_from) {
    if (seconds >= 0) *to = seconds, *to_from = from;
  };
  take(log.total, log.total_from, &out.total, &out.total_from);
  take(log.passes, log.passes_from, &out.passes, &out.passes_from);
  take(log.behind, log.behind_from, &out.behind, &out.behind_from);
  for (CompilePhase phase : {CompilePhase::kPass, CompilePhase::kCandidate, CompilePhase::kEmission,
                             CompilePhase::kLlvm, CompilePhase::kAssembler, CompilePhase::kOther}) {
    // Kernels are named by the dump alone.
    if (log.of(phase) < 0 || (phase == CompilePhase::kAssembler && dump.of(phase) >= 0)) continue;
    std::erase_if(out.parts, [&](const CompilePart& p) { return p.phase == phase; });
    for (const CompilePart& p : log.parts)
      if (p.phase == phase) out.parts.push_back(p);
  }
  for (const std::string& note : log.notes) out.notes.push_back(note);
  out.gpu = dump.gpu || log.gpu;
  sort_parts(&out.parts);
  return out;
}

std::vector<std::string> not_told_of(const CompileTime& t) {
  std::vector<std::string> out;
  if (t.of(CompilePhase::kPass) < 0) out.emplace_back(kPassesWanted);
  if (t.total < 0) out.emplace_back(kTotalWanted);
  if (t.of(CompilePhase::kEmission) < 0 && t.of(CompilePhase::kLlvm) < 0) out.emplace_back(kPhasesWanted);
  const bool named = std::any_of(t.parts.begin(), t.parts.end(), [](const CompilePart& p) {
    return !p.name.empty() && (p.phase == CompilePhase::kLlvm || p.phase == CompilePhase::kAssembler);
  });
  if (t.gpu && !named) out.emplace_back(kKernelsWanted);
  return out;
}

std::string compile_time_in_words(const Recording& r) {
  const WrittenTimes times = written_times(r);
  if (!times.why_not.empty() || times.behind < 0) return {};
  return fmt::format("compiled in {}{}, by the times of its files: {} up to the last stage, {} below HLO",
                     times.whole_seconds ? "about " : "", time_text(times.passes + times.behind),
                     time_text(times.passes), time_text(times.behind));
}

}  // namespace hlo
