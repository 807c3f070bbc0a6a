// The table of executors: what a module can be run with.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/eval/evaluator.h"

namespace hlo {

struct Execution {
  Value result;
  double compile_s = 0, run_s = 0;  // best of the repeats
};

struct ExecutorInfo {
  std::string_view name, summary;
  // Why it cannot be used here; empty when it can.
  std::string (*unavailable)();
  Execution (*run)(const Module& m, std::span<const Value> arguments, int repeat);
};

std::span<const ExecutorInfo> executors();
const ExecutorInfo* find_executor(std::string_view name);

}  // namespace hlo
