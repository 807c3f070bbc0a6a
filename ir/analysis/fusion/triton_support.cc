// What Triton's generic emitter takes (xla/backends/gpu/codegen/triton/support.cc). Products have rules of their own
// (triton_refuses, passes/fusion/dimension_order.h), which are those of the older emitter.
#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/fusion/fusion_view.h"
#include "ir/analysis/fusion/tiling.h"

namespace hlo {
namespace {

bool is_f8(ElementType t) { return t == ElementType::F8E5M2 || t == ElementType::F8E4M3FN; }

bool is_triton_type(ElementType t) {
  switch (t) {
    case ElementType::Pred:
    case ElementType::S4:
    case ElementType::S8:
    case ElementType::S16:
    case ElementType::S32:
    case ElementType::S64:
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::F8E5M2:
    case ElementType::F8E4M3FN:
      return true;
    default:
      return false;
  }
}

std::string refuse_conversion(ElementType from, ElementType to, const GpuTarget& target) {
  auto any = [&](auto is) { return is(from) || is(to); };
  const bool to_half =
      any([](ElementType t) { return t == ElementType::F16 || t == ElementType::BF16 || t == ElementType::F32; });
  const bool between_f8 = is_f8(from) && is_f8(to) && from != to;
  const bool old_card = target.major < 9 && any([](ElementType t) { return t == ElementType::F8E4M3FN; });
  const bool refused = (from != to && old_card) || (from != to && any(is_f8) && !between_f8 && !to_half) ||
                       to == ElementType::S4 ||
                       (from == ElementType::S4 && to != ElementType::S8 && to != ElementType::F16 &&
                        to != ElementType::BF16 && to != ElementType::F32 && to != ElementType::F64) ||
                       !is_triton_type(from) || !is_triton_type(to);
  return refused ? fmt::format("Unsupported conversion in Triton: {} to {}", type_name(from), type_name(to)) : "";
}

// By the type of the last operand: compare and select have predicates elsewhere.
bool takes_elementwise(Opcode op, ElementType t) {
  const bool narrow = t == ElementType::S4 || is_f8(t),
             floats = t == ElementType::F16 || t == ElementType::BF16 || t == ElementType::F32 || t == ElementType::F64;
  switch (op) {
    case Opcode::Copy:
      return t != ElementType::S4;
    case Opcode::Abs:
      return t != ElementType::Pred && t != ElementType::S4;
    case Opcode::Negate:
      return t != ElementType::Pred && !narrow;
    case Opcode::Not:
      return t == ElementType::Pred || (is_integral(t) && t != ElementType::S4);
    case Opcode::ReducePrecision:
      return is_float(t);
    case Opcode::Cosine:
    case Opcode::Floor:
    case Opcode::Log1p:
    case Opcode::Sqrt:
    case Opcode::Tanh:
    case Opcode::Exp:
    case Opcode::Expm1:
    case Opcode::Cbrt:
    case Opcode::Erf:
    case Opcode::Log:
    case Opcode::Tan:
    case Opcode::Ceil:
    case Opcode::Rsqrt:
    case Opcode::Sine:
    case Opcode::Atan2:
    case Opcode::Power:
    case Opcode::RoundNearestEven:
      return floats;
    case Opcode::Add:
    case Opcode::Compare:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Multiply:
      return !narrow;
    case Opcode::Subtract:
      return t != ElementType::Pred && !narrow;
    case Opcode::Divide:
    case Opcode::Remainder:
      return floats || (is_integral(t) && t != ElementType::S4);
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return t == ElementType::Pred || (is_integral(t) && t != ElementType::S4);
    case Opcode::Select:
      return t != ElementType::S4;
    case Opcode::Clamp:
      return !narrow;
    default:
      return false;
  }
}

std::string refuse_reduce(const Module& m, InstId i, const GpuTarget& target) {
  if (!m.shape(i).is_array()) return "Reduction is not a row-reduction of a single operand.";
  if (is_f8(m.shape(i).type)) return "F8E4M3FN and F8E5M2 are not supported for reductions.";
  for (CompId c : m.called(i))
    for (InstId b : m.comp(c).order)
      if (m.alive(b) && !refuse_triton(m, b, target).empty()) return "Unsupported reduction computation by Triton.";
  return m.attrs(i).ints(Attr::dimensions).size() == 1 ? "" : "Reduction is not a row-reduction of a single operand.";
}

}  // namespace

std::string refuse_triton(const Module& m, InstId i, const GpuTarget& target) {
  const Opcode op = m.op(i);
  const ElementType type = m.shape(i).type;
  auto unless_s4 = [&] { return type == ElementType::S4 ? "S4 is not supported." : ""; };
  if (op == Opcode::Convert) return refuse_conversion(m.shape(m.operand(i, 0)).type, type, target);
  const bool known = op == Opcode::Reduce || op == Opcode::Iota || op == Opcode::Broadcast || op == Opcode::Bitcast ||
                     op == Opcode::Reshape || op == Opcode::Slice || op == Opcode::Transpose ||
                     op == Opcode::Parameter || (op_info(op).elementwise && op != Opcode::Map) ||
                     op == Opcode::Constant;
  if (!known) return fmt::format("Unsupported opcode {}", op_text(op));
  if (!is_triton_type(type) && op != Opcode::Reduce) return "Unsupported output data type.";
  for (InstId o : m.operands(i))
    if (!is_triton_type(m.shape(o).type)) return "Unsupported input data type.";
  switch (op) {
    case Opcode::Parameter:
      return "";
    case Opcode::Constant:
      if (type == ElementType::S4) return unless_s4();
      return m.shape(i).elements_count() == 1 ? "" : "Only scalar constants are supported in Triton.";
    case Opcode::Iota:
      return is_f8(type) || type == ElementType::S4 ? "F8E4M3FN, F8E5M2 and S4 are not supported for iota." : "";
    case Opcode::Reduce:
      return refuse_reduce(m, i, target);
    case Opcode::Bitcast:
      if (m.shape(m.operand(i, 0)).elements_count() != m.shape(i).elements_count())
        return "only bitcasts with the same number of elements are supported";
      return unless_s4();
    case Opcode::Broadcast:
    case Opcode::Reshape:
    case Opcode::Slice:
    case Opcode::Transpose:
      return unless_s4();
    default:
      break;
  }
  const InstId last = m.operand(i, m.operand_count(i) - 1);
  return takes_elementwise(op, m.shape(last).type) ? "" : "Unsupported elementwise operation.";
}

}  // namespace hlo
