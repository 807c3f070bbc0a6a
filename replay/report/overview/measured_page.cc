#include "replay/report/overview/measured_page.h"

#include <cmath>

namespace hlo {
namespace {

using Json = nlohmann::ordered_json;

Json details_json(const MeasuredInstruction& i) {
  if (i.kernel.empty()) return {};
  Json out{{"name", i.kernel},
           {"registers", Json()},
           {"static_shared_bytes", Json()},
           {"dynamic_shared_bytes", Json()},
           {"grid", Json()},
           {"block", Json()},
           {"occupancy", Json()},
           {"estimated_occupancy", i.estimated_occupancy < 0 ? Json() : Json(i.estimated_occupancy)},
           {"limiter", i.limiter.empty() ? Json() : Json(i.limiter)}};
  if (!i.details) return out;
  const KernelDetails& k = *i.details;
  auto or_null = [](auto value) { return value < 0 ? Json() : Json(value); };
  out["registers"] = or_null(k.registers), out["static_shared_bytes"] = or_null(k.static_shared);
  out["dynamic_shared_bytes"] = or_null(k.dynamic_shared), out["grid"] = k.grid, out["block"] = k.block;
  out["occupancy"] = or_null(k.occupancy);
  return out;
}

Json instruction_json(const MeasuredInstruction& i) {
  return {{"name", i.name},
          {"seconds", i.seconds},
          {"ambiguous_seconds", i.ambiguous},
          {"turns", i.turns},
          {"begin_seconds", i.moment ? Json(i.moment->begin) : Json()},
          {"first_end_seconds", i.moment ? Json(i.moment->first_end) : Json()},
          {"end_seconds", i.moment ? Json(i.moment->end) : Json()},
          {"kernel", details_json(i)},
          {"chosen", i.chosen}};
}

// Reads strictly: a page's measured.json may be anybody's.
class MeasuredReader {
 public:
  MeasuredReader(const Json& from, const std::string& label) : from_(from), label_(label) {}

  std::string text(const char* key) const {
    const Json& v = value(key);
    if (!v.is_string()) wrong(key, "a text");
    return v.get<std::string>();
  }
  std::string text_or_null(const char* key) const { return value(key).is_null() ? std::string() : text(key); }
  // Not negative, finite.
  double number(const char* key) const { return number_of(value(key), key); }
  double number_or(const char* key, double absent) const { return value(key).is_null() ? absent : number(key); }
  size_t count_or_null(const char* key) const { return static_cast<size_t>(std::min(number_or(key, 0), 1e15)); }
  const Json& list(const char* key) const {
    const Json& v = value(key);
    if (!v.is_array()) wrong(key, "a list");
    return v;
  }
  std::array<int64_t, 3> three(const char* key) const {
    std::array<int64_t, 3> out{};
    if (value(key).is_null()) return out;
    const Json& v = list(key);
    if (v.size() != 3) wrong(key, "a list of three numbers");
    for (size_t k = 0; k < 3; ++k) out[k] = static_cast<int64_t>(std::min(number_of(v[k], key), 1e15));
    return out;
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    for (const Json& v : list(key)) {
      if (!v.is_string()) wrong(key, "a list of texts");
      out.push_back(v.get<std::string>());
    }
    return out;
  }
  const Json& value(const char* key) const {
    auto at = from_.is_object() ? from_.find(key) : from_.end();
    if (at == from_.end()) fail(FailureKind::kIo, "{}: no measured times: it has no '{}'", label_, key);
    return *at;
  }

