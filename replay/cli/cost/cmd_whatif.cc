// whatif: today's GPU pipeline over a module as it is and with something changed, side by side.
#include <algorithm>
#include <cmath>

#include "ir/program/buffer.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/measured.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/start/start_stage.h"
#include "replay/record/start/target.h"
#include "replay/replayer/replayer.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/what_if/what_if.h"

namespace hlo {
namespace {

// PASS.OPTION=VALUE; the pass's own name may have no dot.
void take_option(const std::string& text, WhatIfChange* change) {
  const size_t dot = text.find('.'), eq = text.find('=');
  if (dot == std::string::npos || eq == std::string::npos || eq < dot)
    fail(FailureKind::kUsage, "--set is written PASS.OPTION=VALUE, not '{}'", text);
  const PassInfo& pass = pass_or_fail(text.substr(0, dot));
  const std::string option = text.substr(dot + 1, eq - dot - 1);
  change->set[std::string(pass.name)][option] = checked_option(pass, option, text.substr(eq + 1));
}

// N or PARAMETER:N.
void take_batch(const std::string& text, WhatIfChange* change) {
  const size_t colon = text.rfind(':');
  const std::string number = colon == std::string::npos ? text : text.substr(colon + 1);
  if (colon != std::string::npos) change->batch_parameter = text.substr(0, colon);
  if (number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos ||
      number.find_first_not_of('0') == std::string::npos)
    fail(FailureKind::kUsage, "--batch is N or PARAMETER:N with N above 0, not '{}'", text);
  change->batch = std::stoll(number);
}

WhatIfChange change_of(const WhatIfArgs& a) {
  WhatIfChange change;
  for (const std::string& name : words(a.disabled)) change.disabled.insert(std::string(pass_or_fail(name).name));
  for (const std::string& text : a.set) take_option(text, &change);
  if (!a.batch.empty()) take_batch(a.batch, &change);
  change.gpu = a.gpu;
  if (change.empty()) fail(FailureKind::kUsage, "whatif takes --disable, --gpu, --batch or --set");
  return change;
}

const WhatIfKernel* kernel_of(const WhatIfSide& side, int index) {
  return index < 0 ? nullptr : &side.kernels[static_cast<size_t>(index)];
}

Json kernel_json(const WhatIfKernel* k, bool timed) {
  if (!k) return {};
  return {{"name", k->name},
          {"times", k->times},
          {"bytes", k->bytes},
          {"flops", k->flops},
          {"seconds", k->seconds},
          {"measured_seconds", timed && k->measured ? Json(k->time) : Json()},
          {"foretold_seconds", timed && !k->measured ? Json(k->time) : Json()}};
}

Json side_json(const WhatIfSide& s, bool timed) {
  return {{"gpu", s.gpu},
          {"pass_runs", s.pass_runs},
          {"instructions", s.instructions},
          {"kernels", s.kernels.size()},
          {"by_kind", s.by_kind()},
          {"bytes", s.bytes},
          {"flops", s.flops},
          {"peak_bytes", s.peak},
          {"seconds", s.seconds},
          {"measured_seconds", timed ? Json(s.measured) : Json()},
          {"foretold_seconds", timed ? Json(s.foretold) : Json()},
          {"between_seconds", timed ? Json(s.between) : Json()},
          {"measured_kernels", timed ? Json(s.measured_kernels) : Json()},
          {"loops_without_trip_count", s.loops_without_trip_count}};
}

const char* state_of(const WhatIfPair& p) { return p.as_is < 0 ? "new" : p.changed < 0 ? "gone" : "changed"; }

// What the times are taken of: the module as it ran, and what a profile says of it.
struct WhatIfBase {
  LookedAt ran;
  std::optional<MeasuredRun> run;
};

Json what_if_json(const WhatIf& w, const Module& m, const WhatIfArgs& a, const WhatIfChange& change,
                  const WhatIfBase& base) {
  Json kernels = Json::array(), options = Json::array();
  for (const WhatIfPair& p : w.others) {
    const WhatIfKernel *x = kernel_of(w.as_is, p.as_is), *y = kernel_of(w.changed, p.changed);
    const WhatIfKernel& one = y ? *y : *x;
    kernels.push_back({{"state", state_of(p)},
                       {"kind", one.kind},
                       {"op_name", one.op_name},
                       {"source", one.source.text()},
                       {"as_is", kernel_json(x, w.timed)},
                       {"changed", kernel_json(y, w.timed)}});
  }
  for (const auto& [pass, list] : change.set)
    for (const auto& [option, value] : list) options.push_back({{"pass", pass}, {"option", option}, {"value", value}});
  return {{"file", a.file},
          {"module", m.name()},
          {"change",
           {{"disabled", change.disabled},
            {"set", options},
            {"gpu", change.gpu},
            {"batch", change.batch},
            {"batch_parameter", change.batch_parameter}}},
          {"concerned", w.concerned},
          {"shared_pass_runs", w.shared_runs},
          {"first_difference", w.first_difference},
          {"measured", measured_json(base.run)},
          {"as_is", side_json(w.as_is, w.timed)},
          {"changed", side_json(w.changed, w.timed)},
          {"same_kernels", w.same},
          {"kernels", kernels},
          {"notes", w.notes}};
}

// `+12.5 %` of two numbers; empty where they are the same.
std::string change_text(double from, double to) {
  if (from == to) return "";
  return from > 0 ? fmt::format("{:+.1f} %", 100 * (to - from) / from) : "new";
}

void print_figures(const WhatIf& w) {
  auto row = [](const std::string& name, const std::string& x, const std::string& y, const std::string& by) {
    fmt::print("{:<22} {:>14} {:>14}  {}\n", name, x, y, by);
  };
  const WhatIfSide &x = w.as_is, &y = w.changed;
  auto count = [&](const std::string& name, size_t from, size_t to) {
    row(name, std::to_string(from), std::to_string(to),
        from == to ? "" : fmt::format("{:+}", static_cast<int64_t>(to) - static_cast<int64_t>(from)));
  };
  row("", "as it is", "changed", "");
  count("kernels", x.kernels.size(), y.kernels.size());
  const std::map<std::string, size_t> by_x = x.by_kind(), by_y = y.by_kind();
  std::map<std::string, size_t> kinds = by_x;
  kinds.insert(by_y.begin(), by_y.end());
  for (const auto& [kind, unused] : kinds)
    count("  " + printable(kind), by_x.contains(kind) ? by_x.at(kind) : 0, by_y.contains(kind) ? by_y.at(kind) : 0);
  row("bytes moved", size_text(x.bytes), size_text(y.bytes), change_text(x.bytes, y.bytes));
  row("operations", flops_text(x.flops), flops_text(y.flops), change_text(x.flops, y.flops));
  row("peak memory", human_bytes(x.peak), human_bytes(y.peak),
      change_text(static_cast<double>(x.peak), static_cast<double>(y.peak)));
  auto times = [&](const std::string& name, double from, double to) {
    if (from > 0 || to > 0) row(name, time_text(from), time_text(to), change_text(from, to));
  };
  if (w.timed) {
    times("time of one call", x.time(), y.time());
    times("  of it measured", x.measured, y.measured);
    times("  predicted", x.foretold, y.foretold);
    times("  between kernels", x.between, y.between);
  }
  row("time by the model", time_text(x.seconds), time_text(y.seconds), change_text(x.seconds, y.seconds));
}

void print_kernels(const WhatIf& w, size_t most) {
  std::map<std::string, size_t> states;
  for (const WhatIfPair& p : w.others) ++states[state_of(p)];
  fmt::print("kernels: {} same, {} changed, {} gone, {} new\n", w.same, states["changed"], states["gone"],
             states["new"]);
  if (w.others.empty()) return;
  fmt::print("{:>12} {:>12}  {:<8} {}{}\n", "as it is", "changed", "", "kernels that the time depends on",
             w.timed ? " (~: predicted)" : "");
  for (size_t k = 0; k < w.others.size() && k < most; ++k) {
    const WhatIfPair& p = w.others[k];
    const WhatIfKernel *x = kernel_of(w.as_is, p.as_is), *y = kernel_of(w.changed, p.changed);
    const WhatIfKernel& one = y ? *y : *x;
    auto time = [&](const WhatIfKernel* of) -> std::string {
      if (!of) return "";
      return w.timed ? (of->measured ? "" : "~") + time_text(of->time) : time_text(of->seconds);
    };
    fmt::print("{:>12} {:>12}  {:<8} {}{} ({}){}{}\n", time(x), time(y), state_of(p), printable(x ? x->name : y->name),
               x && y && x->name != y->name ? " → " + printable(y->name) : "", one.kind,
               one.source.known() ? "  " + printable(one.source.brief()) : "",
               one.op_name.empty() ? "" : "  " + printable(one.op_name));
  }
  if (w.others.size() > most) fmt::print("… and {} more (--most)\n", w.others.size() - most);
}

// What ran is the last stage of the module's folder; of a file by itself what a profile that is named holds.
WhatIfBase base_of(const WhatIfArgs& a, const StartStage& start, const Module& m) {
  WhatIfBase out;
  if (a.profile == "none" || (a.profile.empty() && !start.recording)) return out;
  if (start.recording)
    out.ran = last_stage(*start.recording, fmt::format("{:04}", start.recording->module_number));
  else
    out.ran = std::move(looked_at(fmt::format("{}:{}", a.profile, m.name())).at(0));
  if (!out.ran.unreadable.empty()) return out;
  std::vector<LookedAt> all;
  all.push_back(std::move(out.ran));
  std::vector<MeasuredRun> runs =
      measured_runs({a.profile, a.profile_device}, start.recording ? start.recording->folder : "", all);
  out.ran = std::move(all[0]);
  if (!runs.empty()) out.run = std::move(runs[0]);
  if (out.run && out.run->why_not.empty()) out.ran.load();
  return out;
}

// Kernels as they ran are found again where the passes are told what XLA's autotuner chose.
void take_base(const WhatIfBase& base, const StartStage& start, WhatIfOptions* options,
               std::vector<std::string>* notes) {
  if (!base.run) return;
  if (!base.run->why_not.empty()) {
    notes->push_back(fmt::format("not measured: {}: {}", base.run->file, base.run->why_not));
    return;
  }
  const Target target = start.recording ? target_of(*start.recording, "") : Target();
  options->measured = WhatIfMeasured{base.ran.module.get(), target.spec_known ? target.spec : default_device_spec(),
                                     base.run->of, base.run->between};
  notes->push_back(fmt::format("measured by {} ({}){}", base.run->file, base.run->joined,
                               base.run->runs ? "" : "; all calls: how many there were is not known"));
  try {
    std::string told;
    options->autotune_results = autotune_results_for("", start.recording ? &*start.recording : nullptr, &told);
  } catch (const Failure& f) {
    notes->push_back(fmt::format("no choices of XLA's autotuner: {}", first_line(f.what())));
  }
}

}  // namespace

int cmd_whatif(const WhatIfArgs& a) {
  WhatIfOptions options;
  options.change = change_of(a);
  options.verify = !a.no_verify;
  if (!a.gpu.empty()) gpu_options(a.gpu);  // is there such a one?
  const StartStage start = start_stage(a.file);
  const std::unique_ptr<Module> m = load_verified(start.spec, !a.no_verify);
  if (const std::string why = already_optimised(*m); !why.empty())
    fail(FailureKind::kUsage, "{} is already optimised: {}; whatif starts from a module before the passes", a.file,
         why);
  if (start.recording) options.gpu = gpu_of(*start.recording);
  std::vector<std::string> said;
  const WhatIfBase base = base_of(a, start, *m);
  take_base(base, start, &options, &said);
  WhatIf w = [&] {
    Progress progress("replaying " + a.file);
    options.progress = [&](size_t done, size_t all, const std::string& pass) { progress.at(done, all, pass); };
    return what_if(*m, options);
  }();
  const std::string unsaid = not_partitioned(*m);
  for (const std::string& note : {unsaid, start.said})
    if (!note.empty()) w.notes.push_back(note);
  w.notes.insert(w.notes.end(), said.begin(), said.end());
  const bool differs = !w.first_difference.empty() || w.as_is.seconds != w.changed.seconds;
  if (a.json) {
    print_json(what_if_json(w, *m, a, options.change, base));
    return differs ? kYes : kNo;
  }
  if (!unsaid.empty()) fmt::print("not partitioned: {}\n", printable(unsaid));
  fmt::print("{}, {}: {}\n", printable(m->name()), w.as_is.gpu, printable(options.change.in_words()));
  if (w.concerned.empty())
    fmt::print("all {} pass runs concerned\n", w.changed.pass_runs);
  else
    fmt::print("the same up to {}: {} of {} pass runs\n", w.concerned, w.shared_runs, w.changed.pass_runs);
  fmt::print("{}\n",
             w.first_difference.empty() ? "no stage differs" : "first stage that differs: " + w.first_difference);
  print_figures(w);
  print_kernels(w, a.most);
  for (const std::string& note : w.notes)
    if (note != unsaid) fmt::print("{}\n", printable(note));
  return differs ? kYes : kNo;
}

}  // namespace hlo
