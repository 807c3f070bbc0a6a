// Which passes of a compiler's are to blame, by leaving them out; which decision of one, by its fuel.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

using Names = std::vector<std::string>;

// Names of passes that changed something in any module, in the order in which they first did.
Names passes_that_worked(const std::vector<Recording>& all);

// The fewest without which `heals` says yes, empty where there are none. One alone if there is one: halves of what
// heals, and of what may just not work without one that it needs. Else those of the smallest part that healed that it
// takes: they can stand in for each other. `heals` is asked a logarithmic number of times where one is to blame.
Names guilty_of(const std::function<bool(const Names& left_out)>& heals, const Names& all);

// The decision that breaks it, from 1; 0: fuel does not decide. `good`: is it, where so many are allowed? The last call
// is with one less than the decision.
int64_t decision_of(const std::function<bool(int64_t fuel)>& good);

}  // namespace hlo
