// Is a stage that was read from a file a module? What the parser makes sure of where it reads a text.
#pragma once
#include "ir/module.h"

namespace hlo {

// Throws Failure(kIo) naming the instruction or computation: references that lead nowhere, circles, wrong numbers of
// operands, attributes of another kind than their key's. What the verifier says is its own matter.
void check_stage(const Module& m);

}  // namespace hlo
