#include "gpu_exec/row_major.h"

#include <numeric>

#include "ir/base/check.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

bool rearranged(const Shape& s) { return s.is_array() && s.rank() > 0 && s.has_layout && !is_default_layout(s.layout); }
Dims in_memory(const Shape& s) {
  if (rearranged(s)) return {s.layout.minor_to_major.rbegin(), s.layout.minor_to_major.rend()};
  Dims order(s.dims.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}
bool tiled(const Shape& s) { return s.is_array() && !s.layout.rest.empty() && !s.layout.rest.starts_with("E("); }

InstId spell_out(Module& m, InstId bitcast) {
  const Shape out = m.shape(bitcast);
  const InstId operand = m.operand(bitcast, 0);
  InstId made = operand;
  if (rearranged(m.shape(operand))) made = make_transpose(m, operand, in_memory(m.shape(operand)));
  Dims order = in_memory(out);
  Shape flat = out;
  flat.layout = {};
  for (size_t k = 0; k < order.size(); ++k) flat.dims[k] = out.dims[static_cast<size_t>(order[k])];
  for (int64_t k = out.rank(); k-- > 0;) flat.layout.minor_to_major.push_back(k);
  if (m.shape(made).dims != flat.dims || m.shape(made).type != flat.type)
    made = m.add_derived(bitcast, {Opcode::Bitcast, m.u().shape(std::move(flat)), {made}, {}, {}, "bitcast"});
  if (!is_identity(order)) made = make_transpose(m, made, inverse_permutation(order));
  bool root = m.is_root(bitcast);
  CompId c = m.parent(bitcast);
  m.replace_all_uses(bitcast, made);
  if (root) m.set_root(c, made);
  StrId name = m[bitcast].name;
  m.remove(bitcast);
  if (made != operand) m.set_name(made, name);
  return made;
}

}  // namespace

std::vector<std::pair<InstId, InstId>> make_row_major(Module& m) {
  std::vector<std::pair<InstId, InstId>> made;
  const std::vector<CompId> computations = m.computations();
  for (CompId c : computations)
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Bitcast) continue;
      const Shape &in = m.shape(m.operand(i, 0)), &out = m.shape(i);
      if (tiled(in) || tiled(out)) fail(FailureKind::kUnsupported, "{}: a bitcast of a tiled layout", m.inst_name(i));
      if (in.is_dynamic() || out.is_dynamic() || (!rearranged(in) && !rearranged(out))) continue;
      made.push_back({i, spell_out(m, i)});
    }
  if (!made.empty()) m.cleanup();
  for (CompId c : computations)
    for (InstId i : m.live_order(c))
      if (ShapeId plain = m.u().with_default_layout(m.shape_id(i)); plain != m.shape_id(i)) m.set_shape(i, plain);
  return made;
}

}  // namespace hlo
