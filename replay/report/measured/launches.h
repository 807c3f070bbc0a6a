// What a module launches on a GPU, in order, and which instruction each kernel of a graph (a command buffer) is of.
// A graph's kernels say which buffer they are of and what they are called, never the instruction.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace hlo {

// What a kernel of a profile is, by its name.
enum class KernelKind {
  kCompiled,   // of the compiler, or of a user: a plain name
  kLibrary,    // cuBLAS, cuDNN, CUTLASS, cuFFT, CUB, cuSOLVER
  kAfterwork,  // of a library, behind its kernel: the sum of a split product
  kMessage,    // NCCL's
  kCopy,       // also the driver's own kernels, which copy inside of graphs
  kMemset
};
KernelKind kernel_kind(std::string_view kernel);

struct Launch {
  enum class Kind {
    kKernel,  // compiled, with a name
    kCopy,
    kMemset,
    kProduct,  // cuBLAS: what clears its workspace, a kernel, what sums its parts
    kLibrary,  // any other library's: one or more kernels, copies and clears in front of them
    kCall,     // a custom call: whatever it likes
    kMessage,
    kHolder  // a loop or branch, whose inside is a sequence of its own
  };
  InstId inst;
  Kind kind = Kind::kKernel;
  std::string kernel;     // of kKernel
  bool repeats = false;   // a sort: one kernel, launched as often as it takes
  bool may_copy = false;  // a fusion that moves a slice: a copy in place of a kernel where its place is known
};

// Sequences of a scheduled module: of the entry computation, and of each body, condition and branch.
class ModuleLaunches {
 public:
  explicit ModuleLaunches(const Module& m);
  const std::vector<std::vector<Launch>>& sequences() const { return sequences_; }
  // Why there are none; else empty.
  const std::string& problem() const { return problem_; }
  // Whether a compiled kernel may have that name: an instruction's, with `_` for what C does not allow.
  bool has(std::string_view kernel) const { return by_name_.contains(std::string(kernel)); }
  // Whether the launch runs it. Fusions that do the same share the kernel of one of them.
  bool runs(const Launch& launch, std::string_view kernel) const;
  // The same of an instruction by itself; true where it is no fusion.
  bool runs(InstId inst, std::string_view kernel) const;

 private:
  void collect(const std::vector<struct Thunk>& thunks, std::vector<Launch>* into);
  const Module& m_;
  std::vector<std::vector<Launch>> sequences_;
  std::string problem_;
  std::unordered_map<std::string, uint64_t> by_name_;  // kernels: what their fusion computes; 0: of no fusion
  std::unordered_map<InstId, uint64_t> bodies_;        // fusions: what they compute
};

struct GraphNode {
  int64_t id = 0;    // in the order in which the graph was made, parts of library calls behind all others
  double begin = 0;  // in one launch of the graph
  std::string kernel;
};

struct LaunchGraph {
  int64_t number = 0;            // of the buffer: a later one begins behind an earlier one
  std::vector<GraphNode> nodes;  // by id
};

// Of a node the instruction; several where each of them may be it; none, and why.
struct NodeMatch {
  std::vector<InstId> insts;
  std::string why;
};

// For each graph its nodes' instructions. Compiled kernels: a row of launches that has exactly these names. Others: by
// order between those, where they run in a row, and by what each call launches. `plain`: instructions that run outside
// of graphs. A graph that would fit two rows is of the one that its number leaves, else of either.
std::vector<std::vector<NodeMatch>> match_graphs(const ModuleLaunches& launches, const std::vector<LaunchGraph>& graphs,
                                                 const std::unordered_set<InstId>& plain);

}  // namespace hlo
