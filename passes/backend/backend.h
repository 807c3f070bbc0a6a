// What follows the last pass: an order for every computation, and memory for every value.
#pragma once
#include <functional>
#include <optional>

#include "ir/program/buffer.h"
#include "ir/target/gpu_target.h"

namespace hlo {

// What a runtime knows about its values.
struct BufferRules {
  std::function<int64_t(ShapeId)> bytes;  // of an array
  // Is the instruction's result its operand under another name? (bitcast, opt-barrier, add-dependency, domain)
  std::function<bool(InstId)> alias;
  // The operand in whose place this leaf of the result can be made once nobody else reads it; -1: none. Empty: none
  // ever.
  std::function<int(InstId, size_t leaf)> in_place;
};

// Puts every computation in post order and marks the module as scheduled.
void schedule_module(Module& m);
// Of a scheduled module in which copies stand where values must not share memory (copy-insertion), by a runtime's
// rules:
BufferAssignment assign_buffers(const Module& m, const BufferRules& rules);
// XLA's (xla/service/buffer_assignment.cc): results and donated arguments take temporary values while they are free, a
// result lies where an operand lay where XLA lets it, the rest is one block.
BufferAssignment assign_buffers(const Module& m, const GpuTarget& gpu);
BufferAssignment assign_buffers(const Module& m);  // for the default GPU
// The first value that another one is written over before its last reader comes, in words; none: every reader finds
// what was written for it.
std::optional<std::string> overwritten_value(const Module& m, const BufferAssignment& assignment,
                                             const BufferRules& rules = {});

}  // namespace hlo
