// What makes two runs of one compiled program differ bit by bit: sums in the order in which threads come, random
// numbers of the device's own state.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct Unordered {
  InstId inst;
  std::string kind;   // atomic-scatter, atomic-windows, random-state, split-sum, library-algorithm
  std::string words;  // a sentence about the instruction
  bool certain;       // false: whether the kernel is of that kind the module does not tell
};

// Of every computation, in order. Only what the module itself tells; nothing is run.
std::vector<Unordered> unordered_instructions(const Module& m);
// Which of the result's arrays may have other bits for each of these: numbers of outputs as `exec --out` has them, o0,
// o1 …. An output that none is said to reach does not depend on any. `most`: how many instructions are followed; the
// others have all outputs.
std::vector<std::vector<size_t>> outputs_reached(const Module& m, const std::vector<Unordered>& all, size_t most = 64);
// What it does not look at, for who tells.
inline constexpr const char* kUnorderedNotSeen =
    "orders of collectives across devices, kernels of libraries that do not name their algorithm, and what the host "
    "does between runs";

}  // namespace hlo
