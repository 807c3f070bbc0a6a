// explain: the history of an instruction, what kept two apart, what a pass did.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "ir/query/find_instruction.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/file_kind.h"
#include "replay/record/files/run.h"
#include "replay/record/recording/import.h"
#include "replay/report/explain/explain.h"
#include "replay/report/explain/why_made.h"
#include "replay/report/kernels/tuned.h"
#include "replay/report/measured/profile.h"
#include "replay/report/overview/answers.h"

namespace hlo {
namespace {

// Of several modules the only one that has it; refused where more than one does.
History history_of_one(const ExplainArgs& a, std::vector<Recording>& all) {
  std::optional<History> found;
  std::vector<std::string> holders;
  std::optional<Failure> missing;
  for (Recording& r : all) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    try {
      found = history(r, a.instruction);
      holders.push_back(fmt::format("{}:{:04}  {}", a.file, r.module_number, printable(r.module_name)));
    } catch (const Failure& e) {
      if (e.kind() != FailureKind::kUsage) throw;
      missing = e;
    }
  }
  if (holders.size() > 1)
    fail(FailureKind::kUsage, "{} modules have an instruction '{}'; name one of them:\n  {}", holders.size(),
         a.instruction, fmt::join(holders, "\n  "));
  if (!found) throw *missing;
  return std::move(*found);
}

bool has_instruction(std::vector<Recording>& all, std::string name) {
  if (name.starts_with('%')) name.erase(0, 1);
  return std::any_of(all.begin(), all.end(), [&](Recording& r) {
    Meeting m = meeting(r, name, name);
    return m.first;
  });
}

// A computation by name, where no instruction has it. Nothing where no module has one.
std::optional<int> explain_computation(const ExplainArgs& a, std::vector<Recording>& all) {
  std::vector<std::pair<const Recording*, ComputationStory>> found;
  for (Recording& r : all) {
    ComputationStory s;
    if (computation_story(r, a.instruction, &s)) found.emplace_back(&r, std::move(s));
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    std::vector<std::string> holders;
    for (const auto& [r, s] : found)
      holders.push_back(fmt::format("{}:{:04}  {}", a.file, r->module_number, printable(r->module_name)));
    fail(FailureKind::kUsage, "{} modules have a computation '{}'; name one of them:\n  {}", found.size(),
         a.instruction, fmt::join(holders, "\n  "));
  }
  const ComputationStory& s = found[0].second;
  if (a.json) {
    Json holds = Json::array();
    for (const auto& h : s.holds) holds.push_back({{"instruction", h.text}, {"origin", h.origin}});
    print_json({{"computation", s.name},
                {"stage", s.stage},
                {"made_by", s.made_by},
                {"called_by", s.callers},
                {"holds", holds},
                {"thunks", s.thunks}});
    return kYes;
  }
  fmt::print("computation {} (in {})\n", printable(s.name), s.stage);
  fmt::print("{}\n", s.made_by.empty() ? "is there from the start" : "made by " + s.made_by);
  for (const std::string& line : s.callers) fmt::print("called by: {}\n", printable(line));
  if (s.callers.empty()) fmt::print("called by: nothing; it is the entry, or no longer called\n");
  fmt::print("holds {} instructions:\n", s.holds.size());
  for (const auto& h : s.holds)
    fmt::print("  {}{}\n", printable(h.text), h.origin.empty() ? "" : "   (" + printable(h.origin) + ")");
  for (const std::string& line : s.thunks) fmt::print("thunk: {}\n", printable(line));
  return kYes;
}

struct TimeOfOne {
  double seconds = 0, share = 0;  // of all its spans; of all that is counted
  size_t calls = 0;
  std::string kernel;   // the instruction that has the time; empty: none of the names has any
  std::string why_not;  // the profile is of another compilation
};

// Of the first of these names that has some. Kernels of a device are joined to the modules; a trace that names its
// instructions itself, and a table of kernels, is asked by name.
TimeOfOne time_of_one(const ExplainArgs& a, const std::vector<std::string>& names) {
  TimeOfOne out;
  const std::vector<LookedAt> all = looked_at(a.file);
  const std::string text = read_file(a.trace);
  if (file_kind(a.trace, text) != FileKind::kTable) {
    const MeasuredTimes times(ProfileChoice{a.trace, ""}, all);
    bool devices = false;
    for (size_t which = 0; which < all.size(); ++which) {
      const Measured& m = *times.joined(which);
      devices |= !m.devices.empty();
      if (!m.modules[which].another_compilation.empty()) out.why_not = m.modules[which].another_compilation;
    }
    for (const std::string& name : names)
      for (size_t which = 0; out.kernel.empty() && which < all.size(); ++which) {
        const Measured& m = *times.joined(which);
        auto at = m.modules[which].by_name.find(name);
        if (at == m.modules[which].by_name.end()) continue;
        const MeasuredOp* op = m.find(which, at->second);
        if (op) out = TimeOfOne{op->seconds, op->seconds / std::max(m.named, 1e-300), op->calls, name, ""};
      }
    if (!out.kernel.empty() || !out.why_not.empty() || devices) return out;
  }
  TraceTimes times = read_trace(text, a.trace);
  for (const std::string& name : names)
    if (out.kernel.empty() && !name.empty() && time_of(times, name, &out.seconds, &out.calls)) out.kernel = name;
  out.share = times.all > 0 ? out.seconds / times.all : 0;
  return out;
}

int explain_instruction(const ExplainArgs& a, std::vector<Recording>& all) {
  if (!has_instruction(all, a.instruction))
    if (std::optional<int> code = explain_computation(a, all)) return *code;
  History h = history_of_one(a, all);
  // The kernel is named after what the instruction ended as, or after the fusion that took it.
  std::vector<std::string> names{a.instruction};
  for (const HistoryEvent& e : h.events) names.push_back(e.name);
  names.push_back(h.fusion);
  std::reverse(names.begin(), names.end());
  const TimeOfOne time = a.trace.empty() ? TimeOfOne() : time_of_one(a, names);
  const auto& [seconds, share, calls, kernel, why_not] = time;
  const std::optional<Selector> parts = split_selector(a.file);
  const std::vector<std::string> chosen = choice_in_words(parts ? parts->folder : a.file, all, names);
  if (a.json) {
    Json j = history_json(h);
    j["chosen"] = chosen;
    j["time"] = Json();
    if (!a.trace.empty())
      j["time"] =
          kernel.empty() ? Json() : Json{{"name", kernel}, {"seconds", seconds}, {"calls", calls}, {"share", share}};
    print_json(j);
    return kYes;
  }
  for (const HistoryEvent& e : h.events) {
    fmt::print("{}: {}{}\n", e.stage, e.what,
               e.rules.empty() ? "" : fmt::format(" (rule {})", fmt::join(e.rules, ", ")));
    if (!e.before.empty()) fmt::print("  - {}\n", e.before);
    if (!e.after.empty()) fmt::print("  + {}\n", e.after);
  }
  for (const std::string& line : h.reasons) fmt::print("why: {}\n", printable(line));
  if (!h.source.empty()) fmt::print("source: {}\n", h.source);
  if (a.frames) print_frames(h.stack);
  for (const std::string& line : h.buffers) fmt::print("buffer: {}\n", line);
  for (const std::string& line : h.thunks) fmt::print("thunk: {}\n", line);
  for (const std::string& line : chosen) fmt::print("chosen: {}\n", printable(line));
  if (!a.trace.empty())
    fmt::print("time: {}\n", !why_not.empty() ? why_not
                             : kernel.empty() ? "the trace names neither it nor what took it"
                                              : fmt::format("{:.3f} ms in {} call(s) of {}, {:.1f} % of the trace",
                                                            seconds * 1e3, calls, kernel, 100 * share));
  for (const std::string& f : h.unread) fmt::print("not readable: {}\n", f);
  return kYes;
}

int explain_pair(const ExplainArgs& a, std::vector<Recording>& all) {
  bool known[2] = {false, false};
  std::string near[2], meet;
  for (Recording& r : all) {
    Meeting m = meeting(r, a.why_not[0], a.why_not[1]);
    known[0] |= m.first, known[1] |= m.second;
    if (near[0].empty()) near[0] = m.near_first;
    if (near[1].empty()) near[1] = m.near_second;
    if (m.first && m.second && meet.empty()) meet = m.text;
  }
  for (int k = 0; k < 2; ++k)
    if (!known[k])
      fail(FailureKind::kUsage, "no stage of {} has an instruction '{}'{}", a.file, a.why_not[static_cast<size_t>(k)],
           did_you_mean(near[k]));
  PairDecisions found;
  for (Recording& r : all) {
    PairDecisions one = why_not_fused(r, a.why_not[0], a.why_not[1]);
    if (!one.last.empty()) found.last = std::move(one.last);
    found.dumped |= one.dumped;
    std::move(one.lines.begin(), one.lines.end(), std::back_inserter(found.lines));
  }
  const bool none = found.lines.empty();
  if (a.json) {
    print_json({{"first", a.why_not[0]},
                {"second", a.why_not[1]},
                {"last", found.last},
                {"decisions", found.lines},
                {"meet", meet}});
    return none ? kNo : kYes;
  }
  if (!found.last.empty()) fmt::print("{}\n", printable(found.last));
  if (a.raw || found.last.empty())
    for (const std::string& line : found.lines) fmt::print("{}\n", printable(line));
  else if (found.lines.size() > 1)
    fmt::print("({} decisions about them are recorded; --raw prints them)\n", found.lines.size());
  if (!none) return kYes;
  if (!meet.empty()) {
    fmt::print("no decision about {} and {}: {}\n", a.why_not[0], a.why_not[1], meet);
    return kNo;
  }
  const char* advice = "";
  if (found.dumped)
    advice = "; the folder's priority_fusion_dump names no step of these two";
  else if (all[0].source == "xla")
    advice =
        "; XLA writes its decisions with --xla_dump_fusion_visualization or --xla_gpu_dump_llvmir "
        "(priority_fusion_dump)";
  fmt::print("no decision about {} and {} is recorded{}\n", a.why_not[0], a.why_not[1], advice);
  return kNo;
}

int explain_pass(const ExplainArgs& a, std::vector<Recording>& all) {
  Json list = Json::array();
  for (Recording& r : all) {
    if (r.source == "xla" && r.pipeline != "graphs") r.lineage();  // the counts of its stages
    for (const PassWork& w : pass_work(r, a.pass)) {
      Json rules = Json::object();
      for (const auto& [rule, n] : w.rules) rules[rule] = n;
      list.push_back({{"stage", w.stage},
                      {"changed", w.changed},
                      {"implemented", w.implemented},
                      {"added", w.added},
                      {"removed", w.removed},
                      {"modified", w.modified},
                      {"rules", rules}});
      if (a.json) continue;
      fmt::print("{}: {}\n", w.stage,
                 !w.implemented ? "not implemented"
                 : w.changed    ? fmt::format("{} new, {} gone, {} changed", w.added, w.removed, w.modified)
                                : "nothing");
      for (const auto& [rule, n] : w.rules) fmt::print("  {:>6} × {}\n", n, rule);
    }
  }
  if (a.json) print_json({{"pass", a.pass}, {"runs", list}});
  if (list.empty()) fail(FailureKind::kUsage, "no run of a pass '{}' is recorded in {}", a.pass, a.file);
  return kYes;
}

}  // namespace

int cmd_explain(const ExplainArgs& a) {
  if (!a.instruction.empty() + !a.why_not.empty() + !a.pass.empty() != 1)
    fail(FailureKind::kUsage, "explain takes an INSTRUCTION, --why-not A B, or --pass P");
  std::vector<Recording> all = select_modules(a.file);
  if (!a.pass.empty()) return explain_pass(a, all);
  return a.why_not.empty() ? explain_instruction(a, all) : explain_pair(a, all);
}

}  // namespace hlo
