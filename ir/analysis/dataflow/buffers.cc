#include "ir/analysis/dataflow/buffers.h"

#include <algorithm>

#include "ir/sharding/aliasing.h"

namespace hlo {

SharedBuffers::SharedBuffers(const Dataflow& flow, const AliasInfo& aliases, bool donated)
    : flow_(flow), buffer_(flow.size()), values_(flow.size()) {
  const Module& m = flow.module();
  for (ValueId v = 0; v < flow.size(); ++v) buffer_[v] = v;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) == Opcode::While) {
        const AttrSet& a = m.attrs(i);
        const Computation& body = m.comp(a.comp(Attr::body));
        for (InstId with : {m.operand(i, 0), body.params[0], body.root, m.comp(a.comp(Attr::condition)).params[0]})
          join(i, with);
      } else if (m.op(i) == Opcode::Conditional) {
        for (CompId branch : m.called(i)) join(i, m.comp(branch).root);
      }
      for (const InPlacePair& pair : aliases.in_place(i))
        join(flow.at(i, pair.result_node), flow.at(m.operand(i, pair.operand), pair.operand_node));
    }
  if (donated) {
    const Computation& entry = m.comp(m.entry());
    const ShapeId result = m.shape_id(entry.root);
    for (const AliasEntry& e : parse_aliases(m.config().input_output_alias)) {
      if (e.number < 0 || static_cast<size_t>(e.number) >= entry.params.size()) continue;
      const InstId p = entry.params[static_cast<size_t>(e.number)];
      const uint32_t out = flow.nodes().at(result, e.output), in = flow.nodes().at(m.shape_id(p), e.index);
      if (out < flow.of(entry.root).size() && in < flow.of(p).size()) join(flow.at(entry.root, out), flow.at(p, in));
    }
  }
  for (ValueId v = 0; v < flow.size(); ++v) {
    buffer_[v] = find(v);
    if (flow.somewhere(v)) values_[buffer_[v]].push_back(v);
  }
}

ValueId SharedBuffers::find(ValueId v) {
  while (buffer_[v] != v) v = buffer_[v] = buffer_[buffer_[v]];
  return v;
}

void SharedBuffers::join(ValueId a, ValueId b) {
  a = find(a), b = find(b);
  buffer_[std::max(a, b)] = std::min(a, b);
}

void SharedBuffers::join(InstId a, InstId b) {
  const size_t count = std::min(flow_.of(a).size(), flow_.of(b).size());
  for (uint32_t node = 0; node < count; ++node) join(flow_.at(a, node), flow_.at(b, node));
}

}  // namespace hlo
