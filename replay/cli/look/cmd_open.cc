// open: what a folder holds. Of a run the modules, those to look at first in front; of one module what an impatient
// person wants to know.
#include <algorithm>
#include <map>

#include "ir/program/buffer.h"
#include "ir/query/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/engine.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/measured.h"
#include "replay/cli/other_files.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/recording/import.h"
#include "replay/replayer/replayer.h"
#include "replay/report/findings/findings.h"
#include "replay/report/findings/tried_findings.h"
#include "replay/report/findings/try_finding.h"
#include "replay/report/kernels/expected.h"
#include "replay/report/overview/first_look.h"
#include "replay/report/overview/module_findings.h"
#include "replay/report/overview/overview.h"

namespace hlo {
namespace {

constexpr size_t kShownModules = 60;

Json overview_json(const ModuleOverview& o, const std::string& why, const std::optional<MeasuredRun>& measured) {
  const MemoryReport* memory = o.memory ? &*o.memory : nullptr;
  return {
      {"selector", o.selector},
      {"name", o.recording->module_name},
      {"number", o.recording->module_number},
      {"function", o.function},
      {"target", o.target.in_words()},
      {"instructions", o.last ? Json(o.last->instruction_count()) : Json()},
      {"compile_microseconds", o.compile_us < 0 ? Json() : Json(o.compile_us)},
      {"least_seconds", o.last ? Json(o.cost.seconds) : Json()},
      {"unknown_calls", o.last ? Json(o.cost.unknown_calls) : Json()},
      {"expected", o.last ? expected_json(expected_time(*o.last, o.cost, o.target.spec, o.target.platform)) : Json()},
      {"device", o.target.spec.name},
      {"measured", measured_json(measured)},
      {"too_large", does_not_fit(memory ? memory->allocated : 0, o.target)},
      {"host_bytes", memory ? Json(memory->host) : Json()},
      {"memory_bytes", memory ? Json(memory->allocated) : Json()},
      {"look", why},
      {"unreadable", o.unreadable}};
}

std::string compile_text(int64_t us) { return us < 0 ? "" : time_text(static_cast<double>(us) * 1e-6); }

// Files of one kind are counted, not listed.
std::string counted(const std::vector<std::string>& files) {
  std::string out;
  for (const auto& [kind, n] : kinds_of_files(files))
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, printable(kind));
  return out;
}

void print_index(const Run& run, const std::vector<ModuleOverview>& all) {
  fmt::print("{}: a run of {} modules, compiled for {}\n", printable(run.folder), all.size(), all[0].target.in_words());
  const bool compiled = std::any_of(all.begin(), all.end(), [](const auto& o) { return o.compile_us >= 0; });
  fmt::print("  {:>6}  {:<28} {:>12} {:>12} {:>10} {}  {}\n", "module", "function", "instructions", "at least",
             "memory", compiled ? fmt::format("{:>10}", "compiled in") : "", "look at it because");
  for (size_t k = 0; k < all.size() && k < kShownModules; ++k) {
    const ModuleOverview& o = all[k];
    const std::string memory = o.memory ? human_bytes(o.memory->allocated) : "";
    fmt::print("  {:>6}  {:<28} {:>12} {:>12} {:>10} {}  {}\n", printable(o.selector), printable(o.function),
               o.last ? std::to_string(o.last->instruction_count()) : "",
               o.last ? time_text(o.cost.seconds) + (o.cost.unknown_calls ? " +?" : "") : "", memory,
               compiled ? fmt::format("{:>11}", compile_text(o.compile_us)) : "", printable(worth_looking(all, k)));
  }
  if (all.size() > kShownModules) fmt::print("  … and {} more (--json has all)\n", all.size() - kShownModules);
  fmt::print("\"at least\" is what one call needs on {} by its bytes and operations.\n",
             all[0].target.spec_known
                 ? std::string(all[0].target.spec.name)
                 : fmt::format("an {} (the target's data sheet is not known; --gpu names another)", kDefaultGpu));
  std::vector<std::string> files;
  size_t stages = 0;
  for (const Recording& r : run.modules) {
    files.insert(files.end(), r.other_files.begin(), r.other_files.end());
    for (const StageRow& row : r.rows) stages += !row.file.empty();
  }
  fmt::print("{} stages", stages);
  if (!files.empty()) fmt::print("; also {}", counted(files));
  fmt::print("\n");
}

// What is missing or wrong, once for all modules that say the same.
void print_complaints(const Run& run) {
  std::vector<std::pair<std::string, std::vector<std::string>>> said;
  for (const Recording& r : run.modules) {
    auto add = [&](const std::string& text) {
      auto found = std::find_if(said.begin(), said.end(), [&](const auto& s) { return s.first == text; });
      if (found == said.end()) found = said.insert(said.end(), {text, {}});
      found->second.push_back(module_selector(run, r));
    };
    for (const std::string& f : r.missing) add("missing: " + f);
    for (const std::string& f : r.problems) add("problem: " + f);
  }
  for (const auto& [text, modules] : said)
    fmt::print("{}{}\n", printable(text),
               run.modules.size() == 1 || modules.size() == run.modules.size() ? ""
               : modules.size() == 1 ? fmt::format(" ({})", printable(modules[0]))
                                     : fmt::format(" ({} modules)", modules.size()));
}

// Of an overview's module; nothing where there is no profile. `looked` and `runs` are one each.
std::optional<MeasuredRun> measured_of(const ModuleOverview& o, const std::vector<LookedAt>& looked,
                                       const std::vector<MeasuredRun>& runs) {
  for (size_t k = 0; k < runs.size(); ++k)
    if (looked.size() == 1 || looked[k].selector == o.selector) return runs[k];
  return {};
}

// What a profile says of the modules, most time first.
void print_measured(const Run& run, const OpenArgs& a) {
  const std::vector<LookedAt> looked = looked_at(a.folder);
  const std::vector<MeasuredRun> runs = measured_runs({a.profile, a.profile_device}, run.folder, looked);
  if (runs.empty()) return;
  std::vector<std::pair<double, size_t>> order;
  for (size_t k = 0; k < runs.size(); ++k)
    if (runs[k].why_not.empty())
      order.emplace_back(runs[k].seconds * static_cast<double>(std::max<size_t>(runs[k].runs, 1)), k);
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  if (order.empty())
    fmt::print("not measured: {}: {}\n", printable(runs[0].file), printable(runs[0].why_not));
  else
    fmt::print("measured by {} ({}):\n", printable(runs[0].file), printable(runs[0].joined));
  for (size_t k = 0; k < order.size() && k < kShownModules; ++k) {
    const MeasuredRun& m = runs[order[k].second];
    const LookedAt& l = looked[order[k].second];
    fmt::print("  {:>6}  {:<28} {:>12} of kernels {}{}\n", printable(l.selector), printable(l.name()),
               time_text(m.seconds), m.runs ? fmt::format("a call, the average of {}", m.runs) : "in all calls",
               m.between > 0 ? fmt::format("; {} between them", time_text(m.between)) : "");
    for (const std::string& line : devices_in_words(m)) fmt::print("          {}\n", printable(line));
  }
}

int open_index(const Run& run, const OpenArgs& a) {
  std::vector<ModuleOverview> all = run_overview(run, a.gpu);
  print_index(run, all);
  print_measured(run, a);
  print_complaints(run);
  const std::string folder = shell_word(run.folder), first = shell_word(run.folder + ":" + all[0].selector);
  fmt::print("next: hlo-replay {:<40} the overview of one module\n", first);
  fmt::print("      hlo-replay summary {:<32} time and memory by line, scope or class; memory {}\n",
             folder + " --by=line", folder);
  fmt::print("      hlo-replay view {:<35} pages of all stages; link {}: what feeds what\n", folder, folder);
  return kYes;
}

void print_stages(const Recording& r) {
  size_t stages = 0, runs = 0;
  for (const StageRow& row : r.rows) stages += !row.file.empty(), runs += row.kind == StageRow::kPass;
  fmt::print("module {:04} {} ({}): {} stages, {} pass runs\n", r.module_number, printable(r.module_name),
             r.source == "xla" ? "dumped by XLA" : "replayed through " + printable(r.pipeline), stages, runs);
  stage_table(r, r.source != "xla", true);
  std::vector<const StageRow*> slow;
  for (const StageRow& row : r.rows)
    if (row.microseconds > 0 && row.kind == StageRow::kPass) slow.push_back(&row);
  std::stable_sort(slow.begin(), slow.end(), [](auto* x, auto* y) { return x->microseconds > y->microseconds; });
  if (!slow.empty()) fmt::print("slowest passes:");
  for (size_t i = 0; i < slow.size() && i < 5; ++i)
    fmt::print("{} {} {:.1f} ms", i ? "," : "", printable(slow[i]->pass),
               static_cast<double>(slow[i]->microseconds) / 1000);
  if (!slow.empty()) fmt::print("\n");
  if (!r.other_files.empty()) fmt::print("also: {}\n", counted(r.other_files));
}

// --- the overview of one module ---

void print_look(const std::vector<LookSection>& sections, const std::string& folder) {
  for (const LookSection& section : sections) {
    if (!section.heading.empty()) fmt::print("\n{}\n", section.heading);
    for (const LookRow& row : section.rows) fmt::print("{}\n", row.text);
    if (section.all) fmt::print("  all {}: hlo-replay open {} --json\n", section.all, shell_word(folder));
  }
}

Json evidence_json(const FindingEvidence& e) {
  Json stack = Json::array();
  for (const SourceLine& l : e.stack)
    stack.push_back({{"file", l.file}, {"function", l.function}, {"line", l.line}, {"column", l.column}});
  const char* whose = e.whose == FindingEvidence::kProgram ? "program"
                      : e.whose == FindingEvidence::kPass  ? "pass"
                                                           : "unknown";
  auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"whose", whose},
          {"first_stage", or_null(e.first_stage)},
          {"first_instruction", or_null(e.first)},
          {"stage", or_null(e.stage)},
          {"pass", or_null(e.pass)},
          {"stack", stack}};
}

