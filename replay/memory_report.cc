#include "replay/memory_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/base/checked.h"
#include "ir/buffer.h"
#include "ir/verifier.h"
#include "passes/backend/backend.h"
#include "replay/buffer_file.h"
#include "replay/confined_path.h"

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
  if (a.kind == "elsewhere") return add(&out->elsewhere, a.bytes);
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
  std::stable_sort(out->alive.begin(), out->alive.end(),
                   [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
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

void read_allocations(const BufferFile& file, MemoryReport* out) {
  const bool tpu = is_of_tpu(file);
  for (const BufferFile::Part& a : file.allocations) {
    if (a.thread_local_) continue;
    MemoryAllocation to;
    to.bytes = a.size, to.values = a.values.size();
    to.kind = tpu && a.color > 0       ? "elsewhere"
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

// Our own assignment of a scheduled module.
void from_ours(const Module& m, MemoryReport* out) {
  check_verifies(m);
  BufferAssignment b = assign_buffers(m);
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
  for (const HeldPlace& h : held) {
    const int64_t size = b.values[h.value].size;
    if (h.always)
      kept += static_cast<double>(size);
    else
      events.emplace_back(h.first, size), events.emplace_back(h.last + 1, -size);
  }
  std::sort(events.begin(), events.end());
  double live = kept, most = kept;  // sums of strangers' sizes need not fit into 63 bits
  int64_t at = -1;
  for (const auto& [position, bytes] : events) {
    live += static_cast<double>(bytes);
    if (live > most) most = live, at = position;
  }
  out->peak = static_cast<int64_t>(std::min(most, 9e18));
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
    names.describe(&to, v.inst);
    out->alive.push_back(std::move(to));
  }
}

// The instruction at that place of the schedule that the file lists.
std::string place_in_schedule(std::string_view text, int64_t at) {
  std::string wanted = fmt::format("\n    {}:", at);
  size_t found = text.find(wanted);
  if (found == std::string_view::npos) return {};
  found += wanted.size();
  return std::string(text.substr(found, text.find('\n', found) - found));
}

}  // namespace

std::string MemoryValue::name() const { return with_index(instruction, index); }

std::optional<MemoryReport> memory_from_files(const Recording& r) {
  std::string file = file_ending(r, "buffer-assignment.txt");
  if (file.empty() || r.source != "xla") return std::nullopt;
  MemoryReport out;
  std::map<std::pair<std::string, Dims>, std::pair<int64_t, int64_t>> places;  // allocation and offset, by value
  try {
    BufferFile buffers = read_buffer_file(read_confined(r.folder, file), file);
    read_allocations(buffers, &out);
    for (const BufferFile::Part& a : buffers.allocations)
      for (const BufferFile::Value& v : a.values) places[{v.instruction, v.index}] = {a.number, v.offset};
  } catch (const Failure& e) {
    return std::nullopt;
  }
  out.from = "XLA's buffer assignment";
  std::string ranges = file_ending(r, "live-range.txt");
  if (!ranges.empty()) try {
      std::string text = read_confined(r.folder, ranges);
      LivePeak peak = read_live_range_file(text, ranges);
      out.peak_at = place_in_schedule(text, peak.at);
      // What is updated in place is listed before and after, and is one array.
      std::set<std::pair<int64_t, int64_t>> taken;
      for (const LivePeak::Value& v : peak.values) {
        auto place = places.find({v.instruction, v.index});
        if (v.size == 0 || (place != places.end() && !taken.insert(place->second).second)) continue;
        out.peak += v.size;
        MemoryValue to;
        to.instruction = v.instruction, to.index = v.index, to.bytes = v.size;
        out.alive.push_back(std::move(to));
      }
    } catch (const Failure& e) {
      out.notes.emplace_back(e.what());
    }
  sort_report(&out);
  return out;
}

MemoryReport memory_report(const Module& m, const Recording* r) {
  MemoryReport out;
  if (r) {
    std::optional<MemoryReport> told = memory_from_files(*r);
    if (!told && r->source == "xla" && !file_ending(*r, "buffer-assignment.txt").empty())
      out.notes.push_back(fmt::format("{} cannot be read", file_ending(*r, "buffer-assignment.txt")));
    if (told && told->peak > 0) {
      ValueNames names(m);
      for (MemoryValue& v : told->alive) names.describe(&v);
      return std::move(*told);
    }
    if (told) {  // sums of XLA's, the values that are alive by ours
      MemoryReport ours = memory_report(m, nullptr);
      told->peak = ours.peak, told->peak_at = ours.peak_at, told->alive = std::move(ours.alive);
      told->from += "; what is alive at the peak by ours (the dump has no live-range.txt)";
      told->notes.insert(told->notes.end(), ours.notes.begin(), ours.notes.end());
      return std::move(*told);
    }
  }
  if (m.config().is_scheduled) {
    out.from = "our buffer assignment";
    from_ours(m, &out);
  } else {
    auto scheduled = m.clone();
    schedule_module(*scheduled);
    out.from = "our buffer assignment, in post order (the module has no schedule)";
    out.estimate = true;
    from_ours(*scheduled, &out);
  }
  sort_report(&out);
  return out;
}

}  // namespace hlo
