// What a profile has of a module's last stage, as JSON: measured.json of a page, docs/schemas/measured.json.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/record/files/timeline.h"
#include "replay/report/overview/first_look.h"

namespace hlo {

// What it is called, in the folder of a module in a page's archive.
inline constexpr const char* kMeasuredFile = "measured.json";

// Of one device, in one run of the module; in all that was seen where MeasuredRun::runs is 0.
struct MeasuredInstruction {
  std::string name;
  double seconds = 0, ambiguous = 0;  // ambiguous: of `seconds`, of kernels that may be others', too
  double turns = 0;                   // how often it ran
  std::optional<StepMoment> moment;   // nothing: not known
  std::string kernel;                 // that took most, by the device's name for it; empty: no device's
  std::optional<KernelDetails> details;
  double estimated_occupancy = -1;  // by the data sheet, of what the device tells; -1: not known
  std::string limiter;
  std::vector<std::string> chosen;  // by the autotuner, in words
};

// docs/schemas/measured_run.json; null where there is none.
nlohmann::ordered_json measured_json(const std::optional<MeasuredRun>& run);
// `the average of 5 runs on vm:0, by vm.xplane.pb`.
std::string run_in_words(const MeasuredRun& run);

// `stage`: whose instructions they are.
nlohmann::ordered_json measured_page(const MeasuredRun& run, const std::vector<MeasuredInstruction>& instructions,
                                     const std::string& module, const std::string& stage);

struct PageMeasured {
  MeasuredRun run;  // its functions look here, and are valid as long as this is where it was
  std::vector<MeasuredInstruction> instructions;
  std::unordered_map<std::string, size_t> by_name;
  PageMeasured() = default;
  PageMeasured(const PageMeasured&) = delete;
  const MeasuredInstruction* of(std::string_view instruction) const;  // null: nothing was measured
};
// Throws Failure(kIo) where the text is not of that form.
std::shared_ptr<const PageMeasured> read_measured_page(std::string_view text, const std::string& label);

}  // namespace hlo
