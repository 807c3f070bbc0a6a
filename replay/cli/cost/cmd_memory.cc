// memory: what a module holds on its device, and what is alive where most of it is.
#include <algorithm>
#include <map>

#include "ir/program/buffer.h"
#include "replay/cli/command.h"
#include "replay/cli/cost/memory_parts.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/start/target.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/memory/memory_orders.h"
#include "replay/report/memory/memory_report.h"
#include "replay/report/overview/answers.h"

namespace hlo {
namespace {

std::string share_of(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:>4.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole)) : "";
}

// What a profile says of the module, and of what memory holds in one run.
struct ReportTimes {
  std::optional<MeasuredRun> run;
  MeasuredMemory memory;
  bool told() const { return memory.step > 0; }
};

std::string life_text(const std::optional<MeasuredLife>& life) {
  if (!life) return "unknown";
  return fmt::format("{} to {}{}", time_text(life->begins), time_text(life->ends),
                     life->turns > 1.5 ? fmt::format(", in {:.0f} turns", life->turns) : "");
}

void print_measured(const ReportTimes& times) {
  if (!times.run) return;
  const MeasuredRun& run = *times.run;
  if (!run.why_not.empty())
    fmt::print("not measured: {}: {}\n", printable(run.file), printable(run.why_not));
  else if (!times.told())
    fmt::print("when it lives is unknown: {} does not distinguish the runs of the module\n", printable(run.file));
  else
    fmt::print("times are since the begin of a run of {}, measured by {} ({})\n", time_text(times.memory.step),
               printable(run.file), printable(run.joined));
}

// Of the values that are summed under one key how many there are, and the largest of them.
std::string largest_of(const MemoryReport& r, const std::string& by, const std::string& key) {
  if (by == "value") return {};
  size_t count = 0;
  const MemoryValue* largest = nullptr;
  for (const MemoryValue& v : r.alive) {
    if (alive_key(v, by) != key) continue;
    ++count;
    if (!largest || v.bytes > largest->bytes) largest = &v;
  }
  if (!largest) return {};
  return count == 1 ? fmt::format("  {} {}", printable(largest->name()), printable(largest->shape))
                    : fmt::format("  {} values, the largest {} {} {}", count, printable(largest->name()),
                                  human_bytes(largest->bytes), printable(largest->shape));
}

// Those that are largest; with a profile, when they live.
void print_values(const MemoryReport& r, const ReportTimes& times, const MemoryArgs& a) {
  fmt::print("largest of them{}:\n", times.told() ? ", and when they live" : "");
  for (size_t k = 0; k < r.alive.size() && k < std::min<size_t>(a.most, 10); ++k) {
    const MemoryValue& v = r.alive[k];
    fmt::print("  {:>10} {:<9} {:<36} {}{}  {}\n", human_bytes(v.bytes), v.kind, printable(v.name()),
               printable(v.shape), times.told() ? fmt::format("  {}", life_text(times.memory.lives[k])) : "",
               printable(v.source.known() ? v.source.brief() : v.op_name));
  }
}

Json orders_json(const std::optional<OrderPeaks>& o, const std::vector<OrderPass>& scheduling,
                 const std::vector<std::string>& flags) {
  if (!o) return nullptr;
  Json passes = Json::array();
  for (const OrderPass& p : scheduling)
    passes.push_back({{"pass", p.pass}, {"stage", p.stage}, {"before_bytes", p.before}, {"after_bytes", p.after}});
  const bool known = o->why_not.empty();
  auto bytes = [&](int64_t b) { return known ? Json(b) : Json(); };
  return {{"as_it_is_bytes", bytes(o->as_it_is)},
          {"list_bytes", bytes(o->peaks[0])},
          {"depth_first_bytes", bytes(o->peaks[1])},
          {"post_order_bytes", bytes(o->peaks[2])},
          {"least", known ? Json(OrderPeaks::kOrders[o->least]) : Json()},
          {"saved_bytes", bytes(o->saved())},
          {"passes", passes},
          {"flags", flags},
          {"why_not", o->why_not}};
}

void print_orders(const OrderPeaks& o, const std::vector<OrderPass>& scheduling,
                  const std::vector<std::string>& flags) {
  if (!o.why_not.empty()) {
    fmt::print("by other orders: unknown: {}\n", printable(o.why_not));
    return;
  }
  fmt::print("by the order of its instructions, as XLA counts to choose one (no assignment of buffers):\n");
  fmt::print("  {:>10}  as it is\n", human_bytes(o.as_it_is));
  for (size_t k = 0; k < o.peaks.size(); ++k)
    fmt::print("  {:>10}  {}\n", human_bytes(o.peaks[k]), OrderPeaks::kOrders[k]);
  for (const OrderPass& p : scheduling)
    fmt::print("  pass {} took it from {} to {}\n", printable(p.pass), human_bytes(p.before), human_bytes(p.after));
  if (o.saved() == 0) {
    fmt::print("  none of these needs less than it is\n");
    return;
  }
  fmt::print("  {} less: {}{}\n", human_bytes(o.saved()), OrderPeaks::kOrders[o.least],
             flags.empty() ? "" : fmt::format("; not tried: {}", fmt::join(flags, ", ")));
}

