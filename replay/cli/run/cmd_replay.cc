// replay: a pipeline over a module, every stage written.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "gpu_exec/executor.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/command.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/recording/recording.h"
#include "replay/record/start/start_stage.h"
#include "replay/record/start/target.h"
#include "replay/replayer/replayer.h"
#include "viewer/page_file.h"

namespace hlo {
namespace fs = std::filesystem;

void stage_table(const Recording& r, bool all, bool without_code) {
  fmt::print("{:>5}  {:<52} {:>7}  {:>13}  {:>7} {:>7} {:>7}  {:>10}\n", "stage", "pass", "changed", "instructions",
             "new", "gone", "other", "time");
  std::string pipeline;
  for (const StageRow& row : r.rows) {
    if (row.kind == StageRow::kPipelineStart) continue;
    if (!row.implemented && !row.disabled && !without_code) continue;
    if (!all && !row.changed && row.implemented && !row.disabled && row.kind == StageRow::kPass) continue;
    if (row.pipeline != pipeline && !row.pipeline.empty()) {
      pipeline = row.pipeline;
      fmt::print("       {}\n", printable(pipeline));
    }
    std::string time =
        row.microseconds < 0 ? "" : fmt::format("{:.2f} ms", static_cast<double>(row.microseconds) / 1000);
    std::string changed = !row.implemented               ? "not implemented"
                          : row.disabled                 ? "disabled"
                          : row.kind == StageRow::kInput ? ""
                          : row.changed                  ? "yes"
                                                         : "no";
    fmt::print("{:>5}  {:<52} {:>7}  {:>5} → {:<5}  {:>7} {:>7} {:>7}  {:>10}\n",
               row.number >= 0 && row.changed ? fmt::format("{:04}", row.number) : "",
               "  " + printable(row.pass.empty() ? row.name() : row.pass), changed, row.before, row.after,
               row.added ? std::to_string(row.added) : "", row.removed ? std::to_string(row.removed) : "",
               row.modified ? std::to_string(row.modified) : "", time);
  }
}

namespace {

ReplayOptions replay_options(const ReplayArgs& a) {
  ReplayOptions options;
  if (!a.formats.empty()) options.formats = words(a.formats);
  for (const std::string& f : options.formats)
    if (!known_format(f)) fail(FailureKind::kUsage, "unknown format '{}'", f);
  options.every_pass = a.every_pass;
  const auto of_stages = {"text", "dot", "svg", "png", "html", "json", "proto"};
  if (a.every_pass &&
      std::none_of(of_stages.begin(), of_stages.end(), [&](const char* f) { return options.formats.contains(f); }))
    fail(FailureKind::kUsage, "--every-pass writes each pass in the formats of stages, of which --formats has none: {}",
         fmt::join(of_stages, ", "));
  options.passes.only = words(a.only), options.passes.disabled = words(a.disabled);
  for (const auto& set : {options.passes.only, options.passes.disabled})
    for (const std::string& name : set) pass_or_fail(name);
  for (const std::string& f : a.fuel) {
    size_t eq = f.find('=');
    if (eq == std::string::npos || eq + 1 == f.size() || f.find_first_not_of("0123456789", eq + 1) != std::string::npos)
      fail(FailureKind::kUsage, "--fuel is written PASS=N, not '{}'", f);
    options.passes.fuel[std::string(pass_or_fail(f.substr(0, eq)).name)] = atoll(f.c_str() + eq + 1);
  }
  options.passes.verify = !a.no_verify;
  options.passes.stage = a.file;
  options.lower = a.lower;
  if (!a.lower.empty()) {
    const ExecutorInfo* executor = find_executor(a.lower);
    if (!executor || a.lower == "evaluator")
      fail(FailureKind::kUsage, "--lower is host, emulated or cuda, not '{}'", a.lower);
    if (std::string why = executor->unavailable(); !why.empty())
      fail(FailureKind::kUnsupported, "--lower={}: {}", a.lower, why);
  }
  options.stop_after = a.stop_after, options.sm = a.sm;
  if (!a.from.empty()) pass_or_fail(a.from);
  options.passes.from = a.from;
  if (!a.gpu.empty()) options.passes.given = gpu_options(a.gpu);
  return options;
}

// The GPU that the dump was compiled for, where nobody names another. Its name; empty where no dump says one.
std::string take_gpu_of_dump(const StartStage& start, const ReplayArgs& a, ReplayOptions* options) {
  if (!a.gpu.empty() || !start.recording || options->pipeline != "xla-gpu") return {};
  try {
    const std::optional<NamedGpu> gpu = gpu_of(*start.recording);
    if (!gpu) return {};
    options->passes.given = gpu->options;
    return gpu->name;
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported) throw;
    fail(FailureKind::kUnsupported, "{}; --gpu=NAME replays it for another", f.what());
  }
}

// What XLA's autotuner chose in place of defaults of ours. What was taken, in words.
std::string take_autotuning(const StartStage& start, const ReplayArgs& a, ReplayOptions* options) {
  if (options->pipeline != "xla-gpu") {
    if (!a.autotune_results.empty()) fail(FailureKind::kUsage, "--autotune-results is for --pipeline=xla-gpu");
    return {};
  }
  std::string told;
  try {
    const Recording* dump = start.recording ? &*start.recording : nullptr;
    const std::string word = autotune_results_for(a.autotune_results, dump, &told);
    if (!word.empty()) options->passes.given["autotune_results"] = word;
  } catch (const Failure& f) {
    // A dump whose later stages cannot be read is replayed all the same.
    if (!a.autotune_results.empty()) throw;
    told = fmt::format("no choices of XLA's autotuner: {}", f.what());
  }
  return told;
}

// Passes that have no code here: the recording has a row for each, and the reason stands in passes.def.
void say_without_code(const Recording& r, bool verbose) {
  std::map<std::string_view, std::string_view> missing;
  for (const StageRow& row : r.rows)
    if (!row.implemented && !row.disabled)
      if (const PassInfo* pass = find_pass(row.pass)) missing[pass->name] = pass->summary;
  if (missing.empty()) return;
  fmt::print(stderr, "warning: {} passes of this pipeline have no code here and did nothing{}\n", missing.size(),
             verbose ? ":" : " (--verbose names them)");
  for (const auto& [name, summary] : missing)
    if (verbose) fmt::print(stderr, "  {}: {}\n", name, summary);
}

}  // namespace

