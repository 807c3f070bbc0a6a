// profile: a profile of jax, TensorFlow or PyTorch/XLA joined to the instructions of its modules.
#include <algorithm>
#include <map>

#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/file_kind.h"
#include "replay/record/start/target.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/kernels/occupancy.h"

namespace hlo {
namespace {

double percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

struct ProfileView {
  const ProfileArgs& a;
  Timeline timeline;
  Measured m;
  std::optional<DeviceSpec> device;                 // for bounds; none where nobody says one
  mutable std::map<size_t, ModuleCost> costs = {};  // of modules by number, as they are asked for
  mutable std::map<size_t, std::vector<std::vector<InstId>>> callers = {};
  const Module& module(const MeasuredOp& op) const { return *m.modules[op.module].module; }
  // What the cost is told of: of what runs inside of an asynchronous instruction its start.
  InstId asynchronous(const MeasuredOp& op) const {
    const Module& of = module(op);
    auto known = callers.find(op.module);
    if (known == callers.end()) known = callers.emplace(op.module, of.callers()).first;
    for (InstId caller : known->second[of.parent(op.inst).value])
      if (of.op(caller) == Opcode::AsyncStart) return caller;
    return op.inst;
  }
  // Of all runs; of what stands in a loop's body, once a call.
  double bound(const MeasuredOp& op) const {
    const MeasuredModule& of = m.modules[op.module];
    const bool entry = of.module->parent(op.inst) == of.module->entry();
    auto known = costs.find(op.module);
    if (known == costs.end()) known = costs.emplace(op.module, module_cost(module(op), *device)).first;
    const KernelCost* k = known->second.of(asynchronous(op));
    return k && k->times > 0 ? k->seconds / k->times * static_cast<double>(entry ? of.runs : op.calls) : 0;
  }
};

std::optional<Occupancy> own_occupancy(const ProfileView& v, const KernelDetails& k) {
  return v.device ? occupancy_of_kernel(*v.device, k) : std::nullopt;
}

// What a fusion runs, without parameters and the like.
std::vector<InstId> contents(const Module& m, InstId inst) {
  std::vector<InstId> out;
  if (m.op(inst) != Opcode::Fusion) return out;
  for (CompId c : m.called(inst))
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && m.op(i) != Opcode::Parameter && m.op(i) != Opcode::Constant && m.op(i) != Opcode::Tuple &&
          m.op(i) != Opcode::GetTupleElement)
        out.push_back(i);
  return out;
}

// What the device says of the kernel that takes most of an instruction's time, and the data sheet of it.
Json kernel_json(const ProfileView& v, const MeasuredOp& op) {
  const std::optional<KernelDetails> k = kernel_details(v.timeline.text(op.details));
  if (!op.kernel || !k) return {};
  Json out{{"name", v.timeline.text(op.kernel)},
           {"registers", k->registers},
           {"static_shared_bytes", k->static_shared},
           {"dynamic_shared_bytes", k->dynamic_shared},
           {"grid", k->grid},
           {"block", k->block},
           {"occupancy", k->occupancy < 0 ? Json() : Json(k->occupancy)},
           {"estimated_occupancy", Json()},
           {"limiter", Json()}};
  if (const std::optional<Occupancy> own = own_occupancy(v, *k))
    out["estimated_occupancy"] = own->share, out["limiter"] = own->limiter;
  return out;
}

Json op_json(const ProfileView& v, const MeasuredOp& op) {
  const Module& m = v.module(op);
  Json inside = Json::array();
  for (InstId i : contents(m, op.inst))
    inside.push_back({{"name", m.inst_name(i)},
                      {"opcode", op_text(m.op(i))},
                      {"op_name", op_name_of(m, i)},
                      {"source", source_line(m, i).text()}});
  return {{"instruction", m.inst_name(op.inst)},
          {"module", v.m.modules[op.module].name},
          {"opcode", op_text(m.op(op.inst))},
          {"class", kernel_class(m, op.inst)},
          {"count", op.count},
          {"calls", op.calls},
          {"seconds", op.seconds},
          {"ambiguous_seconds", op.ambiguous},
          {"kernel", kernel_json(v, op)},
          {"share", op.seconds / std::max(v.m.named, 1e-300)},
          {"least_span", op.least},
          {"most_span", op.most},
          {"bound_seconds", v.device ? Json(v.bound(op)) : Json()},
          {"op_name", kernel_op_name(m, op.inst)},
          {"source", kernel_source_line(m, op.inst).text()},
          {"contents", inside}};
}

Json span_json(const ProfileView& v, const MeasuredSpan& s) {
  const Track& track = v.timeline.tracks[s.track];
  const Span& span = track.spans[s.span];
  Json out{{"begin", span.begin},
           {"seconds", span.seconds},
           {"track", track.group + " " + track.name},
           {"names", v.timeline.text(span.op)},
           {"instruction", Json()},
           {"ways", s.ways},
           {"module", v.timeline.text(span.module)},
           {"source", ""},
           {"op_name", ""}};
  if (s.op == SIZE_MAX) return out;
  const MeasuredOp& op = v.m.ops[s.op];
  out["instruction"] = v.module(op).inst_name(op.inst);
  out["source"] = kernel_source_line(v.module(op), op.inst).text();
  out["op_name"] = kernel_op_name(v.module(op), op.inst);
  return out;
}

struct KeyRow {
  double seconds = 0, bound = 0;
  size_t spans = 0, instructions = 0;
};

std::vector<std::pair<std::string, KeyRow>> rows_by(const ProfileView& v) {
  std::map<std::string, KeyRow> rows;
  for (const MeasuredOp& op : v.m.ops) {
    const Module& m = v.module(op);
    std::string key = v.a.by == "module"  ? v.m.modules[op.module].name
                      : v.a.by == "class" ? kernel_class(m, op.inst)
                      : v.a.by == "line"  ? kernel_source_line(m, op.inst).text()
                                          : scope_of(kernel_op_name(m, op.inst));
    KeyRow& row = rows[key.empty() ? "(unknown)" : key];
    row.seconds += op.seconds, row.spans += op.count, ++row.instructions;
    if (v.device) row.bound += v.bound(op);
  }
  std::vector<std::pair<std::string, KeyRow>> out(rows.begin(), rows.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& x, const auto& y) { return x.second.seconds > y.second.seconds; });
  return out;
}

