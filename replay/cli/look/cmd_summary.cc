// summary: operations, bytes, least time, instructions and memory of a module or a run, added up by a key.
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "ir/program/buffer.h"
#include "ir/query/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/measured.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/recording/import.h"
#include "replay/record/start/target.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/memory/memory_report.h"
#include "replay/report/overview/summary.h"

namespace hlo {
namespace {

int by_pass(const SummaryArgs& a, std::vector<LookedAt>& all) {
  struct PassRow {
    size_t runs = 0, changed = 0, added = 0, removed = 0, modified = 0;
    int64_t us = -1;
  };
  std::map<std::string, PassRow> passes;
  size_t recordings = 0;
  for (LookedAt& l : all) {
    if (!l.recording) continue;
    ++recordings;
    count_changes(&*l.recording);
    for (const StageRow& row : l.recording->rows) {
      if (row.kind != StageRow::kPass || row.pass.empty()) continue;
      PassRow& p = passes[row.pass];
      ++p.runs, p.changed += row.changed;
      p.added += row.added, p.removed += row.removed, p.modified += row.modified;
      if (row.microseconds >= 0) p.us = std::max<int64_t>(p.us, 0) + row.microseconds;
    }
  }
  if (!recordings) fail(FailureKind::kUsage, "--by=pass takes a folder or DIR:MODULE; {} is one module", a.file);
  std::vector<std::pair<std::string, PassRow>> rows(passes.begin(), passes.end());
  auto work = [](const PassRow& p) { return p.added + p.removed + p.modified; };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto& x, const auto& y) { return work(x.second) > work(y.second); });
  Json list = Json::array();
  if (!a.json)
    fmt::print("{:<40} {:>6} {:>8} {:>8} {:>8} {:>8} {:>11}\n", "pass", "runs", "changed", "new", "gone", "other",
               "time");
  for (size_t k = 0; k < rows.size(); ++k) {
    const auto& [name, p] = rows[k];
    if (a.json)
      list.push_back({{"key", name},
                      {"runs", p.runs},
                      {"changed", p.changed},
                      {"added", p.added},
                      {"removed", p.removed},
                      {"modified", p.modified},
                      {"microseconds", p.us < 0 ? Json() : Json(p.us)}});
    else if (k < a.most)
      fmt::print("{:<40} {:>6} {:>8} {:>8} {:>8} {:>8} {:>11}\n", printable(name), p.runs, p.changed, p.added,
                 p.removed, p.modified, p.us < 0 ? "" : time_text(static_cast<double>(p.us) * 1e-6));
  }
  if (!a.json && rows.size() > a.most) fmt::print("… and {} more (--most)\n", rows.size() - a.most);
  if (a.json)
    print_json({{"file", a.file},
                {"by", a.by},
                {"device", Json()},
                {"rows", list},
                {"problems", Json::array()},
                {"too_large", Json::array()}});
  return kYes;
}

// `last`: what the row of `sum` is called.
void print_rows(const SummaryArgs& a, const SortedSummary& list, const SummaryRow& sum, const std::string& last,
                bool measured, bool foretold) {
  fmt::print("{}{:>11} {}{:>6} {:>12} {:>10} {:>8} {:>12} {:>10}  {}{}\n",
             measured ? fmt::format("{:>11} ", "measured") : "", "at least",
             foretold ? fmt::format("{:>11} ", "expected") : "", "share", "operations", "bytes", "kernels",
             "instructions", "at peak", sum.host ? fmt::format("{:>10}  ", "in host") : "", a.by);
  auto line = [&](const std::string& key, const SummaryRow& r) {
    fmt::print("{}{:>11} {}{:>4.0f} % {:>12} {:>10} {:>8} {:>12} {:>10}  {}{}\n",
               measured ? fmt::format("{:>11} ", time_text(r.measured)) : "", time_text(r.seconds),
               foretold ? fmt::format("{:>11} ", r.expected > 0 ? time_text(r.expected) : "-") : "",
               sum.seconds > 0 ? 100 * r.seconds / sum.seconds : 0, flops_text(r.flops), size_text(r.bytes), r.kernels,
               r.instructions, human_bytes(r.memory),
               sum.host ? fmt::format("{:>10}  ", r.host ? human_bytes(r.host) : "") : "", key);
  };
  for (size_t k = 0; k < list.size() && k < a.most; ++k) {
    line(printable(list[k].first), list[k].second);
    if (a.frames) print_frames(list[k].second.stack);
  }
  if (list.size() > a.most) fmt::print("… and {} more (--most)\n", list.size() - a.most);
  line(last, sum);
}

}  // namespace

