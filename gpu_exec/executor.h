// The table of executors: what a module can be run with.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "gpu_exec/lower/lowering.h"
#include "ir/eval/evaluator.h"

namespace hlo {

struct Execution {
  std::vector<Value> results;       // one a device
  double compile_s = 0, run_s = 0;  // best of the repeats
  size_t compiled = 0;              // instructions that ran as machine code
  std::vector<std::string> notes;   // what an executor leaves to the evaluator, and why
};

struct ExecutorInfo {
  std::string_view name, summary;
  // Why it cannot be used here; empty when it can.
  std::string (*unavailable)();
  // `arguments`: of each device that the module runs on (devices_needed).
  Execution (*run)(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options);
};

std::span<const ExecutorInfo> executors();
const ExecutorInfo* find_executor(std::string_view name);

// The steps by which that executor makes a program of a module, told to `options.observe`; nothing runs. Throws
// Failure: kUsage where it makes none (the evaluator), kUnsupported where it has no device here or the module asks for
// more.
void lower_for(std::string_view executor, const Module& m, const LoweringOptions& options);

}  // namespace hlo
