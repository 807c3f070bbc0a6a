// Operations, bytes, least time, instructions and memory of modules, added up by a key.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/report/overview/answers.h"

namespace hlo {

struct SummaryRow {
  double seconds = 0, flops = 0, bytes = 0;
  double measured = 0;  // seconds, by a profile
  double expected = 0;  // seconds of its kernels; 0 where there is no figure
  size_t instructions = 0, kernels = 0;
  size_t unknown_calls = 0;            // kernels of which the cost is not known: `seconds` is without them
  int64_t memory = 0;                  // alive at the peak, in the device's memory
  int64_t host = 0;                    // … and in its host's
  std::vector<SourceLine> stack = {};  // of its dearest kernel; innermost first
};
using SummaryRows = std::map<std::string, SummaryRow>;
using SortedSummary = std::vector<std::pair<std::string, SummaryRow>>;

// `by`: line, scope, class, module (`name` is its key). `memory` may be null. `measured`: empty where there is no
// profile. `expected` may be null.
void add_to_summary(const Module& m, const std::string& by, const std::string& name, const ModuleCost& cost,
                    const MemoryReport* memory, SummaryRows* rows, const MeasuredSeconds& measured = {},
                    const ExpectedTime* expected = nullptr);
// Whose kernels the row of a key adds up, for `by` but module: places in cost.kernels, dearest first.
std::map<std::string, std::vector<size_t>> kernels_by(const Module& m, const std::string& by, const ModuleCost& cost);
// The dearest first.
SortedSummary sorted(const SummaryRows& rows);
// `profiled`: whether there is a profile, so that what it measured is told.
Json summary_json(const std::string& file, const std::string& by, std::string_view device, const SortedSummary& rows,
                  const Json& problems, bool profiled = false);

}  // namespace hlo
