// One instruction that runs by itself as LLVM IR: the element emitter inside the loops of a schedule. The host's
// functions work on the evaluator's values; the GPU's on buffers by layout, a thread or a warp an element.
#pragma once
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// A function of a kernel and what it makes.
struct KernelPart {
  std::string function;
  int64_t count = 0;  // of the parallel loop: host, ranges of it are given to the function
  int64_t work = 1;   // elements behind one of them, for the grain
  // flat, rows, columns, in place, row fusion; GPU: loop, row reduction, column reduction, row fusion, transpose,
  // in place, scatter, sort.
  std::string schedule;
  std::vector<size_t> results;  // leaves of the result whose pointers follow the inputs'; on the host all of them
  // GPU: launch dimensions; numbers behind the pointers, a launch each (one without any where empty).
  int64_t blocks = 0, threads = 0;
  std::vector<std::vector<int32_t>> launches;
  // The widest scope whose threads wait for each other: shuffles within a warp, barriers of a block.
  enum BarrierScope { kNone, kWarp, kBlock } barrier_scope = kNone;
};

struct Kernel {
  InstId inst;
  std::vector<KernelPart> parts;
  std::vector<LitId> constants;  // pointers that follow the operands'
  // By leaf of the result: the operand whose buffer it takes over, which the code updates in place; -1 for one that is
  // written whole. Empty: all are.
  std::vector<int> in_place_operands;
  size_t operands = 0, leaves = 0;  // of the instruction when it was made; set by the program
  int in_place_operand(size_t leaf) const { return leaf < in_place_operands.size() ? in_place_operands[leaf] : -1; }
};

// void f(ptr operands_and_constants, ptr results, i64 first, i64 last), each an array of pointers; leaves of tuples one
// by one. Throws Failure(kUnsupported) naming the instruction without code; what was begun of it in `into` is removed.
Kernel build_host_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name);

// ptx_kernel f(ptr operand…, ptr constant…, ptr result…, i32 number…) of one instruction; as above.
Kernel build_gpu_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name);
// The same as host code, void f(ptr pointers), the numbers of the launch behind the last pointer: it asks
// hlo_emulated_tid, hlo_emulated_ctaid, hlo_emulated_shuffle_down and hlo_emulated_barrier who it is and what others
// have.
Kernel build_emulated_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name);

// A fusion whose outputs and reductions all belong to the rows of one shape (softmax, layer norm): each row's sums are
// made once and used by that row only.
struct RowFusion {
  Dims dims;        // of the shape, rows' dimensions first
  size_t kept = 0;  // how many of them number the rows
  int64_t rows = 1, length = 1;
  std::vector<InstId> reduces;  // in order of their dependence
};
std::optional<RowFusion> row_fusion(const Module& m, InstId inst);

// What get-tuple-elements of tuples hand on: %x of get-tuple-element(tuple(…, %x, …)), through tuples of tuples; `i`
// itself where something else makes the tuple.
InstId handed_on(const Module& m, InstId i);

// Is this one of those that run as kernels (fusions, elementwise and data movement), not a library's, not control flow?
bool runs_as_kernel(const Module& m, InstId inst);

// The instructions of computations that are run (not applied to elements) that run as kernels, those that make the same
// kernel together; in program order, callers first.
std::vector<std::vector<InstId>> distinct_kernels(const Module& m);
// Those that `wanted` says of computations that are run when `roots` are; `reached`: these computations.
using RunsAsKernel = bool(const Module&, InstId);
std::vector<std::vector<InstId>> distinct_kernels(const Module& m, std::vector<CompId> roots, RunsAsKernel* wanted,
                                                  std::vector<CompId>* reached = nullptr);

}  // namespace hlo
