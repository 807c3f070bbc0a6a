// What the stages of a module compute, as expressions that they share: one number for what is written in one way, over
// fusions, calls, tuples, branches and loops, and no array is made for it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "replay/judge/inside/canonical.h"

namespace hlo {

using ExprId = uint32_t;
inline constexpr ExprId kNoExpr = UINT32_MAX;

// One array. Its elements lie in row-major order of the shape that who reads it gives it: a reshape is its operand.
struct Expr {
  enum Kind : uint8_t {
    kParameter,  // leaf `leaf` of the entry's flattened parameters
    kFormal,     // what a loop's state is in any of its trips: some value
    kOperation,  // leaf `leaf` of what `inst` gives of its operands
    kBranch,     // operand 0 says which of the others; beyond them it is the last one. Of pred: true is the first
    kLoop,       // leaf `leaf` of a loop's last state; operands: leaves of its first one
  };
  Kind kind = kOperation;
  uint32_t leaf = 0;
  // The instruction that it is: opcode, attributes, shapes of operands. It is a fusion's or a call's own only where
  // these cannot be entered. Valid while the Expressions live.
  const Module* m = nullptr;
  InstId inst;
  ShapeId shape;                 // an array, in the universe that all stages share
  std::vector<ExprId> operands;  // of each operand of `inst` its leaves
};

// The value of an instruction: an array or a tuple of them.
struct ExprTree {
  ExprId id = kNoExpr;  // of a tuple or a token: none
  ShapeId shape;
  std::vector<ExprTree> elements;
};

}  // namespace hlo
