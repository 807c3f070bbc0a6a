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

Inferred infer_shape(const Module& m, Opcode op, std::span<const InstId> operands, const AttrSet& attrs);

}  // namespace hlo
