// A profile joined to the modules that a command looks at.
#include <algorithm>

#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/record/file_kind.h"
#include "replay/report/kernels.h"

namespace hlo {

MeasuredTimes::MeasuredTimes(const std::string& profile, const std::vector<LookedAt>& all) {
  std::string text = read_file(profile);
  if (file_kind(profile, text) == FileKind::kTable) {
    if (all.size() > 1)
      fail(FailureKind::kUsage, "{} is a table of kernels that names no modules; name one module of the run", profile);
    table_ = read_trace(text, profile);
    return;
  }
  const Timeline timeline = read_timeline(text, profile);
  joined_ = join(timeline, measured_modules(all));
  for (size_t k = 0; k < joined_.modules.size(); ++k) clocks_.emplace_back(timeline, joined_, k);
}

std::optional<double> MeasuredTimes::seconds(size_t which, std::string_view instruction) const {
  if (table_) {
    double seconds = 0;
    size_t calls = 0;
    return time_of(*table_, instruction, &seconds, &calls) ? std::optional(seconds) : std::nullopt;
  }
  const MeasuredModule& m = joined_.modules[which];
  auto at = m.by_name.find(std::string(instruction));
  if (at == m.by_name.end()) return {};
  std::optional<double> seconds = joined_.seconds(which, at->second);
  if (seconds && m.runs) *seconds /= static_cast<double>(m.runs);
  return seconds;
}

std::vector<std::string> MeasuredTimes::in_words() const {
  if (table_) return {fmt::format("{} of kernels in the table", time_text(table_->all))};
  std::vector<std::string> out = join_in_words(joined_, 5);
  const bool known = std::any_of(joined_.modules.begin(), joined_.modules.end(), [](const auto& m) { return m.runs; });
  if (joined_.joined > 0)
    out.push_back(known ? "measured times are of one run, on the average"
                        : "measured times are of all runs: how many there were is not known");
  return out;
}

}  // namespace hlo
