// tuned: what XLA's autotuner chose, kernel by kernel, and what two dumps chose otherwise.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "parser/proto/tuning_results.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/kernels/tuned.h"

namespace hlo {
namespace {

Json config_json(const std::optional<TuningConfig>& c) {
  if (!c) return nullptr;
  std::optional<int64_t> parts = c->split_k();
  return {{"backend", c->backend},
          {"backend_in_words", c->backend_in_words()},
          {"tiles", c->tiles()},
          {"algorithm", c->algorithm()},
          {"split_k", parts ? Json(*parts) : Json(nullptr)},
          {"kind", c->kind},
          {"settings", Json(c->settings)},
          {"in_words", c->in_words()}};
}

Json choice_json(const TuningResults& f, const TuningChoice& c) {
  return {{"file", f.file},
          {"line", c.line},
          {"key", c.key},
          {"hlo", c.hlo},
          {"device", c.device},
          {"version", c.version},
          {"run_time_s", c.run_time < 0 ? Json(nullptr) : Json(c.run_time)},
          {"scratch_bytes", c.scratch_bytes < 0 ? Json(nullptr) : Json(c.scratch_bytes)},
          {"failure", c.failure},
          {"chosen", config_json(c.config)}};
}

Json module_json(const TunedModule& m) {
  Json kernels = Json::array();
  for (const TunedKernel& k : m.kernels)
    kernels.push_back(
        {{"instruction", k.name},
         {"became", k.became},
         {"key", k.key},
         {"op_name", k.op_name},
         {"chosen", config_json(k.chosen)},
         {"before", config_json(k.before)},
         {"result",
          k.result ? Json{{"file", k.file->file}, {"line", k.result->line}, {"agrees", k.agrees}} : Json(nullptr)}});
  return {{"module", m.selector}, {"name", m.name},     {"before_stage", m.before_stage},
          {"stage", m.stage},     {"kernels", kernels}, {"problem", m.problem}};
}

std::string in_words(const std::optional<TuningConfig>& c) {
  if (!c || c->backend == "UNSPECIFIED_BACKEND") return "unknown";
  const std::string how = c->in_words();
  return c->backend_in_words() + (how.empty() ? "" : ": " + how);
}

// What one side of the command line names.
struct TunedSide {
  std::string spec;
  std::vector<TuningResults> files;
  std::vector<TunedModule> modules;
  std::vector<std::string> problems;
  bool results_only = false;
};

std::vector<TuningResults> named_results(const std::vector<std::string>& names) {
  std::vector<TuningResults> out;
  for (const std::string& name : names) out.push_back(read_tuning_results(read_file(name), name));
  return out;
}

// Recordings are joined to the files that are named, else to those that lie with them; a module by itself tells only
// what it has.
void read_side(const std::string& spec, const TunedArgs& a, TunedSide* out) {
  out->spec = spec;
  std::error_code error;
  if (std::filesystem::is_regular_file(spec, error)) {
    const std::string name = std::filesystem::path(spec).filename().string();
    std::string bytes = read_file(spec);
    if (name.find("autotune_results") != std::string::npos || looks_like_tuning_results(bytes)) {
      out->files.push_back(read_tuning_results(bytes, spec)), out->results_only = true;
      return;
    }
  }
  out->files = named_results(a.results);
  if (!names_modules(spec)) {
    for (LookedAt& l : looked_at(spec)) {
      l.load();
      TunedModule m = tuned_module(nullptr, *l.module, out->files);
      m.stage = l.stage;
      out->modules.push_back(std::move(m));
    }
    return;
  }
  Run run;
  run.modules = select_modules(spec);
  const std::optional<Selector> parts = split_selector(spec);
  run.folder = parts ? parts->folder : spec;
  if (a.results.empty()) out->files = tuning_files(run.folder, run.modules, &out->problems);
  for (const Recording& r : run.modules) {
    TunedModule m;
    try {
      m = tuned_module(r, out->files);
    } catch (const Failure& e) {
      if (run.modules.size() == 1 || interrupted()) throw;
      m.name = r.module_name, m.problem = first_line(e.what());
      out->problems.push_back(fmt::format("{}: {}", r.module_name, m.problem));
    }
    m.selector = run.modules.size() > 1 ? module_selector(run, r) : "";
    out->modules.push_back(std::move(m));
  }
}

void print_not_understood(const TuningResults& f) {
  for (const auto& [name, count] : f.not_understood)
    fmt::print("not understood: {} ({} time{})\n", printable(name), count, count == 1 ? "" : "s");
}

void print_results(const TuningResults& f, size_t most) {
  fmt::print("{}: {} choice{}, {}{}\n", printable(f.file), f.choices.size(), f.choices.size() == 1 ? "" : "s", f.form,
             f.version ? fmt::format(" of version {}", f.version) : "");
  size_t shown = 0;
  for (const TuningChoice& c : f.choices) {
    if (shown++ == most) {
      fmt::print("… and {} more (--most)\n", f.choices.size() - most);
      break;
    }
    const std::string key = c.key.empty() ? c.hlo.substr(0, 100) : c.key;
    fmt::print("  {:<22} {}{}{}  {}{}\n", c.config.backend_in_words(), printable(c.config.in_words()),
               c.run_time >= 0 ? ", " + time_text(c.run_time) : "",
               c.failure.empty() ? "" : ", failed: " + printable(c.failure), printable(key),
               c.line ? fmt::format("  line {}", c.line) : "");
  }
  print_not_understood(f);
}

void print_module(const TunedModule& m, const TunedArgs& a) {
  std::map<std::string, size_t> by_backend;
  for (const TunedKernel& k : m.kernels) ++by_backend[!k.chosen ? "unknown" : k.chosen->backend_in_words()];
  std::string counts;
  for (const auto& [name, count] : by_backend)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, name);
  fmt::print("{}{}: {}{}\n", m.selector.empty() ? "" : printable(m.selector) + " ", printable(m.name),
             counts.empty() ? "nothing to choose" : counts,
             m.before_stage.empty() ? fmt::format(" ({})", printable(m.stage))
                                    : fmt::format(" ({} to {})", printable(m.before_stage), printable(m.stage)));
  size_t shown = 0, hidden = 0;
  for (const TunedKernel& k : m.kernels) {
    const bool native = k.chosen && k.chosen->backend == "NATIVE_EMITTER";
    if (native && !a.all && k.agrees) continue;
    if (shown == a.most) {
      ++hidden;
      continue;
    }
    ++shown;
    fmt::print("  {:<22} {}{}  {}{}\n", k.chosen ? k.chosen->backend_in_words() : "unknown", printable(k.name),
               k.became.empty() ? "" : ", now " + printable(k.became), k.chosen ? k.chosen->in_words() : "",
               k.op_name.empty() ? "" : "  " + printable(k.op_name));
    if (!k.agrees)
      fmt::print("    but {}:{} says {}\n", printable(k.file->file), k.result->line, in_words(k.result->config));
  }
  if (hidden) fmt::print("  … and {} more (--most)\n", hidden);
}

int list_side(const TunedSide& s, const TunedArgs& a) {
  const auto unused = unused_choices(s.files, s.modules);
  Json modules = Json::array(), files = Json::array(), left = Json::array();
  size_t kernels = 0, joined = 0, wrong = 0;
  for (const TunedModule& m : s.modules) {
    kernels += m.kernels.size();
    for (const TunedKernel& k : m.kernels) joined += k.result != nullptr, wrong += !k.agrees;
    if (a.json)
      modules.push_back(module_json(m));
    else if (m.problem.empty() && (!m.kernels.empty() || s.modules.size() == 1))
      print_module(m, a);
  }
  for (const TuningResults& f : s.files) {
    Json choices = Json::array();
    if (s.results_only)
      for (const TuningChoice& c : f.choices) choices.push_back(choice_json(f, c));
    files.push_back({{"file", f.file},
                     {"form", f.form},
                     {"version", f.version},
                     {"choices", f.choices.size()},
                     {"entries", choices},
                     {"not_understood", Json(f.not_understood)}});
    if (a.json) continue;
    if (s.results_only) {
      print_results(f, a.most);
    } else {
      fmt::print("{}: {} choices\n", printable(f.file), f.choices.size());
      print_not_understood(f);
    }
  }
  if (!s.results_only) {
    for (const auto& [file, choice] : unused) left.push_back(choice_json(*file, *choice));
    if (!a.json && !s.files.empty())
      fmt::print("{} kernels have a choice of these files, {}; {} choices are no kernel's{}\n", joined,
                 wrong ? fmt::format("{} of which the module does not have", wrong) : "which the module has, too",
                 unused.size(), unused.empty() ? "" : ":");
    size_t shown = 0;
    for (const auto& [file, choice] : unused)
      if (!a.json && shown++ < a.most)
        fmt::print("  {}:{}: {}  {}\n", printable(file->file), choice->line, in_words(choice->config),
                   printable(choice->key.empty() ? choice->hlo.substr(0, 100) : choice->key));
  }
  if (a.json)
    print_json({{"file", a.file},
                {"other", nullptr},
                {"modules", modules},
                {"results", files},
                {"unused", left},
                {"comparisons", Json::array()},
                {"same", nullptr},
                {"problems", s.problems}});
  for (const std::string& p : s.problems)
    if (!a.json) fmt::print(stderr, "warning: {}\n", printable(p));
  if (!s.problems.empty()) return kBad;
  return kernels || (s.results_only && !s.files[0].choices.empty()) ? kYes : kNo;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 3; ++i) out += (i ? ", " : "") + printable(names[i]);
  return names.size() > 3 ? out + fmt::format(" and {} more", names.size() - 3) : out;
}

