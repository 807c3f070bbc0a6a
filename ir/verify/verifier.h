// Invariants of a module. In prose:
//   names          every instruction's and every computation's name is unique in the module
//   operands       belong to the same computation, exist, and their number is the opcode's
//   order          in a scheduled module operands and control predecessors stand before their users
//   cycles         operands and control dependencies form no cycle
//   parameters     are numbered 0..n-1, each number once
//   root           is an instruction of its computation
//   shapes         agree with shape inference, layout ignored; their bytes fit into 63 bits
//   layouts        are permutations; elements of tuples agree with what builds and takes them apart
//                  where they are assigned: what works element by element or along dimensions keeps them
//                  and calls, loops, branches, barriers and tuples hand values on as they lie
//   bitcast        keeps the number of bytes, of arrays in tiles that of the elements that their tiles take
//   dynamism       no dimension is unbounded (`?`)
//   calls          parameters and results of callees agree with what the caller passes and expects, by opcode: call,
//   fusion, while
//                  (condition: state → pred[], body: state → state), conditional, map, reduce, reduce-window,
//                  select-and-scatter, scatter, sort, custom-call
//                  reducers: two scalars for every input, what they return is what they take first
//   attributes     are there where the opcode needs them and in range: dimensions unique and sorted where XLA asks it,
//                  windows of positive size, stride and dilation, gather and scatter numbers, precision bits
//   pairs          send, recv, copy, collective and async starts have one end, and ends have a start
//   collectives    groups name every device once; pairs have distinct sources and targets; groups are of one size
//                  their starts and ends give the shapes that their operands and groups tell
//   threads        callers and callees run on one thread, but for async operations
//   sharding       one for every leaf of a tuple; as many tile dimensions as the array has; as many tiles as devices,
//                  each device once and one that the module has; loops and branches carry one sharding
//   origin         original values have the form of the result
//   control        dependencies stay inside a computation
//   call graph     has no cycle
//   fusion         has a kind, its body is called once; nothing but its root is unused in it
//   entry          entry_computation_layout agrees with the entry's parameters and result
//   buffers        b(f32[4]): only where XLA has them, passed on once by calls, one writer for each value
//   aliasing       input_output_alias, buffer_donor and output_to_operand_aliasing name what exists, once, equally
//   large
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct VerifyError {
  std::string rule;     // one of the words above
  std::string message;  // names the instruction and computation
  InstId inst;          // invalid for errors of the module
};

// Do layouts count? They do once they are assigned, which a text does not tell but for scheduled modules (kAuto).
enum class Layouts { kAuto, kBinding, kFree };

// Is the module one that XLA would verify, or one between two of its passes, which may leave for a while what its
// verifier would refuse (so far: a scatter's update_window_dims out of order)?
enum class Moment { kBetweenPasses, kSettled };

// May an operation take and give floats of several precisions, f32 beside bf16 (XLA's allow_mixed_precision)? Its TPU
// compiler's stages do; a module is taken for one of those where a layout has tiles (kAuto).
enum class Precision { kAuto, kUniform, kMixed };

// What a module does that keeps the rule, a clause for whoever broke it; empty where the message says all.
std::string_view verify_hint(std::string_view rule);

// Empty when the module holds all invariants. At most `limit` errors.
std::vector<VerifyError> verify_module(const Module& m, size_t limit = 20, Layouts layouts = Layouts::kAuto,
                                       Moment moment = Moment::kBetweenPasses, Precision precision = Precision::kAuto);

// Throws Failure (kInvalid) with the first errors, where there are any: for what takes a module's shapes at their word.
void check_verifies(const Module& m);

}  // namespace hlo
