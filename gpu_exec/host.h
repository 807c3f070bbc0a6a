// The host executor: the evaluator's runtime with the module's kernels as machine code. Fusions, elementwise
// operations, data movement and reductions are compiled; convolutions are oneDNN's where it takes them; products, sorts
// and the rest are the evaluator's (OpenBLAS where it uses it).
#pragma once
#include "gpu_exec/executor.h"

namespace hlo {

// Kernels of one module, ready to run.
class HostKernels {
 public:
  // Compiles what has code; the rest is listed. `m` must outlive it. `exact`: no library's convolutions.
  explicit HostKernels(const Module& m, bool exact = false);
  ~HostKernels();
  HostKernels(const HostKernels&) = delete;
  HostKernels& operator=(const HostKernels&) = delete;

  bool run(InstId inst, std::vector<Value>& operands, Value* result) const;
  size_t compiled() const;      // instructions, those of one kind together
  size_t kernels() const;       // distinct ones
  size_t convolutions() const;  // run by the library
  std::string library() const;
  const std::vector<std::pair<InstId, std::string>>& without_code() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The module that the host and the GPU run: with fusions of our own where it has none.
std::unique_ptr<Module> fused_for_host(const Module& m);

Execution run_host(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options);

}  // namespace hlo
