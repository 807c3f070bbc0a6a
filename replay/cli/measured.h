// A profile beside what a command looks at: `profile`, and `--profile` of cost and summary.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/looked_at.h"
#include "replay/report/kernels/occupancy.h"
#include "replay/report/measured/measured.h"
#include "replay/report/measured/profile.h"
#include "replay/report/overview/first_look.h"
#include "replay/report/overview/measured_page.h"

namespace hlo {

// Of what looked_at() found, to be joined to. A file's name is its module's, so that it is read at once.
std::vector<MeasuredModule> measured_modules(const std::vector<LookedAt>& all);

// A device of a host, and what its host's profile has of it.
struct MeasuredPlace {
  MeasuredDevice about;  // host, device, label and file; the rest is of one module
  Measured joined;
  std::vector<StepClock> clocks;  // of each module
  // Of each of joined.ops the kernel that took most, and what the device says of it; empty: nothing.
  std::vector<std::pair<std::string, std::string>> kernels;
};

// Which profile a command line names: a file or a folder of them, one a host; and of several devices which one.
struct ProfileChoice {
  std::string profile;  // empty: none is named
  std::string device;   // HOST:N, HOST, N, or the profile's name for it; empty: the slowest
};

class MeasuredTimes {
 public:
  // Reads profiles and joins each device of each of them to what is looked at. A table of nsys or nvprof names kernels
  // and no modules: of several modules it is refused, and so it is among several files. Throws Failure.
  MeasuredTimes(const ProfileChoice& choice, const std::vector<LookedAt>& all);
  // Of these files, which nobody named: what cannot be read is left out and said by unread(), unless nothing can.
  MeasuredTimes(const std::vector<std::string>& files, const std::string& device, const std::vector<LookedAt>& all);
  // Of an instruction of all[which] in one run of its module, or in all that was seen where runs(which) is 0, on the
  // device that is shown; nothing where the profile has none.
  std::optional<double> seconds(size_t which, std::string_view instruction) const;
  // How often the module ran; 0: unknown.
  size_t runs(size_t which) const { return table_ ? 0 : place(which).joined.modules[which].runs; }
  // When its instructions ran in one run.
  const StepClock& clock(size_t which) const { return place(which).clocks[which]; }
  // All that were measured of a module, on the device that is shown; none of a table. Without what data sheets and the
  // autotuner say.
  std::vector<MeasuredInstruction> instructions(size_t which) const;
  // Null: a table of sums.
  const Measured* joined(size_t which) const { return table_ ? nullptr : &place(which).joined; }
  // All devices as they are for that module, and which of them is shown. None of a table.
  std::vector<MeasuredDevice> devices(size_t which) const;
  size_t shown(size_t which) const { return shown_[which]; }
  const std::vector<std::string>& unread() const { return unread_; }
  // "98.2 % of 12.1 ms joined", and what was not, a line each.
  std::vector<std::string> in_words() const;

 private:
  const MeasuredPlace& place(size_t which) const { return places_[shown_[which]]; }
  void read(const std::string& file, std::string text, const std::vector<MeasuredModule>& modules);
  void choose(const std::string& device, size_t modules);
  std::optional<TraceTimes> table_;
  std::vector<MeasuredPlace> places_;
  std::vector<size_t> shown_;  // of each module the place
  std::vector<std::string> unread_;
};

// A profile beside the modules of a run, for the first minute, one for each of `all`: what is named, or where that is
// nothing what lies in the folder or beside it; empty where nothing does, or "none" is named. What was found and cannot
// be read is said, what was given is refused: throws Failure.
std::vector<MeasuredRun> measured_runs(const ProfileChoice& given, const std::string& folder,
                                       const std::vector<LookedAt>& all);

// The same of what a command looks at: in a file by itself only where one is given.
std::vector<MeasuredRun> runs_beside(const ProfileChoice& given, const std::vector<LookedAt>& all);

// By the data sheet, of the registers and shared memory that the device tells; nothing of what is no GPU, or too odd.
std::optional<Occupancy> occupancy_of_kernel(const DeviceSpec& device, const KernelDetails& k);

// "between kernels: 1.2 ms (3.1 %) of 38.1 ms on /device:GPU:0, …".
std::string device_in_words(const DeviceTime& d);
// The same lines of a join.
std::vector<std::string> join_in_words(const Measured& m, size_t most);

}  // namespace hlo
