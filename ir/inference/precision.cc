#include "ir/inference/precision.h"

#include "ir/inference/shape_inference.h"

namespace hlo {
namespace {

bool floats_differ(const Universe& u, ShapeId a, ShapeId b) {
  const Shape &x = u[a], &y = u[b];
  if (a == b || x.is_tuple() != y.is_tuple() || x.elements.size() != y.elements.size()) return false;
  for (size_t k = 0; k < x.elements.size(); ++k)
    if (floats_differ(u, x.elements[k], y.elements[k])) return true;
  return x.type != y.type && is_float(x.type) && is_float(y.type);
}

// Where operands may differ always, the result is what inference says.
bool result_differs(const Module& m, InstId inst) {
  Inferred inferred = infer_shape(m, m.op(inst), m.operands(inst), m.attrs(inst), true);
  return inferred.shape.valid() && floats_differ(m.u(), inferred.shape, m.shape_id(inst));
}

}  // namespace

bool mixes_precision(const Module& m, InstId inst) {
  Opcode op = m.op(inst);
  switch (op) {
    case Opcode::Convert:
    case Opcode::BitcastConvert:
    case Opcode::StochasticConvert:
      return false;
    case Opcode::Copy:
    case Opcode::Broadcast:
    case Opcode::Reshape:
    case Opcode::DynamicReshape:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Pad:
    case Opcode::Concatenate:
    case Opcode::Select:
    case Opcode::Clamp:
    case Opcode::Gather:
    case Opcode::ReducePrecision:
      break;
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter:
    case Opcode::Scatter:
    case Opcode::Map:
    case Opcode::Sort:
    case Opcode::TopK:
    case Opcode::Fft:
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
    case Opcode::BatchNormTraining:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormGrad:
    case Opcode::AllReduce:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
      return result_differs(m, inst);
    default:
      if (!op_info(op).elementwise) return false;
  }
  ElementType seen = is_float(m.shape(inst).type) ? m.shape(inst).type : ElementType::Tuple;
  for (InstId o : m.operands(inst)) {
    ElementType type = m.shape(o).type;
    if (!is_float(type)) continue;
    if (seen == ElementType::Tuple) seen = type;
    if (seen != type) return true;
  }
  return false;
}

}  // namespace hlo
