// The only way to run a pass, one inside of another, or a step of the lowering. It gives fuel, times, verifies,
// computes what was touched and holds the pass to its word, and where something fails it says where: pass, rule,
// instruction, the stage before and a command that repeats it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/verify/verifier.h"
#include "passes/pass.h"

namespace hlo {

// One thing that happened: a pipeline began, a pass ran, or a pass reached an inner step.
struct PassEvent {
  enum Kind { kPipelineStart, kPass, kInnerStep } kind = kPass;
  std::string pipeline, pass, next;  // next: the pass to come in this pipeline, or "pipeline-end"
  bool implemented = true, disabled = false;
  bool changed = false;  // something in the module was edited
  bool claimed = false;  // what XLA's pass says of the same; rounds of a pipeline follow it
  int64_t microseconds = 0;
  size_t instructions_before = 0, instructions_after = 0;
  int64_t rewrites = 0;
  std::vector<Note> notes;
  std::map<std::string, std::string> options;  // that the pass ran with
};

struct ScopeOptions {
  Layouts layouts = Layouts::kAuto;  // for the verifier
  bool verify = true;                // after every pass that changed something, those inside of it included
  bool keep_notes = true;
  // For blame: the stage that the pass is given, as `opt` takes it; empty: unknown.
  std::string stage = {};
  // For tests: a pass is called even where it has no fuel, to see whether it asks.
  bool call_without_fuel = false;
};

// Runs one pass on its context's fuel; fills the event; says whether it changed the module. With no fuel left nothing
// changes: the pass is not called. Throws Failure naming the pass when it fails, when it leaves a module that the
// verifier refuses, or when it changed something and says that it did not (both kInternal).
bool run_pass(Module& m, const PassInfo& pass, PassContext& context, const ScopeOptions& options, PassEvent* event);

// The same for a change that has no row in passes.def: a step of the lowering. It is one rewrite.
bool run_step(Module& m, std::string_view name, const std::function<bool(Module&, PassContext&)>& step,
              const ScopeOptions& options, PassEvent* event);

}  // namespace hlo
