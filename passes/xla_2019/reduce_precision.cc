// reduce-precision (2019; xla/service/reduce_precision_insertion.cc).
#include "passes/rewrite.h"

namespace hlo {

// Inserts reduce-precision behind float operations when asked to: reduce-precision{exponent_bits=5 mantissa_bits=10}.
// The pipeline of 2019 asks for nothing, so it changes nothing there.
bool run_reduce_precision(Module& m, PassContext& ctx) {
  int64_t exponent = ctx.number("exponent_bits"), mantissa = ctx.number("mantissa_bits");
  if (!exponent) return false;
  return each_instruction(m, [&](InstId i) {
    const Shape& s = m.shape(i);
    if (s.type != ElementType::F32 || m.op(i) == Opcode::ReducePrecision || m.op(i) == Opcode::Constant ||
        m.op(i) == Opcode::Parameter)
      return false;
    auto users = m.users(i);
    if (users.size() == 1 && m.op(users[0]) == Opcode::ReducePrecision) return false;
    if (!ctx.spend(m, "precision reduced", {i})) return false;
    AttrsId attrs =
        attrs_of(m.u(), Opcode::ReducePrecision, {{Attr::exponent_bits, exponent}, {Attr::mantissa_bits, mantissa}});
    InstId r =
        m.add(m.parent(i), {.op = Opcode::ReducePrecision, .shape = m.shape_id(i), .operands = {i}, .attrs = attrs});
    m.replace_all_uses(i, r);
    return true;
  });
}

}  // namespace hlo