int cmd_replay(const ReplayArgs& a) {
  if (a.engine.installed()) {
    if (!a.gpu.empty()) fail(FailureKind::kUsage, "--gpu is for our own passes; --engine=installed takes --target");
    if (!a.autotune_results.empty())
      fail(FailureKind::kUsage, "--autotune-results is for our own passes; --flags takes XLA's own flag");
    return replay_installed(a);
  }
  if (!a.pipeline.empty()) pipeline_or_fail(a.pipeline);
  ReplayOptions options = replay_options(a);
  const StartStage start = start_stage(a.file);
  Loaded loaded;
  auto m = load_verified(start.spec, !a.no_verify, &loaded);
  std::string why = already_optimised(*m);
  if (!why.empty() && !a.force_replay) {
    fail(FailureKind::kUsage,
         "{} is already optimised: {}. Look at it with `hlo-replay print`, `hlo-replay convert … .svg` or `hlo-replay "
         "exec`, or replay all the same with --force-replay",
         a.file, why);
  }
  options.pipeline =
      a.gpu.empty() || !a.pipeline.empty() ? pipeline_for(a.pipeline, a.file, loaded.of_2019) : "xla-gpu";
  if (!a.gpu.empty() && options.pipeline != "xla-gpu") fail(FailureKind::kUsage, "--gpu is for --pipeline=xla-gpu");
  const std::string gpu = take_gpu_of_dump(start, a, &options), tuning = take_autotuning(start, a, &options);
  std::string folder = a.out;
  if (folder.empty()) folder = fs::path(a.file == "-" ? "stdin" : a.file).stem().string() + ".replay";
  OutputFolder out(folder, a.force, "replay", {a.file});
  const std::string pipeline = replayed_pipeline(options);
  const std::string unsaid = not_partitioned(*m);
  if (!a.json) {
    if (!unsaid.empty()) fmt::print("not partitioned: {}\n", printable(unsaid));
    if (!start.said.empty()) fmt::print("{}\n", printable(start.said));
    if (!gpu.empty()) fmt::print("for the GPU of the dump, {}\n", printable(gpu));
    if (!tuning.empty()) fmt::print("{}\n", printable(tuning));
    fmt::print("pipeline {}: {} passes, module {} of {} instructions\n", pipeline,
               count_passes(*find_pipeline(pipeline)), m->name(), m->instruction_count());
  }
  std::fflush(stdout);
  Recording r = [&] {
    Progress progress("replaying " + a.file);
    options.progress = [&](size_t done, size_t all, const std::string& what) { progress.at(done, all, what); };
    return replay(*m, options, out);
  }();
  const bool page = options.formats.contains("html") || options.formats.contains("page");
  if (page) write_recording_page(r, out);
  out.commit();
  if (a.json) {
    print_json(Json::parse(recording_json(r)));
    return kYes;
  }
  size_t passes = 0, stages = 0;
  for (const StageRow& row : r.rows) {
    passes += row.kind == StageRow::kPass;
    stages += row.changed || (!row.file.empty() && row.kind != StageRow::kInput);
  }
  stage_table(r, true, a.verbose);
  fmt::print("{} pass runs, {} stages written to {}", passes, stages + 1, folder);
  if (page) fmt::print("; open {}/index.html", folder);
  fmt::print("\n");
  for (const std::string& p : r.problems) fmt::print(stderr, "warning: {}\n", p);
  say_without_code(r, a.verbose);
  return kYes;
}

}  // namespace hlo