Json comparison_json(const TunedModule& x, const TunedModule& y, const TuningComparison& c, const std::string& word) {
  Json changes = Json::array();
  for (const TuningChange& t : c.changes)
    changes.push_back({{"first_kernels", t.first_names},
                       {"second_kernels", t.second_names},
                       {"first", config_json(t.first)},
                       {"second", config_json(t.second)},
                       {"what", t.what},
                       {"terms", t.sum.terms},
                       {"usual", t.most < 0 ? Json(nullptr) : Json(t.usual)},
                       {"most", t.most < 0 ? Json(nullptr) : Json(t.most)},
                       {"numbers", t.numbers}});
  return {{"first", x.name},    {"second", y.name},           {"same", c.same},
          {"changes", changes}, {"only_first", c.only_first}, {"only_second", c.only_second},
          {"explanation", word}};
}

void print_comparison(const TuningComparison& c, const TunedArgs& a, const std::string& word) {
  size_t shown = 0;
  for (const TuningChange& t : c.changes) {
    if (shown++ == a.most) {
      fmt::print("… and {} more (--most)\n", c.changes.size() - a.most);
      break;
    }
    fmt::print("~ {}{}: {}\n    {}\n    {}\n    {}\n", names_text(t.first_names),
               t.first_names == t.second_names ? "" : " = " + names_text(t.second_names), fmt::join(t.what, ", "),
               printable(in_words(t.first)), printable(in_words(t.second)), t.numbers);
  }
  for (const std::string& n : c.only_first) fmt::print("- {}\n", printable(n));
  for (const std::string& n : c.only_second) fmt::print("+ {}\n", printable(n));
  fmt::print("{} kernels by content chose the same, {} otherwise{}{}\n", c.same, c.changes.size(),
             c.only_first.empty() ? "" : fmt::format("; {} in the first alone", c.only_first.size()),
             c.only_second.empty() ? "" : fmt::format("; {} in the second alone", c.only_second.size()));
  if (!word.empty()) fmt::print("{}\n", word);
}

