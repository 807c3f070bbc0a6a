// A rule of algsimp is a row: docs/rules.md lists them, tests/passes/rules_test.cc tries them.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace hlo {

class AlgebraicSimplifier;

struct AlgebraicRule {
  struct Opcodes {
    constexpr Opcodes(Opcode only) : first(only), second(only) {}
    constexpr Opcodes(Opcode one, Opcode other) : first(one), second(other) {}
    Opcode first, second;
  };

  std::string_view id;  // what notes, fuel and bisection call it: no other row has it
  Opcodes opcodes;
  std::string_view before, after;
  // Says whether it is done with the instruction: it fired, or its fuel was refused, or none of those below may fire.
  bool (AlgebraicSimplifier::*apply)(InstId);
};

// All of them; those of one opcode stand in XLA's order, in which they are tried.
std::vector<const AlgebraicRule*> algebraic_rules();

}  // namespace hlo
