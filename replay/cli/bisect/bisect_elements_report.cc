#include <fmt/format.h>

#include <algorithm>

#include "replay/cli/bisect/bisect_report.h"
#include "replay/cli/smaller_words.h"
#include "replay/judge/chosen/pair/kept_leaves.h"

namespace hlo {

void add_elements(Json& j, const Candidates& row, const ElementsSearch& s, const ElementsOptions& options) {
  size_t values = 0, changed = 0, compared = 0;
  ElementsSampled sampled;
  Json where = Json::array(), findings = Json::array();
  for (const auto& [k, stage] : s.stages) {
    if (k == 0) continue;
    values += stage.values, changed += stage.changed, compared += stage.compared;
    sampled.add(stage.sampled);
    if (stage.compared < stage.changed)
      where.push_back({{"stage", row.labels[k]},
                       {"values", stage.changed - stage.compared},
                       {"of", stage.changed},
                       {"first", stage.not_compared}});
    if (k == s.found.bad)
      for (const ElementsFinding& f : stage.findings)
        findings.push_back({{"before", f.before},
                            {"after", f.after},
                            {"index", f.index},
                            {"was", f.was},
                            {"is", f.is},
                            {"words", f.words},
                            {"rests_on", f.rests_on}});
  }
  j["elements"] = {{"seed", options.seed}, {"samples", options.samples},  {"values", values},    {"changed", changed},
                   {"compared", compared}, {"not_compared_where", where}, {"findings", findings}};
  j["elements"]["kept"] = options.kept ? Json(options.kept->taken()) : Json::array();
  Json& by_sample = j["elements"]["sampled"] = {{"values", sampled.values}};
  if (sampled.values)
    by_sample.update({{"least", sampled.instruction},
                      {"seen", sampled.seen},
                      {"of", sampled.of},
                      {"one_escapes", sampled.escapes(1)},
                      {"hundredth_escapes", sampled.escapes(std::max(1., static_cast<double>(sampled.of) / 100))}});
}

void add_sampled(Json& all, const Json& part) {
  if (part["values"] == 0) return;
  const auto values = all["values"].get<int64_t>() + part["values"].get<int64_t>();
  if (all["values"] == 0 || part["one_escapes"].get<double>() > all["one_escapes"].get<double>()) all = part;
  all["values"] = values;
}

// `; too large to run: up to 16 elements of each value …; all 240 changed values were compared`.
std::string elements_in_words(const Json& e, const Json& smaller) {
  std::string out = fmt::format(
      "; the stages were not run: up to {} elements of each value that a stage writes in another way were evaluated at "
      "full size, in f64, from drawn values of what both stages have (rounding in their own types was not compared)",
      e["samples"].get<size_t>());
  if (const size_t kept = e["kept"].size()) {
    const std::string names = kept <= 6 ? fmt::format("{}", fmt::join(e["kept"].get<std::vector<std::string>>(), ", "))
                                        : fmt::format("{} parameters", kept);
    out += fmt::format("; elements of the program's own arguments were compared, too ({})", names);
  }
  const auto changed = e["changed"].get<size_t>(), compared = e["compared"].get<size_t>();
  out += compared == changed ? fmt::format("; all {} changed values were compared", changed)
                             : fmt::format("; {} of {} changed values were compared", compared, changed);
  if (const Json& by = e["sampled"]; by["values"].get<size_t>() && by["seen"] < by["of"])
    out += fmt::format(
        "; {} values were found the same by some of their elements, the fewest {} of {} ({}): one wrong element there "
        "escapes with a chance of {}, one in a hundred with {:.2g} %",
        by["values"].get<size_t>(), by["seen"].get<int64_t>(), by["of"].get<int64_t>(), by["least"].get<std::string>(),
        by["one_escapes"].get<double>() > .999 ? "over 99.9 %"
                                               : fmt::format("{:.1f} %", 100 * by["one_escapes"].get<double>()),
        100 * by["hundredth_escapes"].get<double>());
  size_t told = 0;
  for (const Json& w : e["not_compared_where"]) {
    if (++told > 3) break;
    out += fmt::format("; {}: {} of {} not", w["stage"].get<std::string>(), w["values"].get<size_t>(),
                       w["of"].get<size_t>());
  }
  if (smaller.is_null() || smaller["open"].is_null()) return out;
  return out + fmt::format(
                   "; {} of {} stages that these leave open were run at smaller sizes ({}) and give what they "
                   "are to give there",
                   smaller["stages"].get<size_t>(), smaller["open"].get<size_t>(), sizes_in_words(smaller["sizes"]));
}

}  // namespace hlo
