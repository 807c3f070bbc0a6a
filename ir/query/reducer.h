// What a reduction, a window, a scatter or an all-reduce applies.
#pragma once

#include <optional>

#include "ir/module.h"

namespace hlo {

// The operation of a computation that is one commutative operation of its two parameters, in either order.
// XLA asks the same by MatchReductionComputation (xla/service/collective_ops_utils.cc).
//   { x = parameter(0), y = parameter(1), ROOT add(y, x) }      →      Opcode::Add
std::optional<Opcode> reducer_operation(const Module& m, CompId c);
inline bool adds_its_parameters(const Module& m, CompId c) { return reducer_operation(m, c) == Opcode::Add; }

}  // namespace hlo