Json findings_json(const Module& m, const std::vector<ModuleFinding>& all) {
  Json out = Json::array();
  for (const ModuleFinding& f : all) {
    Json others = Json::array();
    for (InstId i : f.others) others.push_back(m.inst_name(i));
    out.push_back({{"kind", f.kind},
                   {"instruction", m.inst_name(f.inst)},
                   {"others", others},
                   {"source", f.evidence.line.text()},
                   {"op_name", f.evidence.op_name},
                   {"what", f.what},
                   {"advice", f.tried.useless() ? Json() : Json(f.advice)},
                   {"least_seconds", f.seconds},
                   {"bytes", f.bytes},
                   {"evidence", evidence_json(f.evidence)},
                   {"tried", tried_json(f.tried)}});
  }
  return out;
}

// --try: each finding's change made to the module in front of the passes, and compiled beside it.
class Trying {
 public:
  Trying(const OpenArgs& a, const Recording& r, const ModuleOverview& o)
      : a_(a), o_(o), what_(to_compile(a.engine, r, o.target)) {}

  void run(std::vector<ModuleFinding>* all) {
    constexpr size_t kOfEachKind = 2;
    std::map<std::string, size_t> seen;
    std::optional<CompiledFigures> as_is;
    Progress progress("trying what was found");
    for (ModuleFinding& f : *all) {
      if (++seen[f.kind] > kOfEachKind) continue;
      f.tried.words = what_.why_not;
      if (!what_.why_not.empty()) continue;
      const FindingEdit edit = edit_for(f, *what_.first, *o_.last);
      f.tried.words = edit.words;
      if (!edit.module) continue;
      progress.at(0, 0, f.kind);
      try {
        if (!as_is) as_is = compiled(*what_.first);
        const CompiledFigures changed = compiled(*edit.module);
        f.tried.outcome = FindingTried::kCompiled;
        f.tried.seconds = as_is->seconds, f.tried.seconds_after = changed.seconds;
        f.tried.bytes = as_is->bytes, f.tried.bytes_after = changed.bytes;
        f.tried.least_freed = 0.1 * f.bytes;
        if (f.tried.useless()) f.advice = kNoAdvice;
      } catch (const Failure& e) {
        if (interrupted()) throw;
        f.tried.words += fmt::format(", which cannot be compiled: {}", first_line(e.what()));
      }
    }
    std::stable_partition(all->begin(), all->end(), [](const ModuleFinding& f) { return !f.tried.useless(); });
  }

