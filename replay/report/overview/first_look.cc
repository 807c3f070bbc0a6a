#include "replay/report/overview/first_look.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "ir/program/buffer.h"
#include "ir/query/source_lines.h"
#include "replay/os/terminal.h"
#include "replay/report/compile/compile_time.h"
#include "replay/report/findings/findings.h"
#include "replay/report/kernels/expected.h"
#include "replay/report/kernels/measured_bounds.h"
#include "replay/report/overview/module_findings.h"

namespace hlo {
namespace {

std::string compile_text(int64_t us) { return us < 0 ? "" : time_text(static_cast<double>(us) * 1e-6); }

constexpr size_t kDearest = 10, kOddest = 8, kOfOneKind = 2, kAlive = 6, kPasses = 6;

std::string cut_text(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// Where it comes from, for a narrow column: source line, else the end of its scope.
std::string where_from(const SourceLine& line, const std::string& op) {
  size_t slash = op.rfind('/', op.rfind('/') == std::string::npos ? 0 : op.rfind('/') - 1);
  std::string last = slash == std::string::npos ? op : op.substr(slash + 1);
  return cut_text(printable(line.known() ? fmt::format("{}  {}", line.brief(), last) : last), 70);
}

// `HOST`, of `HOST:0` and the like.
std::set<std::string> hosts_of(const MeasuredRun& run) {
  std::set<std::string> out;
  for (const MeasuredDevice& d : run.devices)
    if (d.why_not.empty()) out.insert(d.host);
  return out;
}

// In place of nothing: what a profile says of one call, in front of what it needs at least.
void add_measured(const MeasuredRun& run, LookSection* out) {
  if (!run.why_not.empty()) {
    out->rows.push_back({printable(fmt::format("not measured: {}: {}", run.file, run.why_not))});
    return;
  }
  std::string text =
      fmt::format("{}: {} of kernels", run.runs ? "one call, measured" : "all calls, measured", time_text(run.seconds));
  if (run.between > 0) text += fmt::format(" and {} between them", time_text(run.between));
  text += run.runs ? fmt::format(", the average of {}", run.runs) : "; how many there were is not known";
  out->rows.push_back({printable(fmt::format("{} ({}; {})", text, run.file, run.joined))});
  for (const std::string& line : devices_in_words(run)) out->rows.push_back({printable("  " + line)});
}

LookSection head_of(const ModuleOverview& o, const std::optional<MeasuredRun>& measured) {
  LookSection out;
  const Recording& r = *o.recording;
  if (const std::string why = does_not_fit(o.memory ? o.memory->allocated : 0, o.target); !why.empty())
    out.rows.push_back({why});
  size_t stages = 0;
  for (const StageRow& row : r.rows) stages += !row.file.empty();
  out.rows.push_back({fmt::format("module {:04} {}: {} stages, {}", r.module_number, printable(r.module_name), stages,
                                  r.source == "xla" ? "dumped by XLA" : "replayed through " + printable(r.pipeline))});
  std::string shared;
  if (o.last)
    shared = fmt::format("; {} replica{}, {} partition{}", o.last->config().replica_count,
                         o.last->config().replica_count == 1 ? "" : "s", o.last->config().num_partitions,
                         o.last->config().num_partitions == 1 ? "" : "s");
  out.rows.push_back({fmt::format(
      "{}{}{}", r.source == "xla" || o.target.spec_known ? "compiled for " + o.target.in_words() : "for no device",
      shared, o.compile_us < 0 ? "" : fmt::format("; passes took {}", compile_text(o.compile_us)))});
  if (const std::string words = compile_time_in_words(r); !words.empty())
    out.rows.push_back({words + " (compile-time shows what of)"});
  if (!o.last) {
    out.rows.push_back({fmt::format("its last stage cannot be read: {}", printable(o.unreadable))});
    return out;
  }
  const ModuleCost& c = o.cost;
  if (measured) add_measured(*measured, &out);
  out.rows.push_back(
      {fmt::format("{}: {} instructions, {} kernels, {} parameters", printable(o.stage), o.last->instruction_count(),
                   c.kernels.size(), o.last->comp(o.last->entry()).params.size())});
  // What was measured is not foretold.
  const bool seen = measured && measured->why_not.empty();
  const ExpectedTime expected = seen ? ExpectedTime{} : expected_time(*o.last, c, o.target.spec, o.target.platform);
  const std::string about = seen ? "" : expected_text(expected);
  out.rows.push_back(
      {fmt::format("one call: {}, {} moved; at least {} on {}{}{}", flops_text(c.all.flops + c.all.transcendentals),
                   size_text(c.all.bytes()), bound_text(c.seconds, c.unknown_calls), o.target.spec_known ? "" : "an ",
                   o.target.spec.name, about.empty() ? "" : ", " + about)});
  if (!seen)
    for (const std::string& line : expected_in_words(expected, o.target.spec))
      out.rows.push_back({printable("  " + line)});
  if (!o.target.spec_known)
    out.rows.push_back({fmt::format("  (bounds are an {}'s: no data sheet of the target is known; --gpu names one)",
                                    o.target.spec.name)});
  if (c.loops_without_trip_count)
    out.rows.push_back(
        {fmt::format("  ({} loop{} without a known trip count, counted once: the times of what they run are too small)",
                     c.loops_without_trip_count, c.loops_without_trip_count == 1 ? "" : "s")});
  return out;
}

// Kernels of one line that do the same work are one row.
struct LikeKernels {
  const KernelCost* first = nullptr;
  size_t count = 0;
  double seconds = 0, measured = 0;
};

std::vector<LikeKernels> like_kernels(const Module& m, const ModuleCost& cost, const UserFrames& frames,
                                      const MeasuredRun* run) {
  std::vector<LikeKernels> out;
  std::map<std::tuple<std::string, std::string, double, double, double>, size_t> known;
  for (const KernelCost& k : cost.kernels) {
    const double seen = run ? run->of(m.inst_name(k.inst)).value_or(0) : 0;
    if (k.seconds <= 0 && seen <= 0) continue;
    auto [at, fresh] = known.try_emplace(
        {frames.kernel(k.inst).text(), kernel_class(m, k.inst), k.times, k.cost.bytes(), k.cost.flops}, out.size());
    if (fresh) out.push_back({&k, 0, 0, 0});
    LikeKernels& like = out[at->second];
    ++like.count, like.seconds += k.seconds, like.measured += seen;
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) {
    return std::tuple(x.measured, x.seconds) > std::tuple(y.measured, y.seconds);
  });
  return out;
}

// Rows of a stack below one that names its first line.
void add_frames(const std::vector<SourceLine>& stack, InstId inst, LookSection* out) {
  for (const SourceLine& l : stack)
    out->rows.push_back({"                 " + printable(frame_text(l)), inst, l.brief()});
}

// Time and share of a row: measured where a profile has it, and behind it the bound.
std::string times_of(const LikeKernels& like, double sum, const MeasuredRun* run) {
  const double share = 100 * (run ? like.measured : like.seconds) / std::max(sum, 1e-300);
  if (!run) return fmt::format("  {:>11} {:>3.0f} %", time_text(like.seconds), share);
  return fmt::format("  {:>11} {:>3.0f} % {:>11}", like.measured > 0 ? time_text(like.measured) : "-", share,
                     time_text(like.seconds));
}

LookSection dearest_of(const ModuleOverview& o, Provenance& stages, const LookOptions& options) {
  const bool with_frames = options.frames;
  const MeasuredRun* run = options.measured && options.measured->why_not.empty() ? &*options.measured : nullptr;
  const double sum = run ? run->seconds + run->between : o.cost.sum;
  LookSection out;
  const Module& m = *o.last;
  const UserFrames frames = user_frames(m, o.cost);
  out.heading = run ? "most expensive kernels: measured time, then its lower bound (equal kernels grouped):"
                    : "most expensive kernels by their lower bound (equal kernels grouped):";
  for (const std::string& helper : frames.helpers())
    out.rows.push_back({printable(
        fmt::format("  (most of the time has {}, a helper of several: the lines that call it are shown)", helper))});
  std::vector<LikeKernels> list = like_kernels(m, o.cost, frames, run);
  if (run && run->between > 0)
    out.rows.push_back({fmt::format("  {:>11} {:>3.0f} % {:>11}  between kernels: launches, the host",
                                    time_text(run->between), 100 * run->between / sum, "")});
  for (size_t k = 0; k < list.size() && k < kDearest; ++k) {
    const KernelCost& c = *list[k].first;
    std::string runs = list[k].count == 1 ? "" : fmt::format("{} like ", list[k].count);
    if (c.times != 1) runs += fmt::format("{:.0f} × ", c.times);
    // What a pass made without metadata has those of what it was made of.
    SourceLine line = frames.kernel(c.inst);
    std::string op = kernel_op_name(m, c.inst);
    std::vector<SourceLine> stack = kernel_source_stack(m, c.inst);
    if (!line.known()) {
      const InstId main = main_operation(m, c.inst);
      const FindingEvidence e = stages.made(main, [](const Module&, InstId) { return true; });
      stack = e.stack, line = frames.of(stack), op = e.op_name;
      if (!line.known()) line = e.line;
    }
    out.rows.push_back(
        {fmt::format("{}  {:<7} {:<12} {}{}: {}, {}{}  {}", times_of(list[k], sum, run), limit_name(c),
                     kernel_class(m, c.inst), runs, printable(cut_text(std::string(m.inst_name(c.inst)), 40)),
                     size_text(c.cost.bytes()), flops_text(c.cost.flops + c.cost.transcendentals),
                     c.times_known ? "" : " (in a loop of unknown length)", where_from(line, op)),
         c.inst, line.brief()});
    if (with_frames) add_frames(stack, c.inst, &out);
  }
  std::string usual;
  std::set<std::string> told;
  for (size_t k = 0; k < list.size() && k < kDearest; ++k) {
    const std::string kind = kernel_class(m, list[k].first->inst);
    const std::optional<MeasuredOverBound> over = usual_over_bound(m, *list[k].first, o.target.spec);
    if (over && told.insert(kind).second)
      usual += fmt::format("{}{} {:.1f} to {:.1f} times", usual.empty() ? "" : ", ", kind, over->low, over->high);
  }
  if (!usual.empty()) out.rows.push_back({fmt::format("  (measured over bound, on an {}: {})", kMeasuredCard, usual)});
  return out;
}

LookSection memory_of(const ModuleOverview& o) {
  LookSection out;
  if (!o.memory) {
    out.heading = "memory: unknown";
    return out;
  }
  const MemoryReport& r = *o.memory;
  out.heading = fmt::format("memory: {} allocated ({} arguments, {} outputs, {} temporaries), by {}{}",
                            human_bytes(r.allocated), human_bytes(r.arguments), human_bytes(r.outputs),
                            human_bytes(r.temporaries), r.from, r.estimate ? ": an estimate" : "");
  if (r.host)
    out.rows.push_back({fmt::format("and {} in the host's memory{}", human_bytes(r.host),
                                    r.host_peak ? fmt::format(", {} of it at once", human_bytes(r.host_peak)) : "")});
  if (r.elsewhere > r.host)
    out.rows.push_back(
        {fmt::format("and {} in memories on the chip or of the host", human_bytes(r.elsewhere - r.host))});
  if (r.alive.empty()) return out;
  out.rows.push_back({fmt::format("{} alive at the peak{}, most of it:", human_bytes(r.peak),
                                  r.peak_at.empty() ? "" : ", at " + printable(r.peak_at))});
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
    out.rows.push_back(
        {fmt::format("  {:>10} {:>3.0f} %  {}", human_bytes(sorted[k].second),
                     r.peak ? 100.0 * static_cast<double>(sorted[k].second) / static_cast<double>(r.peak) : 0,
                     printable(cut_text(sorted[k].first, 90)))});
  return out;
}

LookSection passes_of(const Recording& r) {
  LookSection out;
  std::vector<const StageRow*> rows;
  auto work = [](const StageRow* s) { return s->added + s->removed + s->modified; };
  for (const StageRow& row : r.rows)
    if (row.kind == StageRow::kPass && work(&row) > 0) rows.push_back(&row);
  if (rows.empty()) return out;
  std::stable_sort(rows.begin(), rows.end(), [&](auto* x, auto* y) { return work(x) > work(y); });
  out.heading = "passes that did most:";
  for (size_t k = 0; k < rows.size() && k < kPasses; ++k)
    out.rows.push_back({fmt::format("  {:>4}  {:<44} {:>6} → {:<6} {} new, {} gone, {} changed{}",
                                    rows[k]->number < 0 ? "" : fmt::format("{:04}", rows[k]->number),
                                    printable(cut_text(rows[k]->pipeline + " " + rows[k]->pass, 44)), rows[k]->before,
                                    rows[k]->after, rows[k]->added, rows[k]->removed, rows[k]->modified,
                                    rows[k]->microseconds < 0 ? "" : ", " + compile_text(rows[k]->microseconds)),
                        InstId(), "", rows[k]->stage});
  return out;
}

LookSection findings_of(const Module& m, const std::vector<ModuleFinding>& all, bool frames) {
  LookSection out;
  if (all.empty()) return out;
  out.heading = "findings:";
  std::map<std::string, size_t> seen, total;
  std::map<std::string, double> seconds;
  for (const ModuleFinding& f : all) ++total[f.kind], seconds[f.kind] += f.seconds;
  size_t shown = 0;
  for (const ModuleFinding& f : all) {
    if (++seen[f.kind] > kOfOneKind || shown >= kOddest) continue;
    ++shown;
    std::string cost = f.seconds > 0 ? time_text(f.seconds) : size_text(f.bytes);
    std::string more = seen[f.kind] == kOfOneKind && total[f.kind] > kOfOneKind
                           ? fmt::format(" ({} more such{})", total[f.kind] - kOfOneKind,
                                         f.seconds > 0 ? fmt::format(", {} in all", time_text(seconds[f.kind])) : "")
                           : "";
    const std::string line = f.evidence.line.brief();
    out.rows.push_back(
        {fmt::format("  {:>11}  {}: {}{}", cost, printable(std::string(m.inst_name(f.inst))), printable(f.what), more),
         f.inst, line});
    out.rows.push_back(
        {fmt::format("               {}{}", line.empty() ? "" : printable(line) + ": ", f.advice), f.inst, line});
    out.rows.push_back({fmt::format("               {}", printable(evidence_text(f))), f.inst, line});
    if (frames) add_frames(f.evidence.stack, f.inst, &out);
  }
  if (all.size() > shown) out.all = all.size();
  return out;
}

}  // namespace

DeviceSpread spread_of(const MeasuredRun& run, const std::string& host) {
  DeviceSpread out;
  std::vector<double> calls;
  std::set<std::string> hosts;
  for (size_t k = 0; k < run.devices.size(); ++k) {
    const MeasuredDevice& d = run.devices[k];
    if (!d.why_not.empty() || (!host.empty() && d.host != host)) continue;
    if (calls.empty() || d.call() > run.devices[out.slowest].call()) out.slowest = k;
    calls.push_back(d.call()), hosts.insert(d.host);
  }
  std::sort(calls.begin(), calls.end());
  out.devices = calls.size(), out.hosts = hosts.size();
  if (calls.empty()) return out;
  out.least = calls.front(), out.most = calls.back();
  out.median = (calls[(calls.size() - 1) / 2] + calls[calls.size() / 2]) / 2;
  return out;
}

std::vector<std::string> devices_in_words(const MeasuredRun& run) {
  constexpr size_t kHosts = 8;
  if (run.devices.size() < 2) return {};
  auto told = [&](const DeviceSpread& s) {
    const std::string& slowest = run.devices[s.slowest].label;
    if (s.devices == 1) return fmt::format("{} on {}", time_text(s.most), slowest);
    return fmt::format("{} to {} on {}, the slowest, median {}", time_text(s.least), time_text(s.most), slowest,
                       time_text(s.median));
  };
  std::vector<std::string> out;
  const DeviceSpread all = spread_of(run);
  if (all.devices == 0) return {};
  out.push_back(fmt::format("{} device{} of {} host{}, one call: {}; shown: {} (--profile-device names another)",
                            all.devices, all.devices == 1 ? "" : "s", all.hosts, all.hosts == 1 ? "" : "s", told(all),
                            run.devices[run.shown].label));
  if (all.devices < run.devices.size())
    out.push_back(fmt::format("{} more have no time of the module", run.devices.size() - all.devices));
  if (all.hosts < 2) return out;
  std::vector<std::pair<std::string, DeviceSpread>> hosts;
  for (const std::string& host : hosts_of(run)) hosts.emplace_back(host, spread_of(run, host));
  std::stable_sort(hosts.begin(), hosts.end(),
                   [](const auto& x, const auto& y) { return x.second.most > y.second.most; });
  for (size_t k = 0; k < hosts.size() && k < kHosts; ++k)
    out.push_back(fmt::format("host {}: {}", hosts[k].first, told(hosts[k].second)));
  if (hosts.size() > kHosts) out.push_back(fmt::format("… and {} hosts more (--json has all)", hosts.size() - kHosts));
  return out;
}

std::vector<LookSection> first_look(const ModuleOverview& o, const LookOptions& options) {
  std::vector<LookSection> out{head_of(o, options.measured)};
  std::optional<Provenance> stages;
  if (o.last) {
    stages.emplace(*o.recording, *o.last);
    out.push_back(dearest_of(o, *stages, options)), out.push_back(memory_of(o));
  }
  out.push_back(passes_of(*o.recording));
  if (o.last) {
    std::vector<ModuleFinding> found = module_findings(o, *stages);
    if (options.tried) options.tried(&found);
    out.push_back(findings_of(*o.last, found, options.frames));
  }
  std::erase_if(out, [](const LookSection& s) { return s.heading.empty() && s.rows.empty(); });
  return out;
}

}  // namespace hlo
