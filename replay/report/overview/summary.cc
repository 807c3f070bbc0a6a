#include "replay/report/overview/summary.h"

#include <algorithm>
#include <tuple>

#include "ir/query/source_lines.h"
#include "replay/report/overview/module_findings.h"

namespace hlo {
namespace {

std::string summary_key(const Module& m, InstId i, const std::string& by, const std::string& module,
                        const UserFrames& lines) {
  if (by == "module") return module;
  if (by == "class") return kernel_class(m, i);
  std::string key = by == "line" ? lines.kernel(i).text() : scope_of(kernel_op_name(m, i));
  return key.empty() ? "(unknown)" : key;
}

}  // namespace

void add_to_summary(const Module& m, const std::string& by, const std::string& name, const ModuleCost& cost,
                    const MemoryReport* memory, SummaryRows* rows, const MeasuredSeconds& measured,
                    const ExpectedTime* expected) {
  size_t at = 0;
  const UserFrames lines = by == "line" ? user_frames(m, cost) : UserFrames(m);
  for (const KernelCost& k : cost.kernels) {  // dearest first
    SummaryRow& row = (*rows)[summary_key(m, k.inst, by, name, lines)];
    if (row.stack.empty() && by == "line") row.stack = kernel_source_stack(m, k.inst);
    row.seconds += k.seconds;
    if (expected && expected->why_not.empty()) row.expected += expected->list[at++].seconds;
    if (measured) row.measured += measured(m.inst_name(k.inst)).value_or(0);
    row.flops += (k.cost.flops + k.cost.transcendentals) * k.times;
    row.bytes += k.cost.bytes() * k.times;
    ++row.kernels, row.unknown_calls += !k.known;
  }
  // Instructions by their own place, those in fusions, too.
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      std::string key = by == "class" && m.op(i) != Opcode::Fusion && !CostAnalysis::runs(m, i)
                            ? std::string(op_text(m.op(i)))
                            : summary_key(m, i, by, name, lines);
      ++(*rows)[key].instructions;
    }
  if (!memory) return;
  std::map<std::string_view, InstId> named;
  if (by == "class" || !lines.helpers().empty())
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (m.alive(i)) named.emplace(m.inst_name(i), i);
  auto count = [&](const MemoryValue& v, int64_t SummaryRow::*bytes) {
    std::string key = by == "module" ? name : by == "line" ? v.source.text() : scope_of(v.op_name);
    const auto found = named.find(v.instruction);
    if (by == "line" && found != named.end()) key = lines.kernel(found->second).text();
    if (by == "class") {
      key = found == named.end()                   ? "(unknown)"
            : CostAnalysis::runs(m, found->second) ? kernel_class(m, found->second)
                                                   : std::string(op_text(m.op(found->second)));
    }
    if (key.empty()) key = v.kind == "argument" ? "(arguments)" : v.kind == "constant" ? "(constants)" : "(unknown)";
    (*rows)[key].*bytes += v.bytes;
  };
  for (const MemoryValue& v : memory->alive) count(v, &SummaryRow::memory);
  for (const MemoryValue& v : memory->host_alive) count(v, &SummaryRow::host);
}

std::map<std::string, std::vector<size_t>> kernels_by(const Module& m, const std::string& by, const ModuleCost& cost) {
  const UserFrames lines = by == "line" ? user_frames(m, cost) : UserFrames(m);
  std::map<std::string, std::vector<size_t>> out;
  for (size_t k = 0; k < cost.kernels.size(); ++k)
    out[summary_key(m, cost.kernels[k].inst, by, "", lines)].push_back(k);
  return out;
}

SortedSummary sorted(const SummaryRows& rows) {
  SortedSummary list(rows.begin(), rows.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& x, const auto& y) {
    return std::tuple(x.second.measured, x.second.seconds, x.second.memory) >
           std::tuple(y.second.measured, y.second.seconds, y.second.memory);
  });
  return list;
}

Json summary_json(const std::string& file, const std::string& by, std::string_view device, const SortedSummary& rows,
                  const Json& problems, bool profiled) {
  Json out = Json::array();
  for (const auto& item : rows) {
    const SummaryRow& r = item.second;
    out.push_back({{"key", item.first},
                   {"least_seconds", r.seconds},
                   {"expected_seconds", r.expected > 0 ? Json(r.expected) : Json()},
                   {"unknown_calls", r.unknown_calls},
                   {"measured_seconds", profiled ? Json(r.measured) : Json()},
                   {"flops", r.flops},
                   {"bytes", r.bytes},
                   {"kernels", r.kernels},
                   {"instructions", r.instructions},
                   {"peak_bytes", r.memory},
                   {"host_at_peak_bytes", r.host}});
  }
  return {{"file", file}, {"by", by}, {"device", device}, {"rows", out}, {"problems", problems}};
}

}  // namespace hlo
