// memory --stages and --try: the peak stage by stage, and levers compiled to see which makes it less.
#include <algorithm>

#include "ir/print/print.h"
#include "ir/program/buffer.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/cost/memory_parts.h"
#include "replay/cli/engine.h"
#include "replay/os/interrupt.h"
#include "replay/os/output_folder.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/report/levers/memory_levers.h"

namespace hlo {

namespace {

// Of stages with a schedule, or of those without one.
void print_changes(const std::vector<StagePeak>& stages, const std::vector<PeakChange>& changes, bool scheduled,
                   size_t most) {
  size_t shown = 0, all = 0;
  for (const PeakChange& c : changes) all += stages[c.after].scheduled == scheduled;
  if (!all) return;
  fmt::print("  {}\n", scheduled
                           ? "by the stage's own order:"
                           : "without a schedule, an estimate: every instruction writes its result, in the one of "
                             "XLA's three orders\n  that needs the least. What fusion takes away again is "
                             "here as a rise:");
  fmt::print("  {:>12} {:>11} {:>11}  pass\n", "", "before", "after");
  for (const PeakChange& c : changes) {
    const StagePeak &x = stages[c.before], &y = stages[c.after];
    if (y.scheduled != scheduled || shown++ >= most) continue;
    fmt::print("  {:>12} {:>11} {:>11}  {}{}\n", (c.bytes > 0 ? "+" : "-") + human_bytes(std::abs(c.bytes)),
               (x.scheduled ? "" : "~") + human_bytes(x.bytes), (y.scheduled ? "" : "~") + human_bytes(y.bytes),
               printable(y.pass.empty() ? y.stage : y.pass), y.pass.empty() ? "" : "  (" + printable(y.stage) + ")");
  }
  if (shown > most) fmt::print("  … and {} more (--most)\n", shown - most);
}

}  // namespace

Json tell_stage_peaks(const std::vector<StagePeak>& stages, size_t most, bool print) {
  const std::vector<PeakChange> changes = peak_changes(stages);
  Json rows = Json::array(), list = Json::array();
  for (const StagePeak& s : stages)
    rows.push_back({{"stage", s.stage},
                    {"pass", s.pass},
                    {"bytes", s.bytes < 0 ? Json() : Json(s.bytes)},
                    {"scheduled", s.scheduled},
                    {"why_not", s.why_not}});
  for (const PeakChange& c : changes)
    list.push_back({{"pass", stages[c.after].pass},
                    {"stage", stages[c.after].stage},
                    {"before_bytes", stages[c.before].bytes},
                    {"after_bytes", stages[c.after].bytes},
                    {"estimate", !stages[c.after].scheduled}});
  if (!print) return {{"stages", rows}, {"changes", list}};
  size_t known = 0, unscheduled = 0;
  for (const StagePeak& s : stages) known += s.bytes >= 0, unscheduled += s.bytes >= 0 && !s.scheduled;
  fmt::print(
      "bytes alive at once, stage by stage, as XLA counts them to choose an order (no assignment of buffers):\n");
  if (unscheduled) fmt::print("  {} of {} stages have no schedule\n", unscheduled, known);
  print_changes(stages, changes, true, most);
  print_changes(stages, changes, false, most);
  if (changes.empty()) fmt::print("  no pass changed it\n");
  if (!stages.empty() && stages.back().bytes >= 0)
    fmt::print("  {} at {}\n", human_bytes(stages.back().bytes), printable(stages.back().stage));
  for (const StagePeak& s : stages)
    if (s.bytes < 0) fmt::print("  {}: unknown: {}\n", printable(s.stage), printable(s.why_not));
  return {{"stages", rows}, {"changes", list}};
}

namespace {

constexpr const char* kOurs = "our passes";

struct TriedLever {
  const MemoryLever* lever;
  bool compiled = false;
  CompiledFigures figures;
  std::string why_not;
  std::string file;  // the changed module, below --out; empty: there is none
};

bool has_pass(const std::vector<Step>& steps, const std::string& pass) {
  const PassInfo* known = find_pass(pass);
  return known && known->run && std::any_of(steps.begin(), steps.end(), [&](const Step& s) {
           return find_pass(s.name) == known || has_pass(s.children, pass);
         });
}

Json lever_json(const TriedLever& t, const CompiledFigures& as_is) {
  const MemoryLever& v = *t.lever;
  auto bytes = [&](double b) { return t.compiled ? Json(std::llround(b)) : Json(); };
  return {{"kind", v.kind},
          {"what", v.words},
          {"how", v.how},
          {"source", v.source},
          {"foretold_bytes", v.foretold < 0 ? Json() : Json(v.foretold)},
          {"compiled", t.compiled},
          {"allocated_before", bytes(as_is.bytes)},
          {"allocated_after", bytes(t.figures.bytes)},
          {"seconds_before", t.compiled ? Json(as_is.seconds) : Json()},
          {"seconds_after", t.compiled ? Json(t.figures.seconds) : Json()},
          {"helps", t.compiled ? Json(t.figures.bytes < 0.995 * as_is.bytes) : Json()},
          {"file", t.file},
          {"why_not", t.why_not}};
}

void print_tried(const std::vector<TriedLever>& tried, const CompiledFigures& as_is, const std::string& by,
                 const Target& target, const MemoryReport& r) {
  fmt::print("tried: each change compiled by {}, {} as it is\n", printable(by), human_bytes(std::llround(as_is.bytes)));
  if (std::abs(as_is.bytes - static_cast<double>(r.allocated)) > 0.1 * static_cast<double>(r.allocated))
    fmt::print("note: the dump's own compilation allocates {}: these figures are of another one{}\n",
               human_bytes(r.allocated), by == kOurs ? "; --engine=installed has an XLA compile them" : "");
  size_t useless = 0;
  for (const TriedLever& t : tried) {
    if (!t.compiled) continue;
    const double less = as_is.bytes - t.figures.bytes;
    if (t.figures.bytes >= 0.995 * as_is.bytes) {
      ++useless;
      continue;
    }
    const bool fits = does_not_fit(std::llround(t.figures.bytes), target).empty() &&
                      !does_not_fit(std::llround(as_is.bytes), target).empty();
    fmt::print("  {:>11} less, {} left{}{}: {}\n", human_bytes(std::llround(less)),
               human_bytes(std::llround(t.figures.bytes)), fits ? ", which fits" : "",
               as_is.seconds > 0 ? fmt::format(", time {:+.1f} %", 100 * (t.figures.seconds / as_is.seconds - 1)) : "",
               printable(t.lever->words));
    if (t.lever->foretold >= 0) fmt::print("  {:>11} predicted at most\n", human_bytes(t.lever->foretold));
    fmt::print("  {:>11} {}{}\n", "", printable(t.lever->how), t.file.empty() ? "" : "; " + t.file);
  }
  if (useless) {
    fmt::print("  {} of them make it no less:\n", useless);
    for (const TriedLever& t : tried)
      if (t.compiled && t.figures.bytes >= 0.995 * as_is.bytes)
        fmt::print("    {:>11}  {}\n", human_bytes(std::llround(t.figures.bytes)), printable(t.lever->words));
  }
  for (const TriedLever& t : tried)
    if (!t.compiled) fmt::print("  not tried: {}: {}\n", printable(t.lever->words), printable(t.why_not));
}

}  // namespace

Json try_levers(const MemoryArgs& a, LookedAt& l, const MemoryReport& r, const Target& target,
                const std::vector<StagePeak>& stages, bool print) {
  bool helps = false;
  if (!l.recording)
    fail(FailureKind::kUsage, "--try goes with a folder of stages, whose first one is changed; {} is a file", a.file);
  const ToCompile what = to_compile(a.engine, *l.recording, target);
  Json out = {{"by", a.engine.installed() ? a.engine.engine + ", " + a.engine.target : std::string(kOurs)},
              {"why_not", what.why_not},
              {"allocated_bytes", nullptr},
              {"levers", Json::array()}};
  if (!what.why_not.empty()) {
    if (print) fmt::print("nothing tried: {}\n", printable(what.why_not));
    return out;
  }
  ModuleOverview o = module_overview(*l.recording, std::move(l.module), l.stage, target);
  o.memory = r;
  const std::vector<MemoryLever> levers = memory_levers(o, *what.first, stages, a.engine.installed());
  std::optional<OutputFolder> folder;
  if (!a.out.empty()) folder.emplace(a.out, a.force, "memory", std::vector<std::string>{a.file});
  std::optional<Progress> progress(std::in_place, "trying what may need less memory");
  progress->at(0, levers.size() + 1, "as it is");
  const CompiledFigures as_is = compiled_figures(a.engine, *what.first, a.file, what.gpu, a.gpu);
  std::vector<TriedLever> tried;
  for (const MemoryLever& lever : levers) {
    TriedLever t{&lever, false, {}, lever.why_not, ""};
    for (const std::string& pass : lever.disabled)
      if (!a.engine.installed() && !has_pass(*find_pipeline("xla-gpu"), pass))
        t.why_not = "our passes have no code for it; --engine=installed has XLA leave it out";
    progress->at(tried.size() + 1, levers.size() + 1, lever.kind);
    if (folder && lever.module) {
      t.file = fmt::format("{}.hlo", tried.size() + 1);
      folder->write(t.file, lossless_text(*lever.module));
    }
    if (t.why_not.empty()) try {
        t.figures = compiled_figures(a.engine, lever.module ? *lever.module : *what.first, a.file, what.gpu, a.gpu,
                                     lever.disabled, lever.flags);
        t.compiled = true;
        helps |= t.figures.bytes < 0.995 * as_is.bytes;
      } catch (const Failure& e) {
        if (interrupted()) throw;
        t.why_not = "it cannot be compiled: " + first_line(e.what());
      }
    tried.push_back(std::move(t));
  }
  progress.reset();
  if (folder) folder->commit();
  std::stable_sort(tried.begin(), tried.end(), [](const TriedLever& x, const TriedLever& y) {
    if (x.compiled != y.compiled) return x.compiled;
    return x.figures.bytes < y.figures.bytes;
  });
  out["allocated_bytes"] = std::llround(as_is.bytes);
  for (const TriedLever& t : tried) out["levers"].push_back(lever_json(t, as_is));
  if (print) {
    print_tried(tried, as_is, out["by"].get<std::string>(), target, r);
    if (levers.empty())
      fmt::print("  there is nothing to try: no lever is known here\n");
    else if (!helps)
      fmt::print("  none of these makes it less\n");
  }
  l.module = std::move(o.last);
  return out;
}

}  // namespace hlo
