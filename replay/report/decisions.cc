#include "replay/report/decisions.h"

#include <unordered_map>

#include "replay/report/explain_text.h"

namespace hlo {

bool joins_kernels(const std::string& pass) {
  // Not rename_fusions or fusion-wrapper, which join nothing.
  return pass.ends_with("fusion") || pass.find("merger") != std::string::npos;
}

std::string dumped_value(const std::vector<std::string>& lines, std::string_view key) {
  for (const std::string& line : lines) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    std::string value = line.substr(std::min(line.size(), key.size() + 2));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return {};
}

namespace {

// The run of the pass that the dump is of, and the ids of the names in front of it.
struct DumpedRun {
  std::optional<size_t> row;
  std::unordered_map<std::string_view, InstId> ids;

  explicit DumpedRun(Recording& r) {
    for (size_t k = 0; k < r.rows.size() && !row; ++k)
      if (r.rows[k].pass == "priority-fusion" && r.rows[k].changed && r.rows[k].stage > 0) row = k;
    if (!row) return;
    const Lineage& lineage = r.lineage();
    const Snapshot& before = lineage.stage(static_cast<size_t>(r.rows[*row].stage) - 1);
    for (uint32_t k = 0; k < before.slots(); ++k)
      if (InstId i(k); before.alive(i)) ids.emplace(lineage.universe()->text(before[i].name), i);
  }
  InstId named(const std::string& name) const {
    auto found = ids.find(name);
    return found == ids.end() ? InstId() : found->second;
  }
};

void add_dumped(Recording& r, std::vector<FusionDecision>& out) {
  std::optional<DumpedRun> run;                        // of those that have a dump
  std::unordered_map<std::string, std::string> times;  // by producer, as they were last
  each_dumped_decision(r, [&](const std::string&, const std::string& kind, const std::vector<std::string>& values) {
    const std::string producer = dumped_value(values, "producer_name");
    if (kind == "update_priority")
      times[producer] =
          fmt::format("{} µs fused, {} µs apart", dumped_value(values, "us_fused"), dumped_value(values, "us_unfused"));
    const bool fused = kind == "fusion", declined = kind == "producer_ineligible" || kind == "ineligible";
    if (!fused && !declined) return;
    if (!run) run.emplace(r);
    FusionDecision d;
    d.row = run->row, d.fused = fused;
    d.producer = producer, d.consumer = dumped_value(values, "consumer_name");
    d.producer_id = run->named(d.producer), d.consumer_id = run->named(d.consumer);
    d.why = fused ? "as " + dumped_value(values, "fusion_name") : dumped_value(values, "reason");
    if (auto told = times.find(producer); fused && told != times.end()) d.why += ", " + told->second;
    out.push_back(std::move(d));
  });
}

}  // namespace

std::vector<FusionDecision> fusion_decisions(Recording& r, std::optional<size_t> row) {
  std::vector<FusionDecision> out;
  for (size_t k = row.value_or(0); k < (row ? *row + 1 : r.rows.size()); ++k) {
    if (!joins_kernels(r.rows[k].pass)) continue;
    for (const Note& n : r.rows[k].notes) {
      FusionDecision d;
      d.row = k, d.fused = n.rewrite > 0;
      d.why = n.text.empty() ? n.rule : fmt::format("{}: {}", n.rule, n.text);
      if (!n.names.empty()) d.producer = n.names[0];
      if (n.names.size() > 1) d.consumer = n.names[1];
      if (!n.insts.empty()) d.producer_id = n.insts[0];
      if (n.insts.size() > 1) d.consumer_id = n.insts[1];
      out.push_back(std::move(d));
    }
  }
  if (!row) add_dumped(r, out);
  return out;
}

}  // namespace hlo
