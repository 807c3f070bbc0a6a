// Kernels as machine code of this processor: built in as many LLVM modules as there are workers, each kind once.
#pragma once
#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu_exec/emit/kernel.h"

namespace hlo {

class JitModules {
 public:
  using Build = Kernel (*)(const Module&, InstId, llvm::Module&, const std::string& name);
  JitModules();
  ~JitModules();
  // A kernel for each list (its first instruction's); one without parts for those in `without`, by number and reason.
  std::vector<Kernel> build(const Module& m, const std::vector<std::vector<InstId>>& kinds, Build build,
                            std::vector<std::pair<size_t, std::string>>* without);
  // Compiles all; `define` may add symbols that the code asks for.
  std::unique_ptr<llvm::orc::LLJIT> finish(const std::function<llvm::Error(llvm::orc::LLJIT&)>& define);

 private:
  struct Part;
  std::vector<Part> parts_;
};

void* jit_function(llvm::orc::LLJIT& jit, const std::string& name);

}  // namespace hlo
