#include "replay/installed/loss.h"

#include <map>
#include <set>

#include "replay/compare/diff.h"

namespace hlo {
namespace {

// Names in a module are StableHLO's to make: attributes that hold computations say nothing.
std::string numbers_of(const Module& m, InstId i) {
  AttrSet set = m.attrs(i);
  std::erase_if(set.list, [](const auto& item) {
    return std::holds_alternative<CompId>(item.second) || std::holds_alternative<std::vector<CompId>>(item.second) ||
           std::holds_alternative<StrId>(item.second);
  });
  return attr_key(set);
}

bool odd_layout(const Universe& u, ShapeId id) {
  const Shape& s = u[id];
  if (s.is_tuple()) {
    for (ShapeId e : s.elements)
      if (odd_layout(u, e)) return true;
    return false;
  }
  return s.has_layout && !is_default_layout(s.layout);
}

struct Facts {
  std::map<Opcode, size_t> opcodes;
  std::map<Opcode, std::multiset<std::string>> numbers;  // attributes of operations that have any
  std::map<std::pair<Opcode, Attr>, size_t> texts;       // sharding, backend_config, frontend_attributes …
  size_t odd_layouts = 0, named = 0, with_control = 0;

  explicit Facts(const Module& m) {
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order) {
        if (!i.valid() || !m.alive(i)) continue;
        ++opcodes[m.op(i)];
        odd_layouts += odd_layout(m.u(), m.shape_id(i));
        named += m[i].meta.valid();
        with_control += !m.control_preds(i).empty();
        for (const auto& [key, value] : m.attrs(i).list)
          if (std::holds_alternative<StrId>(value)) ++texts[{m.op(i), key}];
        if (std::string n = numbers_of(m, i); !m.attrs(i).list.empty()) numbers[m.op(i)].insert(n);
      }
  }
};

void compare_headers(const Module& a, const Module& b, RoundTrip& out) {
  const ModuleConfig &x = a.config(), &y = b.config();
  auto text = [&](const char* name, const std::string& given, const std::string& got) {
    if (!given.empty() && got.empty()) out.lost.push_back(name);
    if (!given.empty() && !got.empty() && given != got) out.restated.push_back(name);
  };
  text("input_output_alias", x.input_output_alias, y.input_output_alias);
  text("buffer_donor", x.buffer_donor, y.buffer_donor);
  text("frontend_attributes of the module", x.frontend_attributes, y.frontend_attributes);
  text("spmd_parameters_shardings", x.spmd_to_parameters, y.spmd_to_parameters);
  text("spmd_output_sharding", x.spmd_to_output, y.spmd_to_output);
  if (x.is_scheduled && !y.is_scheduled) out.lost.push_back("the schedule");
  if (x.replica_count != y.replica_count)
    out.lost.push_back(fmt::format("replica_count={} (is {})", x.replica_count, y.replica_count));
  if (x.num_partitions != y.num_partitions)
    out.restated.push_back(
        fmt::format("num_partitions: {}, was {} (--partitions)", y.num_partitions, x.num_partitions));
  bool odd = x.has_entry_layout && x.entry_result.valid() && odd_layout(a.u(), x.entry_result);
  for (ShapeId s : x.entry_params) odd |= odd_layout(a.u(), s);
  if (odd && (x.entry_params != y.entry_params || x.entry_result != y.entry_result))
    out.lost.push_back("entry_computation_layout");
}

}  // namespace

RoundTrip round_trip(const Module& given, const Module& compiled) {
  RoundTrip out;
  compare_headers(given, compiled, out);
  out.same = out.lost.empty() && out.restated.empty() && same_structure(given, compiled);
  const Facts a(given), b(compiled);
  if (b.odd_layouts < a.odd_layouts)
    out.lost.push_back(fmt::format("layouts of {} of {} instructions that are not row-major",
                                   a.odd_layouts - b.odd_layouts, a.odd_layouts));
  if (b.named < a.named)
    out.lost.push_back(fmt::format("metadata of {} of {} instructions", a.named - b.named, a.named));
  if (b.with_control < a.with_control)
    out.lost.push_back(
        fmt::format("control dependencies of {} of {}", a.with_control - b.with_control, a.with_control));
  for (const auto& [op, count] : a.opcodes) {
    auto at = b.opcodes.find(op);
    const size_t got = at == b.opcodes.end() ? 0 : at->second;
    if (got == count) {
      auto x = a.numbers.find(op), y = b.numbers.find(op);
      if (x != a.numbers.end() && (y == b.numbers.end() || x->second != y->second))
        out.restated.push_back(fmt::format("attributes of {}", op_text(op)));
    } else if (got == 0) {
      out.lost.push_back(fmt::format("all {} {}", count, op_text(op)));
    } else {
      out.restated.push_back(fmt::format("{}: {}, was {}", op_text(op), got, count));
    }
  }
  for (const auto& [op, count] : b.opcodes)
    if (!a.opcodes.contains(op)) out.restated.push_back(fmt::format("{}: {}, was 0", op_text(op), count));
  for (const auto& [key, count] : a.texts) {
    auto at = b.texts.find(key);
    if (const size_t got = at == b.texts.end() ? 0 : at->second; got < count)
      out.lost.push_back(
          fmt::format("{} of {} of {} {}", attr_text(key.second), count - got, count, op_text(key.first)));
  }
  return out;
}

}  // namespace hlo
