// One instruction or fusion goes into a consumer, in the steps and the order of XLA's
// HloFusionInstruction::FuseInstruction and MergeFusionInstruction, on which the order of parameters hangs.
#pragma once
#include <string_view>

#include "ir/module.h"

namespace hlo {

// The fusion that the consumer is or becomes: `fusion`, its body `fused_computation`. The producer, an operand of the
// consumer, stays where it is. `kind` is the fusion's: kLoop, kInput, kCustom.
InstId fuse_into(Module& m, InstId producer, InstId consumer, std::string_view kind);

}  // namespace hlo