// Modules of two runs are one another's by name.
int compare_sides(const TunedSide& x, const TunedSide& y, const TunedArgs& a) {
  Json list = Json::array(), problems = Json::array();
  bool same = true;
  for (const TunedSide* s : {&x, &y})
    for (const std::string& p : s->problems) problems.push_back(p);
  std::vector<bool> taken(y.modules.size());
  size_t pairs = 0;
  for (const TunedModule& m : x.modules) {
    size_t other = 0;
    const bool alone = x.modules.size() == 1 && y.modules.size() == 1;
    while (other < y.modules.size() && (taken[other] || (!alone && y.modules[other].name != m.name))) ++other;
    if (other == y.modules.size()) continue;
    taken[other] = true, ++pairs;
    const TuningComparison c = compare_tuned(m, y.modules[other]);
    const std::string word = a.difference >= 0 ? explains_difference(c, a.difference) : "";
    const bool equal = c.changes.empty() && c.only_first.empty() && c.only_second.empty();
    same = same && equal;
    if (a.json) {
      list.push_back(comparison_json(m, y.modules[other], c, word));
    } else if (!equal || x.modules.size() == 1 || !word.empty()) {
      if (x.modules.size() > 1) fmt::print("{}:\n", printable(m.name));
      print_comparison(c, a, word);
    }
  }
  if (!pairs) fail(FailureKind::kUsage, "no module of {} has the name of one of {}", x.spec, y.spec);
  const size_t left = x.modules.size() + y.modules.size() - 2 * pairs;
  if (a.json)
    print_json({{"file", a.file},
                {"other", a.other},
                {"modules", Json::array()},
                {"results", Json::array()},
                {"unused", Json::array()},
                {"comparisons", list},
                {"same", same},
                {"problems", problems}});
  else if (x.modules.size() > 1)
    fmt::print("{} modules of the same name{}{}\n", pairs, same ? ": the same choices" : "",
               left ? fmt::format("; {} that one side alone has were left out", left) : "");
  for (const Json& p : problems)
    if (!a.json) fmt::print(stderr, "warning: {}\n", printable(p.get<std::string>()));
  return !problems.empty() ? kBad : same ? kYes : kNo;
}

}  // namespace

