// element_type_converter (xla/service/hlo_element_type_converter.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

//   operation on bf16      →      convert(operation on f32(convert(A)))
// The 2019 GPU pipeline knew bf16 only in memory.
bool run_element_type_converter(Module& m, PassContext& ctx) {
  ElementType from = ElementType::BF16, to = ElementType::F32;
  auto option = [&](const char* key, ElementType* type) {
    if (!type_from_name(ctx.word(key), type)) fail(FailureKind::kUsage, "{}={} is no element type", key, ctx.word(key));
  };
  option("eliminate", &from), option("replace", &to);
  auto has_function = [](Opcode op) {
    switch (op) {
      case Opcode::AllReduce:
      case Opcode::ReduceScatter:
      case Opcode::Map:
      case Opcode::Reduce:
      case Opcode::ReduceWindow:
      case Opcode::Scatter:
      case Opcode::SelectAndScatter:
      case Opcode::Sort:
        return true;
      default:
        return false;
    }
  };
  bool changed = false;
  for (CompId c : m.computation_post_order())
    for (InstId i : m.post_order(c)) {
      Opcode op = m.op(i);
      if (op == Opcode::Parameter || op == Opcode::Constant || op == Opcode::Tuple || op == Opcode::Convert ||
          op == Opcode::BitcastConvert || op == Opcode::GetTupleElement || op == Opcode::Infeed ||
          op == Opcode::Outfeed || op == Opcode::CustomCall || op == Opcode::While || op == Opcode::Call ||
          op == Opcode::Fusion || op == Opcode::Conditional || has_function(op) || m.has_control(i) ||
          m.has_side_effect(i))
        continue;
      bool operand =
          std::any_of(m.operands(i).begin(), m.operands(i).end(), [&](InstId o) { return m.shape(o).type == from; });
      if (!operand && !(m.operand_count(i) == 0 && m.shape(i).type == from)) continue;
      if (!ctx.spend(m, "in the wider type", {i})) return changed;
      std::vector<InstId> ops;
      for (InstId o : std::vector<InstId>(m.operands(i).begin(), m.operands(i).end()))
        ops.push_back(m.shape(o).type == from ? make_convert(m, o, to) : o);
      auto wide_shape = [&](ShapeId s) { return m.u()[s].type == from ? m.u().with_type(s, to) : s; };
      ShapeId shape = m.shape_id(i), wide = shape;
      if (m.u()[shape].is_tuple()) {
        std::vector<ShapeId> parts;
        for (ShapeId s : m.u()[shape].elements) parts.push_back(wide_shape(s));
        wide = m.u().tuple(parts);
      } else {
        wide = wide_shape(shape);
      }
      InstId fresh = m.clone_inst(i, c, ops, wide);
      InstId back = fresh;
      if (m.u()[shape].is_tuple()) {
        std::vector<InstId> parts;
        for (size_t k = 0; k < m.shape(i).elements.size(); ++k) {
          InstId part = make_element(m, fresh, static_cast<int64_t>(k));
          parts.push_back(make_convert(m, part, m.u()[m.shape(i).elements[k]].type));
        }
        back = make(m, c, Opcode::Tuple, parts, {}, shape);
      } else if (wide != shape) {
        back = make(m, c, Opcode::Convert, {fresh}, {}, shape);
      }
      changed |= m.replace(i, back);
    }
  return changed;
}

}  // namespace hlo
