// XLA's own kernels one by one: each is launched alone, on drawn inputs, in memory that is exactly as large as its
// arrays are, between zones of a known pattern; what it makes is held against the evaluator.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu_exec/driver/device.h"
#include "ir/eval/compare.h"
#include "replay/judge/arguments/inputs.h"
#include "replay/report/kernels/emitted_kernels.h"

namespace hlo {

// kFaults: the device ended it.
enum class KernelVerdict { kEqual, kDifferent, kOutside, kFaults, kNotRun };
// "equal", "different", "wrote_outside", "faults", "not_run".
std::string_view kernel_verdict_name(KernelVerdict v);

struct JudgedKernel {
  std::string instruction, kernel, file;
  int64_t thunk = 0;
  size_t times = 1;  // thunks that launch this kernel on arrays of these shapes
  KernelVerdict verdict = KernelVerdict::kNotRun;
  std::string why;                        // in words; empty where it is equal
  std::vector<OutputComparison> outputs;  // where it ran to its end
};

struct EmittedJudgeOptions {
  InputOptions inputs;  // seed and scheme; integers are drawn to fit what they index
  EvalOptions eval;
  double tolerance = -1;                            // as compare_results
  std::string only;                                 // kernels whose name or instruction's holds it; empty: all
  std::function<std::unique_ptr<Device>()> device;  // a fresh one: a kernel that faults ends the one it ran on
  std::function<void(const JudgedKernel&)> told;    // as soon as it is judged
  std::function<void(size_t done, size_t all, const std::string& kernel)> progress;
};

// In the order of the thunks. `m` is the program's module.
std::vector<JudgedKernel> judge_emitted(const Module& m, const EmittedProgram& program,
                                        const EmittedJudgeOptions& options);

}  // namespace hlo
