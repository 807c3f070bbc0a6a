// The first of a row of candidates that is bad, found in a logarithmic number of judgements; stages of a folder, stages
// of a pipeline, and the rewrites of one pass.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/pipelines/pipelines.h"
#include "replay/judge/judge.h"

namespace hlo {

struct Bisection {
  enum Outcome {
    kFound,     // `good` and `bad` are neighbours, but for unknown ones between them
    kAllGood,   // nothing is bad: all were judged where `every` was asked for, else the last
    kFirstBad,  // the very first is bad already
    kUnknown,   // the first or every later one could not be judged
    kStopped,   // interrupted
  } outcome = kUnknown;
  size_t good = 0, bad = 0;
  std::map<size_t, Judgement> judged;
  std::vector<size_t> bad_ones;  // all that are known to be bad beside each other, in order
};

struct Candidates {
  std::vector<std::string> labels, keys;  // keys: what JudgementFile knows them by
  std::function<std::unique_ptr<Module>(size_t)> load;
  std::function<bool(size_t)> same;  // is it the one before, byte for byte? null: nothing is known of that
};

struct BisectOptions {
  // Where the last candidate is good, one in the middle may still be bad (and healed later): judge them all.
  bool every = true;
  std::function<void(const std::string& label, const Judgement&)> judged;  // after each
  std::function<bool()> stop;
  // In the place of search() over the stages of a pipeline.
  std::function<Bisection(const Candidates& row, std::map<size_t, Judgement> known)> stages;
  // What the rewrites of the guilty pass are judged by, in the place of the judge: its argument is the last good stage.
  std::function<Judge(const Module& good)> beside;
};

// Judgements on disk, so that a search that was cut off goes on where it was. An empty path keeps nothing.
class JudgementFile {
 public:
  // `what`: the oracle and the inputs. Throws Failure(kUsage) where the file is of another search.
  JudgementFile(std::string path, std::string what);
  bool find(const std::string& key, Judgement* out) const;
  void add(const std::string& key, const Judgement& j);

 private:
  std::string path_, what_;
  std::map<std::string, Judgement> known_;
};

// What `ask` says of a candidate. One that fails is bad where the verifier refuses it, else unknown; an oracle that
// does not work, and a search that was stopped, are thrown on.
Judgement judgement_of(const std::function<Judgement()>& ask, const std::function<bool()>& stop);
// The same; nothing where it was stopped within.
std::optional<Judgement> judgement_unless_stopped(const std::function<Judgement()>& ask,
                                                  const std::function<bool()>& stop);

// Candidate 0 is expected to be good. Judgements in `known` and `memory` are not made again. A candidate that the
// verifier refuses to load (Failure(kInvalid)) is bad, one that cannot be read is unknown.
Bisection search(const Candidates& candidates, const Judge& judge, JudgementFile& memory, const BisectOptions& options,
                 std::map<size_t, Judgement> known = {});

struct PipelineBisection {
  Candidates candidates;
  Bisection stages, rewrites;
  PassEvent event;                    // the pass that makes the first bad stage
  int64_t rewrite = 0;                // which of its rewrites, from 1; 0: not known
  Note note;                          // of that rewrite
  std::unique_ptr<Module> good, bad;  // around the rewrite, or around the pass
  std::string broke;                  // why the pipeline ended early
};

// Runs the pipeline over `m` once and judges its stages, then the guilty pass with less and less fuel from the last
// good stage. `first_is_good`: do not ask about the module as it came.
PipelineBisection bisect_pipeline(Module& m, const std::vector<Step>& steps, const PipelineOptions& passes,
                                  const Judge& judge, bool first_is_good, JudgementFile& memory,
                                  const BisectOptions& options);

const char* word(Verdict v);

}  // namespace hlo
