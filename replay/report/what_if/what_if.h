// Our passes over a module twice, as XLA runs them and changed: what becomes of its kernels, bytes, memory and time.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/query/source_lines.h"
#include "replay/record/start/target.h"

namespace hlo {

struct WhatIfChange {
  std::set<std::string> disabled;                                 // passes, any alias
  std::map<std::string, std::map<std::string, std::string>> set;  // options by pass
  std::string gpu;                                                // a name or a description's file; empty: the same
  int64_t batch = 0;                                              // 0: the same (replay/report/what_if/batch.h)
  std::string batch_parameter;                                    // whose first dimension it is; empty: to be found
  bool empty() const { return disabled.empty() && set.empty() && gpu.empty() && !batch; }
  // `without algsimp; priority-fusion.gpu=A100; on A100; batch 8`.
  std::string in_words() const;
};

struct WhatIfKernel {
  std::string name, kind, op_name;  // kind: kernel_class()
  SourceLine source;
  std::string key;  // what it is matched by: kind, op_name and source line, or where it has none its shape
  InstId inst;
  double times = 1, bytes = 0, flops = 0, seconds = 0;  // of all its runs; seconds: by the model
  // With a profile: its time in one run of the module, measured where the program that ran has this kernel, else
  // foretold.
  double time = 0;
  bool measured = false;
  double price = 0;  // seconds of all its runs that foretelling goes by: expected, else by the model
};

// What a profile says of the program that ran.
struct WhatIfMeasured {
  const Module* ran = nullptr;                                     // the stage that its instructions are of
  DeviceSpec sheet;                                                // of the card that it ran on
  std::function<std::optional<double>(std::string_view)> seconds;  // of an instruction in one run
  double between = 0;                                              // kernels, in one run
};

struct WhatIfSide {
  std::string gpu;
  size_t instructions = 0, pass_runs = 0;
  std::vector<WhatIfKernel> kernels;  // in the order of the module
  double bytes = 0, flops = 0, seconds = 0;
  int64_t peak = 0;       // bytes alive at once, by our schedule and buffer assignment
  int64_t allocated = 0;  // bytes: arguments, results that are no arguments, and temporaries
  size_t loops_without_trip_count = 0;
  // With a profile, seconds of one run: of kernels that were measured, of the others, and between kernels.
  double measured = 0, foretold = 0, between = 0;
  size_t measured_kernels = 0;
  double time() const { return measured + foretold + between; }
  std::map<std::string, size_t> by_kind() const;
};

// A kernel that the other side does not have, with the one of the other side that has its source; -1: none.
struct WhatIfPair {
  int as_is = -1, changed = -1;
};

struct WhatIf {
  WhatIfSide as_is, changed;
  bool timed = false;            // by a profile: `time` of sides and kernels says something
  std::string concerned;         // `pipeline.pass` of the first pass that the change is about; empty: all are
  size_t shared_runs = 0;        // passes in front of it, run once
  std::string first_difference;  // name of the first stage that is another one; empty: there is none
  size_t same = 0;               // kernels that both sides have
  // New, gone and changed ones, where the time differs most in front, or without a profile the seconds.
  std::vector<WhatIfPair> others;
  std::vector<std::string> notes;
};

struct WhatIfOptions {
  WhatIfChange change;
  std::optional<NamedGpu> gpu;  // that both sides are compiled for where the change names none; nothing: an H200
  bool verify = true;
  std::optional<WhatIfMeasured> measured;
  std::string autotune_results;  // what XLA's autotuner chose on that GPU, as passes are told; empty: their defaults
  std::function<void(size_t done, size_t all, const std::string& pass)> progress;
};

// Of a module as it stands in front of optimization; it is left alone. A kernel that the measured program has, doing
// the same on the same operands, or of the same source and kind with the same bytes and operations, takes what was
// measured; any other one its price times what measured kernels of its source, else of its kind, else all of them took
// over theirs. Where the change is another GPU, nothing of it is
// measured. Throws Failure: kUsage where the pipeline
// xla-gpu has no such pass or option, kUnsupported where the batch cannot be changed, and as passes do.
WhatIf what_if(const Module& m, const WhatIfOptions& options);

// One side by itself: the module as the pipeline leaves it, without the passes of `disabled`, those that it does not
// have among them. `gpu`: nothing, an H200. Throws as what_if.
WhatIfSide compiled_side(const Module& m, const std::optional<NamedGpu>& gpu,
                         const std::function<void(const std::string& pass)>& progress = {},
                         const std::set<std::string>& disabled = {});

}  // namespace hlo
