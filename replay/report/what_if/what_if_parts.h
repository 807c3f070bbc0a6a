// Parts of what_if (replay/report/what_if/what_if.h) that several of its files share.
#pragma once
#include <set>
#include <string>

#include "replay/report/what_if/what_if.h"

namespace hlo {

// Kernels, bytes, operations and seconds by the model, on a GPU of that description.
void describe_kernels(const Module& m, const std::string& description, WhatIfSide* side, std::set<std::string>* notes);

// The program of a side as the pipeline leaves it, and what it is compiled for.
struct WhatIfProgram {
  const Module& module;
  const NamedGpu& gpu;
  DeviceSpec sheet;
};
// Times of both sides' kernels, by a profile; `ran` is taken to have run on the first one's GPU.
void take_times(const WhatIfMeasured& measured, const WhatIfProgram& as_is, const WhatIfProgram& changed, WhatIf* w,
                std::set<std::string>* notes);

}  // namespace hlo
