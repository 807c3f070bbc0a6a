// XLA's own program outside of XLA: its kernels by its thunks in its buffers, library calls by the device's ways.
#pragma once
#include <vector>

#include "gpu_exec/driver/device.h"
#include "gpu_exec/executor.h"
#include "replay/report/kernels/emitted_kernels.h"

namespace hlo {

struct EmittedRunOptions {
  EvalOptions eval;
  int repeat = 1;
  bool evaluate_others = false;  // what has neither a kernel nor a way here is the evaluator's; told in the notes
};

// One device's run of the program's module `m`. Throws Failure(kUnsupported) before anything runs, naming every thunk
// that has no way here (unless they are the evaluator's), or the sum of memory where there is not so much; and, naming
// the kernel, where the device ends one or a thunk writes outside of all allocations.
Execution run_emitted(Device& device, const Module& m, const EmittedProgram& program,
                      const std::vector<Value>& arguments, const EmittedRunOptions& options);

}  // namespace hlo
