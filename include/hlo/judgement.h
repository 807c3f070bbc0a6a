// Are two results the same? And the smallest module that still goes wrong.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hlo/executor.h"
#include "hlo/module.h"

HLO_API_BEGIN

struct OutputComparison {
  std::string name, shape;  // o0, o1 …
  bool equal = true;
  std::string why;  // of a difference, in words
  // The worst element; none (`index` empty and `different` 0) where all are the same.
  std::vector<int64_t> index;
  std::string value_a, value_b;
  double absolute = 0, relative = 0, ulps = 0;  // relative: over the largest finite magnitude of b
  double tolerance = 0;                         // that `relative` was held against
  int64_t different = 0, elements = 0, nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0;
  double error_a = -1, error_b = -1;  // against the reference; negative: there was none
};
struct Comparison {
  bool equal = true;
  std::vector<OutputComparison> outputs;
};

// As `hlo-replay compare`: integers, predicates, NaN and infinities must be the same; floats may differ by `tolerance`
// of the output's largest magnitude (negative: 1e-10 f64, 1e-4 f32, 2e-2 bf16 and f16, 1e-1 narrower ones), or by more
// where `reference` (the same in f64) says that `a` is about as near as `b`. Throws Error(usage) where types or
// dimensions differ.
HLO_EXPORT Comparison compare(const std::vector<Array>& a, const std::vector<Array>& b, double tolerance = -1,
                              const std::vector<Array>& reference = {});

enum class Verdict { good, bad, unknown };
struct Judgement {
  Verdict verdict = Verdict::unknown;
  std::string detail = {};
};
// Asked of candidates, on the calling thread. It may run the module and make others in its universe, not change it.
using Oracle = std::function<Judgement(const Module& candidate)>;

struct ReduceOptions {
  bool keep_shapes = false;   // leave dimensions and trip counts as they are
  bool keep_invalid = false;  // candidates need not pass the verifier
  size_t most_candidates = SIZE_MAX;
};
struct Reduction {
  Module module;
  size_t candidates = 0, accepted = 0;
  bool finished = true;  // false: at the limit
};
// The smallest module that `faulty` still says true of. Throws Error(usage) where it is false of `module` itself. The
// module is left alone.
HLO_EXPORT Reduction reduce(const Module& module, const std::function<bool(const Module& candidate)>& faulty,
                            const ReduceOptions& options = {});

HLO_API_END
