// What happened to modules, stage by stage: runs of our pipelines, and XLA's dump folders.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/judgement.h"
#include "hlo/module.h"
#include "hlo/pass.h"

HLO_API_BEGIN

class Recording;

// One row of a recording: the input, a pass that ran, a step of one, the result. A handle that keeps the recording.
class HLO_EXPORT Stage {
 public:
  size_t index() const { return index_; }  // in Recording::stages()
  std::string kind() const;                // input, pipeline-start, pass, step, result
  std::string name() const;                // `simplification.after_algsimp`, `before_optimizations`
  std::string pass() const;
  std::string pipeline() const;
  int number() const;  // of the file's name; -1: none
  bool changed() const;
  bool implemented() const;
  bool disabled() const;
  int64_t microseconds() const;  // -1: unknown
  // Instructions before and after, and how many are new, gone and changed. Of a dump known once its stages were read,
  // which asking does.
  size_t instructions_before() const;
  size_t instructions_after() const;
  size_t added() const;
  size_t removed() const;
  size_t modified() const;
  int64_t rewrites() const;
  std::vector<PassNote> notes() const;
  std::string file() const;  // of this stage's own text; empty where nothing was written
  // The module behind this row (that of an earlier row where nothing changed). Throws Error(bad_input) where it cannot
  // be read. All modules of a recording share a universe, and instructions keep their ids from stage to stage.
  Module module() const;
  std::string text() const;  // of that module, lossless

 private:
  friend struct Access;
  friend class Recording;
  Stage(std::shared_ptr<struct RecordingBody> body, size_t index);
  std::shared_ptr<struct RecordingBody> body_;
  size_t index_ = 0;
};

struct ReplayOptions {
  std::string pipeline = {};                       // xla-2019 or xla-gpu; empty: the one of the module's time
  std::set<std::string> only = {}, disabled = {};  // pass names, any alias
  std::map<std::string, int64_t> fuel = {};        // rewrites a pass may do over the whole run
  std::string from = {}, stop_after = {};          // leave out what comes before this pass; end behind this stage
  std::string lower = {};  // host, emulated, cuda: the steps of lowering for it as stages; empty: none
  bool verify = true;
  bool force = false;  // replay what is already optimised; replace a folder
  // A folder to make; empty: a temporary one that goes with the last handle.
  std::string folder = {};
  std::set<std::string> formats = {"text", "page", "buffers", "thunks"};  // dot, json, proto, ll, ptx, sass too
};

struct BisectOptions {
  RunOptions run = {};  // inputs and backend of the judge of ours
  double tolerance = -1;
  bool every = true;  // where the last stage is good, one in the middle may still be bad: judge them all
};
struct StageJudgement {
  size_t stage = 0;  // index of Recording::stages()
  Judgement judgement;
};
struct BisectResult {
  enum Outcome { found, all_good, first_bad, unknown } outcome = unknown;
  std::optional<size_t> good, bad;  // indices of neighbouring stages, where found
  std::string pass, why;            // that leads to the bad one, and what is wrong with it
  std::vector<StageJudgement> judged;
};

// One or several modules of a folder. A handle.
class HLO_EXPORT Recording {
 public:
  // DIR, DIR:MODULE; ours or XLA's. Throws Error(bad_input) where there is none, Error(usage) with the candidates where
  // a name fits several.
  static Recording open(const std::string& spec);

  // One for each module; of one module: itself.
  std::vector<Recording> modules() const;
  // The rest is of one module, and throws Error(usage) with their names where there are several.
  std::string module_name() const;
  std::string selector() const;  // behind `DIR:`, so that this module and no other is meant
  std::string folder() const;
  std::string source() const;  // hlo-replay or xla
  std::string pipeline() const;
  std::vector<Stage> stages() const;
  Stage stage(size_t index) const;
  Stage stage(std::string_view name) const;   // a number, a name, a pass, or a part of it that only one has
  std::vector<std::string> problems() const;  // what could not be read
  std::vector<std::string> files() const;     // others of the module: buffer assignment, thunks, PTX …

  // JSON texts as the command line gives them with --json (docs/schemas/).
  std::string json() const;                                        // of replay
  std::string explain_json(const std::string& instruction) const;  // throws Error(usage) with near names
  std::string diff_json(size_t stage_a, size_t stage_b) const;     // of two stages, by id
  // Of the last stage.
  std::string cost_json(const std::string& device = {}) const;
  std::string memory_json(const std::string& by = "line") const;
  std::string summary_json(const std::string& by = "line", const std::string& device = {}) const;  // or scope, class

  // Pages that open without a network, into a folder that is not there (or `force`); the path of the first one.
  std::string view(const std::string& folder, bool force = false) const;

  // The first bad stage, in a logarithmic number of questions. Without an oracle: one whose results differ from the
  // first stage's.
  BisectResult bisect(const Oracle& oracle, const BisectOptions& options = {}) const;
  BisectResult bisect(const BisectOptions& options = {}) const;

  // Closes it: every later call of any handle of it throws Error(usage), a temporary folder goes.
  void close();
  bool closed() const;
  // The folder as it is, into one that is not there (or `force`).
  void save(const std::string& folder, bool force = false) const;

 private:
  friend struct Access;
  explicit Recording(std::shared_ptr<struct RunBody> body);
  std::shared_ptr<struct RunBody> body_;
};

// Runs a pipeline over a copy of the module; the last stage holds what became of it. Throws Error(bad_input) where a
// pass leaves a module that the verifier refuses, Error(usage) where the module is already optimised.
HLO_EXPORT Recording replay(const Module& module, const ReplayOptions& options = {});

// Two modules side by side, as `hlo-replay diff --json` tells it; the second is taken into the first one's universe
// where it lies in another.
HLO_EXPORT std::string diff_json(const Module& a, const Module& b);

// What a module costs by counting and what it holds in memory, as `hlo-replay cost --json` and `memory --json` tell it.
// `device`: of the data sheets (`H200`); `by`: line, scope, value.
HLO_EXPORT std::string cost_json(const Module& module, const std::string& device = {});
HLO_EXPORT std::string memory_json(const Module& module, const std::string& by = "line");

HLO_API_END
