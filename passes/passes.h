// The function of every pass that has a row in passes.def, for passes that run another one inside of theirs.
#pragma once
#include "passes/pass.h"

namespace hlo {

#define HLO_PASS(function, ...) bool function(Module& m, PassContext& ctx);
#define HLO_NO_PASS(...)
#include "passes/passes.def"
#undef HLO_PASS
#undef HLO_NO_PASS

// The pass `fusion` in these computations alone (passes/fusion/instruction_fusion.cc).
bool fuse_within(Module& m, PassContext& ctx, const std::vector<CompId>& computations);

}  // namespace hlo
