// memory --stages and --try: the peak stage by stage, and levers compiled to see which makes it less.
#include <algorithm>

#include "ir/buffer.h"
#include "replay/cli/engine.h"
#include "replay/cli/memory_parts.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/report/memory_levers.h"

namespace hlo {

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
  if (unscheduled)
    fmt::print(
        "  ~: {} of {} stages have no schedule. For these it is an estimate: every instruction writes its result, in "
        "the\n"
        "  one of XLA's three orders that needs the least\n",
        unscheduled, known);
  if (!changes.empty()) fmt::print("  {:>12} {:>11} {:>11}  pass\n", "", "before", "after");
  size_t shown = 0;
  for (const PeakChange& c : changes) {
    if (shown == most) break;
    const StagePeak &x = stages[c.before], &y = stages[c.after];
    fmt::print("  {:>12} {:>11} {:>11}  {}{}\n", (c.bytes > 0 ? "+" : "-") + human_bytes(std::abs(c.bytes)),
               (x.scheduled ? "" : "~") + human_bytes(x.bytes), (y.scheduled ? "" : "~") + human_bytes(y.bytes),
               printable(y.pass.empty() ? y.stage : y.pass), y.pass.empty() ? "" : "  (" + printable(y.stage) + ")");
    ++shown;
  }
  if (changes.size() > shown) fmt::print("  … and {} more (--most)\n", changes.size() - shown);
  if (changes.empty()) fmt::print("  no pass changed it\n");
  const auto peak =
      std::max_element(stages.begin(), stages.end(), [](const auto& x, const auto& y) { return x.bytes < y.bytes; });
  if (peak != stages.end() && peak->bytes >= 0) {
    const StagePeak& last = stages.back();
    if (last.bytes >= 0) fmt::print("  {} at {}\n", human_bytes(last.bytes), printable(last.stage));
  }
  for (const StagePeak& s : stages)
    if (s.bytes < 0) fmt::print("  {}: unknown: {}\n", printable(s.stage), printable(s.why_not));
  return {{"stages", rows}, {"changes", list}};
}

namespace {

struct TriedLever {
  const MemoryLever* lever;
  bool compiled = false;
  CompiledFigures figures;
  std::string why_not;
};

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
          {"why_not", t.why_not}};
}

void print_tried(const std::vector<TriedLever>& tried, const CompiledFigures& as_is, const std::string& by,
                 const Target& target) {
  fmt::print("tried: each change compiled by {}, {} as it is\n", by, human_bytes(std::llround(as_is.bytes)));
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
    if (t.lever->foretold >= 0) fmt::print("  {:>11} foretold at most\n", human_bytes(t.lever->foretold));
    fmt::print("  {:>11} {}\n", "", printable(t.lever->how));
  }
  if (useless) {
    fmt::print("  {} change{} nothing, or {} it more:\n", useless, useless == 1 ? "s" : "",
               useless == 1 ? "makes" : "make");
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
  Json out = {{"by", a.engine.installed() ? a.engine.engine + ", " + a.engine.target : "our passes"},
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
  std::optional<Progress> progress(std::in_place, "trying what may need less memory");
  progress->at(0, levers.size() + 1, "as it is");
  const CompiledFigures as_is = compiled_figures(a.engine, *what.first, a.file, what.gpu, a.gpu);
  std::vector<TriedLever> tried;
  for (const MemoryLever& lever : levers) {
    TriedLever t{&lever, false, {}, lever.why_not};
    progress->at(tried.size() + 1, levers.size() + 1, lever.kind);
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
  std::stable_sort(tried.begin(), tried.end(), [](const TriedLever& x, const TriedLever& y) {
    if (x.compiled != y.compiled) return x.compiled;
    return x.figures.bytes < y.figures.bytes;
  });
  out["allocated_bytes"] = std::llround(as_is.bytes);
  for (const TriedLever& t : tried) out["levers"].push_back(lever_json(t, as_is));
  if (print) {
    print_tried(tried, as_is, out["by"].get<std::string>(), target);
    if (levers.empty())
      fmt::print("  there is nothing to try: no lever is known here\n");
    else if (!helps)
      fmt::print("  none of these makes it less\n");
  }
  l.module = std::move(o.last);
  return out;
}

}  // namespace hlo
