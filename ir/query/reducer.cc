#include "ir/query/reducer.h"

namespace hlo {

std::optional<Opcode> reducer_operation(const Module& m, CompId c) {
  const Computation& of = m.comp(c);
  if (of.params.size() != 2 || m.operand_count(of.root) != 2 || !op_info(m.op(of.root)).commutative)
    return std::nullopt;
  const InstId x = m.operand(of.root, 0), y = m.operand(of.root, 1);
  const bool both = (x == of.params[0] && y == of.params[1]) || (x == of.params[1] && y == of.params[0]);
  return both ? std::optional(m.op(of.root)) : std::nullopt;
}

}  // namespace hlo