 private:
  CompiledFigures compiled(const Module& m) { return compiled_figures(a_.engine, m, a_.folder, what_.gpu, a_.gpu); }

  const OpenArgs& a_;
  const ModuleOverview& o_;
  const ToCompile what_;
};

int first_minute(const Run& run, const OpenArgs& a) {
  const Recording& r = run.modules[0];
  ModuleOverview o = module_overview(run, r, a.gpu, true);
  LookOptions options;
  options.frames = a.frames;
  std::vector<LookedAt> looked;
  if (o.last) {
    looked = looked_at(a.folder);
    if (looked.size() == 1)
      options.measured = measured_of(o, looked, measured_runs({a.profile, a.profile_device}, run.folder, looked));
  }
  if (a.tries) options.tried = [&](std::vector<ModuleFinding>* all) { Trying(a, r, o).run(all); };
  print_look(first_look(o, options), a.folder);
  fmt::print("\n");
  if (!r.other_files.empty()) fmt::print("also {}\n", counted(r.other_files));
  print_complaints(run);
  const std::string folder = shell_word(a.folder);
  fmt::print("next: hlo-replay summary {} --by=line; memory {}\n", folder, folder);
  if (o.last && !o.cost.kernels.empty())
    fmt::print("      hlo-replay explain {} {}    where the most expensive kernel comes from\n", folder,
               shell_word(printable(std::string(o.last->inst_name(o.cost.kernels[0].inst)))));
  fmt::print("      hlo-replay open {} --stages; view {}; bisect {}\n", folder, folder, folder);
  return kYes;
}

