// Passes and pipelines: what there is, and running them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"

HLO_API_BEGIN

struct PassOption {
  std::string name, type, absent;  // type: flag, number or word; absent: the value where none is given
};

struct PassInfo {
  std::string name, summary;
  std::vector<std::string> aliases;
  std::vector<PassOption> options;
  bool implemented = true;  // false: XLA has it, this library does nothing there
  std::string atomic;       // why all that it does counts as one rewrite; empty: each is one
};

HLO_EXPORT std::vector<PassInfo> passes();
// By name or alias. Throws Error(usage) with the nearest name.
HLO_EXPORT PassInfo pass_info(std::string_view name);

// One decision or rewrite.
struct PassNote {
  std::string rule;
  std::vector<std::string> names;  // instructions, by the names they had
  std::vector<uint32_t> ids;       // the same; empty where the recording does not say
  std::string text;                // numbers behind the decision; may be empty
  int64_t rewrite = 0;             // which one of the run, from 1; 0: a decision that rewrites nothing
};

struct PassOptions {
  std::map<std::string, std::string> options = {};  // of the pass, by name
  int64_t fuel = INT64_MAX;                         // rewrites that it may do
  bool verify = true;                               // the module, where something changed
  bool notes = true;
};

struct PassResult {
  bool changed = false;  // something was edited
  bool claimed = false;  // what XLA's pass says of the same
  int64_t rewrites = 0, microseconds = 0;
  size_t instructions_before = 0, instructions_after = 0;
  std::vector<PassNote> notes;
};

// Changes the module. Throws Error(usage) for an unknown pass or option, Error(unsupported) for a pass without code;
// where the pass fails, or is ended by a Watch, the module is as it was before the call.
HLO_EXPORT PassResult run_pass(const Module& module, std::string_view name, const PassOptions& options = {});

struct PipelineStep {
  std::string name;  // of a pass, or of a pipeline inside
  std::map<std::string, std::string> options;
  std::vector<PipelineStep> children;  // of a pipeline
  int most_rounds = 1;                 // above 1: until nothing changes, at most so often
};
HLO_EXPORT std::vector<std::string> pipelines();
// Throws Error(usage) where there is none of that name.
HLO_EXPORT std::vector<PipelineStep> pipeline(std::string_view name);

HLO_API_END