 private:
  [[noreturn]] void wrong(const char* key, const char* what) const {
    fail(FailureKind::kIo, "{}: no measured times: '{}' is not {}", label_, key, what);
  }
  double number_of(const Json& v, const char* key) const {
    const double out = v.is_number() ? v.get<double>() : -1;
    if (!std::isfinite(out) || out < 0) wrong(key, "a number that is not negative");
    return out;
  }
  const Json& from_;
  const std::string& label_;
};

MeasuredInstruction instruction_of(const Json& from, const std::string& label) {
  const MeasuredReader r(from, label);
  MeasuredInstruction out;
  out.name = r.text("name"), out.seconds = r.number("seconds"), out.ambiguous = r.number("ambiguous_seconds");
  out.turns = r.number("turns"), out.chosen = r.texts("chosen");
  if (!r.value("begin_seconds").is_null())
    out.moment =
        StepMoment{r.number("begin_seconds"), r.number("first_end_seconds"), r.number("end_seconds"), out.turns};
  const Json& kernel = r.value("kernel");
  if (kernel.is_null()) return out;
  const MeasuredReader k(kernel, label);
  out.kernel = k.text("name"), out.limiter = k.text_or_null("limiter");
  out.estimated_occupancy = k.number_or("estimated_occupancy", -1);
  auto bytes = [&](const char* key) { return static_cast<int64_t>(std::min(k.number_or(key, -1), 1e15)); };
  if (k.value("registers").is_null()) return out;
  out.details =
      KernelDetails{bytes("registers"), bytes("static_shared_bytes"), bytes("dynamic_shared_bytes"), k.three("grid"),
                    k.three("block"),   k.number_or("occupancy", -1)};
  return out;
}

MeasuredDevice device_of(const Json& from, const std::string& label) {
  const MeasuredReader r(from, label);
  MeasuredDevice out;
  out.host = r.text("host"), out.device = r.text("device"), out.label = r.text("label"), out.file = r.text("profile");
  out.why_not = r.text("problem"), out.runs = r.count_or_null("runs");
  out.seconds = r.number_or("seconds", 0), out.between = r.number_or("between_seconds", 0);
  return out;
}

}  // namespace

Json measured_json(const std::optional<MeasuredRun>& m) {
  if (!m) return {};
  const bool joined = m->why_not.empty();
  Json devices = Json::array();
  for (const MeasuredDevice& d : m->devices)
    devices.push_back({{"host", d.host},
                       {"device", d.device},
                       {"label", d.label},
                       {"profile", d.file},
                       {"problem", d.why_not},
                       {"runs", d.runs ? Json(d.runs) : Json()},
                       {"seconds", d.why_not.empty() ? Json(d.seconds) : Json()},
                       {"between_seconds", d.between > 0 ? Json(d.between) : Json()}});
  const DeviceSpread spread = spread_of(*m);
  auto of_spread = [&](const Json& value) { return spread.devices ? value : Json(); };
  return {{"profile", m->file},
          {"problem", m->why_not},
          {"joined", m->joined},
          {"runs", m->runs ? Json(m->runs) : Json()},
          {"seconds", joined && m->seconds > 0 ? Json(m->seconds) : Json()},
          {"between_seconds", joined && m->between > 0 ? Json(m->between) : Json()},
          {"shown", m->devices.empty() ? Json() : Json(m->devices[m->shown].label)},
          {"slowest", of_spread(spread.devices ? m->devices[spread.slowest].label : "")},
          {"least_call_seconds", of_spread(spread.least)},
          {"median_call_seconds", of_spread(spread.median)},
          {"most_call_seconds", of_spread(spread.most)},
          {"devices", devices}};
}

std::string run_in_words(const MeasuredRun& run) {
  const std::string where = run.devices.empty() ? "" : " on " + run.devices[run.shown].label;
  const std::string runs =
      run.runs == 0 ? "all runs" : fmt::format("the average of {} run{}", run.runs, run.runs == 1 ? "" : "s");
  return fmt::format("{}{}, by {}", runs, where, run.file);
}

Json measured_page(const MeasuredRun& run, const std::vector<MeasuredInstruction>& instructions,
                   const std::string& module, const std::string& stage) {
  Json list = Json::array();
  for (const MeasuredInstruction& i : instructions) list.push_back(instruction_json(i));
  return {{"version", 1},
          {"module", module},
          {"stage", stage},
          {"run", measured_json(run)},
          {"step_seconds", run.step > 0 ? Json(run.step) : Json()},
          {"instructions", std::move(list)}};
}

const MeasuredInstruction* PageMeasured::of(std::string_view instruction) const {
  auto at = by_name.find(std::string(instruction));
  return at == by_name.end() ? nullptr : &instructions[at->second];
}

std::shared_ptr<const PageMeasured> read_measured_page(std::string_view text, const std::string& label) {
  const Json all = Json::parse(text, nullptr, false);
  if (all.is_discarded()) fail(FailureKind::kIo, "{}: no measured times: it is no JSON", label);
  const MeasuredReader r(all, label);
  if (r.number("version") != 1) fail(FailureKind::kIo, "{}: measured times of another version", label);
  auto out = std::make_shared<PageMeasured>();
  const MeasuredReader about(r.value("run"), label);
  MeasuredRun& run = out->run;
  run.file = about.text("profile"), run.why_not = about.text("problem"), run.joined = about.text("joined");
  run.runs = about.count_or_null("runs");
  run.seconds = about.number_or("seconds", 0), run.between = about.number_or("between_seconds", 0);
  run.step = r.number_or("step_seconds", 0);
  const std::string shown = about.text_or_null("shown");
  // Not needed here: they follow from the devices. They are held to the form all the same.
  r.text("module"), r.text("stage"), about.text_or_null("slowest");
  for (const char* key : {"least_call_seconds", "median_call_seconds", "most_call_seconds"}) about.number_or(key, 0);
  for (const Json& d : about.list("devices")) {
    run.devices.push_back(device_of(d, label));
    if (run.devices.back().label == shown) run.shown = run.devices.size() - 1;
  }
  for (const Json& i : r.list("instructions")) {
    out->instructions.push_back(instruction_of(i, label));
    out->by_name.emplace(out->instructions.back().name, out->instructions.size() - 1);
  }
  const PageMeasured* here = out.get();
  run.of = [here](std::string_view name) -> std::optional<double> {
    const MeasuredInstruction* i = here->of(name);
    return i ? std::optional(i->seconds) : std::nullopt;
  };
  run.when = [here](std::string_view name) -> std::optional<StepMoment> {
    const MeasuredInstruction* i = here->of(name);
    return i ? i->moment : std::nullopt;
  };
  return out;
}

}  // namespace hlo
