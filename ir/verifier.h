// Invariants of a module. In prose:
//   names          every instruction's and every computation's name is unique in the module
//   operands       belong to the same computation, exist, and their number is the opcode's
//   order          in a scheduled module operands and control predecessors stand before their users
//   cycles         operands and control dependencies form no cycle
//   parameters     are numbered 0..n-1, each number once
//   root           is an instruction of its computation
//   shapes         agree with shape inference, layout ignored
//   layouts        are permutations; elements of tuples agree with what builds and takes them apart
//   bitcast        keeps the number of bytes
//   calls          parameters and results of callees agree with what the caller passes and expects, by opcode: call,
//   fusion, while
//                  (condition: state → pred[], body: state → state), conditional, map, reduce, reduce-window,
//                  select-and-scatter, scatter, sort, custom-call
//   call graph     has no cycle
//   fusion         has a kind, its body is called once
//   entry          entry_computation_layout agrees with the entry's parameters and result
//   aliasing       input_output_alias names parameters and outputs that exist
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct VerifyError {
  std::string rule;     // one of the words above
  std::string message;  // names the instruction and computation
  InstId inst;          // invalid for errors of the module
};

// Empty when the module holds all invariants. At most `limit` errors.
std::vector<VerifyError> verify_module(const Module& m, size_t limit = 20);

}  // namespace hlo
