// All about one instruction.
#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "replay/report/explain/explain.h"
#include "viewer/engine/session.h"
#include "viewer/layout/layout.h"

namespace hlo {
namespace {

constexpr size_t kMostNeighbours = 2000;  // operands, and users, of one answer

Json neighbours(const Module& m, std::span<const InstId> list) {
  Json out = Json::array();
  for (size_t k = 0; k < list.size() && k < kMostNeighbours; ++k)
    out.push_back(
        {{"id", list[k].value}, {"name", m.inst_name(list[k])}, {"shape", m.u().shape_text(m.shape_id(list[k]))}});
  return out;
}

Json calls_of(const Module& m, InstId i) {
  Json out = Json::array();
  auto add = [&](std::string role, CompId c) {
    if (c.valid())
      out.push_back({{"role", std::move(role)}, {"computation", m.comp_name(c)}, {"instructions", m.size(c)}});
  };
  for (const auto& [key, value] : m.attrs(i).list) {
    if (const auto* one = std::get_if<CompId>(&value)) add(std::string(attr_text(key)), *one);
    if (const auto* many = std::get_if<std::vector<CompId>>(&value))
      for (size_t k = 0; k < many->size(); ++k) add(fmt::format("{} {}", attr_text(key), k), (*many)[k]);
  }
  return out;
}

// `key=value` of `, key=value, key=value`, commas within brackets and quotes passed over.
Json attributes_of(const Module& m, InstId i) {
  Json out = Json::array();
  const std::string text = print_attributes(m, i, {});
  int depth = 0;
  size_t begin = 0;
  auto add = [&](size_t end) {
    std::string_view one = std::string_view(text).substr(begin, end - begin);
    while (one.starts_with(' ') || one.starts_with(',')) one.remove_prefix(1);
    size_t equals = one.find('=');
    if (equals == std::string_view::npos) return;
    out.push_back({{"name", one.substr(0, equals)}, {"value", one.substr(equals + 1)}});
  };
  for (size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '"') {
      size_t close = closing_quote(text, k);
      if (close == std::string::npos) break;
      k = close;
    } else if (c == '{' || c == '[' || c == '(') {
      ++depth;
    } else if (c == '}' || c == ']' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      add(k);
      begin = k;
    }
  }
  add(text.size());
  return out;
}

Json source_of_op(const Module& m, InstId i) {
  Json frames = Json::array();
  for (const SourceLine& line : source_stack(m, i))
    frames.push_back(line.function.empty() ? line.text() : line.text() + " " + line.function);
  return {{"op_name", op_name_of(m, i)}, {"frames", std::move(frames)}};
}

Json cost_of(OpenState& s, InstId i, const DeviceSpec& device) {
  // Within a fusion it is a share of the kernel's; what only names a part of memory has none.
  if (!CostAnalysis::runs(s.m, i) && !s.fusion_of(i).valid()) return {};
  const Cost cost = CostAnalysis(s.m).of(i);
  const KernelCost* kernel = s.cost(device).of(i);
  KernelCost within;
  if (!kernel) within.seconds = least_seconds(cost, device, &within.by_memory);
  const KernelCost& k = kernel ? *kernel : within;
  const double seconds = k.times > 0 ? k.seconds / k.times : k.seconds;
  return {{"flops", cost.flops + cost.transcendentals},
          {"bytes", cost.bytes()},
          {"seconds", seconds},
          {"times", kernel ? k.times : 1},
          {"bound", limit_name(k)},
          {"device", device.name}};
}

// What is expected of it in one call of a module that is scheduled; null: it is no kernel, or there is no figure.
Json expected_of(OpenState& s, InstId i, const Target& target) {
  if (!s.m.config().is_scheduled || !s.cost(target.spec).of(i)) return {};
  const ExpectedKernel* e = s.expected(target).of(i);
  return e && !e->unknown ? Json(e->seconds) : Json();
}

Json kernel_of(const MeasuredInstruction& i) {
  if (i.kernel.empty()) return {};
  auto or_null = [](auto value) { return value < 0 ? Json() : Json(value); };
  const KernelDetails none, &k = i.details ? *i.details : none;
  return {{"name", i.kernel},
          {"registers", or_null(k.registers)},
          {"static_shared_bytes", or_null(k.static_shared)},
          {"dynamic_shared_bytes", or_null(k.dynamic_shared)},
          {"grid", i.details ? Json(k.grid) : Json()},
          {"block", i.details ? Json(k.block) : Json()},
          {"occupancy", or_null(k.occupancy)},
          {"estimated_occupancy", or_null(i.estimated_occupancy)},
          {"limiter", i.limiter}};
}

// Null: nothing was measured of it.
Json measured_of(const PageMeasured* measured, std::string_view name) {
  const MeasuredInstruction* i = measured ? measured->of(name) : nullptr;
  if (!i) return {};
  const double all = measured->run.seconds + measured->run.between;
  return {{"seconds", i->seconds},
          {"share", all > 0 ? Json(i->seconds / all) : Json()},
          {"turns", i->turns},
          {"ambiguous_seconds", i->ambiguous},
          {"begin_seconds", i->moment ? Json(i->moment->begin) : Json()},
          {"kernel", kernel_of(*i)},
          {"chosen", i->chosen},
          {"run", run_in_words(measured->run)}};
}

// The row that ends with each state first.
std::vector<size_t> rows_by_state(const Recording& r, size_t states) {
  std::vector<size_t> out(states, SIZE_MAX);
  for (size_t k = 0; k < r.rows.size(); ++k) {
    const int state = r.rows[k].stage;
    if (state >= 0 && static_cast<size_t>(state) < states && out[static_cast<size_t>(state)] == SIZE_MAX)
      out[static_cast<size_t>(state)] = k;
  }
  return out;
}

struct Told {
  Json history = Json::array();
  std::set<std::string> names;  // that it had
  std::vector<std::string> buffers, thunks;
};

Told told_of(PageSession& session, StateRef at, InstId i) {
  Told out;
  PageModule& m = session.module(at.module);
  if (m.kind == PageModule::Kind::kRewrites) return out;
  const std::vector<size_t> rows = rows_by_state(m.recording, session.states(m));
  History h = history(m.recording, at.state, i, [&](size_t k) {
    return session.state({at.module, static_cast<uint32_t>(k)})->module;
  });
  for (const HistoryEvent& e : h.events) {
    out.history.push_back({{"state", e.state},
                           {"row", rows[e.state] == SIZE_MAX ? Json() : Json(rows[e.state])},
                           {"what", e.what},
                           {"rules", e.rules},
                           {"name", e.name},
                           {"before", e.before},
                           {"after", e.after}});
    if (!e.name.empty()) out.names.insert(e.name);
  }
  out.buffers = std::move(h.buffers), out.thunks = std::move(h.thunks);
  return out;
}

bool concerns(const FusionDecision& d, InstId i, const std::set<std::string>& names) {
  auto is = [&](InstId id, const std::string& name) { return id == i || names.contains(name); };
  return is(d.producer_id, d.producer) || is(d.consumer_id, d.consumer);
}

std::string decision_text(const FusionDecision& d) {
  return d.consumer.empty() ? fmt::format("{}: {}", d.producer, d.why)
                            : fmt::format("{} into {}: {}", d.producer, d.consumer, d.why);
}

// The fusion that it is, or that it stands in, with what was decided on the way there.
Json fusion_json(PageSession& session, OpenState& s, InstId i, const std::set<std::string>& names) {
  InstId fusion = s.m.op(i) == Opcode::Fusion ? i : s.fusion_of(i);
  if (!fusion.valid()) return {};
  Json ids = Json::array(), why = Json::array();
  CompId body = s.m.called(fusion)[0];
  std::set<std::string> all = names;
  all.emplace(s.m.inst_name(fusion));
  for (InstId inside : print_order(s.m, body)) ids.push_back(inside.value);
  for (const FusionDecision& d : session.decisions(session.module(s.at.module)))
    if (d.fused && (concerns(d, i, all) || concerns(d, fusion, all))) why.push_back(decision_text(d));
  std::string_view kind = s.m.u().text(s.m.attrs(fusion).text(Attr::kind));
  return {{"name", s.m.inst_name(fusion)}, {"kind", kind}, {"ids", std::move(ids)}, {"why", std::move(why)}};
}

// Files of code beside the recording that name the kernel, or all of the module where there are few.
Json code_files(const Recording& r) {
  Json out = Json::array();
  for (const std::string& f : r.other_files) {
    const char* kind = f.ends_with(".ll") ? "ll" : f.ends_with(".ptx") ? "ptx" : nullptr;
    if (!kind) continue;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(std::filesystem::path(r.folder) / f, error);
    if (!error) out.push_back({{"name", f}, {"kind", kind}, {"bytes", bytes}});
  }
  return out;
}

Json q_op(PageSession& session, const Question& q) {
  q.only({"at", "id"});
  const StateRef at = q.state("at");
  std::shared_ptr<OpenState> s = session.state(at);
  const Module& m = s->m;
  InstId i = session.instruction(*s, q.number("id", 0, UINT32_MAX - 1));
  PageModule& of = session.module(at.module);
  const std::string& whole = m.u().shape_text(m.shape_id(i));
  const std::string& plain = m.u().shape_text_plain(m.shape_id(i));
  PrintOptions print;
  print.metadata = false;
  Told told = told_of(session, at, i);
  told.names.emplace(m.inst_name(i));
  Json why_not = Json::array();
  for (const FusionDecision& d : session.decisions(of))
    if (!d.fused && concerns(d, i, told.names)) why_not.push_back(decision_text(d));
  return {{"id", i.value},
          {"name", m.inst_name(i)},
          {"opcode", op_text(m.op(i))},
          {"cls", drawn_class_text(drawn_class(m, i))},
          {"text", print_instruction(m, i, print)},
          {"shape", plain},
          {"layout", whole.starts_with(plain) ? whole.substr(plain.size()) : whole},
          {"computation", m.comp_name(m.parent(i))},
          {"operands", neighbours(m, m.operands(i))},
          {"operand_count", m.operand_count(i)},
          {"users", neighbours(m, m.users(i))},
          {"user_count", m.user_count(i)},
          {"calls", calls_of(m, i)},
          {"attributes", attributes_of(m, i)},
          {"source", source_of_op(m, i)},
          {"cost", cost_of(*s, i, session.target(at.module).spec)},
          {"history", std::move(told.history)},
          {"fusion", fusion_json(session, *s, i, told.names)},
          {"why_not", std::move(why_not)},
          {"buffers", told.buffers},
          {"thunks", told.thunks},
          {"files", code_files(of.recording)},
          {"expected_seconds", expected_of(*s, i, session.target(at.module))},
          {"measured", measured_of(measured_at(session, at), m.inst_name(i))}};
}

Json q_decisions(PageSession& session, const Question& q) {
  q.only({"module", "row"});
  PageModule& m = session.module(static_cast<uint32_t>(q.number("module", 0, INT32_MAX)));
  std::optional<size_t> row;
  if (q.has("row")) row = static_cast<size_t>(q.number("row", 0, static_cast<int64_t>(m.recording.rows.size()) - 1));
  Json list = Json::array();
  for (const FusionDecision& d : session.decisions(m)) {
    if (row && d.row != row) continue;
    list.push_back({{"verdict", d.fused ? "fused" : "declined"},
                    {"producer", d.producer},
                    {"consumer", d.consumer},
                    {"producer_id", json_of(d.producer_id)},
                    {"consumer_id", json_of(d.consumer_id)},
                    {"row", d.row ? Json(*d.row) : Json()},
                    {"why", d.why},
                    {"fused_seconds", d.fused_seconds ? Json(*d.fused_seconds) : Json()},
                    {"apart_seconds", d.apart_seconds ? Json(*d.apart_seconds) : Json()}});
  }
  return {{"decisions", std::move(list)}};
}

}  // namespace

std::vector<NamedMethod> op_methods() { return {{"op", q_op}, {"decisions", q_decisions}}; }

}  // namespace hlo