// How much it is in all.
void print_report_head(const LookedAt& l, const MemoryReport& r) {
  fmt::print("{}, {}: {} allocated ({} arguments, {} constants, {} outputs, {} temporaries), by {}\n",
             printable(l.name()), printable(l.stage), human_bytes(r.allocated), human_bytes(r.arguments),
             human_bytes(r.constants), human_bytes(r.outputs), human_bytes(r.temporaries), r.from);
  if (!r.too_large.empty()) fmt::print("{}\n", r.too_large);
}

// What each stage needs; of a module alone there is none.
std::vector<StagePeak> peaks_of_stages(const MemoryArgs& a, const LookedAt& l, const Target& target) {
  if (!l.recording) fail(FailureKind::kUsage, "--stages and --try go with a folder of stages; {} is none", a.file);
  Progress progress("adding up memory, stage by stage");
  return stage_peaks(*l.recording, target, [&](size_t done, size_t all) { progress.at(done, all, "stages"); });
}

void print_report(const LookedAt& l, const MemoryReport& r, const ReportTimes& times, const MemoryArgs& a) {
  print_report_head(l, r);
  if (r.host)
    fmt::print("and {} in the host's memory{}\n", human_bytes(r.host),
               r.host_peak ? fmt::format(", {} of it at once", human_bytes(r.host_peak)) : "");
  if (r.elsewhere > r.host)
    fmt::print("and {} in memories on the chip or of the host\n", human_bytes(r.elsewhere - r.host));
  if (r.estimate) fmt::print("an estimate: the compiler schedules and copies before it assigns memory\n");
  for (const std::string& n : r.notes) fmt::print("note: {}\n", printable(n));
  if (r.alive.empty()) {
    fmt::print("what is alive at the peak is unknown\n");
  } else {
    fmt::print("{} alive at the peak{}{}{}, by {}:\n", human_bytes(r.peak),
               r.peak_at.empty() ? "" : ", at " + printable(r.peak_at),
               times.memory.peak
                   ? fmt::format(", measured at {} of {}", time_text(*times.memory.peak), time_text(times.memory.step))
                   : "",
               r.host_at_peak ? ", and " + human_bytes(r.host_at_peak) + " in the host's memory" : "", a.by);
    auto groups = alive_by(r, a.by);
    for (size_t k = 0; k < groups.size() && k < a.most; ++k)
      fmt::print("  {:>10} {}  {}{}\n", human_bytes(groups[k].second), share_of(groups[k].second, r.peak),
                 printable(groups[k].first), largest_of(r, a.by, groups[k].first));
    if (groups.size() > a.most) fmt::print("  … and {} more (--most)\n", groups.size() - a.most);
    if (a.by != "value" || times.told()) print_values(r, times, a);
  }
  fmt::print("largest buffers:\n");
  for (size_t k = 0; k < r.allocations.size() && k < std::min<size_t>(a.most, 10); ++k) {
    const MemoryAllocation& b = r.allocations[k];
    fmt::print("  {:>10} {:<9} {} value{}, the largest {}\n", human_bytes(b.bytes), b.kind, b.values,
               b.values == 1 ? "" : "s", printable(b.largest));
  }
  print_measured(times);
}

// What is asked of one module.
struct ModuleMemory {
  std::optional<MemoryReport> report;
  ReportTimes times;
  std::optional<OrderPeaks> orders;
  std::vector<OrderPass> scheduling;
  std::vector<std::string> flags;
  std::vector<StagePeak> stages;
  Target target;
};

// Throws Failure where it cannot be read. `named`: the card that was asked for.
void ask_module(const MemoryArgs& a, const std::optional<Target>& named, LookedAt& l, ModuleMemory* out) {
  if (l.unreadable.empty()) l.load();
  if (!l.module) return;
  const Recording* recording = l.recording ? &*l.recording : nullptr;
  std::optional<Target> card = named;
  if (card && recording) card = target_of(*recording, a.gpu);
  const std::optional<MeasuredRun>& run = out->times.run;
  const bool timed = run && run->why_not.empty() && run->when;
  out->report = memory_report(*l.module, recording, card ? &*card : nullptr, timed);
  out->target = card ? *card : recording ? target_of(*recording, "") : Target();
  if (a.stages || a.tries) out->stages = peaks_of_stages(a, l, out->target);
  if (a.orders) {
    out->orders = order_peaks(*l.module, out->target);
    if (recording) out->scheduling = order_passes(*recording, out->target);
    out->flags = order_flags(out->target, out->scheduling);
  }
  if (timed) out->times.memory = measured_memory(*l.module, *out->report, run->when, run->step);
}

