// compile-time: what the time of a compilation went into, by pass and behind HLO, from dumps and logs.
#include <algorithm>
#include <filesystem>
#include <map>

#include "ir/program/buffer.h"
#include "replay/cli/command.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/report/compile/compile_time.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace {

constexpr size_t kShownParts = 8;
constexpr CompilePhase kBehindHlo[] = {CompilePhase::kEmission, CompilePhase::kLlvm, CompilePhase::kAssembler,
                                       CompilePhase::kOther};

struct AskedTimes {
  std::vector<CompileTime> modules;
  std::vector<std::string> selectors;  // behind DIR:, one a module; empty: not of a dump
  std::vector<std::string> problems;
};

Json seconds_json(double s) { return s < 0 ? Json() : Json(s); }

Json told_json(double seconds, const std::string& from) {
  return {{"seconds", seconds_json(seconds)}, {"from", seconds < 0 ? Json() : Json(from)}};
}

Json compilation_json(const CompileTime& t, const std::string& selector) {
  Json parts = Json::array(), slow = Json::array(), kernels = Json::array();
  for (const CompilePart& p : t.parts)
    parts.push_back({{"phase", phase_name(p.phase)},
                     {"name", p.name},
                     {"seconds", p.seconds},
                     {"runs", p.runs},
                     {"autotuning", p.phase == CompilePhase::kPass && is_autotuning_pass(p.name)},
                     {"from", p.from}});
  for (const LogAlarm& a : t.slow)
    slow.push_back(
        {{"what", a.what}, {"seconds", seconds_json(a.seconds)}, {"at_least", a.at_least}, {"line", a.line}});
  for (const KernelCode& k : t.kernels)
    kernels.push_back(
        {{"kernel", k.kernel}, {"file", k.file}, {"bytes", k.bytes}, {"ptxas_seconds", seconds_json(k.assembler)}});
  return {{"module", t.module},
          {"selector", selector},
          {"number", t.number ? Json(*t.number) : Json()},
          {"line", t.line ? Json(t.line) : Json()},
          {"total", told_json(t.total, t.total_from)},
          {"passes", told_json(t.passes, t.passes_from)},
          {"behind", told_json(t.behind, t.behind_from)},
          {"autotuning_seconds", seconds_json(t.autotuning())},
          {"tracing_seconds", seconds_json(t.tracing)},
          {"lowering_seconds", seconds_json(t.lowering)},
          {"parts", parts},
          {"slow", slow},
          {"kernels", kernels},
          {"notes", t.notes},
          {"not_told", not_told_of(t)}};
}

bool tells_a_time(const CompileTime& t) {
  return t.total >= 0 || t.passes >= 0 || t.behind >= 0 || !t.parts.empty() || !t.slow.empty();
}

// Compilations of one name are one and the same where the dump and the log have as many of it.
void join_log(std::vector<CompileTime>* dump, std::vector<CompileTime> log, std::vector<CompileTime>* left,
              std::vector<std::string>* problems) {
  std::map<std::string, std::vector<size_t>> ours, theirs;
  for (size_t k = 0; k < dump->size(); ++k) ours[module_of_jax_name((*dump)[k].module)].push_back(k);
  for (size_t k = 0; k < log.size(); ++k) theirs[module_of_jax_name(log[k].module)].push_back(k);
  for (const auto& [name, all] : theirs) {
    const auto own = ours.find(name);
    if (own == ours.end() || own->second.size() != all.size()) {
      if (own != ours.end())
        problems->push_back(fmt::format("the log has {} compilation{} of {}, the dump holds {}: they are not joined",
                                        all.size(), all.size() == 1 ? "" : "s", log[all[0]].module,
                                        own->second.size()));
      for (size_t k : all) left->push_back(std::move(log[k]));
      continue;
    }
    for (size_t k = 0; k < all.size(); ++k)
      (*dump)[own->second[k]] = joined_times((*dump)[own->second[k]], log[all[k]]);
  }
}

