// A program that makes large differences of small ones, a solver on numbers that it does not converge for, a loop that
// goes out of bounds: what two stages of it give differs by rounding alone, however large the difference is.
#pragma once
#include <string>

#include "replay/judge/arguments/session.h"

namespace hlo {

// Do results of `good` move as far as those of `bad` lie apart from them, where each of its instructions rounds
// otherwise? In words then, `rounding in its instructions moves the results as far (o0: by 0.7 of …)`; empty where one
// of the results that differ is not explained so, where none differs, or where that cannot be run. `wide`: in f64, as
// values inside are compared; else in the types that the stages have.
std::string amplified_rounding(const Module& good, const Module& bad, const Session& session,
                               const EvalOptions& options, bool wide);

}  // namespace hlo
