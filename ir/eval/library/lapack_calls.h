// Matrix routines by LAPACK itself, out of the library of blas.h, in f64 or complex f64 whatever the type.
#pragma once
#include <vector>

#include "ir/eval/value.h"
#include "ir/library/lapack.h"

namespace hlo {

// Is there a LAPACK? Loads the library.
bool has_lapack();

// Fills `out` with the call's results, matrix by matrix of the batch. Operands, results and options are as
// lapack_call (ir/library/lapack.h) wants them, and has_lapack(). What a routine leaves undefined (a factor that was
// not asked for) is 0.
void run_lapack(const Universe& u, const LapackCall& call, const std::vector<Value>& operands, Value& out);

}  // namespace hlo
