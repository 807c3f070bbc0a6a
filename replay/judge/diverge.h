// Where two stages part: the first instruction, by name, that has another value in the second.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "replay/judge/arguments/session.h"

namespace hlo {

struct Divergence {
  bool found = false;
  InstId good, bad;  // in the one module and in the other; their names agree, or both are the entry's roots
  std::string difference;
  // What the values are made of, back to instructions whose values agree; users before operands, themselves first.
  std::vector<InstId> before, after;
  bool complete = true;  // false where the values did not fit into memory: an earlier one may differ
};

// Gives a module's result, and tells `options.trace` of all values.
using RunModule = std::function<Value(const Module& m, const EvalOptions& options)>;

// Runs both on the same inputs, of loops the first step counts. Values of more than `most_bytes` in sum are not kept.
// Both modules lie in one universe.
Divergence first_divergence(const Module& good, const Module& bad, const RunModule& run, const EvalOptions& options,
                            double tolerance, int64_t most_bytes = int64_t{2} << 30);
// On the session's inputs.
Divergence first_divergence(const Module& good, const Module& bad, const Session& session, const EvalOptions& options,
                            double tolerance);

}  // namespace hlo
