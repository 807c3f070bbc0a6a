// Named pipelines as readable lists, and what happens around a pass: time, verification, fuel, recording.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace hlo {

struct Step {
  std::string name;  // of a pass or of a pipeline, as its stages are called
  std::map<std::string, std::string> options;
  std::vector<Step> children;  // of a pipeline
  int most_rounds = 1;         // a pipeline above 1 runs until nothing changes, at most so often
};

// Null for a name that no pipeline has. xla-2019: the GPU pipeline of TensorFlow 1.14; xla-gpu: today's, from the input
// to before conv_canonicalization.
const std::vector<Step>* find_pipeline(std::string_view name);
std::vector<std::string> pipeline_names();

// One thing that happened: a pipeline began, a pass ran, or a pass reached an inner step.
struct PassEvent {
  enum Kind { kPipelineStart, kPass, kInnerStep } kind = kPass;
  std::string pipeline, pass, next;  // next: the pass to come in this pipeline, or "pipeline-end"
  bool implemented = true, disabled = false, changed = false;
  int64_t microseconds = 0;
  size_t instructions_before = 0, instructions_after = 0;
  int64_t rewrites = 0;
  std::vector<Note> notes;
  std::map<std::string, std::string> options;  // that the pass ran with
};

struct PipelineOptions {
  std::set<std::string> only, disabled;  // pass names, any alias
  std::map<std::string, int64_t> fuel;   // rewrites a pass may do over the whole run
  bool verify = true;                    // after every pass that changed something
  bool keep_notes = true;
  std::function<void(const Module&, const PassEvent&)> observe;
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
};

// Runs one pass; fills the event. Throws Failure naming the pass when it fails or leaves a module the verifier refuses.
bool run_pass(Module& m, const PassInfo& pass, PassContext& context, const PipelineOptions& options, PassEvent* event);
void run_pipeline(Module& m, const std::vector<Step>& steps, const PipelineOptions& options);
size_t count_passes(const std::vector<Step>& steps);

}  // namespace hlo
