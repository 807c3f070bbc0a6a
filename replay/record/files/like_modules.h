// In which order the modules of a run are looked at where that takes long, and which of them are the same program.
#pragma once
#include <optional>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

struct OrderedModule {
  size_t module = 0;        // in the run
  size_t instructions = 0;  // of its first stage, lines of the text that define one
  size_t stages = 0;        // with a text
  // One that comes before, with the same stages but for names, ids and metadata: what holds there holds here.
  std::optional<size_t> like;
};

// The one of most instructions first, equal ones as they stand in the run. Reads the first stage of each, and all
// stages of those that may be alike. Modules with constants that their texts elide and other files have are like none.
std::vector<OrderedModule> largest_first(const std::vector<Recording>& run);

}  // namespace hlo
