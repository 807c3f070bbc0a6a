// Two modules run on the same seeded inputs must give the same.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

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
  std::vector<Value> x, y;
  try {
    flatten(u, Evaluator(a).run(seeded_arguments(a, seed, false)), &x);
    flatten(u, Evaluator(b).run(seeded_arguments(b, seed, false)), &y);
  } catch (const Failure& e) {
    ADD_FAILURE() << e.what();
    return;
  }
  ASSERT_EQ(x.size(), y.size());
  for (size_t o = 0; o < x.size(); ++o) {
    const Shape& s = u[x[o].shape];
    if (!s.is_array()) continue;
    int64_t n = s.elements_count();
    ASSERT_EQ(n, u[y[o].shape].elements_count());
    int width = storage_bytes(s.type);
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      const char *p = x[o].bytes() + i * width, *q = y[o].bytes() + i * width;
      if (!is_float(s.type) && !is_complex(s.type)) {
        ASSERT_EQ(load_int(s.type, p), load_int(s.type, q)) << "output " << o << " element " << i;
        continue;
      }
      std::complex<double> v = load_complex(s.type, p), w = load_complex(s.type, q);
      if (!is_complex(s.type)) v = load_double(s.type, p), w = load_double(s.type, q);
      ASSERT_EQ(std::isnan(v.real()), std::isnan(w.real()))
          << "output " << o << " element " << i << ": " << v.real() << " and " << w.real();
      if (std::isnan(v.real()) || v == w) continue;
      largest = std::max(largest, std::abs(v)), worst = std::max(worst, std::abs(v - w));
    }
    double scale =
        s.type == ElementType::F64 || s.type == ElementType::F32 || s.type == ElementType::C64 ? tolerance : 2e-2;
    EXPECT_LE(worst, scale * std::max(largest, 1e-30)) << "output " << o;
  }
}

}  // namespace hlo
