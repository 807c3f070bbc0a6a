// What follows the last pass: an order for every computation, and memory for every value.
#pragma once
#include "ir/buffer.h"

namespace hlo {

// Puts every computation in post order and marks the module as scheduled.
void schedule_module(Module& m);
// Of a scheduled module.
BufferAssignment assign_buffers(const Module& m);

}  // namespace hlo
