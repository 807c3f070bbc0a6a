// Is this module good? What bisect and reduce ask of every candidate.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "ir/eval/compare.h"
#include "replay/judge/arguments/session.h"

namespace hlo {

enum class Verdict { kGood, kBad, kUnknown };  // unknown: it could not be judged, the detail says why

struct Judgement {
  Verdict verdict = Verdict::kUnknown;
  std::string detail = {};
  int runs = 1, agreed = 1;  // of a command that was asked several times
  // Of results that were compared and are good: the largest error, as a share of the output's largest magnitude, the
  // share that was allowed there, and where it is (`o0[1,2]`; empty: every element the same). Negative: none compared.
  double error = -1, tolerance = -1;
  std::string where = {};
};

// The oracle itself does not work: nothing to do with the candidate.
class OracleFailure : public Failure {
 public:
  using Failure::Failure;
};

using Judge = std::function<Judgement(const Module&)>;

struct JudgeOptions {
  // One of these; none: by numbers.
  bool verify = false;
  std::string command;  // shell; `{}` stands for the module's file. Exit 0 good, 125 unknown, others bad
  std::string regex;    // of the text: a match is bad
  double slower = 0;    // bad when it takes so many times what the first module took
  // How it runs.
  std::string backend = "evaluator";
  EvalOptions eval;
  double tolerance = -1;
  int repeat = 1;  // of commands and of timing
  bool no_verify = false;
  bool stages = false;  // the modules are stages of one: see ResultComparison
  // What the first module gives is far from f64, by a gate that rounding has turned: whose error against f64 is like
  // its own is not good for that, but unknown.
  bool behind_edge = false;
};

class Stages;

// What modules give on a session's inputs, each held against the first, as ir/eval/compare.h defines equal.
class ResultComparison {
 public:
  // `first` and `session` must outlive it. `stages`: the modules are stages of one, of which the evaluator computes
  // only what no earlier one had bit by bit; their values are kept within bounds. Throws what running `first` throws.
  ResultComparison(const Module& first, const Session& session, const std::string& backend, const EvalOptions& options,
                   double tolerance, bool stages);
  ~ResultComparison();
  // Throws what running it throws. `last`: nothing is asked of what it computes.
  const Comparison& of(const Module& m, bool last = false);
  // The same of a stage, where results are equal, by its operations: each that no stage before had is evaluated on
  // values that stages before had, and where what it gives is one of these but for its own rounding, that is what the
  // others are given. `rounded`: how many were taken so; 0: it is what of() says. Where the result is not one that was
  // found equal, it is evaluated whole.
  const Comparison& by_operations(const Module& m, int64_t* rounded);

 private:
  const Comparison& compared(const Value& got, uint64_t known);

  const Module& first_;
  const Session& session_;
  const ExecutorInfo& executor_;
  EvalOptions options_;
  double tolerance_;
  std::unique_ptr<Stages> stages_;
  Value expected_, reference_;          // reference: the first in f64, once it is asked for
  uint64_t known_ = 0;                  // number of the result that was compared last; 0: none
  std::unordered_set<uint64_t> equal_;  // numbers of results that were found equal
  Comparison last_;
};

// Numbers are held against what `first` gives on the session's inputs, as ir/eval/compare.h defines equal. Both must
// outlive the judge. Throws what running `first` throws. For other oracles `session` may be null.
Judge make_judge(const JudgeOptions& options, const Module& first, const Session* session);
// Of a comparison that found results equal: the output that comes nearest to what is allowed.
Judgement good_within(const Comparison& c);
// In words: "results equal to the first stage's", "`grep …` exits 0" …
std::string in_words(const JudgeOptions& options);

}  // namespace hlo