int cmd_summary(const SummaryArgs& a) {
  const std::set<std::string> keys = {"line", "scope", "class", "module", "pass"};
  if (!keys.contains(a.by)) fail(FailureKind::kUsage, "--by is line, scope, class, module or pass, not '{}'", a.by);
  if (a.frames && a.by != "line") fail(FailureKind::kUsage, "--frames goes with --by=line");
  std::optional<Target> named;
  if (!a.gpu.empty()) named = named_target(a.gpu);
  std::vector<LookedAt> all = looked_at(a.file);
  if (a.by == "pass") return by_pass(a, all);
  SummaryRows rows;
  SummaryRow sum;
  Json problems = Json::array();
  DeviceSpec device = named ? named->spec : default_device_spec();
  std::optional<MeasuredTimes> times;
  if (!a.profile.empty()) times.emplace(ProfileChoice{a.profile, a.profile_device}, all);
  size_t loops = 0, read = 0, beside = 0, told = 0;
  std::vector<std::string> in_words;  // what is expected of the only module
  std::vector<std::string> too_large;
  for (LookedAt& l : all) {
    try {
      if (!l.unreadable.empty()) fail(FailureKind::kIo, "{}", l.unreadable);
      l.load();
      if (l.recording && a.gpu.empty()) device = target_of(*l.recording, a.gpu).spec;
      ModuleCost cost = module_cost(*l.module, device);
      std::optional<MemoryReport> memory;
      std::optional<Target> card = named;
      if (l.recording) card = target_of(*l.recording, a.gpu);
      if (l.module->config().is_scheduled)
        memory = memory_report(*l.module, l.recording ? &*l.recording : nullptr, card ? &*card : nullptr);
      const std::string name = l.selector.empty() ? l.name() : fmt::format("{} {}", l.selector, l.name());
      const size_t which = static_cast<size_t>(&l - all.data());
      MeasuredSeconds measured;
      if (times) measured = [&](std::string_view instruction) { return times->seconds(which, instruction); };
      const ExpectedTime expected = expected_time(*l.module, cost, device, l.recording ? card->platform : "");
      add_to_summary(*l.module, a.by, name, cost, memory ? &*memory : nullptr, &rows, measured, &expected);
      told += expected.why_not.empty();
      if (all.size() == 1) in_words = expected_in_words(expected, device);
      beside += cost.beside;
      if (memory) {
        if (const std::string& why = memory->too_large; !why.empty())
          too_large.push_back(all.size() == 1 ? why : fmt::format("{}: {}", name, why));
      }
      loops += cost.loops_without_trip_count;
      ++read;
    } catch (const Failure& e) {
      if (all.size() == 1 || interrupted()) throw;
      problems.push_back(fmt::format("{}: {}", l.name(), first_line(e.what())));
    }
    l.module = nullptr;
  }
  const SortedSummary list = sorted(rows);
  for (const auto& item : list)
    sum.seconds += item.second.seconds, sum.measured += item.second.measured, sum.expected += item.second.expected,
        sum.flops += item.second.flops, sum.bytes += item.second.bytes, sum.instructions += item.second.instructions,
        sum.memory += item.second.memory, sum.host += item.second.host;
  if (a.json) {
    Json out = summary_json(a.file, a.by, device.name, list, problems, times.has_value());
    out["too_large"] = too_large;
    print_json(out);
    return problems.empty() ? kYes : kBad;
  }
  // What is measured is not foretold.
  const bool foretold = !times && told == read && read > 0;
  for (const auto& item : list) sum.kernels += item.second.kernels, sum.unknown_calls += item.second.unknown_calls;
  print_rows(a, list, sum, fmt::format("all of {} module{}, on {}", read, read == 1 ? "" : "s", device.name),
             times.has_value(), foretold);
  if (times)
    for (const std::string& said : times->in_words()) fmt::print("{}\n", printable(said));
  if (!times)
    for (const std::string& said : in_words) fmt::print("{}\n", printable(said));
  if (foretold && read > 1)
    fmt::print("expected: of kernels alone, without what is between them and the calls themselves\n");
  for (const std::string& why : too_large) fmt::print("{}\n", printable(why));
  if (sum.unknown_calls) fmt::print("{} needs at least {}\n", device.name, bound_text(sum.seconds, sum.unknown_calls));
  if (beside)
    fmt::print("{} asynchronous operation{} may overlap with the others: the sum is no bound\n", beside,
               beside == 1 ? "" : "s");
  if (loops) fmt::print("{} loops say no trip count: their bodies are counted once\n", loops);
  for (const Json& p : problems) fmt::print(stderr, "warning: {}\n", printable(p.get<std::string>()));
  return problems.empty() ? kYes : kBad;
}

}  // namespace hlo
