// Why a result that is right has other bits than the evaluator's: what HLO leaves to each compiler and is no contract
// of replay/judge/contract/contract.h, since it moves last places only.
#pragma once
#include <functional>
#include <vector>

#include "replay/judge/contract/check.h"
#include "replay/judge/contract/check_runs.h"

namespace hlo {

// Of the numbers `asked` for (leaf, place in Numbers) those whose bits differ, by what may have made them so. Two runs
// of the module for each kind that it has. What none of them reaches is told as `unexplained`.
std::vector<OtherBits> other_bits(const Module& m, CheckRuns& runs, const Leaves& got, const Leaves& own,
                                  const std::function<bool(size_t leaf, size_t place)>& asked);

}  // namespace hlo
