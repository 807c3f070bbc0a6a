// Two modules run on the same seeded inputs must give the same.
#pragma once
#include <gtest/gtest.h>

#include "ir/eval/compare.h"
#include "ir/eval/evaluator.h"

namespace hlo {

inline bool has_unknown_or_effects(const Module& m) {
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && ((m.op(i) == Opcode::Constant && m.literal(i).elided) || op_info(m.op(i)).cls == OpClass::Io))
        return true;
  return false;
}

// Floats within `tolerance` of the output's largest magnitude (and NaN at the same places), everything else equal.
inline void expect_same_results(const Module& a, const Module& b, uint64_t seed, double tolerance) {
  if (has_unknown_or_effects(a)) return;
  Universe& u = a.u();
  Value x, y;
  try {
    x = Evaluator(a).run(seeded_arguments(a, seed, false));
    y = Evaluator(b).run(seeded_arguments(b, seed, false));
  } catch (const Failure& e) {
    ADD_FAILURE() << e.what();
    return;
  }
  Comparison c = compare_results(u, x, y, -1);
  for (OutputComparison& o : c.outputs) {
    // Passes may reorder sums: one tolerance for f32 and f64 alike.
    bool wide = o.tolerance > 0 && o.tolerance < 1e-3;
    EXPECT_TRUE(wide ? o.different == 0 || o.relative <= tolerance : o.equal)
        << o.name << " " << o.shape << ": " << o.why;
  }
}

}  // namespace hlo
