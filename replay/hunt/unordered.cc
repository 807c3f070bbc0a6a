#include "replay/hunt/unordered.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/types/element_type.h"

namespace hlo {
namespace {

// Is the order of applying it to several values seen in the result? Of a single operation on floats that adds or
// multiplies; what only picks one (maximum) or works on integers is not, what is more than that may be.
bool order_is_seen(const Module& m, CompId c, ElementType type) {
  const Opcode root = m.op(m.comp(c).root);
  switch (root) {
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return false;
    case Opcode::Add:
    case Opcode::Multiply:
      return is_float(type) || is_complex(type);
    default:
      return true;
  }
}

ElementType element_of(const Module& m, InstId i) {
  const Shape& s = m.u()[m.shape_id(i)];
  if (s.is_array()) return s.type;
  return s.is_tuple() && !s.elements.empty() ? m.u()[s.elements[0]].type : ElementType::S32;
}

// The first positive number behind `"key":` of a backend_config, quoted or not; 0: none.
int64_t config_number(std::string_view config, std::string_view key) {
  const size_t at = config.find(key);
  if (at == std::string_view::npos) return 0;
  size_t k = at + key.size();
  while (k < config.size() && (config[k] == '"' || config[k] == ':' || config[k] == ' ' || config[k] == '\\')) ++k;
  int64_t n = 0;
  for (; k < config.size() && config[k] >= '0' && config[k] <= '9' && n < 1'000'000; ++k)
    n = 10 * n + (config[k] - '0');
  return n;
}

void see_instruction(const Module& m, InstId i, std::vector<Unordered>& out) {
  const auto& a = m.attrs(i);
  switch (m.op(i)) {
    case Opcode::Scatter:
      if (!a.flag(Attr::unique_indices) && order_is_seen(m, a.comp(Attr::to_apply), element_of(m, i)))
        out.push_back({i, "atomic-scatter",
                       "updates that meet in one element are added up in the order in which threads come", true});
      break;
    case Opcode::SelectAndScatter:
      if (order_is_seen(m, a.comp(Attr::scatter), element_of(m, i)))
        out.push_back(
            {i, "atomic-windows", "windows that overlap add to one element in the order in which threads come", true});
      break;
    case Opcode::RngGetAndUpdateState:
      out.push_back({i, "random-state", "takes a state that every run moves on", true});
      break;
    case Opcode::Rng:
      out.push_back({i, "random-state", "draws random numbers of a state that is not an argument", true});
      break;
    default:
      break;
  }
  const std::string_view config = m.u().text(a.text(Attr::backend_config));
  if (config_number(config, "split_k") > 1)
    out.push_back(
        {i, "split-sum", fmt::format("its product is added up in {} parts", config_number(config, "split_k")), false});
  if (m.op(i) == Opcode::CustomCall) {
    const std::string_view target = m.u().text(a.text(Attr::custom_call_target));
    if (target.starts_with("__cudnn$convBackward"))
      out.push_back({i, "library-algorithm", "cuDNN has algorithms for it that add up by atomics", false});
  }
}

// Numbers of outputs, by part of the entry's root: [k, k + 1) of each operand of a tuple, all of anything else.
struct OutputPart {
  InstId from;
  size_t begin, end;
};

size_t arrays_in(const Module& m, ShapeId id) {
  const Shape& s = m.u()[id];
  if (!s.is_tuple()) return s.is_array() ? 1 : 0;
  size_t sum = 0;
  for (ShapeId part : s.elements) {
    sum += arrays_in(m, part);
    if (sum > 1'000'000) break;
  }
  return sum;
}

std::vector<OutputPart> output_parts(const Module& m) {
  const InstId root = m.comp(m.entry()).root;
  std::vector<OutputPart> out;
  size_t next = 0;
  if (m.op(root) != Opcode::Tuple) return {{root, 0, arrays_in(m, m.shape_id(root))}};
  for (InstId o : m.operands(root)) {
    const size_t count = arrays_in(m, m.shape_id(o));
    out.push_back({o, next, next + count});
    next += count;
  }
  return out;
}

// Computations in which the instruction runs: its own, and those from which that is called.
std::vector<bool> around(const Module& m, InstId i) {
  const std::vector<CompId> order = m.computation_post_order();  // callees first
  size_t most = 0;
  for (CompId c : order) most = std::max<size_t>(most, c.value + 1);
  std::vector<bool> out(most);
  out[m.parent(i).value] = true;
  for (CompId c : order)
    for (InstId k : m.live_order(c))
      for (CompId called : m.called(k))
        if (called.value < most && out[called.value]) out[c.value] = true;
  return out;
}

}  // namespace

std::vector<std::vector<size_t>> outputs_reached(const Module& m, const std::vector<Unordered>& all, size_t most) {
  const std::vector<OutputPart> parts = output_parts(m);
  const std::vector<InstId> order = m.post_order(m.entry());
  uint32_t places = 0;
  for (InstId i : order) places = std::max(places, i.value + 1);
  std::vector<std::vector<size_t>> out;
  for (const Unordered& u : all) {
    std::vector<bool> reached(places);
    if (out.size() < most) {
      const std::vector<bool> inside = around(m, u.inst);
      for (InstId i : order) {
        bool in = i == u.inst;
        for (InstId o : m.operands(i)) in = in || reached[o.value];
        for (CompId c : m.called(i)) in = in || (c.value < inside.size() && inside[c.value]);
        reached[i.value] = in;
      }
    } else {
      reached.assign(places, true);
    }
    std::vector<size_t> numbers;
    for (const OutputPart& p : parts)
      for (size_t k = p.begin; k < p.end && reached[p.from.value]; ++k) numbers.push_back(k);
    out.push_back(std::move(numbers));
  }
  return out;
}

std::vector<Unordered> unordered_instructions(const Module& m) {
  std::vector<Unordered> out;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) see_instruction(m, i, out);
  return out;
}

}  // namespace hlo
