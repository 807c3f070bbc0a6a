// Another batch size, throughout a module.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct BatchChange {
  std::vector<std::string> parameters;  // of the entry, whose first dimension it is
  int64_t from = 0, to = 0;
  size_t instructions = 0;  // that have another shape now
  // `batch 1 → 8: 90 instructions, parameters Arg_0.1; numbers computed from the batch stay as they are`.
  std::string in_words() const;
};

// A copy in which the first dimension of the entry's parameter of that name (or number) is `to`, and with it every
// dimension that goes together with it: by operands' and results' own rules, into loops and calls, and back to other
// parameters. Where no parameter is named it is the dimension that leads the most instructions, of those that lead a
// parameter and stand nowhere else in one (so no weight's). Constants such as 1 / batch stay. Throws Failure: kUsage
// where no parameter is one, or several are; kUnsupported, naming the instruction, where the dimension cannot be
// followed: it is sliced, padded or convolved over, lies in the middle of a reshape, in a table of constants or a
// library's call, or would change a parameter that is no batch of inputs.
std::unique_ptr<Module> with_batch(const Module& m, const std::string& parameter, int64_t to, BatchChange* change);

}  // namespace hlo
