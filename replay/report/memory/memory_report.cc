#include "replay/report/memory/memory_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "ir/base/checked.h"
#include "ir/base/stack_guard.h"
#include "ir/program/buffer.h"
#include "ir/types/tiling.h"
#include "ir/verify/verifier.h"
#include "passes/backend/backend.h"
#include "replay/os/confined_path.h"
#include "replay/report/memory/buffer_file.h"

namespace hlo {
namespace {

std::string with_index(const std::string& name, const Dims& index) {
  return index.empty() ? name : fmt::format("{}{{{}}}", name, fmt::join(index, ","));
}

std::string file_ending(const Recording& r, std::string_view ending) {
  for (const std::string& f : r.other_files)
    if (f.ends_with(ending)) return f;
  return {};
}

void add_to_sums(MemoryReport* out, const MemoryAllocation& a) {
  auto add = [](int64_t* sum, int64_t bytes) { *sum = (Checked(*sum) + bytes).capped(); };
  out->allocations.push_back(a);
  if (a.kind == "host") add(&out->host, a.bytes);
  if (a.kind == "elsewhere" || a.kind == "host") return add(&out->elsewhere, a.bytes);
  add(&out->allocated, a.bytes);
  add(a.kind == "argument"   ? &out->arguments
      : a.kind == "constant" ? &out->constants
      : a.kind == "output"   ? &out->outputs
                             : &out->temporaries,
      a.bytes);
}

void sort_report(MemoryReport* out) {
  std::stable_sort(out->allocations.begin(), out->allocations.end(),
                   [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
  for (std::vector<MemoryValue>* list : {&out->alive, &out->host_alive})
    std::stable_sort(list->begin(), list->end(), [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
}

// What the module knows about a value of that name.
class ValueNames {
 public:
  explicit ValueNames(const Module& m) : m_(m) {
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (m.alive(i)) by_name_.emplace(m.inst_name(i), i);
  }
  void describe(MemoryValue* v) const {
    auto found = by_name_.find(v->instruction);
    v->kind = "value";
    if (found == by_name_.end()) return;
    describe(v, found->second);
  }
  void describe(MemoryValue* v, InstId i) const {
    const Opcode op = m_.op(i);
    v->kind = op == Opcode::Constant                                  ? "constant"
              : op == Opcode::Parameter && m_.parent(i) == m_.entry() ? "argument"
                                                                      : "value";
    v->always |= v->kind == "constant";
    v->op_name = kernel_op_name(m_, i);
    v->source = kernel_source_line(m_, i);
    if (ShapeId s = m_.u().subshape(m_.shape_id(i), v->index); s.valid() && v->shape.empty())
      v->shape = m_.u().shape_text_plain(s);
  }

 private:
  const Module& m_;
  std::unordered_map<std::string_view, InstId> by_name_;
};

// On a TPU, which lays arrays out in tiles, memory of another color is on the chip or the host's; a GPU's is its own.
bool is_of_tpu(const BufferFile& file) {
  for (const BufferFile::Part& a : file.allocations)
    for (const BufferFile::Value& v : a.values)
      if (v.shape.find(":T(") != std::string::npos) return true;
  return false;
}

// The memory space that XLA keeps what lies in the host in (Layout::kHostMemorySpace of xla/layout.h).
constexpr int64_t kHostColor = 5;

void read_allocations(const BufferFile& file, MemoryReport* out) {
  const bool tpu = is_of_tpu(file);
  for (const BufferFile::Part& a : file.allocations) {
    if (a.thread_local_) continue;
    MemoryAllocation to;
    to.bytes = a.size, to.values = a.values.size();
    to.kind = tpu && a.color > 0       ? "elsewhere"
              : a.color == kHostColor  ? "host"
              : a.parameter >= 0       ? "argument"
              : a.constant             ? "constant"
              : a.live_out || a.output ? "output"
                                       : "temporary";
    int64_t most = -1;
    for (const BufferFile::Value& v : a.values)
      if (v.size > most) most = v.size, to.largest = with_index(v.instruction, v.index);
    add_to_sums(out, to);
  }
}

// As assign_buffers flattens it, which fails where it is too long.
void list_schedule(const Module& m, CompId c, std::vector<std::string>* out) {
  check_stack("calls of computations are nested");
  for (InstId i : m.live_order(c)) {
    const Opcode op = m.op(i);
    if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call || op == Opcode::AsyncStart)
      for (CompId callee : m.called(i)) list_schedule(m, callee, out);
    out->emplace_back(m.inst_name(i));
  }
}

// Our own assignment of a scheduled module.
void from_ours(const Module& m, const GpuTarget& gpu, bool schedule, MemoryReport* out) {
  check_verifies(m);
  BufferAssignment b = assign_buffers(m, gpu);
  const Universe& u = m.u();
  for (const Allocation& a : b.allocations) {
    if (a.kind == Allocation::kThreadLocal) continue;
    MemoryAllocation to;
    to.bytes = a.size, to.values = a.values.size();
    to.kind = a.kind == Allocation::kParameter              ? "argument"
              : a.kind == Allocation::kConstant             ? "constant"
              : a.live_out || a.kind == Allocation::kOutput ? "output"
                                                            : "temporary";
    int64_t most = -1;
    const bool host = std::any_of(a.values.begin(), a.values.end(), [&](int id) {
      return is_in_host_memory(u[b.values[static_cast<size_t>(id)].shape]);
    });
    if (host) to.kind = "host";
    for (int id : a.values) {
      const BufferValue& v = b.values[static_cast<size_t>(id)];
      if (v.size > most) most = v.size, to.largest = with_index(std::string(m.inst_name(v.inst)), v.index);
    }
    add_to_sums(out, to);
  }
  // Sweep over the schedule: what begins and what ends.
  std::vector<std::pair<int64_t, int64_t>> events;  // position, bytes; ends before begins of the next position
  const std::vector<HeldPlace> held = held_places(b);
  double kept = 0;
  std::vector<std::pair<int64_t, int64_t>> host_events;
  double host = 0;
  for (const HeldPlace& h : held) {
    const BufferValue& v = b.values[h.value];
    const bool there = is_in_host_memory(u[v.shape]);
    auto& list = there ? host_events : events;
    if (h.always)
      (there ? host : kept) += static_cast<double>(v.size);
    else
      list.emplace_back(h.first, v.size), list.emplace_back(h.last + 1, -v.size);
  }
  std::sort(host_events.begin(), host_events.end());
  double host_most = host;
  for (const auto& event : host_events) host_most = std::max(host_most, host += static_cast<double>(event.second));
  out->host_peak = static_cast<int64_t>(std::min(host_most, 9e18));
  std::sort(events.begin(), events.end());
  double live = kept, most = kept;  // sums of strangers' sizes need not fit into 63 bits
  int64_t at = -1;
  for (const auto& [position, bytes] : events) {
    live += static_cast<double>(bytes);
    if (live > most) most = live, at = position;
  }
  out->peak = static_cast<int64_t>(std::min(most, 9e18));
  out->peak_place = at;
  if (schedule) list_schedule(m, m.entry(), &out->schedule);
  ValueNames names(m);
  for (const BufferValue& v : b.values)
    if (v.first == at && !m.is_root(v.inst) && out->peak_at.empty() && m.op(v.inst) != Opcode::Parameter)
      out->peak_at = m.inst_name(v.inst);
  for (const HeldPlace& h : held) {
    if (!h.always && (h.first > at || h.last < at)) continue;
    const BufferValue& v = b.values[h.value];
    MemoryValue to;
    to.instruction = m.inst_name(v.inst), to.index = v.index, to.bytes = v.size;
    to.shape = u.shape_text_plain(v.shape);
    to.first = h.first, to.last = h.last, to.always = h.always;
    names.describe(&to, v.inst);
    const bool there = is_in_host_memory(u[v.shape]);
    if (there) out->host_at_peak = (Checked(out->host_at_peak) + v.size).capped();
    (there ? out->host_alive : out->alive).push_back(std::move(to));
  }
}

// The instruction at that place of the schedule that the file lists; empty: it lists none.
std::string place_in_schedule(const LivePeak& live, int64_t at) {
  return at >= 0 && at < static_cast<int64_t>(live.schedule.size()) ? live.schedule[static_cast<size_t>(at)] : "";
}

// Where a value lies by XLA's assignment.
struct Placed {
  int64_t allocation = 0, offset = 0, size = 0;
  bool beside = false, host = false;  // not in the device's memory; in its host's
};
using Placement = std::map<std::pair<std::string, Dims>, Placed>;

// The values of these that lie in memory at a time, each place once: what is updated in place has a range before and
// one after, and is one array. Bytes of all of them that lie in the device's memory in `bytes`; others have their kind
// told.
std::vector<LivePeak::Value> alive_at(const LivePeak& live, const Placement& places, int64_t at, double* bytes) {
  std::vector<LivePeak::Value> out;
  std::set<std::pair<int64_t, int64_t>> taken;
  *bytes = 0;
  for (const LivePeak::Range& r : live.ranges) {
    if (r.first > at || r.last < at) continue;
    auto found = places.find({r.instruction, r.index});
    if (found == places.end() || found->second.size == 0) continue;
    const Placed& p = found->second;
    if (!taken.emplace(p.allocation, p.offset).second) continue;
    out.push_back({r.instruction, r.index, p.size});
    if (!p.beside) *bytes += static_cast<double>(p.size);
  }
  return out;
}

// The time at which the most bytes lie in memory, by XLA's own ranges; -1: none is known. XLA names one itself, but
// counts a kernel's several results as the pointers to them there (ComputePeakMemoryMoment of
// xla/hlo/utils/hlo_live_range.cc), so that it may be another one.
int64_t fullest_moment(const LivePeak& live, const Placement& places) {
  struct Event {
    int64_t at;
    bool end;  // what ends goes behind what begins at the same time: both lie there
    const Placed* place;
    bool operator<(const Event& o) const { return std::tie(at, end) < std::tie(o.at, o.end); }
  };
  std::vector<Event> events;
  for (const LivePeak::Range& r : live.ranges)
    if (auto found = places.find({r.instruction, r.index});
        found != places.end() && r.first <= r.last && !found->second.beside) {
      events.push_back({r.first, false, &found->second});
      events.push_back({r.last, true, &found->second});
    }
  std::stable_sort(events.begin(), events.end());
  struct Held {
    size_t values = 0;
    double size = 0;
  };
  std::map<std::pair<int64_t, int64_t>, Held> held;
  double bytes = 0, most = 0;  // sums of strangers' sizes need not fit into 63 bits
  int64_t at = -1;
  for (const Event& e : events) {
    Held& place = held[{e.place->allocation, e.place->offset}];
    if (!e.end && place.values++ == 0) bytes += place.size = static_cast<double>(e.place->size);
    if (e.end && --place.values == 0) bytes -= place.size;
    if (bytes > most) most = bytes, at = e.at;
  }
  return at;
}

// What lies in memory at the peak by XLA's live ranges.
void read_peak(const std::string& text, const std::string& label, const Placement& places, MemoryReport* out) {
  LivePeak live = read_live_range_file(text, label);
  const int64_t at = fullest_moment(live, places);
  if (at >= 0) {
    double bytes = 0, told = 0;
    std::vector<LivePeak::Value> values = alive_at(live, places, at, &bytes);
    alive_at(live, places, live.at, &told);
    if (live.at >= 0 && told < bytes)
      out->notes.push_back(
          fmt::format("{} calls {} the peak, where {:.0f} bytes are alive: it counts results of a tuple "
                      "as pointers",
                      label, place_in_schedule(live, live.at), told));
    live.at = at, live.values = std::move(values);
  }  // else what the file itself lists
  out->peak_at = place_in_schedule(live, live.at), out->peak_place = live.at;
  std::map<std::pair<std::string, Dims>, std::pair<int64_t, int64_t>> lives;
  for (const LivePeak::Range& r : live.ranges)
    lives.emplace(std::pair(r.instruction, r.index), std::pair(r.first, r.last));
  for (const LivePeak::Value& v : live.values) {
    MemoryValue to;
    to.instruction = v.instruction, to.index = v.index, to.bytes = v.size;
    if (auto life = lives.find({v.instruction, v.index}); life != lives.end())
      to.first = life->second.first, to.last = life->second.second;
    const auto place = places.find({v.instruction, v.index});
    if (place == places.end() || !place->second.beside)
      out->peak = (Checked(out->peak) + v.size).capped(), out->alive.push_back(std::move(to));
    else if (place->second.host)
      out->host_at_peak = (Checked(out->host_at_peak) + v.size).capped(), out->host_alive.push_back(std::move(to));
  }
  out->schedule = std::move(live.schedule);
}

}  // namespace

std::string does_not_fit(int64_t allocated, const Target& t) {
  if (!t.spec_known || t.spec.memory_gb <= 0) return {};
  const double there = t.spec.memory_gb * 1024 * 1024 * 1024;
  if (static_cast<double>(allocated) <= there) return {};
  return fmt::format("does not fit: {} allocated, {} has {:.0f} GiB", human_bytes(allocated), t.spec.name,
                     t.spec.memory_gb);
}

std::string MemoryValue::name() const { return with_index(instruction, index); }

namespace {
std::optional<MemoryReport> report_of_files(const Recording& r) {
  std::string file = file_ending(r, "buffer-assignment.txt");
  if (file.empty() || r.source != "xla") return std::nullopt;
  MemoryReport out;
  Placement places;
  try {
    BufferFile buffers = read_buffer_file(read_confined(r.folder, file), file);
    read_allocations(buffers, &out);
    const bool tpu = is_of_tpu(buffers);
    for (const BufferFile::Part& a : buffers.allocations)
      for (const BufferFile::Value& v : a.values)
        places[{v.instruction, v.index}] = {a.number, v.offset, v.size, a.color == kHostColor || (tpu && a.color > 0),
                                            a.color == kHostColor};
  } catch (const Failure& e) {
    return std::nullopt;
  }
  out.from = "XLA's buffer assignment";
  std::string ranges = file_ending(r, "live-range.txt");
  if (!ranges.empty()) try {
      read_peak(read_confined(r.folder, ranges), ranges, places, &out);
    } catch (const Failure& e) {
      out.notes.emplace_back(e.what());
    }
  sort_report(&out);
  return out;
}

MemoryReport report_of(const Module& m, const Recording* r, const GpuTarget& gpu, bool schedule) {
  MemoryReport out;
  if (r) {
    std::optional<MemoryReport> told = report_of_files(*r);
    if (!told && r->source == "xla" && !file_ending(*r, "buffer-assignment.txt").empty())
      out.notes.push_back(fmt::format("{} cannot be read", file_ending(*r, "buffer-assignment.txt")));
    if (told && told->peak > 0) {
      ValueNames names(m);
      for (MemoryValue& v : told->alive) names.describe(&v);
      for (MemoryValue& v : told->host_alive) names.describe(&v);
      return std::move(*told);
    }
    if (told) {  // sums of XLA's, the values that are alive by ours
      MemoryReport ours = report_of(m, nullptr, gpu, schedule);
      told->peak_place = ours.peak_place, told->schedule = std::move(ours.schedule);
      told->peak = ours.peak, told->peak_at = ours.peak_at, told->alive = std::move(ours.alive);
      told->host_peak = ours.host_peak, told->host_at_peak = ours.host_at_peak;
      told->host_alive = std::move(ours.host_alive);
      told->from += "; what is alive at the peak by ours (the dump has no live-range.txt)";
      told->notes.insert(told->notes.end(), ours.notes.begin(), ours.notes.end());
      return std::move(*told);
    }
  }
  if (m.config().is_scheduled) {
    out.from = "our buffer assignment";
    from_ours(m, gpu, schedule, &out);
  } else {
    auto scheduled = m.clone();
    schedule_module(*scheduled);
    out.from = "our buffer assignment, in post order (the module has no schedule)";
    out.estimate = true;
    from_ours(*scheduled, gpu, schedule, &out);
  }
  sort_report(&out);
  return out;
}
}  // namespace

std::optional<MemoryReport> memory_from_files(const Recording& r) {
  std::optional<MemoryReport> out = report_of_files(r);
  if (out) out->schedule.clear();
  if (out) out->too_large = does_not_fit(out->allocated, target_of(r, ""));
  return out;
}

MemoryReport memory_report(const Module& m, const Recording* r, const Target* target, bool schedule) {
  const Target own = target ? *target : r ? target_of(*r, "") : Target();
  MemoryReport out = report_of(m, r, own.gpu, schedule);
  if (!schedule) out.schedule.clear();
  out.too_large = does_not_fit(out.allocated, own);
  return out;
}

}  // namespace hlo