Json unjoined_json(const std::vector<Unjoined>& list) {
  Json out = Json::array();
  for (const Unjoined& u : list)
    out.push_back({{"where", u.where}, {"why", u.why}, {"seconds", u.seconds}, {"spans", u.spans}});
  return out;
}

Json devices_json(const Measured& m) {
  Json out = Json::array();
  for (const DeviceTime& d : m.devices)
    out.push_back({{"where", d.where},
                   {"streams", d.tracks},
                   {"kernels", d.kernels},
                   {"runs", d.runs},
                   {"span_seconds", d.span},
                   {"busy_seconds", d.busy},
                   {"between_seconds", d.between()},
                   {"between_within_runs", d.runs ? Json(d.within) : Json()}});
  return out;
}

// Spans that are asked for: of --op, those at --at, or all.
std::vector<MeasuredSpan> wanted_spans(const ProfileView& v) {
  std::vector<MeasuredSpan> out;
  if (!v.a.spans && v.a.op.empty() && v.a.at < 0) return out;
  for (const MeasuredSpan& s : v.m.spans) {
    const Span& span = v.timeline.tracks[s.track].spans[s.span];
    if (v.a.at >= 0 && (span.begin > v.a.at || span.begin + span.seconds < v.a.at)) continue;
    if (!v.a.op.empty() && (s.op == SIZE_MAX || v.module(v.m.ops[s.op]).inst_name(v.m.ops[s.op].inst) != v.a.op))
      continue;
    out.push_back(s);
  }
  return out;
}

