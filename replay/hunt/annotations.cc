#include "replay/hunt/annotations.h"

#include "ir/backend_config.h"
#include "passes/pipelines/pipelines.h"

namespace hlo {
namespace {

struct Key {
  const char *part, *number;
};
constexpr Key kKeys[] = {{"known_trip_count", "n"},
                         {"known_init_step", "init"},
                         {"known_init_step", "step"},
                         {"known_induction_variable", "tuple_index"},
                         {"dynamic_slice_config", "byte_offset"},
                         {"dynamic_slice_config", "byte_stride"}};

bool may_be_annotated(Opcode op) {
  return op == Opcode::While || op == Opcode::DynamicSlice || op == Opcode::DynamicUpdateSlice;
}

// Newer releases write a slice's place as `linear`, and zeros where it was before.
const BackendConfig& place_of(const BackendConfig& part) {
  return part.contains("linear") && part["linear"].is_object() ? part["linear"] : part;
}

BackendConfig config_of(const Module& m, InstId i) {
  BackendConfig c = BackendConfig::parse(m.u().text(m.attrs(i).text(Attr::backend_config)), nullptr, false);
  return c.is_object() ? c : BackendConfig::object();
}

bool annotated(const BackendConfig& c) {
  for (const Key& k : kKeys)
    if (c.contains(k.part)) return true;
  return false;
}

// Counters are copied late; what is annotated is told by what they are copies of.
void read_past_copies(Module& m) {
  for (CompId c : m.computations())
    for (InstId i : std::vector<InstId>(m.comp(c).order)) {
      if (!i.valid() || m.op(i) != Opcode::Copy || m.is_root(i)) continue;
      const Shape &s = m.shape(i), &from = m.shape(m.operand(i, 0));
      if (s.is_array() && from.is_array() && s.rank() == 0 && s.type == from.type)
        m.replace_all_uses(i, m.operand(i, 0));
    }
}

}  // namespace

Annotations check_annotations(const Module& m) {
  Annotations out;
  std::vector<InstId> those;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (i.valid() && may_be_annotated(m.op(i)) && annotated(config_of(m, i))) those.push_back(i);
  if (those.empty()) return out;
  auto own = m.clone();
  for (InstId i : those) own->erase_attr(i, Attr::backend_config);
  read_past_copies(*own);
  try {
    for (const char* name : {"while-loop-trip-count-annotator", "dynamic-slice-annotator"}) {
      PassContext context;
      PassEvent event;
      PipelineOptions options;
      options.verify = false;
      run_pass(*own, *find_pass(name), context, options, &event);
    }
  } catch (const Failure&) {
    // What was told before it failed counts.
  }
  for (InstId i : those) {
    const BackendConfig said = config_of(m, i);
    const BackendConfig right = own->alive(i) ? config_of(*own, i) : BackendConfig::object();
    for (const Key& k : kKeys) {
      if (!said.contains(k.part) || !said[k.part].is_object()) continue;
      if (!right.contains(k.part)) {
        ++out.not_checked;
        continue;
      }
      ++out.checked;
      const double is = number(place_of(said[k.part]), k.number, 0),
                   should = number(place_of(right[k.part]), k.number, 0);
      if (is != should)
        out.wrong.push_back(
            {i, fmt::format("{} says {} {:.0f}, the module makes it {:.0f}", k.part, k.number, is, should)});
    }
  }
  return out;
}

}  // namespace hlo
