// When in a run of its module each instruction ran, by a profile.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/report/measured/measured.h"
#include "replay/report/memory/memory_report.h"

namespace hlo {

// Seconds since the begin of a run, the average of all runs. An instruction of a loop has several turns in one run.
struct StepMoment {
  double begin = 0, first_end = 0;  // of its first turn
  double end = 0;                   // of its last one
  double turns = 1;
};

class StepClock {
 public:
  StepClock() = default;
  // Of a module of a join that is of one device.
  StepClock(const Timeline& timeline, const Measured& joined, size_t module);
  // Nothing where the profile does not have it.
  std::optional<StepMoment> of(std::string_view instruction) const;
  // Of one run, from its first span to the end of its last one; 0: what a run is was not found.
  double seconds() const { return seconds_; }

 private:
  std::unordered_map<std::string, StepMoment> moments_;
  double seconds_ = 0;
};

using MomentOf = std::function<std::optional<StepMoment>(std::string_view)>;

// Of each place of a flattened schedule (MemoryReport::schedule). What was not measured, as a bitcast, is where the
// last one before it ended.
std::vector<StepMoment> moments_of(const Module& m, const std::vector<std::string>& schedule, const MomentOf& when);

struct MeasuredLife {
  double begins = 0, ends = 0;  // seconds since the begin of the run
  double turns = 1;             // more than 1: it lives anew in each turn of a loop, between these two
};
// Nothing where it is not known when the value lives. `moments`: of the report's schedule; `step`: seconds of a run.
std::optional<MeasuredLife> life_of(const MemoryValue& v, const std::vector<StepMoment>& moments, double step);

}  // namespace hlo
