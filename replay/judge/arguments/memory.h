// How much memory a run will hold at the least, before anything is allocated.
#pragma once
#include <string>

#include "ir/module.h"

namespace hlo {

// Bytes; as doubles, so that no sum wraps.
struct MemoryNeed {
  double parameters = 0;  // of the entry, as values
  double constants = 0;   // elided ones, to which values are given
  double values = 0;      // the most that live at once beside them …
  InstId at;              // … where; invalid where there are none
  double sum() const { return parameters + constants + values; }
};

// By liveness in the order in which the module runs. `in_kernels`: elementwise operations, movement and reductions are
// taken to be parts of kernels, without memory. What may lie in the place of something else does: a run takes this much
// or more. `wide`: floats take 8 bytes.
MemoryNeed memory_need(const Module& m, bool in_kernels, bool wide);

// Failure(kUnsupported) with the sum, what takes it, and the ways out, where the machine cannot give as much now.
// `file` names the module; `backend` is a name of executor.h.
void foresee_memory(const Module& m, const std::string& file, const std::string& backend, bool wide);

}  // namespace hlo