AskedTimes times_of_dump(const CompileTimeArgs& a, const std::string& log) {
  AskedTimes out;
  const std::vector<Recording> asked = select_modules(a.what);
  const std::optional<Selector> parts = split_selector(a.what);
  Run run = open_run(parts ? parts->folder : a.what);
  std::vector<CompileTime> all, left;
  for (const Recording& r : run.modules) all.push_back(compile_time(r));
  if (!log.empty()) join_log(&all, compile_times(read_log(log), read_jax_log(log)), &left, &out.problems);
  for (size_t k = 0; k < all.size(); ++k) {
    const Recording& r = run.modules[k];
    if (std::none_of(asked.begin(), asked.end(), [&](const Recording& m) {
          return m.folder == r.folder && m.module_name == r.module_name && m.module_number == r.module_number;
        }))
      continue;
    out.modules.push_back(std::move(all[k]));
    out.selectors.push_back(run.modules.size() > 1 ? module_selector(run, r) : "");
  }
  if (asked.size() == run.modules.size())
    for (CompileTime& t : left) out.modules.push_back(std::move(t)), out.selectors.emplace_back();
  return out;
}

std::string share_of(double part, double whole) {
  return part >= 0 && whole > 0 ? fmt::format("{:>4.0f} %", 100 * part / whole) : "      ";
}

void print_row(const char* what, double seconds, double total, const std::string& from) {
  if (seconds < 0)
    fmt::print("  {:<22} {:>10}\n", what, "unknown");
  else
    fmt::print("  {:<22} {:>10} {}  {}\n", what, time_text(seconds), share_of(seconds, total), printable(from));
}

void print_parts(const CompileTime& t, CompilePhase phase) {
  size_t shown = 0, more = 0, left = 0;
  for (const CompilePart& p : t.parts) {
    if (p.phase != phase || p.name.empty()) continue;
    if (shown == kShownParts) {
      ++left, more += p.runs;
      continue;
    }
    ++shown;
    const bool tuning = phase == CompilePhase::kPass && is_autotuning_pass(p.name);
    fmt::print("    {:>10}  {}{}{}\n", time_text(p.seconds), printable(p.name),
               p.runs == 1 ? "" : fmt::format(", {} runs", p.runs), tuning ? ": autotuning" : "");
  }
  if (left) fmt::print("    … and {} more (--json has all)\n", left);
}

void print_behind(const CompileTime& t) {
  for (CompilePhase phase : kBehindHlo) {
    const double sum = t.of(phase);
    if (sum < 0) continue;
    size_t runs = 0;
    for (const CompilePart& p : t.parts)
      if (p.phase == phase) runs += p.runs;
    fmt::print("    {:>10}  {}{}\n", time_text(sum), phase_in_words(phase),
               runs == 1 ? "" : fmt::format(": {} runs, the times of threads added up", runs));
    print_parts(t, phase);
  }
}

