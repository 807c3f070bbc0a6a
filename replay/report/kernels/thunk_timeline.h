// Thunks over time by stream: what a GPU's runtime does, when it begins at the earliest, and on which stream.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/target/gpu_target.h"
#include "replay/record/recording/recording.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {

inline constexpr const char* kMainStream = "main";
inline constexpr const char* kUnknownStream = "unknown";

struct TimedThunk {
  std::string kind, name;           // the instruction's; else the kernel's or the kind
  InstId inst;                      // invalid where the module has none of that name
  std::string stream;               // kMainStream, computation_stream[N], communication_stream[N], kUnknownStream
  std::optional<int64_t> async_id;  // of kAsyncStart, and of the kAsyncDone that waits for it
  double start = 0, seconds = 0;    // seconds: bounds, of a loop one iteration; of kAsyncDone the wait
  int depth = 0;
};

struct ThunkTimeline {
  std::vector<TimedThunk> thunks;    // in the order in which the host starts them; what is nested follows its thunk
  std::vector<std::string> streams;  // those of `thunks`: main, computation, communication, unknown
  std::string from;                  // the dump's file, or empty: our own of the module
  std::vector<std::string> notes;    // what is not known, and why
};

// `dump` (null: none) is of the module; its thunk_sequence is taken where XLA wrote it. Else our own thunks of the
// module, which must be scheduled, on the streams that XLA would take. A file that cannot be read is a note. Each
// stream runs its thunks one after the other, each as long as it takes at least; a start does not hold up the stream
// that it is on.
ThunkTimeline thunk_timeline(const Module& m, const ModuleCost& cost, const Recording* dump, const GpuTarget& gpu);

}  // namespace hlo
