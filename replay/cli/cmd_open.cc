// open: what a folder holds. Of a run the modules, those to look at first in front; of one module what an impatient
// person wants to know.
#include <algorithm>
#include <map>

#include "ir/buffer.h"
#include "ir/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/other_files.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/import.h"
#include "replay/record/run.h"
#include "replay/report/findings.h"
#include "replay/report/first_look.h"
#include "replay/report/overview.h"

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
          {"unknown_calls", o.last ? Json(o.cost.unknown_calls) : Json()},
          {"device", o.target.spec.name},
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

// --- the first minute with one module ---

void print_look(const std::vector<LookSection>& sections, const std::string& folder) {
  for (const LookSection& section : sections) {
    if (!section.heading.empty()) fmt::print("\n{}\n", section.heading);
    for (const LookRow& row : section.rows) fmt::print("{}\n", row.text);
    if (section.all) fmt::print("  all {}: hlo-replay open {} --json\n", section.all, shell_word(folder));
  }
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
  print_look(first_look(o), a.folder);
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
