// Result shapes of operations (xla/service/shape_inference.cc): what the parser fills in, the builder uses and the
// verifier checks against. Layouts in the result are default ones.
#pragma once
#include <span>
#include <string>

#include "ir/module.h"

namespace hlo {

struct Inferred {
  ShapeId shape;      // invalid where the opcode's shape cannot be inferred or the operands do not fit
  std::string error;  // why; empty with an invalid shape means: this opcode needs its shape written
};

// Do the sizes that a window has along a dimension of `input` elements fit into 63 bits? Where not,
// WindowDim::output_size has no meaning.
bool window_fits(const WindowDim& window, int64_t input);

// Is `part` what is known so far of `whole`, as an asynchronous operation's result is before all of it is there:
// nothing yet (an empty tuple), the first elements of a tuple, or all of it?
bool is_prefix_of(Universe& u, ShapeId part, ShapeId whole);

// `mixed`: floats of several precisions may stand together (Precision::kMixed of verifier.h); the result's is then a
// guess.
Inferred infer_shape(const Module& m, Opcode op, std::span<const InstId> operands, const AttrSet& attrs,
                     bool mixed = false);

}  // namespace hlo
