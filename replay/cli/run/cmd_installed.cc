// replay, diff and bisect by an XLA that is installed.
#include <algorithm>
#include <filesystem>

#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/installed/figures.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/record/files/run.h"
#include "replay/record/recording/import.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

std::string stem_of(const std::string& file) { return fs::path(file == "-" ? "stdin" : file).stem().string(); }

std::vector<std::string> list_of(const std::string& with_commas) {
  const std::set<std::string> all = words(with_commas);
  return {all.begin(), all.end()};
}

Json figures_json(const CompilationFigures& f, const XlaCompilation& c) {
  Json j = engine_json(c);
  j["stages"] = f.stages, j["pass_runs"] = f.pass_runs, j["instructions"] = f.instructions, j["kernels"] = f.kernels;
  j["bytes"] = f.bytes, j["flops"] = f.flops;
  j["memory_bytes"] = f.memory < 0 ? Json() : Json(f.memory);
  j["compile_ms"] = f.compile_ms < 0 ? Json() : Json(f.compile_ms);
  j["unreadable"] = f.unreadable;
  return j;
}

}  // namespace

int replay_installed(const ReplayArgs& a) {
  const std::pair<const char*, bool> ours[] = {
      {"--formats", !a.formats.empty()}, {"--passes-only", !a.only.empty()}, {"--fuel", !a.fuel.empty()},
      {"--lower", !a.lower.empty()},     {"--from", !a.from.empty()},        {"--stop-after", !a.stop_after.empty()},
      {"--every-pass", a.every_pass},    {"--pipeline", !a.pipeline.empty()}};
  for (const auto& [option, given] : ours)
    if (given)
      fail(FailureKind::kUsage, "{} belongs to our passes; --engine=installed has --xla-flags and --disable-passes",
           option);
  const std::string folder = a.out.empty() ? stem_of(a.file) + ".replay" : a.out;
  OutputFolder out(folder, a.force, "replay", {a.file});
  const XlaCompilation c = compile_by_xla(a.engine, a.file, out.temporary(), list_of(a.disabled));
  out.commit();
  std::vector<Recording> all = open_folder(folder);
  Recording r = main_recording(all, "");
  if (a.json) {
    count_changes(&r);
    Json j = Json::parse(recording_json(r));
    j["engine"] = engine_json(c);
    print_json(j);
    return kYes;
  }
  size_t stages = 0, runs = 0, ptx = 0;
  for (const StageRow& row : r.rows) stages += !row.file.empty(), runs += row.kind == StageRow::kPass;
  for (const std::string& f : r.other_files) ptx += f.ends_with(".ptx");
  tell_engine(c, a.file, folder);
  fmt::print("{} pass runs, {} stages{} in {}\n", runs, stages, ptx ? ", PTX" : "", folder);
  const std::string word = shell_word(folder);
  fmt::print("next: hlo-replay {} for an overview of it; open {} --stages, view {}, explain {} INSTRUCTION\n", word,
             word, word, word);
  for (const std::string& p : r.problems) fmt::print(stderr, "warning: {}\n", p);
  return kYes;
}

int diff_installed(const DiffArgs& a) {
  if (!a.b.empty()) fail(FailureKind::kUsage, "with --engine=installed diff takes one FILE, and compiles it twice");
  if (a.flags_a.empty() && a.flags_b.empty() && a.disabled.empty() && a.engine_b.empty() && a.target_b.empty())
    fail(FailureKind::kUsage,
         "both compilations would be the same: --flags-a, --flags-b, --disable, --engine-b or --target-b say what "
         "differs");
  std::optional<OutputFolder> out;
  std::optional<TemporaryFolder> scratch;
  if (a.out.empty())
    scratch.emplace();
  else
    out.emplace(a.out, a.force, "diff", std::vector<std::string>{a.a});
  const std::string base = out ? out->temporary() : scratch->path();
  EngineArgs first = a.engine, second = a.engine;
  first.flags += " " + a.flags_a, second.flags += " " + a.flags_b;
  if (!a.engine_b.empty()) second.engine = a.engine_b;
  if (!a.target_b.empty()) second.target = a.target_b;
  std::vector<XlaCompilation> done;
  Json told = Json::object();
  std::vector<CompilationFigures> figures;
  for (const char* side : {"a", "b"}) {
    const bool is_a = *side == 'a';
    const std::string folder = base + "/" + side;
    fs::create_directory(folder);
    done.push_back(
        compile_by_xla(is_a ? first : second, a.a, folder, is_a ? std::vector<std::string>() : list_of(a.disabled)));
    figures.push_back(figures_of(main_recording(open_folder(folder), "")));
    told[side] = figures_json(figures.back(), done.back());
  }
  if (out) out->commit();
  DiffArgs folders = a;
  folders.engine = EngineArgs(), folders.compilations = told;
  const std::string where = out ? a.out : base;
  folders.a = where + "/a", folders.b = where + "/b";
  if (!a.json) {
    tell_engine(done[0], a.a, ""), tell_engine(done[1], a.a, "");
    const CompilationFigures &x = figures[0], &y = figures[1];
    auto row = [](const char* what, const std::string& p, const std::string& q) {
      fmt::print("{:<14} {:>14} {:>14}{}\n", what, p, q, p == q ? "" : "   differs");
    };
    fmt::print("{:<14} {:>14} {:>14}\n", "", "a", "b");
    row("stages", std::to_string(x.stages), std::to_string(y.stages));
    row("instructions", std::to_string(x.instructions), std::to_string(y.instructions));
    row("kernels", std::to_string(x.kernels), std::to_string(y.kernels));
    row("bytes moved", size_text(x.bytes), size_text(y.bytes));
    row("memory", x.memory < 0 ? "unknown" : size_text(static_cast<double>(x.memory)),
        y.memory < 0 ? "unknown" : size_text(static_cast<double>(y.memory)));
    for (size_t k = 0; k < 2; ++k)
      if (!figures[k].unreadable.empty())
        fmt::print(stderr, "warning: {}: the last stage cannot be read: {}\n", k ? "b" : "a", figures[k].unreadable);
  }
  return cmd_diff(folders);
}

int bisect_installed(const BisectArgs& a) {
  if (!a.program.empty()) fail(FailureKind::kUsage, "--program brings its own XLA: it goes without --engine");
  if (a.over_compilations()) return bisect_compilations(a);
  BisectArgs folder = a;
  if (!a.out.empty()) folder.made = std::make_shared<OutputFolder>(a.out, a.force, "bisect", read_by(a));
  TemporaryFolder scratch;
  const XlaCompilation c = compile_by_xla(a.engine, a.file, scratch.path(), list_of(a.disabled));
  if (!a.json) tell_engine(c, a.file, "");
  folder.engine = EngineArgs(), folder.file = scratch.path();
  return cmd_bisect(folder);
}

}  // namespace hlo
