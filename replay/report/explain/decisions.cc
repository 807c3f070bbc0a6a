#include "replay/report/explain/decisions.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "replay/report/explain/explain_text.h"

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

std::optional<double> dumped_number(const std::vector<std::string>& lines, std::string_view key) {
  const std::string text = dumped_value(lines, key);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !(value >= 0) || !std::isfinite(value)) return std::nullopt;
  return value;
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

// The numbers of one producer, as they were last.
struct DumpedTimes {
  size_t order = 0;             // of the step
  double fused = 0, apart = 0;  // seconds
  bool decided = false;         // a step since then fused it or says why not
  std::string fused_text, apart_text;
  std::vector<std::string> consumers;
};

std::optional<DumpedTimes> dumped_times(const std::vector<std::string>& values, size_t order) {
  DumpedTimes t;
  t.order = order;
  t.fused_text = dumped_value(values, "us_fused"), t.apart_text = dumped_value(values, "us_unfused");
  const std::optional<double> fused = dumped_number(values, "us_fused"), apart = dumped_number(values, "us_unfused");
  if (!fused || !apart) return std::nullopt;
  t.fused = *fused * 1e-6, t.apart = *apart * 1e-6;
  for (const std::string& line : values)
    if (line.starts_with("consumer_names:")) t.consumers.push_back(dumped_value({line}, "consumer_names"));
  return t;
}

void add_dumped(Recording& r, std::vector<FusionDecision>& out) {
  std::optional<DumpedRun> run;                        // of those that have a dump
  std::unordered_map<std::string, DumpedTimes> times;  // by producer
  size_t order = 0;
  const auto decision = [&](const std::string& producer, const std::string& consumer) {
    if (!run) run.emplace(r);
    FusionDecision d;
    d.row = run->row, d.producer = producer, d.consumer = consumer;
    d.producer_id = run->named(d.producer), d.consumer_id = run->named(d.consumer);
    return d;
  };
  const auto give_times = [](FusionDecision& d, const DumpedTimes& t) {
    d.fused_seconds = t.fused, d.apart_seconds = t.apart;
  };
  each_dumped_decision(r, [&](const std::string&, const std::string& kind, const std::vector<std::string>& values) {
    const std::string producer = dumped_value(values, "producer_name");
    if (kind == "update_priority") {
      if (std::optional<DumpedTimes> told = dumped_times(values, ++order))
        times.insert_or_assign(producer, std::move(*told));
      else
        times.erase(producer);
    }
    const bool fused = kind == "fusion", declined = kind == "producer_ineligible" || kind == "ineligible";
    if (!fused && !declined) return;
    FusionDecision d = decision(producer, dumped_value(values, "consumer_name"));
    d.fused = fused;
    d.why = fused ? "as " + dumped_value(values, "fusion_name") : dumped_value(values, "reason");
    const auto told = times.find(producer);
    if (told != times.end()) {
      give_times(d, told->second);
      if (fused) d.why += fmt::format(", {} µs fused, {} µs apart", told->second.fused_text, told->second.apart_text);
    }
    // A producer goes into its consumers one by one, by the same numbers. What the consumer's name was of is now part
    // of a fusion, which is asked about by its own name.
    if (told != times.end()) told->second.decided = true;
    if (fused) times.erase(d.consumer);
    out.push_back(std::move(d));
  });
  // XLA's queue leaves out a producer whose fusion would take longer (priority_fusion.cc), and writes no step of it.
  std::map<size_t, std::pair<std::string, const DumpedTimes*>> left;
  for (const auto& [producer, t] : times)
    if (!t.decided && t.fused > t.apart) left.emplace(t.order, std::pair(producer, &t));
  for (const auto& [step, one] : left) {
    const auto& [producer, t] = one;
    FusionDecision d = decision(producer, t->consumers.size() == 1 ? t->consumers[0] : "");
    give_times(d, *t);
    d.why = fmt::format("fused it takes longer, {} µs fused, {} µs apart", t->fused_text, t->apart_text);
    if (t->consumers.size() > 1) d.why += fmt::format(", with {} consumers", t->consumers.size());
    out.push_back(std::move(d));
  }
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
