#include "replay/report/measured/step_clock.h"

#include <algorithm>
#include <map>
#include <set>

namespace hlo {
namespace {

struct ClockSpan {
  double begin, end;
  size_t op;
  uint32_t kernel;  // its name where a device says it: an instruction may have several
};

std::vector<ClockSpan> spans_of_module(const Timeline& timeline, const Measured& joined, size_t module) {
  std::vector<ClockSpan> out;  // by begin, as Measured::spans
  for (const MeasuredSpan& placed : joined.spans) {
    if (placed.op == SIZE_MAX || placed.ways != 1 || joined.ops[placed.op].module != module) continue;
    const Span& s = timeline.tracks[placed.track].spans[placed.span];
    out.push_back({s.begin, s.begin + s.seconds, placed.op, s.details ? s.name : 0});
  }
  return out;
}

// Of what the entry computation launches as seldom as anything there, the first one begins a run.
std::vector<double> begins_of_runs(const Measured& joined, size_t module, const std::vector<ClockSpan>& spans) {
  const Module& m = *joined.modules[module].module;
  std::map<std::pair<size_t, uint32_t>, std::vector<double>> begins;
  for (const ClockSpan& s : spans)
    if (m.parent(joined.ops[s.op].inst) == m.entry()) begins[{s.op, s.kernel}].push_back(s.begin);
  std::vector<double> out;
  for (const auto& [what, at] : begins)
    if (out.empty() || at.size() < out.size() || (at.size() == out.size() && at[0] < out[0])) out = at;
  return out;
}

}  // namespace

StepClock::StepClock(const Timeline& timeline, const Measured& joined, size_t module) {
  const MeasuredModule& of = joined.modules[module];
  const std::vector<ClockSpan> spans = spans_of_module(timeline, joined, module);
  if (!of.module || spans.empty()) return;
  const std::vector<double> runs = begins_of_runs(joined, module, spans);
  struct Sum {
    StepMoment all;
    size_t runs = 0, last_run = SIZE_MAX;
    double last_end = 0;  // in that run
  };
  std::map<size_t, Sum> sums;
  std::vector<double> ends(runs.size(), 0);
  size_t run = 0;
  for (const ClockSpan& s : spans) {
    while (run < runs.size() && runs[run] <= s.begin) ++run;
    if (run == 0) continue;  // of a run of which the profile has only the end
    const double begin = s.begin - runs[run - 1], end = s.end - runs[run - 1];
    ends[run - 1] = std::max(ends[run - 1], end);
    Sum& sum = sums[s.op];
    if (sum.last_run != run) {
      sum.all.begin += begin, sum.all.first_end += end, sum.all.end += sum.last_end;
      ++sum.runs, sum.last_run = run, sum.last_end = 0;
    }
    sum.last_end = std::max(sum.last_end, end);
  }
  for (auto& [op, sum] : sums) {
    const double n = static_cast<double>(sum.runs);
    const MeasuredOp& measured = joined.ops[op];
    // By calls: several spans may be its kernels.
    StepMoment m{sum.all.begin / n, sum.all.first_end / n, (sum.all.end + sum.last_end) / n,
                 static_cast<double>(measured.calls) / n};
    if (of.module->parent(measured.inst) == of.module->entry()) m.turns = 1, m.first_end = m.end;
    moments_.emplace(std::string(of.module->inst_name(measured.inst)), m);
  }
  for (double end : ends) seconds_ += end / static_cast<double>(ends.size());
}

std::optional<StepMoment> StepClock::of(std::string_view instruction) const {
  auto at = moments_.find(std::string(instruction));
  return at == moments_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<StepMoment> moments_of(const Module& m, const std::vector<std::string>& schedule, const MomentOf& when) {
  std::set<std::string_view> holders;  // what follows all that it runs
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && (m.op(i) == Opcode::While || m.op(i) == Opcode::Conditional || m.op(i) == Opcode::Call))
        holders.insert(m.inst_name(i));
  std::vector<StepMoment> out;
  StepMoment last;
  for (const std::string& name : schedule) {
    const bool holder = holders.contains(name);
    if (std::optional<StepMoment> seen = holder ? std::nullopt : when(name))
      out.push_back(*seen), last = *seen;
    else
      out.push_back(
          {holder ? last.end : last.first_end, holder ? last.end : last.first_end, last.end, holder ? 1 : last.turns});
  }
  return out;
}

std::optional<MeasuredLife> life_of(const MemoryValue& v, const std::vector<StepMoment>& moments, double step) {
  if (v.always) return MeasuredLife{0, step, 1};
  if (v.first < 0 || v.last < v.first || step <= 0 || moments.empty()) return {};
  const auto size = static_cast<int64_t>(moments.size());
  MeasuredLife out;
  if (v.first < size) {
    const StepMoment& from = moments[static_cast<size_t>(v.first)];
    out.begins = from.begin, out.turns = from.turns;
  } else {
    out.begins = step;
  }
  out.ends = v.last < size ? moments[static_cast<size_t>(v.last)].end : step;
  out.ends = std::max(out.ends, out.begins);
  return out;
}

}  // namespace hlo
