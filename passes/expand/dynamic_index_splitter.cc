// dynamic-index-splitter (xla/hlo/transforms/expanders/dynamic_index_splitter.cc).
#include "passes/rewrite.h"

namespace hlo {

//   dynamic-slice(A, s32[2] I)      →      dynamic-slice(A, I[0], I[1])
bool run_dynamic_index_splitter(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::DynamicSlice, Opcode::DynamicUpdateSlice})) return false;
  return each_instruction(m, [&](InstId i) {
    bool slice = m.op(i) == Opcode::DynamicSlice;
    if (!slice && m.op(i) != Opcode::DynamicUpdateSlice) return false;
    size_t first = slice ? 1 : 2;
    if (m.shape(m.operand(i, 0)).rank() == 0) {
      if (m.has_control(i) || !ctx.spend(m, "index of a scalar", {i})) return false;
      return m.replace(i, m.operand(i, slice ? 0 : 1));
    }
    if (m.operand_count(i) != first + 1 || m.shape(m.operand(i, first)).rank() != 1) return false;
    if (m.has_control(i) || !ctx.spend(m, "index vector split", {i})) return false;
    InstId index = m.operand(i, first);
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).begin() + static_cast<ptrdiff_t>(first));
    CompId c = m.parent(i);
    for (int64_t d = 0; d < m.shape(m.operand(i, 0)).rank(); ++d) {
      InstId piece = make(m, c, Opcode::Slice, {index},
                          attrs_of(m.u(), Opcode::Slice, {{Attr::slice, std::vector<SliceDim>{{d, d + 1, 1}}}}));
      ops.push_back(make(m, c, Opcode::Reshape, {piece}, {}, m.u().scalar(m.shape(index).type)));
    }
    InstId to = m.add(c, {.op = m.op(i), .shape = m.shape_id(i), .operands = ops, .attrs = m[i].attrs});
    return m.replace(i, to);
  });
}

}  // namespace hlo
