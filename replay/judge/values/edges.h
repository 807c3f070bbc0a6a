// Rounding through a discontinuity: a gate `x > 0` whose x lies at zero falls to one side in one stage and to the other
// in the next, and what goes through it is another value. No pass is at fault then.
#pragma once
#include <string>
#include <vector>

#include "replay/judge/arguments/session.h"

namespace hlo {

// A comparison, or a step as floor has one, that both stages have under one name and that gives another value in `bad`
// although its operands are the same but for rounding.
struct EdgeRounding {
  std::string name;
  int64_t different = 0, elements = 0;
  double apart = 0;  // its operands, of their largest magnitude
};
std::string in_words(const std::vector<EdgeRounding>& edges);

// Do the results of `bad`, in the stages' own types, equal those of `good` once these operations have the values that
// they have in `good`? Then these operations; empty where that does not explain the difference or cannot be tried. That
// rounding alone has moved the operands is for the caller to know: by f64, where all is the same.
std::vector<EdgeRounding> rounding_at_edges(const Module& good, const Module& bad, const Session& session,
                                            const EvalOptions& options, double tolerance);

}  // namespace hlo
