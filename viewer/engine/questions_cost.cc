// What a state needs on its device: memory over its schedule, operations and bytes, thunks.
#include <algorithm>
#include <map>

#include "ir/query/source_lines.h"
#include "ir/types/tiling.h"
#include "ir/verify/verifier.h"
#include "passes/backend/backend.h"
#include "replay/report/kernels/thunk_timeline.h"
#include "replay/report/memory/memory_report.h"
#include "replay/report/overview/answers.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

// The state's module where it has a schedule, else a copy in post order.
struct Scheduled {
  std::shared_ptr<OpenState> state;
  std::shared_ptr<const Module> module;
  bool estimated = false;
};
Scheduled scheduled(PageSession& session, StateRef at) {
  Scheduled out;
  out.state = session.state(at);
  out.module = out.state->module;
  check_verifies(*out.module);
  if (out.module->config().is_scheduled) return out;
  std::shared_ptr<Module> copy = session.copy_of(at);
  schedule_module(*copy);
  out.module = std::move(copy), out.estimated = true;
  return out;
}

}  // namespace

const PageMeasured* measured_at(PageSession& session, StateRef at) {
  PageModule& m = session.module(at.module);
  const bool last = m.kind == PageModule::Kind::kRecording && at.state + 1 == session.states(m);
  return last && m.measured && m.measured->run.why_not.empty() ? m.measured.get() : nullptr;
}

