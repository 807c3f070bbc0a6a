// The first look at what is open, and what its modules hand each other.
#include <algorithm>
#include <tuple>

#include "ir/print/print.h"
#include "parser/parser.h"
#include "replay/compare/link.h"
#include "replay/report/overview/first_look.h"
#include "replay/report/overview/summary.h"
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

// As cards: what it costs of one call, by the bound of the whole, and what came of its advice where it was tried. What
// gained nothing is behind the others.
Json found_json(const ModuleOverview& o, const std::vector<ModuleFinding>& all,
                const std::vector<TriedFinding>& tried) {
  Json out = Json::array(), useless = Json::array();
  for (const ModuleFinding& f : all) {
    const auto known = std::find_if(tried.begin(), tried.end(), [&](const TriedFinding& t) {
      return t.kind == f.kind && t.instruction == o.last->inst_name(f.inst);
    });
    const bool gains_nothing = known != tried.end() && known->useless;
    (gains_nothing ? useless : out)
        .push_back({{"kind", f.kind},
                    {"id", json_of(f.inst)},
                    {"name", o.last->inst_name(f.inst)},
                    {"what", f.what},
                    {"advice", gains_nothing ? std::string(kNoAdvice) : f.advice},
                    {"tried", known == tried.end() ? Json() : Json(known->tried)},
                    {"source", f.evidence.line.brief()},
                    {"least_seconds", f.seconds > 0 ? Json(f.seconds) : Json()},
                    {"share", f.seconds > 0 && o.cost.seconds > 0 ? Json(f.seconds / o.cost.seconds) : Json()},
                    {"bytes", f.bytes > 0 ? Json(f.bytes) : Json()}});
  }
  for (Json& f : useless) out.push_back(std::move(f));
  return out;
}

void add_first_look(PageSession& session, uint32_t number, Json& lines, Json& findings) {
  PageModule& m = session.module(number);
  const auto last = static_cast<uint32_t>(session.states(m) - 1);
  std::string stage = "the last state";
  for (const StageRow& row : m.recording.rows)
    if (row.stage == static_cast<int>(last)) stage = row.name();
  ModuleOverview o = module_overview(m.recording, session.copy_of({number, last}), stage, session.target(number));
  LookOptions options;
  if (const PageMeasured* measured = measured_at(session, {number, last})) options.measured = measured->run;
  // They are looked for once.
  options.tried = [&](std::vector<ModuleFinding>* found) { findings = found_json(o, *found, m.tried); };
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
  Json findings;  // null: nothing looked for them
  if (m.kind != PageModule::Kind::kRewrites) add_first_look(session, wanted, lines, findings);
  return {{"title", m.recording.module_name},
          {"module", wanted},
          {"lines", std::move(lines)},
          {"findings", std::move(findings)}};
}

// The kernels of one row, the slowest first.
Json row_kernels(const Module& m, const ModuleCost& cost, const ExpectedTime* expected, const PageMeasured* measured,
                 const std::vector<size_t>& places) {
  constexpr size_t kMostOfARow = 24;
  struct Timed {
    const KernelCost* kernel;
    double measured, expected;  // below 0: unknown
  };
  std::vector<Timed> list;
  for (size_t k : places) {
    const KernelCost& kernel = cost.kernels[k];
    const MeasuredInstruction* seen = measured ? measured->of(m.inst_name(kernel.inst)) : nullptr;
    const bool told = expected && !expected->list[k].unknown;
    list.push_back({&kernel, seen ? seen->seconds : -1, told ? expected->list[k].seconds : -1});
  }
  std::stable_sort(list.begin(), list.end(), [](const Timed& x, const Timed& y) {
    return std::tuple(x.measured, x.kernel->seconds) > std::tuple(y.measured, y.kernel->seconds);
  });
  if (list.size() > kMostOfARow) list.resize(kMostOfARow);
  Json out = Json::array();
  for (const Timed& t : list)
    out.push_back({{"id", t.kernel->inst.value},
                   {"name", m.inst_name(t.kernel->inst)},
                   {"times", t.kernel->times},
                   {"least_seconds", t.kernel->known ? Json(t.kernel->seconds) : Json()},
                   {"expected_seconds", t.expected < 0 ? Json() : Json(t.expected)},
                   {"measured_seconds", t.measured < 0 ? Json() : Json(t.measured)}});
  return out;
}

// What `summary --by` prints of one module, with the kernels of each row.
Json q_summary(PageSession& session, const Question& q) {
  q.only({"at", "by"});
  const StateRef at = q.state("at");
  const std::string by = q.text("by");
  if (by != "class" && by != "line" && by != "scope")
    fail(FailureKind::kUsage, "by is class, line or scope, not '{}'", by);
  std::shared_ptr<OpenState> s = session.state(at);
  const Target& target = session.target(at.module);
  const ModuleCost& cost = s->cost(target.spec);
  const PageMeasured* measured = measured_at(session, at);
  const ExpectedTime& figures = s->expected(target);
  const ExpectedTime* expected = figures.why_not.empty() ? &figures : nullptr;
  MeasuredSeconds seconds;
  if (measured)
    seconds = [&](std::string_view name) -> std::optional<double> {
      const MeasuredInstruction* seen = measured->of(name);
      return seen ? std::optional(seen->seconds) : std::nullopt;
    };
  SummaryRows sums;
  add_to_summary(s->m, by, "", cost, nullptr, &sums, seconds, expected);
  std::erase_if(sums, [](const auto& row) { return row.second.kernels == 0; });
  const auto places = kernels_by(s->m, by, cost);
  Json rows = summary_json("", by, target.spec.name, sorted(sums), Json::array(), measured)["rows"];
  for (Json& row : rows) {
    row.erase("peak_bytes"), row.erase("host_at_peak_bytes");  // nobody asked for memory
    row["ops"] = row_kernels(s->m, cost, expected, measured, places.at(row["key"].get<std::string>()));
  }
  return {{"by", by},
          {"device", target.spec.name},
          {"device_known", target.spec_known},
          {"profile", measured ? Json(run_in_words(measured->run)) : Json()},
          {"measured_seconds", measured ? Json(measured->run.seconds) : Json()},
          {"between_seconds", measured && measured->run.between > 0 ? Json(measured->run.between) : Json()},
          {"expected_seconds", expected ? Json(expected->seconds) : Json()},
          {"expected_between_seconds", expected ? Json(expected->between + expected->call) : Json()},
          {"expected_without", expected ? Json(expected->unknown_calls + expected->messages) : Json()},
          {"why_not_expected", figures.why_not},
          {"least_seconds", cost.seconds},
          {"sum_seconds", cost.sum},
          {"unknown_calls", cost.unknown_calls},
          {"loops_of_unknown_length", cost.loops_without_trip_count},
          {"rows", std::move(rows)}};
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

std::vector<NamedMethod> overview_methods() {
  return {{"overview", q_overview}, {"summary", q_summary}, {"links", q_links}};
}

}  // namespace hlo