void print_compilation(const CompileTime& t, const std::string& selector) {
  const std::string name = t.module.empty() ? "a module that is not named" : printable(t.module);
  fmt::print("{}{}: {}\n", selector.empty() || selector == t.module ? "" : printable(selector) + " ", name,
             t.total < 0 ? "how long it took to compile is unknown"
                         : fmt::format("compiled in {} ({})", time_text(t.total), printable(t.total_from)));
  if (t.tracing >= 0 || t.lowering >= 0)
    fmt::print("  before it jax's{}{}{}\n", t.tracing < 0 ? "" : fmt::format(" tracing {}", time_text(t.tracing)),
               t.tracing >= 0 && t.lowering >= 0 ? "," : "",
               t.lowering < 0 ? "" : fmt::format(" lowering {}", time_text(t.lowering)));
  print_row("HLO passes", t.passes, t.total, t.passes_from);
  print_parts(t, CompilePhase::kPass);
  if (t.of(CompilePhase::kCandidate) >= 0) {
    fmt::print("    of these, kernels that the autotuner tries:\n");
    print_parts(t, CompilePhase::kCandidate);
  }
  print_row("below HLO", t.behind, t.total, t.behind_from);
  print_behind(t);
  if (t.total >= 0 && t.passes >= 0 && t.behind >= 0 && t.total - t.passes - t.behind > 0.01 * t.total)
    print_row("around these", t.total - t.passes - t.behind, t.total, "loading, dumping, what no line records");
  for (const LogAlarm& s : t.slow)
    fmt::print("  slow (line {}): {}{}\n", s.line, printable(s.what),
               s.seconds >= 0   ? fmt::format(": {}", time_text(s.seconds))
               : s.at_least > 0 ? fmt::format(": more than {}", time_text(s.at_least))
                                : ", and no line says that it ended");
  if (!t.kernels.empty()) fmt::print("  longest code:\n");
  std::vector<const KernelCode*> by_size;
  for (const KernelCode& k : t.kernels) by_size.push_back(&k);
  std::stable_sort(by_size.begin(), by_size.end(), [](auto* x, auto* y) { return x->bytes > y->bytes; });
  for (size_t k = 0; k < by_size.size() && k < 3; ++k)
    fmt::print("    {:>10}  {} ({})\n", human_bytes(by_size[k]->bytes), printable(by_size[k]->kernel),
               printable(by_size[k]->file));
  for (const std::string& note : t.notes) fmt::print("  note: {}\n", printable(note));
  for (const std::string& what : not_told_of(t)) fmt::print("  not recorded: {}\n", what);
}

int tell_compile_times(const std::string& label, std::vector<CompileTime> modules,
                       const std::vector<std::string>& selectors, const std::vector<std::string>& problems,
                       const CompileTimeArgs& a) {
  std::vector<size_t> order(modules.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  auto longest = [&](size_t k) { return std::max(modules[k].total, std::max(modules[k].passes, modules[k].behind)); };
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return longest(x) > longest(y); });
  const bool any = std::any_of(modules.begin(), modules.end(), tells_a_time);
  auto selector = [&](size_t k) { return k < selectors.size() ? selectors[k] : std::string(); };
  if (a.json) {
    Json all = Json::array();
    for (size_t k : order) all.push_back(compilation_json(modules[k], selector(k)));
    print_json({{"file", label}, {"told", any}, {"modules", all}, {"problems", problems}});
    return any ? kYes : kNo;
  }
  for (size_t k = 0; k < order.size() && k < a.most; ++k) print_compilation(modules[order[k]], selector(order[k]));
  if (order.size() > a.most) fmt::print("… and {} modules more (--most)\n", order.size() - a.most);
  for (const std::string& p : problems) fmt::print("note: {}\n", printable(p));
  if (!any) fmt::print("nothing records the time of a compilation\n");
  return any ? kYes : kNo;
}

}  // namespace

int compile_time_of_log(const std::string& label, const std::string& text, const CompileTimeArgs& a) {
  return tell_compile_times(label, compile_times(read_log(text), read_jax_log(text)), {}, {}, a);
}

int cmd_compile_time(const CompileTimeArgs& a) {
  const std::string log = a.log.empty() ? "" : read_file(a.log);
  if (a.what != "-" && names_modules(a.what)) {
    AskedTimes asked = times_of_dump(a, log);
    return tell_compile_times(a.what, std::move(asked.modules), asked.selectors, asked.problems, a);
  }
  if (!a.log.empty()) fail(FailureKind::kUsage, "--log goes with a dump; {} is none", a.what);
  const std::string text = read_file(a.what);
  if (text.find('\0') != std::string::npos || (text.find("HloModule ") != std::string::npos && !is_log(text)))
    fail(FailureKind::kUsage, "{} is neither a dump nor a log: a module by itself has no times", a.what);
  return compile_time_of_log(a.what, text, a);
}

}  // namespace hlo
