// opt: passes over a module, which is printed.
#include <algorithm>
#include <iostream>

#include "ir/print/print.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/command.h"
#include "replay/compare/replayed_users.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/start/made_order.h"
#include "replay/record/start/start_stage.h"

namespace hlo {
namespace {

int list_passes(bool json) {
  Json out = Json::array();
  for (const PassInfo& p : all_passes()) {
    if (json) {
      out.push_back({{"name", p.name},
                     {"aliases", p.aliases},
                     {"summary", p.summary},
                     {"options", p.options},
                     {"atomic", p.atomic},
                     {"implemented", p.run != nullptr}});
      continue;
    }
    fmt::print("{:<36} {}{}{}{}\n", p.name, p.summary, p.options.empty() ? "" : fmt::format(" {{{}}}", p.options),
               p.aliases.empty() ? "" : fmt::format(" (also {})", p.aliases), p.run ? "" : " [not implemented]");
  }
  if (json) print_json({{"passes", out}});
  return kYes;
}

// A stage of a dump, by its selector, is read from its .hlo.pb where there is one.
std::string file_of(const OptArgs& a, const std::optional<StageChoice>& stage) {
  if (!stage || stage->module.source != "xla" || !split_selector(a.file)) return a.file;
  return proto_or_text(stage->module.folder, stage->file);
}

// Of a stage nothing tells the order of users: as the file lists them comes nearest, a replay tells it.
void order_users(Module& m, const OptArgs& a, const std::vector<WantedPass>& list) {
  const bool asked = a.users == "replayed";
  if (asked && a.call_site.empty())
    fail(FailureKind::kUsage, "--users=replayed needs --call-site: the pipeline in which the pass is about to run");
  const bool any = std::any_of(list.begin(), list.end(), [](const auto& w) { return w.pass->asks_user_order; });
  if (list.empty() || a.call_site.empty() || (!asked && (a.users == "listed" || !any))) return;
  const ReplayedUsers users = order_users_by_replay(m, a.file, *list[0].pass, a.call_site);
  if (asked && !users.why_not.empty()) fail(FailureKind::kUsage, "{}", users.in_words());
  fmt::print(stderr, "{}\n", printable(users.in_words()));
}

// What the passes are told of the GPU that a dump was compiled for, where one of them asks.
std::map<std::string, std::string> options_of_dump(const OptArgs& a, const std::vector<WantedPass>& list) {
  const bool asked = std::any_of(list.begin(), list.end(), [](const WantedPass& w) {
    const std::vector<PassOption> options = options_of(*w.pass);
    return std::any_of(options.begin(), options.end(), [&](const PassOption& o) {
      return (o.name == "gpu" || o.name == "capability") && !w.options.contains(std::string(o.name));
    });
  });
  return asked ? gpu_options_for("xla-gpu", a.file) : std::map<std::string, std::string>();
}

}  // namespace

int cmd_opt(const OptArgs& a) {
  if (a.list) return list_passes(a.json);
  if (a.file.empty()) fail(FailureKind::kUsage, "opt needs a FILE");
  if (a.json && !a.at_step.empty()) fail(FailureKind::kUsage, "--at-step prints a module, --json what each pass did");
  std::vector<WantedPass> list = wanted_passes(a.passes);
  PrintOptions style;
  if (!PrintOptions::by_name(a.style, &style)) fail(FailureKind::kUsage, "unknown style '{}'", a.style);
  if (a.style == "default") style.large_constants = style.stable_order = true, style.lossless = true;
  Loaded loaded;
  const std::optional<StageChoice> stage = stage_of(a.file);
  const std::map<std::string, std::string> of_dump = options_of_dump(a, list);
  // A proto tells the order of instructions, a text has it guessed.
  auto m = load_verified(file_of(a, stage), !a.no_verify, &loaded, {.universe = nullptr, .users = UserOrder::kListed});
  if (!a.call_site.empty() && !loaded.in_memory_order && !m->config().is_scheduled) put_in_order_made(*m);
  order_users(*m, a, list);
  std::string told;
  const std::string tuning = a.autotune_results.empty() ? "" : autotune_results_for(a.autotune_results, nullptr, &told);
  if (!told.empty()) fmt::print(stderr, "{}\n", printable(told));
  PipelineOptions options;
  options.verify = !a.no_verify;
  options.stage = a.file;
  Json ran = Json::array();
  bool changed = false;
  std::string at_step;  // the module as it stood there
  std::vector<std::string> steps;
  for (const WantedPass& w : list) {
    const PassInfo& p = *w.pass;
    PassContext context;
    context.keep_notes = a.json;
    if (!a.call_site.empty()) context.options = call_site_options(p.name, a.call_site);
    take_options(p, of_dump, &context.options);
    if (!tuning.empty()) take_options(p, {{"autotune_results", tuning}}, &context.options);
    for (const auto& [key, value] : w.options) context.options[key] = value;
    for (const std::string& f : a.fuel) {
      size_t eq = f.find('=');
      if (eq == std::string::npos) fail(FailureKind::kUsage, "--fuel is written PASS=N, not '{}'", f);
      if (&pass_or_fail(f.substr(0, eq)) == &p) context.fuel = atoll(f.c_str() + eq + 1);
    }
    context.on_step = [&](std::string_view step) {
      steps.push_back(fmt::format("'{}'", step));
      if (step == a.at_step) at_step = print_module(*m, style);
    };
    PassEvent event;
    run_pass(*m, p, context, options, &event);
    if (a.json) {
      Json notes = Json::array();
      for (const Note& n : event.notes)
        notes.push_back({{"rule", n.rule}, {"instructions", n.names}, {"text", n.text}});
      ran.push_back({{"pass", p.name},
                     {"changed", event.changed},
                     {"claimed", event.claimed},
                     {"rewrites", event.rewrites},
                     {"microseconds", event.microseconds},
                     {"notes", notes}});
      changed |= event.changed;
    }
  }
  if (!a.at_step.empty() && at_step.empty())
    fail(FailureKind::kUsage, "no pass shows a step '{}'; shown: {}", a.at_step,
         steps.empty() ? "none" : fmt::format("{}", fmt::join(steps, ", ")));
  if (a.json)
    print_json(
        {{"module", m->name()}, {"changed", changed}, {"instructions", m->instruction_count()}, {"passes", ran}});
  else
    std::cout << (a.at_step.empty() ? print_module(*m, style) : at_step);
  return kYes;
}

}  // namespace hlo
