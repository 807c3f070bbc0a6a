// move_copy_to_users (xla/backends/gpu/transforms/move_copy_to_users.cc): what reads a copy to another layout reads
// what was copied, and its result is copied; often smaller, and copies meet.
#include "passes/layout/physical.h"

namespace hlo {
namespace {

class CopyMover {
 public:
  CopyMover(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool visit(InstId i) {
    switch (m_.op(i)) {
      case Opcode::Pad:
      case Opcode::Slice:
      case Opcode::DynamicSlice:
      case Opcode::ReduceWindow:
      case Opcode::Reverse:
      case Opcode::BitcastConvert:
        return one(i);
      case Opcode::Reduce:
        return reduction(i);
      case Opcode::Concatenate:
        return all(i, m_.operand_count(i), false);
      case Opcode::Copy:
      case Opcode::ReducePrecision:
        return false;
      default:
        if (op_info(m_.op(i)).cls != OpClass::Elementwise) return false;
        if (m_.operand_count(i) == 1) return one(i);
        return m_.operand_count(i) == 2 && all(i, 2, true);
    }
  }

 private:
  bool copied(InstId i) const { return m_.op(i) == Opcode::Copy && m_.shape(i).is_array(); }

  // The same operation in the layout of what was copied, and a copy behind it.
  bool moved(InstId i, size_t reads) {
    if (!ctx_.spend(m_, "copy after its user", {i, m_.operand(i, 0)})) return false;
    std::vector<InstId> operands(m_.operands(i).begin(), m_.operands(i).end());
    for (size_t n = 0; n < reads; ++n) operands[n] = m_.operand(operands[n], 0);
    const ShapeId shape = u_.with_layout(m_.shape_id(i), m_.shape(operands[0]).layout.minor_to_major);
    const InstId now = m_.clone_inst(i, m_.parent(i), operands, shape);
    m_.set_uniquified_name(now, op_info(m_.op(i)).text);
    return m_.replace(i, make(m_, m_.parent(i), Opcode::Copy, {now}, {}, m_.shape_id(i)), {.relay_control = true});
  }

  bool one(InstId i) {
    if (!copied(m_.operand(i, 0)) || !m_.shape(i).is_array()) return false;
    if (m_.shape(i).rank() != m_.shape(m_.operand(i, 0)).rank()) return false;
    return moved(i, 1);
  }
  bool all(InstId i, size_t reads, bool same_shape) {
    for (size_t n = 0; n < reads; ++n) {
      if (!copied(m_.operand(i, n))) return false;
      const InstId from = m_.operand(m_.operand(i, n), 0), first = m_.operand(m_.operand(i, 0), 0);
      if (same_shape ? m_.shape_id(from) != m_.shape_id(first) : m_.shape(from).layout != m_.shape(first).layout)
        return false;
    }
    return moved(i, reads);
  }
  // Columns are as good as rows.
  bool reduction(InstId i) {
    if (m_.shape(i).is_tuple() || !copied(m_.operand(i, 0))) return false;
    if (!ctx_.spend(m_, "reduction of what was copied", {i, m_.operand(i, 0)})) return false;
    const InstId operands[] = {m_.operand(m_.operand(i, 0), 0), m_.operand(i, 1)};
    return m_.replace(i, m_.clone_inst(i, m_.parent(i), operands), {.relay_control = true});
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
};

}  // namespace

//   negate(copy(A))      →      copy(negate(A))
bool run_move_copy_to_users(Module& m, PassContext& ctx) {
  CopyMover pass(m, ctx);
  return visit_until_still(m, [&](InstId i) { return pass.visit(i); });
}

}  // namespace hlo
