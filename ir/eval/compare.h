// Are two results the same? One meaning of "equal" for `exec --compare-with`, `compare`, bisection and tests.
//
// Equal, per output: integers, predicates and the places of NaN are the same, infinities too; of floats |a - b| is at
// most tol · max|b|. Where that fails and a reference of higher precision is at hand, the error of `a` against it may
// be at most four times that of `b`.
// That side itself must be plausible: within a hundred times the tolerance of the reference, or a thousand times the
// error of `a`.
#pragma once
#include <string>
#include <vector>

#include "ir/eval/value.h"

namespace hlo {

// Share of the largest magnitude that an output of that type may be off: 1e-10 f64, 1e-4 f32, 2e-2 bf16 and f16,
// 1e-1 for eight bits and less; 0 for integers.
double default_tolerance(ElementType type);

// Distance between neighbouring values of the (component) type at `v`; of integers that of f64.
double unit_of_last_place(ElementType type, double v);

struct OutputComparison {
  std::string name, shape;
  bool equal = true;
  std::string why;  // of a difference, in words
  // The worst element: the first that must be the same and is not, else the one with the largest |a - b|.
  int64_t worst = -1;  // flat row-major index; -1 when no element differs at all
  Dims index;
  std::string value_a, value_b;
  double absolute = 0;   // |a - b| there
  double relative = 0;   // … over the largest finite magnitude of b
  double ulps = 0;       // … in units of the last place of b's type; 0 for integers
  double tolerance = 0;  // that `relative` was held against
  int64_t different = 0, elements = 0;
  int64_t nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0;
  // Against the reference, relative to its magnitude; negative where there was none.
  double error_a = -1, error_b = -1;
};

// `tolerance` below 0: the type's own. `reference`: the same output evaluated in f64 (or complex of f64), may be null.
OutputComparison compare_values(const Universe& u, std::string name, const Value& a, const Value& b,
                                double tolerance = -1, const Value* reference = nullptr);

// The largest |value - reference| over the reference's largest magnitude, NaN and infinities of the reference apart; of
// tuples the worst element's. The reference has the same shape with floats in f64.
double error_against(const Universe& u, const Value& value, const Value& reference);

struct Comparison {
  bool equal = true;
  std::vector<OutputComparison> outputs;  // leaves; of those that differ the first is the one to name
  const OutputComparison* first_difference() const;
};
// Leaf by leaf, named o0, o1 …; tokens are left out.
Comparison compare_results(const Universe& u, const Value& a, const Value& b, double tolerance = -1,
                           const Value* reference = nullptr);
// Where `b` is somebody else's, a file's or another module's, `a` being nearer to the reference excuses nothing: the
// error of `b`, too, may be at most four times that of `a` or the tolerance.
void hold_both_to_reference(Comparison& comparison);

}  // namespace hlo
