// Two modules run on the same seeded inputs must give the same.
#pragma once
#include <gtest/gtest.h>

#include "ir/eval/compare.h"
#include "ir/eval/devices.h"
#include "ir/eval/evaluator.h"

namespace hlo {

inline bool has_unknown_or_effects(const Module& m) {
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && ((m.op(i) == Opcode::Constant && m.literal(i).elided) || op_info(m.op(i)).cls == OpClass::Io))
        return true;
  return false;
}

// The results of all devices, each with arguments of its own seed, as one tuple where there are several.
inline Value run_everywhere(const Module& m, uint64_t seed) {
  DeviceGrid grid(m.config().replica_count, m.config().num_partitions);
  if (grid.size() == 1) return Evaluator(m).run(seeded_arguments(m, seed, false));
  std::vector<Value> results(static_cast<size_t>(grid.size()));
  grid.run([&](int64_t device) {
    Evaluator e(m, {}, &grid, device);
    results[static_cast<size_t>(device)] = e.run(seeded_arguments(m, seed + static_cast<uint64_t>(device), false));
  });
  Value all;
  std::vector<ShapeId> shapes;
  for (const Value& r : results) shapes.push_back(r.shape);
  all.shape = m.u().tuple(shapes);
  all.elements = std::move(results);
  return all;
}

// Floats within `tolerance` of the output's largest magnitude (and NaN at the same places), everything else equal.
inline void expect_same_results(const Module& a, const Module& b, uint64_t seed, double tolerance) {
  if (has_unknown_or_effects(a)) return;
  Universe& u = a.u();
  Value x, y;
  try {
    x = run_everywhere(a, seed);
    y = run_everywhere(b, seed);
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