namespace {

// XLA's own figures are of the last stage of its dump.
const Recording* recording_of(PageSession& session, StateRef at) {
  PageModule& m = session.module(at.module);
  return m.kind == PageModule::Kind::kRecording && at.state + 1 == session.states(m) ? &m.recording : nullptr;
}

Json q_memory(PageSession& session, const Question& q) {
  q.only({"at"});
  const StateRef at = q.state("at");
  Scheduled s = scheduled(session, at);
  const Module& m = *s.module;
  const BufferAssignment b = assign_buffers(m, session.target(at.module).gpu);
  const MemoryReport report = memory_report(m, recording_of(session, at), &session.target(at.module));
  int64_t places = 0;
  for (const BufferValue& v : b.values) places = std::max(places, v.last + 1);
  // As doubles: a stranger's sizes may add up to anything.
  std::map<int64_t, double> steps;
  Json live = Json::array();
  for (const HeldPlace& h : held_places(b)) {
    const BufferValue* v = &b.values[h.value];
    const Allocation::Kind kind = b.allocations[static_cast<size_t>(v->allocation)].kind;
    // Arguments are the caller's and constants the program's, all the time.
    const bool always = h.always;
    const int64_t from = always ? 0 : h.first, to = always ? std::max<int64_t>(places - 1, 0) : h.last;
    // The curve is the device's own memory.
    const Shape& shape = m.u()[v->shape];
    if (!is_beside_device_memory(shape))
      steps[from] += static_cast<double>(v->size), steps[to + 1] -= static_cast<double>(v->size);
    std::string name(m.inst_name(v->inst));
    if (!v->index.empty()) name += fmt::format("{{{}}}", fmt::join(v->index, ","));
    live.push_back({{"id", v->inst.value},
                    {"name", std::move(name)},
                    {"bytes", v->size},
                    {"from", from},
                    {"to", to},
                    {"kind", is_in_host_memory(shape)         ? "host"
                             : !always                        ? "value"
                             : kind == Allocation::kParameter ? "argument"
                                                              : "constant"},
                    {"source", kernel_source_line(m, v->inst).brief()}});
  }
  std::stable_sort(live.begin(), live.end(), [](const Json& x, const Json& y) { return x["bytes"] > y["bytes"]; });
  Json lines = Json::array();
  for (const auto& [key, sum] : alive_by(report, "line")) lines.push_back({{"key", key}, {"bytes", sum}});
  Json curve = Json::array();
  double bytes = 0, most = 0;
  for (const auto& [place, change] : steps) {
    bytes += change;
    most = std::max(most, bytes);
    if (place < places) curve.push_back({{"place", place}, {"bytes", bytes}});
  }
  return {{"peak_bytes", report.peak},
          {"at", report.peak_at.empty() ? Json() : json_of(s.state->named(report.peak_at))},
          {"estimated", s.estimated || report.estimate},
          {"live", std::move(live)},
          {"peak_lines", std::move(lines)},
          {"too_large", report.too_large},
          {"places", places},
          {"curve", std::move(curve)},
          {"curve_peak_bytes", most},
          {"allocated_bytes", report.allocated},
          {"arguments_bytes", report.arguments},
          {"constants_bytes", report.constants},
          {"outputs_bytes", report.outputs},
          {"temporaries_bytes", report.temporaries},
          {"host_bytes", report.host},
          {"from", report.from},
          {"notes", report.notes}};
}

Json q_roofline(PageSession& session, const Question& q) {
  q.only({"at", "device"});
  const StateRef at = q.state("at");
  std::shared_ptr<OpenState> s = session.state(at);
  const DeviceSpec& device = q.has("device") ? device_spec(q.text("device")) : session.target(at.module).spec;
  const ModuleCost& cost = s->cost(device);
  const PageMeasured* measured = measured_at(session, at);
  // Figures are of the device that it was compiled for.
  const ExpectedTime* expected = q.has("device") ? nullptr : &s->expected(session.target(at.module));
  Json ops = Json::array();
  for (const KernelCost& k : cost.kernels) {
    const MeasuredInstruction* seen = measured ? measured->of(s->m.inst_name(k.inst)) : nullptr;
    const ExpectedKernel* likely = expected && expected->why_not.empty() ? &expected->list[ops.size()] : nullptr;
    ops.push_back({{"id", k.inst.value},
                   {"name", s->m.inst_name(k.inst)},
                   {"kind", kernel_class(s->m, k.inst)},
                   {"flops", (k.cost.flops + k.cost.transcendentals) * k.times},
                   {"bytes", k.cost.bytes() * k.times},
                   {"seconds", k.seconds},
                   {"times", k.times},
                   {"bound", k.known ? limit_name(k) : "unknown"},
                   {"expected", likely && !likely->unknown ? Json(likely->seconds) : Json()},
                   {"measured", seen ? Json(seen->seconds) : Json()}});
  }
  Json devices = Json::array();
  for (const DeviceSpec& d : device_specs()) devices.push_back(d.name);
  return {{"device", device.name},
          {"flops_per_s", device.vector_tflops(Arithmetic::kF32) * 1e12},
          {"matrix_flops_per_s", device.matrix_tflops() * 1e12},
          {"bytes_per_s", device.memory_gb_s * 1e9},
          {"seconds", cost.seconds},
          {"profile", measured ? Json(run_in_words(measured->run)) : Json()},
          {"measured_seconds", measured ? Json(measured->run.seconds) : Json()},
          {"between_seconds", measured && measured->run.between > 0 ? Json(measured->run.between) : Json()},
          {"unknown_calls", cost.unknown_calls},
          {"loops_of_unknown_length", cost.loops_without_trip_count},
          {"devices", std::move(devices)},
          {"ops", std::move(ops)}};
}

Json q_thunks(PageSession& session, const Question& q) {
  q.only({"at"});
  const StateRef at = q.state("at");
  Scheduled s = scheduled(session, at);
  const GpuTarget& gpu = session.target(at.module).gpu;
  const ThunkTimeline line =
      thunk_timeline(*s.module, s.state->cost(session.target(at.module).spec), recording_of(session, at), gpu);
  Json list = Json::array();
  for (const TimedThunk& one : line.thunks)
    list.push_back({{"index", list.size()},
                    {"kind", one.kind},
                    {"id", json_of(one.inst)},
                    {"name", one.name},
                    {"stream", one.stream},
                    {"async_id", one.async_id ? Json(*one.async_id) : Json()},
                    {"start", one.start},
                    {"seconds", one.seconds},
                    {"depth", one.depth}});
  return {{"thunks", std::move(list)},
          {"streams", line.streams},
          {"from", line.from},
          {"notes", line.notes},
          {"estimated", s.estimated}};
}

}  // namespace

std::vector<NamedMethod> cost_methods() {
  return {{"memory", q_memory}, {"roofline", q_roofline}, {"thunks", q_thunks}};
}

}  // namespace hlo