int profile_json(const ProfileView& v) {
  Json modules = Json::array(), ops = Json::array(), rows = Json::array(), spans = Json::array();
  std::vector<KeyRow> per(v.m.modules.size());
  for (const MeasuredOp& op : v.m.ops) {
    KeyRow& row = per[op.module];
    row.seconds += op.seconds, row.spans += op.count, ++row.instructions;
    if (v.a.op.empty() || v.module(op).inst_name(op.inst) == v.a.op) ops.push_back(op_json(v, op));
  }
  for (size_t k = 0; k < per.size(); ++k)
    modules.push_back({{"name", v.m.modules[k].name},
                       {"selector", v.m.modules[k].selector},
                       {"number", v.m.modules[k].number < 0 ? Json() : Json(v.m.modules[k].number)},
                       {"instructions", per[k].instructions},
                       {"runs", v.m.modules[k].runs},
                       {"count", per[k].spans},
                       {"seconds", per[k].seconds},
                       {"problem", v.m.modules[k].unreadable}});
  if (v.a.by != "op")
    for (const auto& [key, row] : rows_by(v))
      rows.push_back({{"key", key},
                      {"seconds", row.seconds},
                      {"share", row.seconds / std::max(v.m.named, 1e-300)},
                      {"count", row.spans},
                      {"instructions", row.instructions},
                      {"bound_seconds", v.device ? Json(row.bound) : Json()}});
  for (const MeasuredSpan& s : wanted_spans(v)) spans.push_back(span_json(v, s));
  print_json({{"profile", v.a.file},
              {"format", v.timeline.format},
              {"by", v.a.by},
              {"device", v.device ? Json(v.device->name) : Json()},
              {"named_seconds", v.m.named},
              {"joined_seconds", v.m.joined},
              {"joined_share", v.m.named > 0 ? Json(v.m.joined / v.m.named) : Json()},
              {"ambiguous_seconds", v.m.ambiguous},
              {"devices", devices_json(v.m)},
              {"modules", modules},
              {"instructions", ops},
              {"rows", rows},
              {"spans", spans},
              {"unjoined", unjoined_json(v.m.unjoined)},
              {"unnamed", unjoined_json(v.m.unnamed)},
              {"problems", v.timeline.problems}});
  return kYes;
}

void print_ops(const ProfileView& v) {
  fmt::print("{:>11} {:>7} {:>7} {:>11}{}  instruction\n", "time", "share", "spans", "each",
             v.device ? fmt::format(" {:>11} {:>7}", "at least", "reached") : "");
  for (size_t k = 0; k < v.m.ops.size() && k < v.a.most; ++k) {
    const MeasuredOp& op = v.m.ops[k];
    const Module& m = v.module(op);
    const double each = op.seconds / static_cast<double>(op.count);
    std::string bound;
    if (v.device) bound = fmt::format(" {:>11} {:>5.0f} %", time_text(v.bound(op)), percent(v.bound(op), op.seconds));
    const SourceLine line = kernel_source_line(m, op.inst);
    const std::string from = kernel_op_name(m, op.inst);
    fmt::print("{:>11} {:>5.1f} % {:>7} {:>11}{}  {} ({}){}{}\n", time_text(op.seconds), percent(op.seconds, v.m.named),
               op.count, time_text(each), bound, printable(m.inst_name(op.inst)), kernel_class(m, op.inst),
               line.known() ? "  " + printable(line.brief()) : "", from.empty() ? "" : "  " + printable(from));
  }
  if (v.m.ops.size() > v.a.most) fmt::print("… and {} more (--most)\n", v.m.ops.size() - v.a.most);
}

void print_rows(const ProfileView& v) {
  auto rows = rows_by(v);
  fmt::print("{:>11} {:>7} {:>7} {:>12}{}  {}\n", "time", "share", "spans", "instructions",
             v.device ? fmt::format(" {:>11}", "at least") : "", v.a.by);
  for (size_t k = 0; k < rows.size() && k < v.a.most; ++k) {
    const KeyRow& row = rows[k].second;
    fmt::print("{:>11} {:>5.1f} % {:>7} {:>12}{}  {}\n", time_text(row.seconds), percent(row.seconds, v.m.named),
               row.spans, row.instructions, v.device ? fmt::format(" {:>11}", time_text(row.bound)) : "",
               printable(rows[k].first));
  }
  if (rows.size() > v.a.most) fmt::print("… and {} more (--most)\n", rows.size() - v.a.most);
}

void print_spans(const ProfileView& v, const std::vector<MeasuredSpan>& spans) {
  fmt::print("{:>12} {:>11}  {}\n", "begin", "time", "instruction");
  for (size_t k = 0; k < spans.size() && k < v.a.most; ++k) {
    const Track& track = v.timeline.tracks[spans[k].track];
    const Span& s = track.spans[spans[k].span];
    std::string what = printable(v.timeline.text(s.op)) + " (not joined)", from;
    if (spans[k].op != SIZE_MAX) {
      const MeasuredOp& op = v.m.ops[spans[k].op];
      const Module& m = v.module(op);
      what = printable(m.inst_name(op.inst));
      if (SourceLine line = kernel_source_line(m, op.inst); line.known()) from = "  " + printable(line.brief());
      if (size_t n = contents(m, op.inst).size()) from += fmt::format("  {} operations inside", n);
    }
    fmt::print("{:>9.3f} ms {:>11}  {}{}  on {}\n", s.begin * 1e3, time_text(s.seconds), what, from,
               printable(track.group + " " + track.name));
  }
  if (spans.size() > v.a.most) fmt::print("… and {} more (--most)\n", spans.size() - v.a.most);
}

