#include "replay/report/overview/overview.h"

#include <algorithm>
#include <map>

#include "parser/parser.h"
#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/record/files/input.h"
#include "replay/report/compile/compile_time.h"
#include "replay/report/compile/recompiles.h"

namespace hlo {

ModuleOverview module_overview(const Recording& r, std::unique_ptr<Module> last, const std::string& stage,
                               const Target& target) {
  ModuleOverview o;
  o.recording = &r, o.function = function_of(r.module_name), o.target = target, o.stage = stage;
  o.compile_us = passes_microseconds(r);
  o.last = std::move(last);
  o.cost = module_cost(*o.last, target.spec);
  try {
    o.memory = memory_report(*o.last, &r, &o.target);
  } catch (const Failure&) {
    if (interrupted()) throw;  // memory is not known then
  }
  return o;
}

ModuleOverview module_overview(const Run& run, const Recording& r, const std::string& gpu, bool memory) {
  ModuleOverview o;
  o.recording = &r;
  o.selector = module_selector(run, r);
  o.function = function_of(r.module_name);
  o.target = target_of(r, gpu);
  o.compile_us = passes_microseconds(r);
  std::optional<size_t> row = final_row(r);
  if (!row) {
    o.unreadable = "no stage with a text";
    o.memory = memory_from_files(r);
    return o;
  }
  o.stage = r.rows[*row].name();
  try {
    ParseOptions parse;
    parse.file = r.folder + "/" + r.rows[*row].file;
    o.last = parse_text(read_confined(r.folder, r.rows[*row].file), std::make_shared<Universe>(), parse);
    o.cost = module_cost(*o.last, o.target.spec);
  } catch (const Failure& e) {
    if (interrupted()) throw;
    std::string what = e.what();
    o.unreadable = what.substr(0, what.find('\n'));
    o.last = nullptr;
  }
  try {
    o.memory = memory || !o.last ? std::nullopt : memory_from_files(r);
    if (!o.memory && o.last) o.memory = memory_report(*o.last, &r, &o.target);
    if (!o.memory) o.memory = memory_from_files(r);
  } catch (const Failure&) {
    if (interrupted()) throw;  // memory is not known then
  }
  return o;
}

namespace {

void number_functions(std::vector<ModuleOverview>* all) {
  std::map<std::string_view, size_t> names;
  for (const ModuleOverview& o : *all) ++names[o.recording->module_name];
  std::vector<Compiled> several;
  std::vector<size_t> places;
  for (size_t k = 0; k < all->size(); ++k) {
    ModuleOverview& o = (*all)[k];
    if (names[o.recording->module_name] < 2) continue;
    Compiled& c = several.emplace_back();
    c.function = o.function;
    if (o.last) describe_function(*o.last, &c);
    places.push_back(k);
  }
  size_t number = 0;
  for (const std::vector<size_t>& one : same_functions(several))
    if (one.size() > 1) {
      ++number;
      for (size_t k : one) (*all)[places[k]].compiled_as = number;
    }
}

}  // namespace

std::vector<ModuleOverview> run_overview(const Run& run, const std::string& gpu) {
  std::vector<ModuleOverview> out;
  Progress progress("reading the modules of " + run.folder);
  for (const Recording& r : run.modules) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    progress.at(out.size(), run.modules.size(), r.module_name);
    out.push_back(module_overview(run, r, gpu, false));
  }
  number_functions(&out);
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) {
    // Of those that are as many launches, those that do most.
    auto work = [](const ModuleOverview& o) { return o.last ? o.cost.all.bytes() + o.cost.all.flops : -1; };
    return x.seconds() != y.seconds() ? x.seconds() > y.seconds() : work(x) > work(y);
  });
  return out;
}

std::string worth_looking(const std::vector<ModuleOverview>& all, size_t which) {
  const ModuleOverview& o = all[which];
  std::vector<std::string> words;
  if (!o.unreadable.empty()) words.push_back(o.unreadable);
  double seconds = 0;
  int64_t most_memory = 0, most_compile = 0;
  size_t same = 0, same_shapes = 0;
  auto shapes = [](const ModuleOverview& m) {
    std::string out;
    if (!m.last) return out;
    for (InstId p : m.last->comp(m.last->entry()).params)
      out += m.last->u().shape_text_plain(m.last->shape_id(p)) + ",";
    return out;
  };
  const std::string own = shapes(o);
  for (const ModuleOverview& other : all) {
    seconds += other.seconds();
    if (other.memory) most_memory = std::max(most_memory, other.memory->allocated);
    most_compile = std::max(most_compile, other.compile_us);
    if (!o.compiled_as || other.compiled_as != o.compiled_as) continue;
    ++same;
    same_shapes += other.last && o.last && shapes(other) == own;
  }
  if (all.size() > 1 && seconds > 0 && o.seconds() >= 0.02 * seconds)
    words.push_back(fmt::format("{:.0f} % of the time of one call each", 100 * o.seconds() / seconds));
  if (all.size() > 1 && o.memory && o.memory->allocated == most_memory && most_memory > 0)
    words.emplace_back("most memory");
  if (all.size() > 1 && o.compile_us == most_compile && most_compile > 0) words.emplace_back("longest to compile");
  if (o.cost.loops_without_trip_count)
    words.push_back(fmt::format("{} loop{} of unknown length, counted once", o.cost.loops_without_trip_count,
                                o.cost.loops_without_trip_count == 1 ? "" : "s"));
  if (same > 1)
    words.push_back(same_shapes > 1 ? fmt::format("compiled {} times, {} for the same arguments", same, same_shapes)
                                    : fmt::format("compiled {} times, for other arguments each", same));
  return fmt::format("{}", fmt::join(words, "; "));
}

std::vector<std::pair<std::string, size_t>> kinds_of_files(const std::vector<std::string>& files) {
  std::map<std::string, size_t> kinds;
  for (const std::string& f : files) {
    // The longest known ending; else what stands behind the last dot.
    std::string kind;
    for (const char* known :
         {"-buffer-assignment-values.txt", "-buffer-assignment.txt", "-live-range.txt", "-memory-usage-report.txt",
          "-memory-usage-report.pb", ".hlo.pb", ".ir-no-opt.ll", ".ir-with-opt.ll", ".gpu_target_config.pbtxt",
          ".config.pbtxt", ".debug_options", "after_optimizations.txt"})
      if (kind.empty() && f.ends_with(known)) kind = known;
    size_t dot = f.rfind('.');
    if (kind.empty()) kind = dot == std::string::npos ? f : f.substr(dot);
    // `.thunk_sequence.txt`: what such a file is stands in front of its ending.
    if ((kind == ".txt" || kind == ".pbtxt" || kind == ".json") && dot > 0)
      if (size_t before = f.rfind('.', dot - 1); before != std::string::npos) kind = f.substr(before);
    ++kinds[kind];
  }
  std::vector<std::pair<std::string, size_t>> out(kinds.begin(), kinds.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  return out;
}

}  // namespace hlo
