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
#include "ir/source_lines.h"
#include "replay/record/target.h"

namespace hlo {

struct WhatIfChange {
  std::set<std::string> disabled;                                 // passes, any alias
  std::map<std::string, std::map<std::string, std::string>> set;  // options by pass
  std::string gpu;                                                // a name or a description's file; empty: the same
  int64_t batch = 0;                                              // 0: the same (replay/report/batch.h)
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
  double times = 1, bytes = 0, flops = 0, seconds = 0;  // of all its runs
};

struct WhatIfSide {
  std::string gpu;
  size_t instructions = 0, pass_runs = 0;
  std::vector<WhatIfKernel> kernels;  // in the order of the module
  double bytes = 0, flops = 0, seconds = 0;
  int64_t peak = 0;       // bytes alive at once, by our schedule and buffer assignment
  int64_t allocated = 0;  // bytes: arguments, results that are no arguments, and temporaries
  size_t loops_without_trip_count = 0;
  std::map<std::string, size_t> by_kind() const;
};

// A kernel that the other side does not have, with the one of the other side that has its source; -1: none.
struct WhatIfPair {
  int as_is = -1, changed = -1;
};

struct WhatIf {
  WhatIfSide as_is, changed;
  std::string concerned;           // `pipeline.pass` of the first pass that the change is about; empty: all are
  size_t shared_runs = 0;          // passes in front of it, run once
  std::string first_difference;    // name of the first stage that is another one; empty: there is none
  size_t same = 0;                 // kernels that both sides have
  std::vector<WhatIfPair> others;  // new, gone and changed ones, where the seconds differ most in front
  std::vector<std::string> notes;
};

struct WhatIfOptions {
  WhatIfChange change;
  std::optional<NamedGpu> gpu;  // that both sides are compiled for where the change names none; nothing: an H200
  bool verify = true;
  std::function<void(size_t done, size_t all, const std::string& pass)> progress;
};

// Of a module as it stands in front of optimization; it is left alone. Throws Failure: kUsage where the pipeline
// xla-gpu has no such pass or option, kUnsupported where the batch cannot be changed, and as passes do.
WhatIf what_if(const Module& m, const WhatIfOptions& options);

// One side by itself: the module as the pipeline leaves it. `gpu`: nothing, an H200. Throws as what_if.
WhatIfSide compiled_side(const Module& m, const std::optional<NamedGpu>& gpu,
                         const std::function<void(const std::string& pass)>& progress = {});

}  // namespace hlo
