// One instruction or fusion goes into a consumer, in the steps and the order of XLA's
// HloFusionInstruction::FuseInstruction and MergeFusionInstruction, on which the order of parameters hangs.
#pragma once
#include <string_view>

#include "ir/module.h"

namespace hlo {

// The fusion that the consumer is or becomes: `fusion`, its body `fused_computation`. The producer, an operand of the
// consumer, stays where it is. `kind` is the fusion's: kLoop, kInput, kCustom.
InstId fuse_into(Module& m, InstId producer, InstId consumer, std::string_view kind);

// A fusion of the instruction alone, in its place.
InstId wrap_in_fusion(Module& m, InstId i, std::string_view kind);

// What `other`, an instruction or a fusion, computes becomes further results of the fusion, which may read it; users
// read all by get-tuple-element then, and `other` is gone. Neither may need the other by way of a third. The users of
// an `other` of several results are get-tuple-elements.
void fuse_as_output(Module& m, InstId other, InstId fusion);

}  // namespace hlo
