// A profile beside what a command looks at: `profile`, and `--profile` of cost and summary.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/looked_at.h"
#include "replay/report/first_look.h"
#include "replay/report/measured.h"
#include "replay/report/profile.h"

namespace hlo {

// Of what looked_at() found, to be joined to. A file's name is its module's, so that it is read at once.
std::vector<MeasuredModule> measured_modules(const std::vector<LookedAt>& all);

class MeasuredTimes {
 public:
  // Reads the profile and joins it to what is looked at. A table of nsys or nvprof names kernels and no modules: of
  // several modules it is refused. Throws Failure.
  MeasuredTimes(const std::string& profile, const std::vector<LookedAt>& all);
  // Of an instruction of all[which] in one run of its module, or in all that was seen where runs(which) is 0; nothing
  // where the profile has none.
  std::optional<double> seconds(size_t which, std::string_view instruction) const;
  // How often the module ran; 0: unknown.
  size_t runs(size_t which) const { return table_ ? 0 : joined_.modules[which].runs; }
  // When its instructions ran in one run.
  const StepClock& clock(size_t which) const { return clocks_[which]; }
  // Null: a table of sums.
  const Measured* joined() const { return table_ ? nullptr : &joined_; }
  // "98.2 % of 12.1 ms joined", and what was not, a line each.
  std::vector<std::string> in_words() const;

 private:
  std::optional<TraceTimes> table_;
  Measured joined_;
  std::vector<StepClock> clocks_;  // of each module
};

// A profile beside the modules of a run, for the first minute, one for each of `all`: `given`, or where that is empty
// what lies in the folder or beside it; empty where nothing does, or `given` is "none". What was found and cannot be
// read is said, what was given is refused: throws Failure.
std::vector<MeasuredRun> measured_runs(const std::string& given, const std::string& folder,
                                       const std::vector<LookedAt>& all);

// The same of what a command looks at: in a file by itself only where one is given.
std::vector<MeasuredRun> runs_beside(const std::string& given, const std::vector<LookedAt>& all);

// docs/schemas/measured_run.json; null where there is none.
Json measured_json(const std::optional<MeasuredRun>& m);

// "between kernels: 1.2 ms (3.1 %) of 38.1 ms on /device:GPU:0, …".
std::string device_in_words(const DeviceTime& d);
// The same lines of a join.
std::vector<std::string> join_in_words(const Measured& m, size_t most);

}  // namespace hlo
