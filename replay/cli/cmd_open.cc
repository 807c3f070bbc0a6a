// open: what a folder holds. Of a run the modules, those to look at first in front; of one module what an impatient
// person wants to know.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/buffer.h"
#include "ir/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/other_files.h"
#include "replay/files.h"
#include "replay/findings.h"
#include "replay/overview.h"
#include "replay/record/import.h"
#include "replay/record/run.h"
#include "replay/terminal.h"

namespace hlo {
namespace {

constexpr size_t kShownModules = 60;

Json overview_json(const ModuleOverview& o, const std::string& why) {
  const MemoryReport* memory = o.memory ? &*o.memory : nullptr;
  return {{"selector", o.selector},
          {"name", o.recording->module_name},
          {"number", o.recording->module_number},
          {"function", o.function},
          {"target", o.target.in_words()},
          {"instructions", o.last ? Json(o.last->instruction_count()) : Json()},
          {"compile_microseconds", o.compile_us < 0 ? Json() : Json(o.compile_us)},
          {"least_seconds", o.last ? Json(o.cost.seconds) : Json()},
          {"device", o.target.spec.name},
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
               o.last ? std::to_string(o.last->instruction_count()) : "", o.last ? time_text(o.cost.seconds) : "",
               memory, compiled ? fmt::format("{:>11}", compile_text(o.compile_us)) : "",
               printable(worth_looking(all, k)));
  }
  if (all.size() > kShownModules) fmt::print("  … and {} more (--json has all)\n", all.size() - kShownModules);
  fmt::print("\"at least\" is what one call needs on {} by its bytes and operations.\n",
             all[0].target.spec_known ? std::string(all[0].target.spec.name)
                                      : "an H100 (the target's data sheet is not known; --gpu names another)");
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

int open_index(const Run& run, const OpenArgs& a) {
  std::vector<ModuleOverview> all = run_overview(run, a.gpu);
  print_index(run, all);
  print_complaints(run);
  const std::string folder = shell_word(run.folder), first = shell_word(run.folder + ":" + all[0].selector);
  fmt::print("next: hlo-replay {:<40} the first minute with one module\n", first);
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
  stage_table(r, r.source != "xla");
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

// --- the first minute with one module ---

constexpr size_t kDearest = 10, kOddest = 8, kOfOneKind = 2, kAlive = 6, kPasses = 6;

std::string cut_text(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// Where it comes from, for a narrow column: source line, else the end of its scope.
std::string where_from(const Module& m, InstId i) {
  SourceLine line = kernel_source_line(m, i);
  std::string op = kernel_op_name(m, i);
  size_t slash = op.rfind('/', op.rfind('/') == std::string::npos ? 0 : op.rfind('/') - 1);
  std::string last = slash == std::string::npos ? op : op.substr(slash + 1);
  return cut_text(printable(line.known() ? fmt::format("{}  {}", line.brief(), last) : last), 70);
}

void print_head(const ModuleOverview& o) {
  const Recording& r = *o.recording;
  size_t stages = 0;
  for (const StageRow& row : r.rows) stages += !row.file.empty();
  fmt::print("module {:04} {}: {} stages, {}\n", r.module_number, printable(r.module_name), stages,
             r.source == "xla" ? "dumped by XLA" : "replayed through " + printable(r.pipeline));
  std::string shared;
  if (o.last)
    shared = fmt::format("; {} replica{}, {} partition{}", o.last->config().replica_count,
                         o.last->config().replica_count == 1 ? "" : "s", o.last->config().num_partitions,
                         o.last->config().num_partitions == 1 ? "" : "s");
  fmt::print("compiled for {}{}{}\n", o.target.in_words(), shared,
             o.compile_us < 0 ? "" : fmt::format("; passes took {}", compile_text(o.compile_us)));
  if (!o.last) {
    fmt::print("its last stage cannot be read: {}\n", printable(o.unreadable));
    return;
  }
  const ModuleCost& c = o.cost;
  fmt::print("{}: {} instructions, {} kernels, {} parameters\n", printable(o.stage), o.last->instruction_count(),
             c.kernels.size(), o.last->comp(o.last->entry()).params.size());
  fmt::print("one call: {}, {} moved; at least {} on {}{}\n", flops_text(c.all.flops + c.all.transcendentals),
             size_text(c.all.bytes()), time_text(c.seconds), o.target.spec_known ? "" : "an ", o.target.spec.name);
  if (!o.target.spec_known)
    fmt::print("  (bounds are an H100's: no data sheet of the target is known; --gpu names one)\n");
  if (c.loops_without_trip_count)
    fmt::print("  ({} loop{} without a known trip count, counted once: the times of what they run are too small)\n",
               c.loops_without_trip_count, c.loops_without_trip_count == 1 ? "" : "s");
}

// Kernels of one line that do the same work are one row.
struct LikeKernels {
  const KernelCost* first = nullptr;
  size_t count = 0;
  double seconds = 0;
};

std::vector<LikeKernels> like_kernels(const Module& m, const ModuleCost& cost) {
  std::vector<LikeKernels> out;
  std::map<std::tuple<std::string, std::string, double, double, double>, size_t> known;
  for (const KernelCost& k : cost.kernels) {
    if (k.seconds <= 0) continue;
    auto [at, fresh] = known.try_emplace(
        {kernel_source_line(m, k.inst).text(), kernel_class(m, k.inst), k.times, k.cost.bytes(), k.cost.flops},
        out.size());
    if (fresh) out.push_back({&k, 0, 0});
    ++out[at->second].count, out[at->second].seconds += k.seconds;
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.seconds > y.seconds; });
  return out;
}

void print_dearest(const ModuleOverview& o) {
  const Module& m = *o.last;
  fmt::print("\ndearest kernels, by the bytes and operations that they need at least (like ones together):\n");
  std::vector<LikeKernels> list = like_kernels(m, o.cost);
  for (size_t k = 0; k < list.size() && k < kDearest; ++k) {
    const KernelCost& c = *list[k].first;
    std::string runs = list[k].count == 1 ? "" : fmt::format("{} like ", list[k].count);
    if (c.times != 1) runs += fmt::format("{:.0f} × ", c.times);
    fmt::print("  {:>11} {:>3.0f} %  {:<7} {:<12} {}{}: {}, {}{}  {}\n", time_text(list[k].seconds),
               100 * list[k].seconds / o.cost.seconds, c.by_memory ? "memory" : "compute", kernel_class(m, c.inst),
               runs, printable(cut_text(std::string(m.inst_name(c.inst)), 40)), size_text(c.cost.bytes()),
               flops_text(c.cost.flops + c.cost.transcendentals), c.times_known ? "" : " (in a loop of unknown length)",
               where_from(m, c.inst));
  }
}

void print_memory(const ModuleOverview& o) {
  if (!o.memory) {
    fmt::print("\nmemory: unknown\n");
    return;
  }
  const MemoryReport& r = *o.memory;
  fmt::print("\nmemory: {} allocated ({} arguments, {} outputs, {} temporaries), by {}{}\n", human_bytes(r.allocated),
             human_bytes(r.arguments), human_bytes(r.outputs), human_bytes(r.temporaries), r.from,
             r.estimate ? ": an estimate" : "");
  if (r.elsewhere) fmt::print("and {} in memories on the chip or of the host\n", human_bytes(r.elsewhere));
  if (r.alive.empty()) return;
  fmt::print("{} alive at the peak{}, most of it:\n", human_bytes(r.peak),
             r.peak_at.empty() ? "" : ", at " + printable(r.peak_at));
  // XLA names what it makes of an argument alone, as a transposed copy, after the argument.
  std::set<std::string> arguments;
  if (o.last)
    for (InstId p : o.last->comp(o.last->entry()).params) arguments.insert(op_name_of(*o.last, p));
  std::map<std::string, int64_t> lines;
  for (const MemoryValue& v : r.alive) {
    const std::string scope = scope_of(v.op_name);
    lines[v.source.known()                                      ? v.source.brief()
          : v.kind == "argument"                                ? "arguments"
          : v.kind == "constant"                                ? "constants"
          : !v.op_name.empty() && arguments.contains(v.op_name) ? "values named after arguments"
          : !scope.empty()                                      ? scope
                                                                : "values that say no line"] += v.bytes;
  }
  std::vector<std::pair<std::string, int64_t>> sorted(lines.begin(), lines.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  for (size_t k = 0; k < sorted.size() && k < kAlive; ++k)
    fmt::print("  {:>10} {:>3.0f} %  {}\n", human_bytes(sorted[k].second),
               r.peak ? 100.0 * static_cast<double>(sorted[k].second) / static_cast<double>(r.peak) : 0,
               printable(cut_text(sorted[k].first, 90)));
}

void print_passes(const Recording& r) {
  std::vector<const StageRow*> rows;
  auto work = [](const StageRow* s) { return s->added + s->removed + s->modified; };
  for (const StageRow& row : r.rows)
    if (row.kind == StageRow::kPass && work(&row) > 0) rows.push_back(&row);
  if (rows.empty()) return;
  std::stable_sort(rows.begin(), rows.end(), [&](auto* x, auto* y) { return work(x) > work(y); });
  fmt::print("\npasses that did most:\n");
  for (size_t k = 0; k < rows.size() && k < kPasses; ++k)
    fmt::print("  {:>4}  {:<44} {:>6} → {:<6} {} new, {} gone, {} changed{}\n",
               rows[k]->number < 0 ? "" : fmt::format("{:04}", rows[k]->number),
               printable(cut_text(rows[k]->pipeline + " " + rows[k]->pass, 44)), rows[k]->before, rows[k]->after,
               rows[k]->added, rows[k]->removed, rows[k]->modified,
               rows[k]->microseconds < 0 ? "" : ", " + compile_text(rows[k]->microseconds));
}

void print_findings(const Module& m, const std::vector<ModuleFinding>& all, const std::string& folder) {
  if (all.empty()) return;
  fmt::print("\nwhat looks odd:\n");
  std::map<std::string, size_t> seen, total;
  for (const ModuleFinding& f : all) ++total[f.kind];
  size_t shown = 0;
  for (const ModuleFinding& f : all) {
    if (++seen[f.kind] > kOfOneKind || shown >= kOddest) continue;
    ++shown;
    std::string cost = f.seconds > 0 ? time_text(f.seconds) : size_text(f.bytes);
    std::string more = seen[f.kind] == kOfOneKind && total[f.kind] > kOfOneKind
                           ? fmt::format(" ({} more such)", total[f.kind] - kOfOneKind)
                           : "";
    std::string line = kernel_source_line(m, f.inst).brief();
    fmt::print("  {:>11}  {}: {}{}\n", cost, printable(std::string(m.inst_name(f.inst))), printable(f.what), more);
    fmt::print("               {}{}\n", line.empty() ? "" : printable(line) + ": ", f.advice);
  }
  if (all.size() > shown) fmt::print("  all {}: hlo-replay open {} --json\n", all.size(), shell_word(folder));
}

Json findings_json(const Module& m, const std::vector<ModuleFinding>& all) {
  Json out = Json::array();
  for (const ModuleFinding& f : all) {
    Json others = Json::array();
    for (InstId i : f.others) others.push_back(m.inst_name(i));
    out.push_back({{"kind", f.kind},
                   {"instruction", m.inst_name(f.inst)},
                   {"others", others},
                   {"source", kernel_source_line(m, f.inst).text()},
                   {"op_name", kernel_op_name(m, f.inst)},
                   {"what", f.what},
                   {"advice", f.advice},
                   {"least_seconds", f.seconds},
                   {"bytes", f.bytes}});
  }
  return out;
}

int first_minute(const Run& run, const OpenArgs& a) {
  const Recording& r = run.modules[0];
  ModuleOverview o = module_overview(run, r, a.gpu, true);
  print_head(o);
  std::vector<ModuleFinding> odd;
  if (o.last) {
    print_dearest(o);
    print_memory(o);
  }
  print_passes(r);
  if (o.last) {
    odd = all_findings(FindingsInput(*o.last, o.cost, o.target.spec));
    print_findings(*o.last, odd, a.folder);
  }
  fmt::print("\n");
  if (!r.other_files.empty()) fmt::print("also {}\n", counted(r.other_files));
  print_complaints(run);
  const std::string folder = shell_word(a.folder);
  fmt::print("next: hlo-replay summary {} --by=line; memory {}\n", folder, folder);
  if (o.last && !o.cost.kernels.empty())
    fmt::print("      hlo-replay explain {} {}    where the dearest kernel comes from\n", folder,
               shell_word(printable(std::string(o.last->inst_name(o.cost.kernels[0].inst)))));
  fmt::print("      hlo-replay open {} --stages; view {}; bisect {}\n", folder, folder, folder);
  return kYes;
}

int open_json(const Run& run, const OpenArgs& a) {
  std::vector<ModuleOverview> all = run_overview(run, a.gpu);
  Json modules = Json::array();
  for (const Recording& r : run.modules) {
    modules.push_back(Json::parse(recording_json(r)));
    Json& j = modules.back();
    for (const char* key : {"missing", "problems"}) j.emplace(key, Json::array());
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k].recording == &r) {
        j["overview"] = overview_json(all[k], worth_looking(all, k));
        const Module* m = all[k].last.get();
        j["findings"] =
            m ? findings_json(*m, all_findings(FindingsInput(*m, all[k].cost, all[k].target.spec))) : Json::array();
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
  if (!a.gpu.empty()) device_spec(a.gpu);
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
  if (run.modules.size() > 1) return open_index(run, a);
  return first_minute(run, a);
}

}  // namespace hlo
