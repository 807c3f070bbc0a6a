// Work of ours that must not take more time or memory than it is given, and whose end, however it comes, is told.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace hlo {

struct BoundedRun {
  enum End {
    kDone,         // the job returned: `code`
    kTime,         // its time was up; what it said until then is there
    kMemory,       // it asked for more than it may have
    kFailed,       // it threw: `error`
    kDied,         // a signal ended it: `code`
    kInterrupted,  // this process is asked to end
  } end = kFailed;
  int code = 0;
  std::string kind, error;  // of a Failure, as --json names its kind; of what else was thrown "internal"
  std::string output;       // its standard output; what it complains of is dropped
  double seconds = 0;
};

// Runs `job` in a copy of this process, which may not be copied further than commands do: at most `seconds` (asked to
// end then as by a signal, two seconds later it is killed) and `bytes` of memory beyond what this process has (0: no
// limit). Temporary files of the job lie below `scratch`, an existing folder. Throws Failure(kUnsupported) where this
// process may not be copied.
BoundedRun run_bounded(const std::function<int()>& job, double seconds, int64_t bytes, const std::string& scratch);

// From now on this process may have so many bytes of memory beyond what it has: available_memory() tells what is left.
void limit_memory(int64_t bytes);

}  // namespace hlo
