// What became of a program's sizes, as `reduce --sizes` and `bisect --smaller` tell it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/command.h"
#include "replay/smaller/smaller.h"

namespace hlo {

// The largest first: `before`, `after`, of one that stays `where` and `why`.
Json sizes_json(const SmallerPlan& plan);

// `4096 → 64, 128 → 8 and 3 more`, those that were cut; of what sizes_json gives.
std::string sizes_in_words(const Json& sizes);

// Of what is found, behind it, and of what is not, in front of it.
std::string guessed_in_words(const SmallerPlan& plan);
std::string confirmed_in_words(const Json& sizes);
std::string tested_in_words(const SmallerPlan& plan);
// Behind both: labels of stages that differ with small arrays alone. Empty where there are none.
std::string refuted_in_words(const Json& refuted);

// bisect --smaller: one choice for the stages of these files; nothing where it was not asked for, and, with a note,
// where no size can be cut.
std::optional<SmallerPlan> plan_of_stages(const BisectArgs& a, const std::vector<std::string>& paths);
// The same, asked for or not; `roomy` as SmallerOptions has it.
std::optional<SmallerPlan> smaller_plan(const BisectArgs& a, const std::vector<std::string>& paths, bool roomy);

}  // namespace hlo
