#include "ir/program/buffer.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/dataflow/points_to.h"
#include "ir/print/print.h"

namespace hlo {

std::vector<int> BufferAssignment::leaf_values(const Module&, InstId inst) const {
  auto found = by_inst.find(inst);
  return found == by_inst.end() ? std::vector<int>() : found->second;
}

std::vector<HeldPlace> held_places(const BufferAssignment& assignment) {
  const std::vector<BufferValue>& values = assignment.values;
  std::map<std::pair<int, int64_t>, std::vector<size_t>> places;  // values by allocation and offset
  for (size_t k = 0; k < values.size(); ++k)
    if (values[k].allocation >= 0 && values[k].size > 0 &&
        assignment.allocations[static_cast<size_t>(values[k].allocation)].kind != Allocation::kThreadLocal)
      places[{values[k].allocation, values[k].offset}].push_back(k);
  std::vector<HeldPlace> out;
  for (auto& [place, list] : places) {
    const Allocation::Kind kind = assignment.allocations[static_cast<size_t>(place.first)].kind;
    if (kind == Allocation::kParameter || kind == Allocation::kConstant) {
      out.push_back({list[0], values[list[0]].first, values[list[0]].last, true});
      continue;
    }
    auto span = [&](size_t k) { return std::pair(values[k].first, values[k].last); };
    std::stable_sort(list.begin(), list.end(), [&](size_t x, size_t y) { return span(x) < span(y); });
    list.erase(std::unique(list.begin(), list.end(), [&](size_t x, size_t y) { return span(x) == span(y); }),
               list.end());
    for (size_t k = 0; k < list.size(); ++k) {
      const auto [first, last] = span(list[k]);
      const int64_t until = k + 1 < list.size() ? std::min(last, span(list[k + 1]).first - 1) : last;
      if (until >= first) out.push_back({list[k], first, until, false});
    }
  }
  std::sort(out.begin(), out.end(), [](const HeldPlace& x, const HeldPlace& y) { return x.value < y.value; });
  return out;
}

int64_t BufferAssignment::total() const {
  int64_t sum = 0;
  for (const Allocation& a : allocations) sum += a.size;
  return sum;
}

std::string human_bytes(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{}B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f}KiB", static_cast<double>(bytes) / 1024);
  if (bytes < int64_t{1} << 30) return fmt::format("{:.2f}MiB", static_cast<double>(bytes) / 1048576);
  return fmt::format("{:.2f}GiB", static_cast<double>(bytes) / 1073741824.0);
}

namespace {
std::string index_text(const Dims& index) {
  std::string out = "{";
  for (size_t i = 0; i < index.size(); ++i) out += (i ? "," : "") + std::to_string(index[i]);
  return out + "}";
}
std::string value_name(const Module& m, int id, const BufferValue& v) {
  std::string name(m.inst_name(v.inst));
  if (m.shape(v.inst).is_tuple()) name += index_text(v.index);
  return fmt::format("<{} {} @0>", id, name);
}
}  // namespace

std::string buffer_assignment_text(const Module& m, const BufferAssignment& b) {
  const Universe& u = m.u();
  std::string out = "BufferAssignment:\n";
  for (size_t i = 0; i < b.allocations.size(); ++i) {
    const Allocation& a = b.allocations[i];
    out += fmt::format("allocation {}: size {}", i, a.size);
    if (a.kind == Allocation::kParameter)
      out += fmt::format(", parameter {}, shape |{}| at ShapeIndex {}", a.parameter,
                         u.shape_text_plain(a.parameter_shape), index_text(a.parameter_index));
    if (a.output_shape.valid()) out += fmt::format(", output shape is |{}|", u.shape_text_plain(a.output_shape));
    if (a.kind == Allocation::kConstant) out += ", constant";
    if (a.kind == Allocation::kThreadLocal) out += ", thread-local";
    if (a.live_out) out += ", maybe-live-out";
    if (a.kind == Allocation::kTemp && !a.live_out) out += ", preallocated-temp";
    out += ":\n";
    for (int id : a.values) {
      const BufferValue& v = b.values[static_cast<size_t>(id)];
      out += fmt::format(" value: {} (size={},offset={}): {}\n", value_name(m, id, v), v.size, v.offset,
                         u.shape_text(v.shape));
    }
  }
  out += fmt::format("\nTotal bytes used: {} ({})\n\nUsed values:\n", b.total(), human_bytes(b.total()));
  // Every leaf of an instruction that is a value.
  std::vector<std::vector<std::pair<InstId, uint32_t>>> held(b.values.size());
  for (const auto& [inst, leaves] : b.by_inst)
    for (uint32_t k = 0; m.alive(inst) && k < leaves.size(); ++k)
      held[static_cast<size_t>(leaves[k])].emplace_back(inst, k);
  // Who reads an instruction, and as which operand. Get-tuple-elements look at the tuple alone: the element is theirs.
  std::unordered_map<InstId, std::vector<std::pair<InstId, size_t>>> reads;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      for (size_t n = 0; n < m.operand_count(i) && m.op(i) != Opcode::GetTupleElement; ++n)
        reads[m.operand(i, n)].emplace_back(i, n);
  std::unordered_map<ShapeId, std::vector<Dims>> indices;
  auto index_of = [&](InstId i, uint32_t leaf) -> std::string {
    if (!m.shape(i).is_tuple()) return "";
    std::vector<Dims>& paths = indices[m.shape_id(i)];
    if (paths.empty()) paths = leaf_indices(u, m.shape_id(i));
    return leaf < paths.size() ? " " + index_text(paths[leaf]) : "";
  };
  constexpr size_t kLong = 4096;  // of a tuple's hundred thousand parts each would print it all
  std::unordered_set<InstId> long_ones;
  for (size_t id = 0; id < b.values.size(); ++id) {
    const BufferValue& v = b.values[id];
    out += value_name(m, static_cast<int>(id), v) + "\n positions:\n";
    std::string uses;
    std::sort(held[id].begin(), held[id].end());
    for (const auto& [h, leaf] : held[id]) {
      const std::string index = index_of(h, leaf);
      out += fmt::format("  {}{}\n", m.inst_name(h), index);
      for (const auto& [user, n] : reads[h]) uses += fmt::format("  {}, operand {}{}\n", m.inst_name(user), n, index);
    }
    out += " uses:\n" + (uses.empty() ? std::string("  (none)\n") : uses);
    PrintOptions o;
    o.metadata = false;
    const std::string by = long_ones.contains(v.inst) ? fmt::format("%{}, as above", m.inst_name(v.inst))
                                                      : print_instruction(m, v.inst, o);
    if (by.size() > kLong) long_ones.insert(v.inst);
    out += " from instruction: " + by + "\n";
  }
  return out;
}

}  // namespace hlo
