// What a profiler collected of a run: spans of time on threads, streams and devices, and which instruction each was.
// Read from XSpace protos (`.xplane.pb` of jax, TensorFlow, PyTorch/XLA), trace-event JSON (chrome://tracing, Perfetto,
// TensorBoard's `.trace.json.gz`, our own `exec --profile`), each gzipped or not.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/record/files/held_modules.h"

namespace hlo {

struct Span {
  // Places in Timeline::texts, 0 where the profiler says nothing. `op`: the instruction that it names. `details`: what
  // a device says of a kernel, a copy or a clear.
  uint32_t name = 0, op = 0, module = 0, op_name = 0, category = 0, source = 0, details = 0;
  int64_t program = -1;  // the module's number, where it is said
  // Of a graph's kernel: the graph, its node, and the launch, which all nodes of one launch share. -1: not said.
  int64_t graph = -1, node = -1, launch = -1;
  double begin = 0, seconds = 0;  // begin: since the timeline's start
  bool names_hlo() const { return op || module || category; }
};

// What CUPTI says of a kernel: `regs:242 static_shared:0 dynamic_shared:147480 grid:2048,1,1 block:256,1,1
// occ_pct:12.5`.
struct KernelDetails {
  int64_t registers = -1, static_shared = -1, dynamic_shared = -1;  // a thread's; bytes of a block; -1: not said
  std::array<int64_t, 3> grid{}, block{};                           // 0: not said
  double occupancy = -1;                                            // theoretical, 0 to 1
};
// Nothing where the text is of a copy or says no registers.
std::optional<KernelDetails> kernel_details(std::string_view text);

struct Track {
  std::string group, name;  // device or process; stream or thread
  std::vector<Span> spans;  // by begin, of those that begin together the longest first
};

struct Timeline {
  std::string format;                  // "XSpace" or "trace events"
  std::vector<std::string> texts{""};  // each once
  std::vector<Track> tracks;
  std::vector<HeldModule> modules;    // that the profiler put beside the spans
  std::vector<std::string> problems;  // what is wrong and was passed over
  std::string_view text(uint32_t id) const { return texts[id]; }
};

// Texts by number while a timeline is read.
class TimelineTexts {
 public:
  explicit TimelineTexts(Timeline* out) : out_(out) {}
  uint32_t id(std::string_view text);

 private:
  Timeline* out_;
  std::unordered_map<std::string, uint32_t> known_;
};

// Sorts spans, counts time from the first one, drops tracks without any.
void settle(Timeline* t);

bool is_xspace(std::string_view label, std::string_view text);
// Throws Failure(kIo) where the text is neither, damaged or truncated, Failure(kUnsupported) where it is too large for
// this machine's memory.
Timeline read_timeline(std::string_view text, const std::string& label);
Timeline read_xspace(std::string_view text, const std::string& label);  // unpacked

// Which spans are counted: not those of loops, calls and branches, whose inside counts, nor what lies within another
// span of an instruction on the same track, unless both are a device's kernels. `container` tells of a span whether it
// is such a loop, call or branch.
template <class Container>
std::vector<bool> counted_spans(const Track& track, Container container) {
  std::vector<bool> out(track.spans.size(), false);
  double until = -1;
  for (size_t k = 0; k < track.spans.size(); ++k) {
    const Span& s = track.spans[k];
    if (!s.names_hlo() || container(s)) continue;
    if (s.begin + s.seconds <= until && !s.details) continue;
    until = std::max(until, s.begin + s.seconds);
    out[k] = true;
  }
  return out;
}
// By name or category alone: `while.3`, `call`.
bool container_by_name(const Timeline& t, const Span& s);
// `loop_add_fusion` of `loop_add_fusion.12`.
std::string_view without_number(std::string_view name);

}  // namespace hlo
