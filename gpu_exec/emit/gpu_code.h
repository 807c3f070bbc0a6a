// The kernels of a module as LLVM IR and PTX: what XLA's GPU backend dumps as .ir-no-opt.ll, .ir-with-opt.ll and .ptx.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// A name for a kernel as ptxas and XLA take them: the instruction's with letters, digits and underscores; not one of
// `taken`, which it joins.
std::string kernel_name(std::string_view instruction, std::set<std::string>& taken);

struct GpuKernelInfo {
  InstId inst;
  std::string function, schedule;
  int64_t blocks = 0, threads = 0;
};

struct GpuCode {
  std::string ir, optimised_ir, ptx;
  std::vector<GpuKernelInfo> kernels;
  std::vector<std::pair<InstId, std::string>> without;  // instructions that run as kernels and have no code, and why
};

// Any stage; those behind fusion give the kernels of a run, those before it one an operation. `sm`: "sm_90a", or sm_75
// to sm_90. Throws Failure(kUsage) on another.
GpuCode gpu_code(const Module& m, const std::string& sm);

// The IR without what constants hold: `@name = … constant [8 x i32] …` ends behind its type.
std::string without_constants(const std::string& ir);

}  // namespace hlo
