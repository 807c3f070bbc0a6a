// Which steps of a program can be launched as one graph.
#include <algorithm>

#include "gpu_exec/lower/device_program.h"

namespace hlo {

namespace {
constexpr int64_t kMostLaunches = 20000, kNotInAGraph = INT64_MAX / 4;
}

int64_t DeviceProgram::launches(size_t sequence) const {
  int64_t sum = 0;
  for (const DeviceStep& s : sequences_[sequence].steps) {
    sum += launches(s);
    if (sum > kMostLaunches) return kNotInAGraph;
  }
  return sum;
}

int64_t DeviceProgram::launches(const DeviceStep& s) const {
  auto own = static_cast<int64_t>(s.before.size() + s.after.size()) + (s.zeroed >= 0);
  switch (s.kind) {
    case DeviceStep::kKernel:
      for (const KernelPart& p : kernels_[s.kernel].parts)
        own += p.count == 0 ? 0 : std::max<int64_t>(1, static_cast<int64_t>(p.launches.size()));
      return own;
    case DeviceStep::kProduct:
    case DeviceStep::kConvolution:
    case DeviceStep::kOwn:
    case DeviceStep::kFill:
      return own + 1;
    case DeviceStep::kCopy:
      for (size_t k = 0; k < s.out.size(); ++k) own += s.in[k] != s.out[k];
      return own;
    case DeviceStep::kNoThunk:
    case DeviceStep::kAsyncDone:
      return own;
    case DeviceStep::kCall:
    case DeviceStep::kAsyncStart:
      for (size_t q : s.sequences) own += launches(q);
      return std::min(own, kNotInAGraph);
    case DeviceStep::kWhile: {
      if (s.trips < 0) return kNotInAGraph;
      int64_t body = launches(s.sequences[1]);
      return body == 0 || s.trips <= kMostLaunches / body ? own + body * s.trips : kNotInAGraph;
    }
    case DeviceStep::kConditional:
    case DeviceStep::kHost:
      break;
  }
  return kNotInAGraph;
}

void DeviceProgram::find_segments(DeviceSequence& s) {
  const size_t n = s.steps.size();
  std::vector<int64_t> work(n);
  std::unordered_map<InstId, size_t> at;
  for (size_t k = 0; k < n; ++k) work[k] = launches(s.steps[k]), at[s.steps[k].inst] = k;
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t k = 0; k < n; ++k) {
    if (s.steps[k].kind != DeviceStep::kAsyncDone) continue;
    InstId start = m_->operand(s.steps[k].inst, 0);
    while (m_->op(start) == Opcode::AsyncUpdate) start = m_->operand(start, 0);
    auto begin = at.find(start);
    if (begin == at.end()) continue;
    s.steps[k].stream = s.steps[begin->second].stream;
    pairs.push_back({begin->second, k});
  }
  // A graph ends what it begins: an asynchronous call reaches no further than the graph, or it is in none.
  for (bool again = true; std::exchange(again, false);) {
    std::vector<size_t> run(n);
    for (size_t k = 0; k < n; ++k) run[k] = k && work[k] < kNotInAGraph && work[k - 1] < kNotInAGraph ? run[k - 1] : k;
    for (const auto& [begin, end] : pairs)
      if (run[begin] != run[end] && (work[begin] < kNotInAGraph || work[end] < kNotInAGraph))
        work[begin] = work[end] = kNotInAGraph, again = true;
  }
  for (size_t k = 0; k < n; ++k) {
    if (work[k] >= kNotInAGraph) continue;
    size_t first = k;
    int64_t sum = 0;
    for (; k < n && work[k] < kNotInAGraph; ++k) sum += work[k];
    if (sum) s.segments.push_back({first, k});
  }
}

}  // namespace hlo
