// The choices of XLA's autotuner, taken from results of it in place of defaults.
#pragma once
#include "ir/library/tuning.h"
#include "passes/pass.h"

namespace hlo {

// Puts what the results say of each kernel into the module, as the back end's ApplyConfig does (xla/backends/gpu/
// autotuner/{triton,block_level_emitter,cudnn,fission_backend}.cc): tiles of products and of other fusions, plans of
// cuDNN's convolutions, products that become calls of cuBLASLt. A kernel is known by its text with its configuration
// or, where results were joined to a dump, by what it does. What is of another kind is left and noted. True where
// something changed.
bool apply_tuning(Module& m, PassContext& ctx, const TuningResults& results);

}  // namespace hlo