void print_kernel(const ProfileView& v, const MeasuredOp& op) {
  const std::optional<KernelDetails> k = kernel_details(v.timeline.text(op.details));
  if (!op.kernel || !k) return;
  std::string own;
  if (const std::optional<Occupancy> o = own_occupancy(v, *k))
    own = fmt::format("; {:.1f} % by the data sheet, limited by {}", 100 * o->share, o->limiter);
  fmt::print("kernel: {}\n  grid {}, block {}, {} registers, {} bytes of shared memory and {} more at launch{}{}\n",
             printable(v.timeline.text(op.kernel)), fmt::join(k->grid, "x"), fmt::join(k->block, "x"), k->registers,
             std::max<int64_t>(k->static_shared, 0), std::max<int64_t>(k->dynamic_shared, 0),
             k->occupancy < 0 ? "" : fmt::format(", occupancy at most {:.1f} %", 100 * k->occupancy), own);
}

void print_op(const ProfileView& v, const MeasuredOp& op) {
  const Module& m = v.module(op);
  PrintOptions brief;
  brief.metadata = brief.backend_config = false;
  fmt::print("{} of {}: {} in {} spans ({} to {}), {:.1f} % of the profile's {}\n", printable(m.inst_name(op.inst)),
             printable(v.m.modules[op.module].name), time_text(op.seconds), op.count, time_text(op.least),
             time_text(op.most), percent(op.seconds, v.m.named), time_text(v.m.named));
  fmt::print("  {}\n", printable(print_instruction(m, op.inst, brief)));
  if (op.ambiguous > 0)
    fmt::print("of that {} in kernels that may be others', too: each is split evenly among them\n",
               time_text(op.ambiguous));
  if (v.device) fmt::print("at least {} on {}\n", time_text(v.bound(op)), v.device->name);
  print_kernel(v, op);
  std::vector<SourceLine> stack = source_stack(m, op.inst);
  if (stack.empty())
    if (SourceLine line = kernel_source_line(m, op.inst); line.known()) stack.push_back(line);
  for (const SourceLine& line : stack) fmt::print("source: {} {}\n", printable(line.text()), printable(line.function));
  if (std::string from = kernel_op_name(m, op.inst); !from.empty()) fmt::print("op_name: {}\n", printable(from));
  for (InstId i : contents(m, op.inst)) {
    SourceLine line = source_line(m, i);
    fmt::print("inside: {}{}\n", printable(print_instruction(m, i, brief)),
               line.known() ? "  " + printable(line.brief()) : "");
  }
}

// "named X, did you mean": instructions of --op that the profile does not have.
int profile_op(const ProfileView& v) {
  size_t found = 0;
  for (const MeasuredOp& op : v.m.ops)
    if (v.module(op).inst_name(op.inst) == v.a.op) print_op(v, op), ++found;
  if (!found) {
    fmt::print("the profile has no time of an instruction '{}'\n", printable(v.a.op));
    return kNo;
  }
  print_spans(v, wanted_spans(v));
  return kYes;
}

}  // namespace

std::vector<MeasuredModule> measured_modules(const std::vector<LookedAt>& all) {
  std::vector<MeasuredModule> out;
  for (const LookedAt& l : all) {
    MeasuredModule m;
    m.name = l.name(), m.selector = l.spec;
    if (l.recording) {
      m.name = l.recording->module_name, m.selector = l.selector, m.number = l.recording->module_number;
      m.unreadable = l.unreadable;
    }
    // Read once, for all devices.
    m.load = [one = &l, known = std::make_shared<std::shared_ptr<Module>>()] {
      if (!*known) *known = load(one->folder.empty() ? one->spec : one->folder + "/" + one->file);
      return *known;
    };
    if (!l.recording) {
      if (!m.read()) fail(FailureKind::kIo, "{}", m.unreadable);
      m.name = m.module->name();
    }
    out.push_back(std::move(m));
  }
  return out;
}

std::optional<Occupancy> occupancy_of_kernel(const DeviceSpec& device, const KernelDetails& k) {
  int64_t threads = 1;
  for (int64_t n : k.block) threads = n < 1 || n > 1024 ? 0 : threads * n;
  if (!device.is_gpu() || threads < 1 || threads > 1024) return {};
  return occupancy_of(device, k.registers,
                      std::max<int64_t>(k.static_shared, 0) + std::max<int64_t>(k.dynamic_shared, 0), threads);
}

