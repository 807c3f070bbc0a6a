// What a compilation decided about fusion, pair by pair, with its numbers.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

struct FusionDecision {
  std::optional<size_t> row;  // of the recording
  bool fused = false;         // else it was declined
  std::string producer, consumer;
  InstId producer_id, consumer_id;  // of the lineage, in front of that row; invalid where it has none of the name
  std::string why;
  // What XLA's cost model gave for the producer in all its consumers, and for all of them as kernels of their own, when
  // it was last asked before the decision; nothing where the dump does not say.
  std::optional<double> fused_seconds, apart_seconds;
};

// Does a pass of that name make kernels of several instructions?
bool joins_kernels(const std::string& pass);

// From the notes of our own passes (`row`: of that row alone), and from XLA's priority_fusion_dump where no row is
// asked for. In the order in which they were made; last those that the dump holds no step of: producers that XLA's cost
// model left apart, since fused they take as long or longer.
std::vector<FusionDecision> fusion_decisions(Recording& recording, std::optional<size_t> row);

}  // namespace hlo
