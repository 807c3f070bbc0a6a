// What the bindings of scripting languages ask for beside modules: running, passes, recordings, searches with
// callbacks.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hlo/module.h"

namespace hlo {
HLO_INLINE_API namespace api {
  namespace scripting {

  struct Backend {
    std::string name, summary;
    std::string unavailable;  // why it cannot be used here; empty: it can
  };
  HLO_EXPORT std::vector<Backend> backends();

  struct RunOptions {
    std::string backend = "evaluator";  // or "eval", the same
    uint64_t rng_seed = 42;             // what the module's own random numbers are drawn from
    int64_t most_steps = INT64_MAX;     // of a loop
  };
  // Runs the entry, on every device that the module takes (devices_needed): arguments and results are a device's
  // arrays, tuples flattened, tokens left out. Throws Error(unsupported), naming the instruction, where something
  // cannot be run, Error(usage) where arguments do not fit, Error(bad_input) where the module does not verify.
  HLO_EXPORT std::vector<std::vector<Array>> run(const Module& module, const std::vector<std::vector<Array>>& arguments,
                                                 const RunOptions& options);
  HLO_EXPORT int64_t devices_needed(const Module& module);
  // As `exec --seed` draws them; `positive`: its scheme.
  HLO_EXPORT std::vector<Array> seeded_inputs(const Module& module, uint64_t seed, bool positive);

  struct PassInfo {
    std::string name, aliases, summary;
    std::vector<std::pair<std::string, std::string>> options;  // and their defaults
    bool implemented = false;
  };
  HLO_EXPORT std::vector<PassInfo> passes();
  HLO_EXPORT std::vector<std::string> pipelines();

  struct PassDone {
    std::string pass;
    bool changed = false;
    int64_t rewrites = 0, microseconds = 0;
    size_t before = 0, after = 0;                            // instructions
    std::vector<std::pair<std::string, std::string>> notes;  // rule, instructions by name
  };
  // One pass over the module, verified behind it; `fuel`: most rewrites. Throws Error(usage) for passes and options
  // that there are not. What it throws in the middle of a pass leaves the module as the pass left it.
  HLO_EXPORT PassDone run_pass(const Module& module, const std::string& pass,
                               const std::map<std::string, std::string>& options, int64_t fuel);

  struct ReplayOptions {
    std::string pipeline = "xla-2019";
    std::set<std::string> only, disabled, formats;
    std::map<std::string, int64_t> fuel;
  };

  // All stages of one module, as a folder holds them; copies share them. Its modules share one universe and one
  // numbering.
  class HLO_EXPORT Recording {
   public:
    // One a module of the folder. Throws Error(bad_input) where there is none.
    static std::vector<Recording> open(const std::string& folder);
    // Takes a copy of the module through a pipeline, into a new folder. `progress`: of passes; false ends it.
    static Recording replay(const Module& module, const std::string& folder, const ReplayOptions& options,
                            const std::function<bool(size_t done, size_t all, const std::string& pass)>& progress);

    std::string name() const;
    std::string function() const;  // what the user calls it: `train_step` of `jit_train_step`
    std::string source() const;    // "hlo-replay" or "xla"
    std::string pipeline() const;
    std::string selector() const;  // what stands behind `DIR:` for this module and no other; empty where it is alone
    std::vector<std::string> problems() const;
    // recording.json, counts of imported stages among it: reads and matches the texts of a foreign dump once.
    std::string json() const;
    size_t rows() const;
    // The file of the row's text, or of the last one before it, below the folder. Throws Error(bad_input) if there is
    // none.
    std::string text_file(size_t row) const;
    std::string text(size_t row) const;
    // A copy of the module behind that row.
    Module module(size_t row) const;

    enum class Verdict { good, bad, unknown };
    struct Found {
      enum Outcome { found, all_good, first_bad, unknown } outcome = unknown;
      size_t good = 0, bad = 0;  // rows
      size_t asked = 0;
    };
    // Which row is the first that is bad, its predecessor good. `every`: where the last is good, all are asked. What
    // the judge throws comes out as it is.
    Found bisect(const std::function<Verdict(const Module&)>& judge, bool every) const;

   private:
    struct Body;
    explicit Recording(std::shared_ptr<Body> body) : body_(std::move(body)) {}
    std::shared_ptr<Body> body_;
  };

  struct ReduceOptions {
    bool keep_shapes = false, keep_invalid = false;
    size_t most_candidates = SIZE_MAX;
  };
  // The smallest module that is still faulty. Candidates are modules of their own. Throws Error(usage) where the module
  // itself is not; what `faulty` throws comes out as it is.
  HLO_EXPORT Module reduce(const Module& module, const std::function<bool(const Module&)>& faulty,
                           const ReduceOptions& options);

  }  // namespace scripting
}  // namespace api
}  // namespace hlo
