#include "replay/report/overview/answers.h"

#include <algorithm>
#include <map>

#include "ir/opcode.h"
#include "ir/query/source_lines.h"
#include "replay/report/kernels/measured_bounds.h"

namespace hlo {

Json complete(const Json& empty, const Json& found) {
  Json out = empty;
  for (const auto& item : found.items()) out[item.key()] = item.value();
  return out;
}

namespace {
Json expected_kernel_json(const ExpectedKernel& k) {
  return {{"row", k.row},           {"general", k.general},
          {"library", k.library},   {"calls", k.calls},
          {"nodes", k.nodes},       {"launches", k.launches},
          {"work_seconds", k.work}, {"seconds", k.unknown ? Json() : Json(k.seconds)}};
}
}  // namespace

Json expected_json(const ExpectedTime& e) {
  const bool told = e.why_not.empty();
  Json rests = Json::array();
  for (const ExpectedBase& b : e.rests_on)
    rests.push_back({{"row", b.row.name},
                     {"seconds", b.seconds},
                     {"runs", b.runs},
                     {"launch_microseconds", b.row.launch_us},
                     {"factor", b.row.factor},
                     {"measured_kernels", b.row.kernels},
                     {"measured_programs", b.row.programs},
                     {"stands_in_for", b.of}});
  return {{"seconds", told ? Json(e.seconds) : Json()},
          {"kernel_seconds", told ? Json(e.kernels) : Json()},
          {"between_seconds", told ? Json(e.between) : Json()},
          {"call_seconds", told ? Json(e.call) : Json()},
          {"host_bound", e.host_bound},
          {"launches", e.launches},
          {"graph_nodes", e.nodes},
          {"graphs", e.graphs},
          {"unknown_calls", e.unknown_calls},
          {"messages", e.messages},
          {"branches", e.branches},
          {"card", kExpectedCard},
          {"scaled", e.scaled},
          {"rests_on", rests},
          {"problem", e.why_not}};
}

Json cost_json(const AnswerAbout& about, const ModuleCost* c, const DeviceSpec& device, const MeasuredSeconds& measured,
               std::string_view platform) {
  Json list = Json::array();
  const ModuleCost none;
  const ModuleCost& cost = c ? *c : none;
  const ExpectedTime expected =
      c && about.module ? expected_time(*about.module, cost, device, platform) : ExpectedTime{};
  size_t at = 0;
  for (const KernelCost& k : cost.kernels) {
    const Module& m = *about.module;
    const ExpectedKernel* e = at < expected.list.size() ? &expected.list[at++] : nullptr;
    const std::optional<double> seconds = measured ? measured(m.inst_name(k.inst)) : std::nullopt;
    const std::optional<MeasuredOverBound> usual = usual_over_bound(m, k, device);
    list.push_back({{"name", m.inst_name(k.inst)},
                    {"opcode", op_text(m.op(k.inst))},
                    {"class", kernel_class(m, k.inst)},
                    {"times", k.times},
                    {"flops", k.cost.flops},
                    {"transcendentals", k.cost.transcendentals},
                    {"bytes_read", k.cost.bytes_read},
                    {"bytes_written", k.cost.bytes_written},
                    {"least_seconds", k.seconds},
                    {"known", k.known},
                    {"measured_seconds", seconds ? Json(*seconds) : Json()},
                    {"expected", e ? expected_kernel_json(*e) : Json()},
                    {"bound", limit_name(k)},
                    {"usual_over_bound", usual ? Json{usual->low, usual->high} : Json()},
                    {"bytes_cached", k.cached},
                    {"op_name", kernel_op_name(m, k.inst)},
                    {"source", kernel_source_line(m, k.inst).text()}});
  }
  return {{"module", about.name},
          {"stage", about.stage},
          {"device", device.name},
          {"flops", cost.all.flops},
          {"transcendentals", cost.all.transcendentals},
          {"bytes", cost.all.bytes()},
          {"least_seconds", cost.seconds},
          {"expected", c && about.module ? expected_json(expected) : Json()},
          {"unknown_calls", cost.unknown_calls},
          {"asynchronous", cost.beside},
          {"loops_without_trip_count", cost.loops_without_trip_count},
          {"instructions", list},
          {"problem", about.problem}};
}

// Bytes by a key, most first.
std::string alive_key(const MemoryValue& v, const std::string& by) {
  std::string key = by == "line" ? v.source.text() : by == "scope" ? scope_of(v.op_name) : v.name();
  // Parameters are named after the argument and have no line of their own.
  if (key.empty()) key = v.kind == "argument" ? "(arguments)" : v.kind == "constant" ? "(constants)" : "(unknown)";
  return key;
}

std::vector<std::pair<std::string, int64_t>> alive_by(const MemoryReport& r, const std::string& by) {
  std::map<std::string, int64_t> sums;
  for (const MemoryValue& v : r.alive) sums[alive_key(v, by)] += v.bytes;
  std::vector<std::pair<std::string, int64_t>> out(sums.begin(), sums.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  return out;
}

namespace {
Json memory_value_json(const MemoryValue& v, const std::optional<MeasuredLife>& life) {
  return {{"name", v.name()},
          {"bytes", v.bytes},
          {"shape", v.shape},
          {"kind", v.kind},
          {"op_name", v.op_name},
          {"source", v.source.text()},
          {"begins_seconds", life ? Json(life->begins) : Json()},
          {"ends_seconds", life ? Json(life->ends) : Json()},
          {"turns", life ? Json(life->turns) : Json()}};
}
}  // namespace

MeasuredMemory measured_memory(const Module& m, const MemoryReport& r, const MomentOf& when, double step) {
  MeasuredMemory out;
  out.lives.resize(r.alive.size());
  if (step <= 0 || r.schedule.empty()) return out;
  out.step = step;
  const std::vector<StepMoment> moments = moments_of(m, r.schedule, when);
  for (size_t k = 0; k < r.alive.size(); ++k) out.lives[k] = life_of(r.alive[k], moments, step);
  if (r.peak_place >= 0 && r.peak_place < static_cast<int64_t>(moments.size()))
    out.peak = moments[static_cast<size_t>(r.peak_place)].begin;
  return out;
}

Json memory_json(const AnswerAbout& about, const MemoryReport* r, const std::string& by,
                 const MeasuredMemory* measured) {
  Json alive = Json::array(), groups = Json::array(), allocations = Json::array();
  MemoryReport none;
  const MemoryReport& told = r ? *r : none;
  for (size_t k = 0; k < told.alive.size(); ++k)
    alive.push_back(memory_value_json(told.alive[k], measured ? measured->lives[k] : std::nullopt));
  for (const auto& [key, bytes] : alive_by(told, by)) groups.push_back({{"key", key}, {"bytes", bytes}});
  for (const MemoryAllocation& a : told.allocations)
    allocations.push_back({{"bytes", a.bytes}, {"kind", a.kind}, {"values", a.values}, {"largest", a.largest}});
  return {{"module", about.name},
          {"stage", about.stage},
          {"from", told.from},
          {"estimate", told.estimate},
          {"allocated_bytes", r ? Json(told.allocated) : Json()},
          {"argument_bytes", told.arguments},
          {"constant_bytes", told.constants},
          {"output_bytes", told.outputs},
          {"temporary_bytes", told.temporaries},
          {"elsewhere_bytes", told.elsewhere},
          {"host_bytes", told.host},
          {"host_peak_bytes", told.host_peak},
          {"host_at_peak_bytes", told.host_at_peak},
          {"too_large", told.too_large},
          {"peak_bytes", r && told.peak ? Json(told.peak) : Json()},
          {"peak_at", told.peak_at},
          {"peak_seconds", measured && measured->peak ? Json(*measured->peak) : Json()},
          {"step_seconds", measured && measured->step > 0 ? Json(measured->step) : Json()},
          {"by", by},
          {"alive_by", groups},
          {"alive", alive},
          {"allocations", allocations},
          {"problem", about.problem},
          {"measured", Json()},
          {"orders", Json()},
          {"stages", Json()},
          {"tried", Json()},
          {"notes", told.notes}};
}

Json history_json(const History& h) {
  Json events = Json::array();
  for (const HistoryEvent& e : h.events) {
    events.push_back({{"stage", e.stage},
                      {"file", e.file},
                      {"what", e.what},
                      {"name", e.name},
                      {"before", e.before},
                      {"after", e.after},
                      {"rules", e.rules}});
  }
  return {{"events", events},   {"source", h.source}, {"buffers", h.buffers},
          {"thunks", h.thunks}, {"unread", h.unread}, {"reasons", h.reasons}};
}

std::string in_words(const ModuleDiff& d) {
  if (d.same) return d.same_text ? "same" : "same structure; names, order or metadata differ";
  std::string out =
      fmt::format("different: {} only in the first, {} only in the second, {} changed", d.removed, d.added, d.modified);
  if (d.moved) out += fmt::format(", {} moved to another computation", d.moved);
  return out;
}

Json diff_json(const ModuleDiff& d) {
  static const char* kKinds[] = {"only-first", "only-second", "changed", "moved", "module"};
  Json lines = Json::array();
  for (const auto& l : d.lines)
    lines.push_back({{"kind", kKinds[l.kind]},
                     {"sign", std::string(1, l.sign)},
                     {"name", l.name.empty() ? l.other : l.name},
                     {"name_in_second", l.other},
                     {"place", l.place},
                     {"what", l.what},
                     {"first", l.first},
                     {"second", l.second},
                     {"count", l.count},
                     {"names", l.names}});
  return {{"same", d.same},         {"same_text", d.same_text}, {"removed", d.removed},         {"added", d.added},
          {"modified", d.modified}, {"moved", d.moved},         {"names_agree", d.names_agree}, {"differences", lines}};
}

Json complete_difference(const Json& found) {
  const Json list = Json::array();
  return complete({{"kind", "modules"},
                   {"same", true},
                   {"same_text", Json()},
                   {"verdict", ""},
                   {"module", Json()},
                   {"first_stage", Json()},
                   {"second_stage", Json()},
                   {"only_in", Json()},
                   {"stages", Json()},
                   {"stages_before", Json()},
                   {"removed", 0},
                   {"added", 0},
                   {"modified", 0},
                   {"moved", 0},
                   {"names_agree", Json()},
                   {"differences", list},
                   {"text", list},
                   {"results_equal", Json()},
                   {"results", Json()},
                   {"first_value_that_differs", Json()},
                   {"modules_without_partner", 0},
                   {"modules", list}},
                  found);
}

}  // namespace hlo
