// Named pipelines: readable lists of passes (passes/pipelines/), and a cursor that walks them through the scope.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "passes/scope.h"

namespace hlo {

struct Step {
  std::string name;  // of a pass or of a pipeline, as its stages are called
  std::map<std::string, std::string> options;
  std::vector<Step> children;  // of a pipeline
  int most_rounds = 1;         // a pipeline above 1 runs until nothing changes, at most so often
};

// Null for a name that no pipeline has. xla-2019: the GPU pipeline of TensorFlow 1.14; xla-gpu: today's, from the input
// to where XLA schedules. xla-gpu-unfused: that without calls and kernels, of which gpu_exec makes its programs.
const std::vector<Step>* find_pipeline(std::string_view name);
std::vector<std::string> pipeline_names();
// Where nobody names one.
inline std::string default_pipeline(bool of_2019) { return of_2019 ? "xla-2019" : "xla-gpu"; }
// Throws Failure(kUsage) with the names that there are.
const std::vector<Step>& pipeline_or_fail(const std::string& name);

struct PipelineOptions : ScopeOptions {
  std::set<std::string> only, disabled;  // pass names, any alias
  std::map<std::string, int64_t> fuel;   // rewrites a pass may do over the whole run
  std::string recording = "DIR";         // for blame: the folder whose stages these are
  std::function<void(const Module&, const PassEvent&)> observe;
  std::map<std::string, std::string> given;  // options of every pass whose row has them, over the pipeline's own
  std::map<std::string, std::map<std::string, std::string>>
      given_to;                // options of one pass by its name, over all others
  std::function<bool()> stop;  // true ends the run between passes
  std::string from;            // passes before the first run of this one are left out; empty: none
};

// A place in a pipeline, between two of its events. A copy can be gone on with from there, on any module.
class PipelineCursor {
 public:
  // `steps` must outlive it.
  PipelineCursor(const std::vector<Step>& steps, std::map<std::string, int64_t> fuel)
      : steps_(&steps), fuel_(std::move(fuel)) {}
  // The next event: a pipeline begins, or a pass runs. False at the end. Throws what run_pass throws.
  bool advance(Module& m, const PipelineOptions& options);
  // The pass that comes next, null at the end, and the name of its pipeline.
  const Step* upcoming(std::string* pipeline = nullptr) const;
  // Goes past that pass without running it.
  void skip();
  void set_fuel(const std::string& pass, int64_t rewrites) { fuel_[pass] = rewrites; }

 private:
  struct Frame {
    const Step* step;
    size_t child = 0;
    int round = 0;
    bool changed = false, any = false;
  };
  enum class Event { kStart, kPass, kEnd };
  Event move();  // to the next event: frames_ then says which
  const Step& pass() const { return frames_.back().step->children[frames_.back().child - 1]; }
  bool run(Module& m, const PipelineOptions& options);

  const std::vector<Step>* steps_;
  size_t top_ = 0;
  std::vector<Frame> frames_;
  std::map<std::string, int64_t> fuel_;
  std::string stage_;  // behind the last pass that changed something; empty: the input
};

void run_pipeline(Module& m, const std::vector<Step>& steps, const PipelineOptions& options);
// The options that XLA gives the pass where that pipeline calls it (algsimp before and after layouts); those of the
// pass's row that do not differ are left out.
std::map<std::string, std::string> call_site_options(std::string_view pass, std::string_view pipeline);
// What a pass's name says beside which pass it is: XLA calls float-normalization by the type that it widens.
std::map<std::string, std::string> options_of_name(std::string_view pass);
// `given` for a GPU by its description, or its name once more (named_gpu_target). Throws Failure: kUsage for a name
// that there is not, kUnsupported for one whose products XLA leaves to cuBLAS altogether.
std::map<std::string, std::string> options_for_gpu(std::string_view name, std::string_view description);
size_t count_passes(const std::vector<Step>& steps);

}  // namespace hlo
