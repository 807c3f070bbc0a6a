#include "replay/decisions.h"

#include "replay/explain_text.h"

namespace hlo {
namespace {

bool joins_kernels(const std::string& pass) {
  return pass.find("fusion") != std::string::npos || pass.find("merger") != std::string::npos;
}

// `"a"` of `producer_name: "a"`.
std::string value_of(const std::vector<std::string>& lines, std::string_view key) {
  for (const std::string& line : lines) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    std::string value = line.substr(std::min(line.size(), key.size() + 2));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return {};
}

void add_dumped(const Recording& r, std::vector<FusionDecision>& out) {
  each_dumped_decision(r, [&](const std::string&, const std::string& kind, const std::vector<std::string>& values) {
    const bool fused = kind == "fusion", declined = kind == "producer_ineligible" || kind == "ineligible";
    if (!fused && !declined) return;
    FusionDecision d;
    d.fused = fused;
    d.producer = value_of(values, "producer_name"), d.consumer = value_of(values, "consumer_name");
    for (const std::string& line : values) {
      if (line.starts_with("producer_name:") || line.starts_with("consumer_name:")) continue;
      d.why += (d.why.empty() ? "" : ", ") + line;
    }
    out.push_back(std::move(d));
  });
}

}  // namespace

std::vector<FusionDecision> fusion_decisions(const Recording& r, std::optional<size_t> row) {
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
