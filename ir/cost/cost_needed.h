// What of each value within a fusion its results are made of: slices, pads and concatenations leave elements unread,
// and updates leave most of their target where it is.
#pragma once
#include <unordered_map>

#include "ir/module.h"

namespace hlo {

// How many elements of each value the results need at least; of tuples 1 or 0. `picks_differ`: gathers pick, and
// scatters update, another element for each index; if not they may all fall on the same, which is then read once.
std::unordered_map<InstId, double> needed_elements(const Module& m, CompId body, bool picks_differ);

// The dynamic-update-slice or the scatter that a fusion's result is, if it may write to its target's own memory: the
// target is a parameter, bitcasts aside (HloDataflowAnalysis::GetInPlaceInputOutputPairs,
// xla/hlo/analysis/hlo_dataflow_analysis.cc). Else invalid.
InstId updated_in_place(const Module& m, InstId result);

// A scatter's operands are targets, indices, updates: how many targets.
size_t scatter_targets(const Module& m, InstId scatter);
// Does a scatter's function look at what it replaces?
bool scatter_reads_targets(const Module& m, InstId scatter);

}  // namespace hlo