std::string autotune_results_for(const std::string& named, const Recording* start, std::string* told) {
  if (named == "none" || (named.empty() && !start)) return "";
  TunedArgs args;
  TunedSide side;
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(named, error);
  if (file) {
    side.files = named_results({named});
  } else if (!named.empty()) {
    read_side(named, args, &side);
  } else {
    side.files = tuning_files(start->folder, {*start}, &side.problems);
    if (side.files.empty()) return "";
  }
  if ((file || named.empty()) && start) side.modules.push_back(tuned_module(*start, side.files));
  TuningResults results = tuning_of_run(side.modules);
  const size_t joined = results.choices.size();
  std::set<std::string> known;
  for (const TuningChoice& c : results.choices) known.insert(c.key);
  for (const TuningResults& f : side.files)
    for (const TuningChoice& c : f.choices)
      if (!c.key.empty() && known.insert(c.key).second) results.choices.push_back(c);
  if (results.choices.empty())
    fail(FailureKind::kUnsupported,
         "{}: no choice of it can be joined to a kernel: of the form that names kernels by their text, name the dump",
         named.empty() ? start->folder : named);
  *told = fmt::format("{} choices of XLA's autotuner, {} joined to kernels of a dump{}", results.choices.size(), joined,
                      side.files.empty() ? ", by its stages" : "; " + side.files[0].file);
  return tuning_word(results);
}

int cmd_tuned(const TunedArgs& a) {
  if (a.difference >= 0 && a.other.empty()) fail(FailureKind::kUsage, "--difference goes with two dumps");
  TunedSide first, second;
  read_side(a.file, a, &first);
  if (a.other.empty()) return list_side(first, a);
  read_side(a.other, a, &second);
  for (const TunedSide* s : {&first, &second})
    if (s->results_only)
      fail(FailureKind::kUsage, "{}: results alone have no kernels to pair; name the dumps", s->spec);
  return compare_sides(first, second, a);
}

}  // namespace hlo
