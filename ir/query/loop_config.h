// What XLA wrote about a loop into its backend_config.
#pragma once

#include <optional>
#include <utility>

#include "ir/module.h"

namespace hlo {

// As while_loop_trip_count_annotator.cc writes it (WhileLoopBackendConfig, xla/xla_data.proto).
struct LoopConfig {
  std::optional<int64_t> trips;    // known_trip_count: how often the body runs, not below 0
  std::optional<int64_t> counter;  // known_induction_variable: the counter's element of the state
  std::optional<std::pair<int64_t, int64_t>>
      init_step;  // known_init_step: the counter's first value and what it grows by
};
// Of a `while`; empty where it says nothing, or nothing that can be read.
LoopConfig loop_config(const Module& m, InstId loop);
inline std::optional<int64_t> known_trip_count(const Module& m, InstId loop) { return loop_config(m, loop).trips; }

}  // namespace hlo
