// What rounding may do to a result: the same run with every float moved by about its last place, by chance. A sum, a
// product of matrices and the like are moved by what adding their terms up in another order may do.
#pragma once
#include <functional>
#include <random>
#include <span>

#include "ir/eval/evaluator.h"

namespace hlo {

struct NoiseOptions {
  uint32_t seed = 1;
  double ulps = 1;            // of an operation that rounds
  double transcendental = 4;  // of exp, tanh, pow …, of which HLO names no accuracy
};

// For EvalOptions::change. What is exact (moves, comparisons, sums of small integers) stays as it is. `m` must outlive
// it.
std::function<void(InstId, std::span<const Value>, Value&)> rounding_noise(const Module& m,
                                                                           const NoiseOptions& options);

// Does it round at all? Not what moves, chooses or compares, and not what only runs other computations.
bool rounds(const Module& m, InstId i);
// Does it add up many terms, in an order that is left open?
bool adds_up(const Module& m, InstId i);

}  // namespace hlo
