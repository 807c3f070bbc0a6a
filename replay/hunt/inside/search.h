// Stage after stage held against the one before, inside and out.
#pragma once
#include "replay/hunt/bisect.h"
#include "replay/judge/inside/inside.h"

namespace hlo {

struct InsideSearch {
  Bisection found;
  std::map<size_t, InsideStage> stages;  // by candidate; those that could be read
  InputsTold told;
  int attempt = 0;                               // which inputs: 0 the session's, else those of `others`
  Value outputs;                                 // of the first stage, in f64; without a shape: not all are known
  std::unique_ptr<InsideSearch> second;          // on InsideOptions::second; null where the first found something
  int64_t operations_first = 0, operations = 0;  // evaluated for the first stage, for all
};

struct InsideOptions {
  EvalOptions eval;
  int64_t most_bytes = 0;  // of values that are kept; 0: a quarter of what the machine has left, 3 GiB at most
  std::function<void(const std::string& label, const Judgement&)> judged;
  std::function<bool()> stop;
  // More inputs that every stage is looked at with while it is read, as long as nothing is found.
  const Session* second = nullptr;
  // Other inputs where those at hand tell nothing; null: there are none. Asked with 1, 2 …
  std::function<const Session*(int attempt)> others;
  // Are the inputs worth it, as the first stage tells? Else no stage is looked at, and the outcome is unknown.
  std::function<bool(const InputsTold&)> only;
};

// All candidates in order; those that cannot be read are unknown, those that the verifier refuses are bad.
InsideSearch search_inside(const Candidates& candidates, const Module& first, const Session& session,
                           const InsideOptions& options);

// A module in its own types against `high`, what the first stage gives in f64 (InsideSearch::outputs). Not equal is
// unknown: the first stage's own rounding may be as far from it.
Judgement in_own_types(const Module& m, const Session& session, const EvalOptions& options, double tolerance,
                       const Value& high);

// Is a module the same as `good`, inside too? `good` must outlive nothing: it is numbered at once.
Judge inside_judge(const Module& good, const Session& session, const InsideOptions& options);

}  // namespace hlo
