// An interpreter of the PTX that LLVM writes: what a card would do with a kernel, thread by thread, with warps that
// shuffle, blocks that meet at barriers, shared memory and atomics. Slow; it finds wrong code where there is no GPU.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace fake {

// What a card would report of a kernel that ran wild.
struct Fault : std::runtime_error {
  Fault(int result, const std::string& text) : std::runtime_error(text), code(result) {}
  int code;  // CUresult
};

struct Operand {
  enum Kind { kNone, kRegister, kImmediate, kSpecial, kAddress, kVector, kName } kind = kNone;
  int reg = -1;               // kRegister; kAddress: base register, -1: a symbol
  uint64_t value = 0;         // kImmediate; kAddress: offset, with a symbol's place added
  std::vector<Operand> list;  // kVector
  std::string name;
  int frame = -1;   // kAddress: 0 of the function's parameters, 1 of its local memory, 2 of the block's shared memory
  int second = -1;  // a second destination, `%r|%p`
};

struct Thread;
struct Instruction;
using Execute = void (*)(Thread&, const Instruction&);

struct Instruction {
  Execute run = nullptr;
  int guard = -1;
  bool guard_not = false;
  std::vector<Operand> operands;
  int target = -1;  // of a branch
  int compare = 0, width = 0, rounding = 0;
  bool flag = false, ftz = false;
  enum Space { kGeneric, kGlobal, kShared };
  int space = kGeneric, together = 0;  // ptx_thread.h's Together
  std::string text;                    // of messages
  int line = 0;
};

struct Variable {
  std::string name;
  int64_t size = 0, align = 1, offset = 0;
};

struct Function {
  std::string name;
  bool entry = false;
  std::vector<Variable> params;           // offsets in the frame's parameter area
  std::map<std::string, Variable> slots;  // all that lies there: parameters, arguments of calls, results
  std::map<std::string, Variable> locals, shared;
  int64_t param_bytes = 0, local_bytes = 0, shared_bytes = 0;
  int most_threads = 0, exact_threads = 0;
  std::map<std::string, int> registers;
  std::map<std::string, int> labels;
  std::vector<Instruction> code;
};

class Module {
 public:
  // Throws std::runtime_error with the line of what it does not know.
  explicit Module(const std::string& text);
  const Function* function(const std::string& name) const;
  bool has_global(uint64_t at, int64_t bytes) const;

  std::map<std::string, std::unique_ptr<Function>> functions;
  std::map<std::string, std::vector<char>> globals;
  std::vector<Variable> shared;  // declared outside of functions
  std::string target;
};

struct Grid {
  const Module* module;
  const Function* function;
  uint32_t blocks[3], threads[3];
  std::vector<char> params;
  size_t dynamic_shared;  // bytes behind what the function declares
  // Is an access of global memory of so many bytes inside an allocation?
  std::function<bool(uint64_t at, int64_t bytes)> allowed;
};
// Throws Fault.
void run(const Grid& grid);

}  // namespace fake