Json memory_module_json(const MemoryArgs& a, LookedAt& l, const ModuleMemory& m) {
  Json out = memory_json(about(l), m.report ? &*m.report : nullptr, a.by, m.times.told() ? &m.times.memory : nullptr);
  out["measured"] = measured_json(m.times.run);
  out["orders"] = orders_json(m.orders, m.scheduling, m.flags);
  if (a.stages) out["stages"] = tell_stage_peaks(m.stages, a.most, false);
  if (a.tries && m.report) out["tried"] = try_levers(a, l, *m.report, m.target, m.stages, false);
  return out;
}

void print_memory_module(const MemoryArgs& a, LookedAt& l, const ModuleMemory& m) {
  if (a.stages || a.tries)
    print_report_head(l, *m.report);
  else
    print_report(l, *m.report, m.times, a);
  if (a.stages) tell_stage_peaks(m.stages, a.most, true);
  if (a.tries) try_levers(a, l, *m.report, m.target, m.stages, true);
  if (m.orders) print_orders(*m.orders, m.scheduling, m.flags);
}

std::string row_of_module(const LookedAt& l, const std::optional<MemoryReport>& r) {
  const std::string head = fmt::format("{:>8} {:<32}", printable(l.selector), printable(l.name()));
  if (!r) return fmt::format("{} unknown: {}", head, printable(l.unreadable));
  return fmt::format("{} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}{}", head, human_bytes(r->allocated),
                     human_bytes(r->arguments), human_bytes(r->outputs), human_bytes(r->temporaries),
                     r->peak ? human_bytes(r->peak) : "unknown", r->host ? human_bytes(r->host) : "",
                     r->too_large.empty() ? "" : "  " + r->too_large);
}

}  // namespace

int cmd_memory(const MemoryArgs& a) {
  if (a.engine.installed() && !a.tries) fail(FailureKind::kUsage, "--engine goes with --try");
  if (!a.out.empty() && !a.tries) fail(FailureKind::kUsage, "-o goes with --try");
  if (a.by != "line" && a.by != "scope" && a.by != "value")
    fail(FailureKind::kUsage, "--by is line, scope or value, not '{}'", a.by);
  std::optional<Target> named;
  if (!a.gpu.empty()) named = named_target(a.gpu);
  std::optional<MemoryLog> log;
  if (!a.log.empty()) log = read_memory_log(read_file(a.log));
  std::vector<LookedAt> all = looked_at(a.file);
  if ((a.stages || a.tries) && all.size() > 1)
    fail(FailureKind::kUsage, "{0} holds {1} modules; --stages and --try are of one: {0}:MODULE", a.file, all.size());
  std::vector<HeldMemory> held;
  const std::vector<MeasuredRun> runs = runs_beside({a.profile, a.profile_device}, all);
  Json list = Json::array();
  size_t failed = 0;
  MemoryLogAnswer told{nullptr, true};
  auto tell_log = [&] { told = tell_memory_log(a.log, *log, held, a.most, !a.json); };
  // With a log the module itself is shown where more was asked of it, after what the log says.
  const bool more = a.stages || a.tries || a.orders, log_first = log && more && all.size() == 1 && !a.json;
  // Those that need most come first.
  std::vector<std::pair<int64_t, std::string>> table;
  for (LookedAt& l : all) {
    ModuleMemory m;
    if (!runs.empty()) m.times.run = runs[static_cast<size_t>(&l - all.data())];
    try {
      ask_module(a, named, l, &m);
    } catch (const Failure& e) {
      if (all.size() == 1 || interrupted()) throw;
      l.unreadable = first_line(e.what()), m.report = std::nullopt;
    }
    if (all.size() == 1 && !m.report) fail(FailureKind::kIo, "{}", l.unreadable);
    failed += !m.report;
    if (log && m.report) held.push_back({l.selector, l.name(), *m.report, allocation_sources(*l.module, *m.report)});
    if (log_first) tell_log();
    if (a.json)
      list.push_back(memory_module_json(a, l, m));
    else if (all.size() == 1 && (!log || more))
      print_memory_module(a, l, m);
    else
      table.emplace_back(m.report ? m.report->allocated : -1, row_of_module(l, m.report));
    l.module = nullptr;
  }
  std::stable_sort(table.begin(), table.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  if (!table.empty() && !log)
    fmt::print("{:>8} {:<32} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "module", "name", "allocated", "arguments",
               "outputs", "temporaries", "alive", "in host");
  for (const auto& row : table)
    if (!log) fmt::print("{}\n", row.second);
  if (log && !log_first) tell_log();
  if (a.json) print_json({{"file", a.file}, {"by", a.by}, {"modules", list}, {"log", told.json}});
  return failed ? kBad : told.joined ? kYes : kNo;
}

}  // namespace hlo
