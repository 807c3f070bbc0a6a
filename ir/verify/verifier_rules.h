// Rules of single operations, beyond what shape inference says (xla/service/hlo_verifier.cc,
// xla/service/shape_inference.cc).
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace hlo {

// Calls `error(rule, message)` for each violation found. Operand counts and required attributes have been checked.
// `mixed`: floats of several precisions may stand together. `settled`: with what holds only where XLA verifies, too
// (verifier.h).
void verify_operation(const Module& m, InstId inst, bool settled, bool mixed,
                      const std::function<void(std::string_view rule, std::string message)>& error);

// What holds between instructions of a module that XLA verifies (Moment::kSettled): bodies of fusions and asynchronous
// calls, shardings of loops, composite calls, original values, ends of transfers.
void verify_between(const Module& m,
                    const std::function<void(std::string_view rule, InstId, std::string message)>& error);

// Where layouts are assigned: what is wrong with the memory spaces of an operation that moves no value between them, or
// only some ways; empty where nothing is.
std::string memory_space_error(const Module& m, InstId inst);

// Buffers `b(f32[4])`: where they may stand, and one writer for each of their values.
void verify_buffers(const Module& m, const std::function<void(InstId, std::string)>& error);

}  // namespace hlo