std::string device_in_words(const DeviceTime& d) {
  std::string out = fmt::format("between kernels: {} ({:.1f} %) of {} on {}", time_text(d.between()),
                                percent(d.between(), d.span), time_text(d.span), d.where);
  if (d.runs)
    out += fmt::format(", {} of it between kernels of one run (launches, the host), the rest between {} run{}",
                       time_text(d.within), d.runs, d.runs == 1 ? "" : "s");
  return out;
}

std::vector<std::string> join_in_words(const Measured& m, size_t most) {
  std::vector<std::string> out;
  size_t joined = 0, used = 0;
  std::vector<bool> seen(m.modules.size());
  for (const MeasuredSpan& s : m.spans) joined += s.op != SIZE_MAX;
  for (const MeasuredOp& op : m.ops)
    if (!seen[op.module]) seen[op.module] = true, ++used;
  if (m.spans.empty())
    out.push_back("no span names an instruction");
  else
    out.push_back(fmt::format("{:.1f} % of {} joined: {} of {} spans that name an instruction, {} of {} module{}",
                              percent(m.joined, m.named), time_text(m.named), joined, m.spans.size(), used,
                              m.modules.size(), m.modules.size() == 1 ? "" : "s"));
  if (m.ambiguous > 0)
    out.push_back(fmt::format("ambiguous: {} ({:.2f} %) in kernels that may be of several instructions: split evenly",
                              time_text(m.ambiguous), percent(m.ambiguous, m.named)));
  for (size_t k = 0; k < m.devices.size() && k < most; ++k) out.push_back(device_in_words(m.devices[k]));
  std::string runs;
  for (size_t k = 0; k < m.modules.size(); ++k)
    if (seen[k] && m.modules[k].runs && runs.size() < 200)
      runs += fmt::format("{}{} {} times", runs.empty() ? "" : ", ", m.modules[k].name, m.modules[k].runs);
  if (!runs.empty()) out.push_back("ran: " + runs);
  auto list = [&](const std::vector<Unjoined>& all, const char* what) {
    for (size_t k = 0; k < all.size() && k < most; ++k)
      out.push_back(fmt::format("{}: {} in {} spans of {}: {}", what, time_text(all[k].seconds), all[k].spans,
                                all[k].where, all[k].why));
    if (all.size() > most) out.push_back(fmt::format("{}: … and {} more", what, all.size() - most));
  };
  list(m.unjoined, "not joined");
  list(m.unnamed, "beside");
  return out;
}

int cmd_profile(const ProfileArgs& a) {
  const std::set<std::string> keys = {"op", "line", "scope", "class", "module"};
  if (!keys.contains(a.by)) fail(FailureKind::kUsage, "--by is op, line, scope, class or module, not '{}'", a.by);
  ProfileView v{a, {}, {}, {}};
  std::string text = read_file(a.file);
  if (file_kind(a.file, text) == FileKind::kTable)
    fail(FailureKind::kUnsupported,
         "{} is a table of sums: `hlo-replay cost MODULE --profile={}` sets it next to bounds", a.file, a.file);
  v.timeline = read_timeline(text, a.file);
  text.clear();
  std::vector<LookedAt> all;
  if (!a.modules.empty()) all = looked_at(a.modules);
  if (a.modules.empty() && v.timeline.modules.empty())
    fail(FailureKind::kUsage, "{} holds no modules; name what ran: hlo-replay profile {} DIR", a.file, a.file);
  if (!a.gpu.empty()) v.device = named_target(a.gpu).spec;
  for (const LookedAt& l : all)
    if (!v.device && l.recording)
      if (Target target = target_of(*l.recording, ""); target.spec_known) v.device = target.spec;
  v.m = join(v.timeline, a.modules.empty() ? modules_of(v.timeline, a.file) : measured_modules(all));
  if (a.json) return profile_json(v);
  if (!a.op.empty()) return profile_op(v);
  if (a.spans || a.at >= 0)
    print_spans(v, wanted_spans(v));
  else if (a.by == "op")
    print_ops(v);
  else
    print_rows(v);
  for (const std::string& line : join_in_words(v.m, 8)) fmt::print("{}\n", printable(line));
  for (const std::string& p : v.timeline.problems) fmt::print(stderr, "warning: {}\n", printable(p));
  return v.m.named > 0 ? kYes : kNo;
}

}  // namespace hlo
