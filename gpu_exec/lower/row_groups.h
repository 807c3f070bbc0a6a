// Softmax- and layer-norm-shaped groups become one fusion each, which runs as a row fusion (kernel.h).
#pragma once
#include "ir/module.h"

namespace hlo {

// Groups in all computations that are run: reductions of the minor dimensions, what works row by row behind them, and
// cheap elementwise work in front of them that only they read. Rows of at least 32 elements, 16 rows or more
// (128 of more than 65,536).
void fuse_row_groups(Module& m);

}  // namespace hlo
