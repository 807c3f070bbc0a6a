// What a compilation came to, in numbers that two of them are compared by.
#pragma once
#include <string>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

struct CompilationFigures {
  std::string module;
  size_t stages = 0, pass_runs = 0;
  size_t instructions = 0;      // of the last stage
  size_t kernels = 0;           // that it runs, loops' bodies once
  double bytes = 0, flops = 0;  // of one run, loops by their trip counts
  int64_t memory = -1;          // bytes allocated by XLA's buffer assignment; -1: the dump has none
  double compile_ms = -1;       // of the passes together; -1: not told
  std::string unreadable;       // why the last stage could not be read; the figures of it are 0 then
};

// The module of a dump that was compiled last, or the one of that name; others are helpers of the compiler's.
const Recording& main_recording(const std::vector<Recording>& all, const std::string& module);
CompilationFigures figures_of(const Recording& recording);

}  // namespace hlo