int open_json(const Run& run, const OpenArgs& a) {
  std::vector<ModuleOverview> all = run_overview(run, a.gpu);
  std::vector<LookedAt> looked;
  std::vector<MeasuredRun> measured;
  if (std::any_of(all.begin(), all.end(), [](const ModuleOverview& o) { return o.last != nullptr; }))
    looked = looked_at(a.folder), measured = measured_runs({a.profile, a.profile_device}, run.folder, looked);
  Json modules = Json::array();
  for (const Recording& r : run.modules) {
    modules.push_back(Json::parse(recording_json(r)));
    Json& j = modules.back();
    for (const char* key : {"missing", "problems"}) j.emplace(key, Json::array());
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k].recording == &r) {
        j["overview"] = overview_json(all[k], worth_looking(all, k), measured_of(all[k], looked, measured));
        j["findings"] = Json::array();
        if (!all[k].last) continue;
        Provenance stages(r, *all[k].last);
        std::vector<ModuleFinding> found = module_findings(all[k], stages);
        if (a.tries) Trying(a, r, all[k]).run(&found);
        j["findings"] = findings_json(*all[k].last, found);
      }
  }
  Json order = Json::array();
  for (const ModuleOverview& o : all) order.push_back(o.selector);
  print_json({{"folder", run.folder},
              {"look_first", order},
              {"modules", modules},
              {"graphs", Json::array()},
              {"entries", Json::array()}});
  return kYes;
}

}  // namespace

int cmd_open(const OpenArgs& a) {
  if (!a.gpu.empty()) named_target(a.gpu);
  if (a.stages && (a.tries || a.frames)) fail(FailureKind::kUsage, "--stages goes with neither --try nor --frames");
  if (a.engine.installed() && !a.tries) fail(FailureKind::kUsage, "--engine goes with --try");
  if (holds_a_log(a.folder)) return open_log(a.folder, a.json);
  Run run;
  try {
    run.modules = select_modules(a.folder);
  } catch (const Failure&) {
    if (open_graph_folder(a.folder, a.json) || open_held_folder(a.folder, a.json)) return kYes;
    throw;
  }
  run.folder = split_selector(a.folder)->folder;
  if (run.modules.size() == 1 || a.stages || a.json)
    for (Recording& r : run.modules) count_changes(&r);
  if (a.json) return open_json(run, a);
  if (a.stages) {
    for (const Recording& r : run.modules) print_stages(r);
    print_complaints(run);
    return kYes;
  }
  if (run.modules.size() > 1 && (a.tries || a.frames))
    fail(FailureKind::kUsage, "{} holds {} modules; --try and --frames are of one: {}:MODULE", a.folder,
         run.modules.size(), a.folder);
  if (run.modules.size() > 1) return open_index(run, a);
  return first_minute(run, a);
}

}  // namespace hlo
