// What may be computed again for the backward pass: of the levers of memory_levers.h.
#pragma once
#include <memory>
#include <string>

#include "ir/module.h"

namespace hlo {

// jax's name for what differentiation backwards makes of an operation, `transpose(`, in its op_name.
bool is_backward(const Module& m, InstId i);
// An array without effects, randomness or another device's part, of one instruction.
bool can_be_computed_again(const Module& m, InstId i);
// That pass over the module, without notes.
void run_quietly(Module& m, const char* pass);

// The first stage with what loops stack up for the backward pass (jax.lax.scan's residuals) computed again in the
// backward loop, from what that one carries anyway, as jax.checkpoint around the scanned function does. Read are loops
// that count from 0 by 1 and write one slice a step at the counter. `module` is null where nothing of that kind is
// there; what is made verifies.
struct ScanRecomputed {
  std::unique_ptr<Module> module;
  size_t stacks = 0, instructions = 0;  // that are no longer kept; that are there twice now
  int64_t bytes = 0;                    // of those stacks
  std::string source;                   // file and line of the first loop; empty: unknown
};
ScanRecomputed recomputed_scans(const Module& first);

}  // namespace hlo
