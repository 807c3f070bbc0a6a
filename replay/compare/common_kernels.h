// Which of the kernels of two programs are the same, whatever their names, ids, metadata and order.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct KernelPrint {
  InstId inst;
  // Of opcode, shapes with layouts, attributes with the sharding, configuration, all that is inside, and of what each
  // operand comes from: its producer without that one's operands, seen through tuples and bitcasts; parameters by their
  // number.
  uint64_t print = 0;
};
// Of what runs outside of fusions in what the entry computation reaches, callers first, each computation in post-order.
// Loops, conditionals, calls and async-starts count by their shapes; what they run counts by itself.
std::vector<KernelPrint> kernel_prints(const Module& m);

struct CommonKernels {
  size_t first = 0, second = 0, both = 0;
  std::vector<InstId> only_first, only_second;  // in the order of their programs
  // Of all kernels, how many have their like on the other side: 0 to 1; 1 where neither program has one.
  double share() const {
    return first + second == 0 ? 1 : 2 * static_cast<double>(both) / static_cast<double>(first + second);
  }
};
// Of the kernels with one print, the first ones are taken for each other's.
CommonKernels common_kernels(const Module& first, const Module& second);

// Those that have their like: the first program's and the second one's.
std::vector<std::pair<InstId, InstId>> kernel_pairs(const Module& first, const Module& second);

}  // namespace hlo
