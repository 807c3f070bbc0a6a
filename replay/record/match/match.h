// Which instruction of a stage is which of the stage before: the only place where that is guessed. For dumps that are
// not ours; our own stages know.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/heir.h"
#include "ir/module.h"

namespace hlo {

// Hands on the elements of its one operand in another place or type.
bool only_moves(Opcode op);

struct StageMatch {
  std::vector<InstId> same;              // by InstId of `after`: its own earlier self in `before`; invalid: none
  std::vector<CompId> same_computation;  // likewise
  std::vector<Heir> heirs;               // from ids of `before` to ids of `after`, sorted by both, each pair once
  std::vector<bool> undecided;           // by InstId of `before`: ended, and nothing says what became of it
};

// What a stage's .hlo.pb says beyond its text.
struct StageIds {
  std::vector<int64_t> computation;  // by CompId: XLA's number of it, which it keeps; -1: unknown
};

struct MatchOptions {
  bool use_metadata = true;  // op_name, source line, stack frame
  bool use_names = true;     // of instructions and computations
  const StageIds* before = nullptr;
  const StageIds* after = nullptr;
};

// Both in one universe, which is not written to. Near-linear in the number of instructions.
StageMatch match_stages(const Module& before, const Module& after, const MatchOptions& options = {});

}  // namespace hlo
