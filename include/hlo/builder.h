// Computations made instruction by instruction.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"

HLO_API_BEGIN

// Adds a computation to a module and instructions to that computation; names are made unique. Until build() the
// module is not whole. Every call throws Error(bad_input) with the text that could not be read, Error(usage) for
// operands of another computation.
//
//   Builder b(module, "main");
//   Instruction x = b.parameter("f32[4]"), y = b.parameter("f32[4]");
//   b.build(b.op("add", {x, y}));
class HLO_EXPORT Builder {
 public:
  Builder(Module module, std::string_view computation);

  Instruction parameter(std::string_view shape, std::string_view name = {});  // number 0, 1 …
  Instruction constant(const Array& value, std::string_view name = {});
  // `f32[2] {1, 2}`, `s32[] 7`: shape and literal as HLO text has them.
  Instruction constant(std::string_view text, std::string_view name = {});
  // `attributes` as HLO text has them, `dimensions={0}, to_apply=%add`; `shape` empty: inferred, where the opcode
  // allows it.
  Instruction op(std::string_view opcode, const std::vector<Instruction>& operands, std::string_view attributes = {},
                 std::string_view shape = {}, std::string_view name = {});
  // Ends it. `entry`: it becomes the module's.
  Computation build(const Instruction& root, bool entry = true);

  Computation computation() const { return computation_; }

 private:
  Instruction add(std::string_view name, const std::string& rest);
  Module module_;
  Computation computation_;
  size_t parameters_ = 0;
};

HLO_API_END
