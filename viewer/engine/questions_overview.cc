// The first look at what is open, and what its modules hand each other.
#include <algorithm>

#include "ir/print.h"
#include "parser/parser.h"
#include "replay/compare/link.h"
#include "replay/report/first_look.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

std::string without_indent(const std::string& line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

Json look_row(std::string text, Json id, Json module, Json state, const std::string& source) {
  return {{"text", std::move(text)},
          {"id", std::move(id)},
          {"module", std::move(module)},
          {"state", std::move(state)},
          {"source", source}};
}

void add_first_look(PageSession& session, uint32_t number, Json& lines) {
  PageModule& m = session.module(number);
  const auto last = static_cast<uint32_t>(session.states(m) - 1);
  std::string stage = "the last state";
  for (const StageRow& row : m.recording.rows)
    if (row.stage == static_cast<int>(last)) stage = row.name();
  ModuleOverview o = module_overview(m.recording, session.copy_of({number, last}), stage, session.target(number));
  LookOptions options;
  if (const PageMeasured* measured = measured_at(session, {number, last})) options.measured = measured->run;
  for (const LookSection& section : first_look(o, options)) {
    Json rows = Json::array();
    for (const LookRow& row : section.rows) {
      const bool pass = row.stage >= 0;
      rows.push_back(look_row(without_indent(row.text), json_of(row.inst), number,
                              pass               ? Json(row.stage)
                              : row.inst.valid() ? Json(last)
                                                 : Json(),
                              row.source));
    }
    if (section.all) rows.push_back(look_row(fmt::format("{} in all", section.all), {}, number, last, ""));
    lines.push_back({{"heading", section.heading}, {"rows", std::move(rows)}});
  }
}

Json q_overview(PageSession& session, const Question& q) {
  q.only({"module"});
  if (session.size() == 0) fail(FailureKind::kUsage, "nothing is open");
  const auto wanted = static_cast<uint32_t>(q.number_or("module", 0, INT32_MAX, 0));
  Json lines = Json::array();
  const PageModule& m = session.module(wanted);
  if (session.size() > 1) {
    Json rows = Json::array();
    for (uint32_t k = 0; k < session.size(); ++k) {
      const PageModule& other = session.module_unread(k);
      std::string text = fmt::format("{:04} {}", other.recording.module_number, other.recording.module_name);
      if (other.kind == PageModule::Kind::kRewrites) text += ", " + other.recording.pipeline;
      rows.push_back(look_row(std::move(text), {}, k, {}, ""));
    }
    lines.push_back({{"heading", "modules"}, {"rows", std::move(rows)}});
  }
  if (m.kind != PageModule::Kind::kRewrites) add_first_look(session, wanted, lines);
  return {{"title", m.recording.module_name}, {"module", wanted}, {"lines", std::move(lines)}};
}

// Each module as it came, in one universe.
struct Linked {
  std::vector<LinkModule> modules;
  std::vector<uint32_t> numbers;
};
Linked modules_to_link(PageSession& session) {
  constexpr size_t kMostLinked = 256;
  Linked out;
  auto universe = std::make_shared<Universe>();
  for (uint32_t k = 0; k < session.size() && out.numbers.size() < kMostLinked; ++k) {
    const PageModule& m = session.module_unread(k);
    // What was made in the page is no part of the run.
    if (m.kind == PageModule::Kind::kRewrites || m.origin) continue;
    LinkModule one;
    one.label = m.function;
    out.numbers.push_back(k);
    out.modules.push_back(std::move(one));
  }
  if (out.numbers.size() < 2) return out;  // nothing to link
  for (size_t k = 0; k < out.numbers.size(); ++k) {
    const PageModule& m = session.module(out.numbers[k]);
    ParseOptions parse;
    parse.file = m.recording.module_name;
    out.modules[k].module = parse_module(lossless_text(*session.copy_of({out.numbers[k], 0})), universe, parse);
  }
  return out;
}

Json q_links(PageSession& session, const Question& q) {
  q.only({});
  Linked linked = modules_to_link(session);
  Json modules = Json::array(), list = Json::array();
  for (size_t k = 0; k < linked.numbers.size(); ++k)
    modules.push_back({{"module", linked.numbers[k]}, {"name", linked.modules[k].label}});
  if (linked.modules.size() > 1) {
    const Links links = link_modules(linked.modules);
    const Universe& u = linked.modules[0].module->u();
    for (const LinkEdge& e : links.edges) {
      std::string why;
      for (const std::string& word : e.evidence) why += (why.empty() ? "" : ", ") + word;
      list.push_back({{"from", linked.numbers[e.from]},
                      {"result", leaf_text(links.leaves[e.from].results[e.result], u)},
                      {"to", linked.numbers[e.to]},
                      {"parameter", leaf_text(links.leaves[e.to].parameters[e.parameter], u)},
                      {"confidence", fmt::format("{:.0f} %{}", 100 * e.confidence, e.ambiguous ? ", ambiguous" : "")},
                      {"why", std::move(why)}});
    }
  }
  return {{"modules", std::move(modules)}, {"links", std::move(list)}};
}

}  // namespace

std::vector<NamedMethod> overview_methods() { return {{"overview", q_overview}, {"links", q_links}}; }

}  // namespace hlo
