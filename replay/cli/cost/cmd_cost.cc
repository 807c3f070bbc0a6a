// cost: what a module's instructions cost by counting; of a run a row a module.
#include <algorithm>
#include <map>

#include "ir/query/source_lines.h"
#include "ir/verify/verifier.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/measured.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/start/target.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/kernels/measured_bounds.h"
#include "replay/report/overview/answers.h"
#include "replay/report/overview/module_findings.h"

namespace hlo {
namespace {

// Seconds that a profile has for an instruction of module number `which`; null where it has none or there is none.
struct CostProfile {
  const std::optional<MeasuredTimes>& times;
  size_t which;
  std::optional<double> of(std::string_view instruction) const {
    return times ? times->seconds(which, instruction) : std::nullopt;
  }
  MeasuredSeconds function() const {
    return times ? [this](std::string_view instruction) { return of(instruction); } : MeasuredSeconds();
  }
};

void print_cost(const LookedAt& l, const ModuleCost& cost, const DeviceSpec& device, const CostArgs& a,
                const CostProfile& profile, const std::string& platform) {
  const size_t most = a.most;
  const Module& m = *l.module;
  auto measured = [&](std::string_view name) -> std::string {
    if (!profile.times) return "";
    std::optional<double> seconds = profile.of(name);
    return fmt::format("{:>12} ", seconds ? time_text(*seconds) : "-");
  };
  // What is measured is not foretold.
  const ExpectedTime expected = expected_time(m, cost, device, platform);
  const bool foretold = !profile.times && expected.why_not.empty();
  auto foretold_text = [&](InstId i) -> std::string {
    if (!foretold) return "";
    const ExpectedKernel* e = expected.of(i);
    return fmt::format("{:>12} ", e ? time_text(e->seconds) : "unknown");
  };
  fmt::print("{}{:>12} {}{:>8} {:>12} {:>12} {:>8}  {}\n", profile.times ? fmt::format("{:>12} ", "measured") : "",
             "at least", foretold ? fmt::format("{:>12} ", "expected") : "", "times", "bytes", "operations", "bound",
             "instruction");
  const UserFrames lines = user_frames(m, cost);
  std::map<std::string, double> by_class;
  std::map<std::string, std::string> usual;  // of the dearest of a class
  for (const KernelCost& k : cost.kernels) {
    const std::string kind = kernel_class(m, k.inst);
    by_class[kind] += k.seconds;
    if (std::optional<MeasuredOverBound> over = usual_over_bound(m, k, device); over && !usual.contains(kind))
      usual[kind] = fmt::format("; such as the most expensive took {} (on an {})", in_words(*over), kMeasuredCard);
  }
  std::vector<std::pair<double, const KernelCost*>> order;  // as measured, else as they are dear
  for (const KernelCost& k : cost.kernels) order.emplace_back(profile.of(m.inst_name(k.inst)).value_or(0), &k);
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  for (size_t n = 0; n < order.size() && n < most; ++n) {
    const KernelCost& k = *order[n].second;
    const SourceLine line = lines.kernel(k.inst);
    std::string from = kernel_op_name(m, k.inst);
    fmt::print("{}{:>12} {}{:>8} {:>12.4g} {:>12.4g} {:>8}  {} ({}){}{}\n", measured(m.inst_name(k.inst)),
               k.known || k.seconds > 0 ? time_text(k.seconds) : "unknown", foretold_text(k.inst), k.times,
               k.cost.bytes(), k.cost.flops + k.cost.transcendentals, k.known ? limit_name(k) : "unknown",
               printable(m.inst_name(k.inst)), op_text(m.op(k.inst)),
               line.known() ? "  " + printable(line.brief()) : "", from.empty() ? "" : "  " + printable(from));
    if (a.frames) print_frames(kernel_source_stack(m, k.inst));
  }
  if (cost.kernels.size() > most) fmt::print("… and {} more (--most)\n", cost.kernels.size() - most);
  for (const auto& [name, seconds] : by_class)
    if (seconds > 0.01 * cost.sum)
      fmt::print("{:>5.1f} % of {}: {}{}\n", 100 * seconds / cost.sum,
                 cost.beside ? "the kernels' bounds together" : "the bound", name, usual[name]);
  if (cost.beside)
    fmt::print(
        "{} asynchronous operation{} may overlap with the others: the bound is the others' sum, or the longest of "
        "these\n",
        cost.beside, cost.beside == 1 ? "" : "s");
  if (cost.loops_without_trip_count)
    fmt::print("{} loops say no trip count: their bodies are counted once\n", cost.loops_without_trip_count);
  fmt::print("{:.4g} operations, {:.4g} transcendental, {:.4g} bytes; {} needs at least {}\n", cost.all.flops,
             cost.all.transcendentals, cost.all.bytes(), device.name, bound_text(cost.seconds, cost.unknown_calls));
  if (profile.times) return;
  if (foretold) fmt::print("{}, by what such kernels reach\n", expected_text(expected));
  for (const std::string& line : expected_in_words(expected, device)) fmt::print("{}\n", printable(line));
}

void require_verified(const LookedAt& l) {
  std::vector<VerifyError> errors = verify_module(*l.module);
  if (errors.empty()) return;
  std::string text;
  for (const VerifyError& e : errors) text += fmt::format("{}: {} [{}]\n", l.stage, e.message, e.rule);
  fail(FailureKind::kInvalid, "{}the module does not verify; --no-verify continues all the same", text);
}

}  // namespace

int cmd_cost(const CostArgs& a) {
  std::optional<Target> named;
  if (!a.gpu.empty()) named = named_target(a.gpu);
  const DeviceSpec other = named ? named->spec : default_device_spec();
  std::vector<LookedAt> all = looked_at(a.file);
  const bool run = all.size() > 1;
  Json list = Json::array();
  std::vector<std::pair<double, std::string>> table;  // by time
  size_t failed = 0;
  ModuleCost whole;
  LookedAt sums;
  sums.stage = a.file;
  std::optional<MeasuredTimes> times;
  if (!a.profile.empty()) times.emplace(ProfileChoice{a.profile, a.profile_device}, all);
  DeviceSpec sheet = other;
  for (LookedAt& l : all) {
    const CostProfile profile{times, static_cast<size_t>(&l - all.data())};
    std::optional<Target> target;
    if (l.recording) target = target_of(*l.recording, a.gpu);
    const DeviceSpec device = target ? target->spec : other;
    const std::string platform = target ? target->platform : "";
    try {
      if (!l.unreadable.empty()) fail(FailureKind::kIo, "{}", l.unreadable);
      l.load();
      if (!a.no_verify) require_verified(l);
      ModuleCost cost = module_cost(*l.module, device);
      whole.all += cost.all, whole.seconds += cost.seconds, whole.sum += cost.sum, sheet = device;
      whole.unknown_calls += cost.unknown_calls, whole.beside += cost.beside;
      whole.loops_without_trip_count += cost.loops_without_trip_count;
      if (a.json)
        list.push_back(cost_json(about(l), &cost, device, profile.function(), platform));
      else if (!run)
        print_cost(l, cost, device, a, profile, platform);
      table.emplace_back(
          cost.seconds,
          fmt::format("{:>12} {:>12} {:>12} {:>8}  {:>8} {}{}", time_text(cost.seconds), size_text(cost.all.bytes()),
                      flops_text(cost.all.flops + cost.all.transcendentals), cost.kernels.size(), printable(l.selector),
                      printable(l.name()),
                      cost.loops_without_trip_count ? "  (loops of unknown length counted once)" : "") +
              (cost.unknown_calls ? fmt::format("  (and {} calls of unknown cost)", cost.unknown_calls) : ""));
    } catch (const Failure& e) {
      // One module does not keep the others from being told.
      if (!run || interrupted()) throw;
      ++failed;
      l.unreadable = first_line(e.what()), l.module = nullptr;
      if (a.json) list.push_back(cost_json(about(l), nullptr, device, profile.function()));
      table.emplace_back(-1, fmt::format("{:>12} {:>12} {:>12} {:>8}  {:>8} {}: {}", "unknown", "", "", "",
                                         printable(l.selector), printable(l.name()), printable(l.unreadable)));
    }
    l.module = nullptr;
  }
  if (a.json) {
    // One module's keys stand in front, as they always did; of a run its sums.
    Json out = run ? cost_json(about(sums), &whole, sheet, {}) : list[0];
    out["modules"] = list;
    print_json(out);
  } else if (run) {
    std::stable_sort(table.begin(), table.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
    fmt::print("{:>12} {:>12} {:>12} {:>8}  {:>8} {}\n", "at least", "bytes", "operations", "kernels", "module",
               "name");
    for (const auto& row : table) fmt::print("{}\n", row.second);
  }
  if (times && !a.json)
    for (const std::string& line : times->in_words()) fmt::print("{}\n", printable(line));
  return failed ? kBad : kYes;
}

}  // namespace hlo
