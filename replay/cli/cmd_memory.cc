// memory: what a module holds on its device, and what is alive where most of it is.
#include <algorithm>
#include <map>

#include "ir/buffer.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/target.h"
#include "replay/report/answers.h"
#include "replay/report/memory_report.h"

namespace hlo {
namespace {

std::string share_of(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:>4.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole)) : "";
}

void print_report(const LookedAt& l, const MemoryReport& r, const MemoryArgs& a) {
  fmt::print("{}, {}: {} allocated ({} arguments, {} constants, {} outputs, {} temporaries), by {}\n",
             printable(l.name()), printable(l.stage), human_bytes(r.allocated), human_bytes(r.arguments),
             human_bytes(r.constants), human_bytes(r.outputs), human_bytes(r.temporaries), r.from);
  if (!r.too_large.empty()) fmt::print("{}\n", r.too_large);
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
    fmt::print("{} alive at the peak{}{}, by {}:\n", human_bytes(r.peak),
               r.peak_at.empty() ? "" : ", at " + printable(r.peak_at),
               r.host_at_peak ? ", and " + human_bytes(r.host_at_peak) + " in the host's memory" : "", a.by);
    auto groups = alive_by(r, a.by);
    for (size_t k = 0; k < groups.size() && k < a.most; ++k)
      fmt::print("  {:>10} {}  {}\n", human_bytes(groups[k].second), share_of(groups[k].second, r.peak),
                 printable(groups[k].first));
    if (groups.size() > a.most) fmt::print("  … and {} more (--most)\n", groups.size() - a.most);
    if (a.by != "value") {
      fmt::print("largest of them:\n");
      for (size_t k = 0; k < r.alive.size() && k < std::min<size_t>(a.most, 10); ++k) {
        const MemoryValue& v = r.alive[k];
        fmt::print("  {:>10} {:<9} {:<36} {}  {}\n", human_bytes(v.bytes), v.kind, printable(v.name()),
                   printable(v.shape), printable(v.source.known() ? v.source.brief() : v.op_name));
      }
    }
  }
  fmt::print("largest buffers:\n");
  for (size_t k = 0; k < r.allocations.size() && k < std::min<size_t>(a.most, 10); ++k) {
    const MemoryAllocation& b = r.allocations[k];
    fmt::print("  {:>10} {:<9} {} value{}, the largest {}\n", human_bytes(b.bytes), b.kind, b.values,
               b.values == 1 ? "" : "s", printable(b.largest));
  }
}

}  // namespace

int cmd_memory(const MemoryArgs& a) {
  if (a.by != "line" && a.by != "scope" && a.by != "value")
    fail(FailureKind::kUsage, "--by is line, scope or value, not '{}'", a.by);
  std::optional<Target> named;
  if (!a.gpu.empty()) named = named_target(a.gpu);
  std::vector<LookedAt> all = looked_at(a.file);
  Json list = Json::array();
  size_t failed = 0;
  if (!a.json && all.size() > 1)
    fmt::print("{:>8} {:<32} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "module", "name", "allocated", "arguments",
               "outputs", "temporaries", "alive", "in host");
  // Those that need most stand first.
  std::vector<std::pair<int64_t, std::string>> table;
  for (LookedAt& l : all) {
    std::optional<MemoryReport> r;
    try {
      if (l.unreadable.empty()) l.load();
      if (l.module) {
        const Recording* recording = l.recording ? &*l.recording : nullptr;
        std::optional<Target> card = named;
        if (card && recording) card = target_of(*recording, a.gpu);
        r = memory_report(*l.module, recording, card ? &*card : nullptr);
      }
    } catch (const Failure& e) {
      if (all.size() == 1 || interrupted()) throw;
      l.unreadable = first_line(e.what());
    }
    if (all.size() == 1 && !r) fail(FailureKind::kIo, "{}", l.unreadable);
    failed += !r;
    if (a.json) {
      list.push_back(memory_json(about(l), r ? &*r : nullptr, a.by));
    } else if (all.size() == 1) {
      print_report(l, *r, a);
    } else if (r) {
      table.emplace_back(
          r->allocated,
          fmt::format("{:>8} {:<32} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}{}", printable(l.selector),
                      printable(l.name()), human_bytes(r->allocated), human_bytes(r->arguments),
                      human_bytes(r->outputs), human_bytes(r->temporaries), r->peak ? human_bytes(r->peak) : "unknown",
                      r->host ? human_bytes(r->host) : "", r->too_large.empty() ? "" : "  " + r->too_large));
    } else {
      table.emplace_back(-1, fmt::format("{:>8} {:<32} unknown: {}", printable(l.selector), printable(l.name()),
                                         printable(l.unreadable)));
    }
    l.module = nullptr;
  }
  std::stable_sort(table.begin(), table.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  for (const auto& row : table) fmt::print("{}\n", row.second);
  if (a.json) print_json({{"file", a.file}, {"by", a.by}, {"modules", list}});
  return failed ? kBad : kYes;
}

}  // namespace hlo
