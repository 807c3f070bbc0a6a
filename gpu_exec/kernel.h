// One instruction that runs by itself as LLVM IR: the element emitter inside the loops of a schedule. The host's
// functions work on the evaluator's values; the GPU's on buffers by layout, a thread or a warp an element.
#pragma once
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// A function of a kernel and what it makes.
struct KernelPart {
  std::string function;
  int64_t count = 0;     // of the parallel loop: host, ranges of it are given to the function
  int64_t work = 1;      // elements behind one of them, for the grain
  std::string schedule;  // flat, rows, columns, in place; GPU: loop, row reduction, column reduction
  // GPU launch dimensions.
  int64_t blocks = 0, threads = 0;
};

struct Kernel {
  InstId inst;
  std::vector<KernelPart> parts;
  std::vector<LitId> constants;  // pointers that follow the operands'
  int in_place = -1;             // operand that the result takes its memory from
};

// void f(ptr operands_and_constants, ptr results, i64 first, i64 last), each an array of pointers; leaves of tuples one
// by one. Throws Failure(kUnsupported) naming the instruction without code; what was begun of it in `into` is removed.
Kernel build_host_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name);

// ptx_kernel f(ptr operand…, ptr constant…, ptr result…) of one instruction; as above.
Kernel build_gpu_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name);
// The same as host code, void f(ptr pointers): it asks hlo_emulated_tid, hlo_emulated_ctaid and
// hlo_emulated_shuffle_down who it is and what other lanes have.
Kernel build_emulated_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name);

// Is this one of those that run as kernels (fusions, elementwise and data movement), not a library's, not control flow?
bool runs_as_kernel(const Module& m, InstId inst);

// The instructions of computations that are run (not applied to elements) that run as kernels, those that make the same
// kernel together; in program order, callers first.
std::vector<std::vector<InstId>> distinct_kernels(const Module& m);

}  // namespace hlo
