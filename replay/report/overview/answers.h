// What --json and the library say of what was found (docs/schemas/): one home for the keys.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/compare/diff.h"
#include "replay/report/explain/explain.h"
#include "replay/report/kernels/expected.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/measured/step_clock.h"
#include "replay/report/memory/memory_report.h"

namespace hlo {

using Json = nlohmann::ordered_json;

// `found` with every key of `empty`, in its order: what `found` does not have keeps the value that `empty` gives it.
// Keys that only `found` has stand behind.
Json complete(const Json& empty, const Json& found);

// What an answer is about.
struct AnswerAbout {
  std::string name, stage;         // of the module, and of its stage or file
  std::string problem = {};        // why there is no answer; empty where there is one
  const Module* module = nullptr;  // null where it was not read
};

// Seconds that a profile has for an instruction of the module by name; nothing where it has none.
using MeasuredSeconds = std::function<std::optional<double>(std::string_view)>;
// docs/schemas/expected.json.
Json expected_json(const ExpectedTime& e);
// `cost` null: it could not be told. `measured`: empty where there is no profile. `platform`: expected_time's.
Json cost_json(const AnswerAbout& about, const ModuleCost* cost, const DeviceSpec& device,
               const MeasuredSeconds& measured = {}, std::string_view platform = {});

// What a value is summed under.
std::string alive_key(const MemoryValue& v, const std::string& by);
// Bytes alive at the peak by a key (line, scope, value), most first.
std::vector<std::pair<std::string, int64_t>> alive_by(const MemoryReport& r, const std::string& by);
// When what memory holds was there, by a profile: of MemoryReport::alive, one each, and of the peak, in seconds since
// the begin of a run.
struct MeasuredMemory {
  std::vector<std::optional<MeasuredLife>> lives;
  std::optional<double> peak;
  double step = 0;  // of a run; 0: unknown, and nothing is told
};
MeasuredMemory measured_memory(const Module& m, const MemoryReport& r, const MomentOf& when, double step);
// `r` null: it could not be told. `measured` null: there is no profile.
Json memory_json(const AnswerAbout& about, const MemoryReport* r, const std::string& by,
                 const MeasuredMemory* measured = nullptr);

Json history_json(const History& h);

std::string in_words(const ModuleDiff& d);
Json diff_json(const ModuleDiff& d);
// … with every key that `diff` has.
Json complete_difference(const Json& found);

}  // namespace hlo
