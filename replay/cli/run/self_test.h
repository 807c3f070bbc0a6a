// `exec --self-test`: does an executor compute what XLA does on this machine? Operations and modules that the program
// carries with it (self_test.cmake).
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "gpu_exec/executor.h"

namespace hlo {

struct SelfTestModule {
  std::string_view name, text;
};
struct SelfTestData {
  std::string_view operations;  // cases as replay/judge/op_cases.h reads them, with XLA's own results
  std::span<const SelfTestModule> modules;
};
SelfTestData self_test_data();

// Operations against XLA's results, modules against the evaluator's. `only`: those whose name ("convolution f32",
// "filters_f32") holds that word; empty: all. Prints a line for each that fails and one of all; 0, or 1 where one
// failed. Throws Failure(kUsage) where no name holds the word.
int self_test(const ExecutorInfo& executor, const std::string& only);

}  // namespace hlo
