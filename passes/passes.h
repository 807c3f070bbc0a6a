// The function of every pass that has a row in passes.def, for passes that run another one inside of theirs.
#pragma once
#include "passes/pass.h"

namespace hlo {

#define HLO_PASS(function, ...) bool function(Module& m, PassContext& ctx);
#define HLO_PASS_BY_USERS(function, ...) HLO_PASS(function, __VA_ARGS__)
#define HLO_NO_PASS(...)
#include "passes/passes.def"
#undef HLO_PASS
#undef HLO_PASS_BY_USERS
#undef HLO_NO_PASS

// The pass `fusion` in these computations alone (passes/xla_2019/instruction_fusion.cc).
bool fuse_within(Module& m, PassContext& ctx, const std::vector<CompId>& computations);

// Computations whose instructions are kernels of their own, in which GPU fusions are made: the entry's, and those of
// loops and branches (GetFusibleComputations of xla/service/gpu/gpu_fusible.cc).
std::vector<CompId> fusible_computations(const Module& m);

}  // namespace hlo
