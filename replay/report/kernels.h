// What a module runs, kernel by kernel, and what each costs at least: the rows of `cost`, `summary` and the first look
// at a folder.
#pragma once
#include <string>
#include <vector>

#include "ir/cost.h"

namespace hlo {

struct KernelCost {
  InstId inst;
  Cost cost;                // of one run
  double times = 1;         // runs in one run of the module, loops counted by their trip counts
  bool times_known = true;  // false: within a loop that does not say how often it runs; counted once
  double seconds = 0;       // all its runs together, at least
  bool by_memory = true;    // which limit that is
};

struct ModuleCost {
  std::vector<KernelCost> kernels;  // dearest first
  Cost all;                         // over all runs
  double seconds = 0;
  size_t loops_without_trip_count = 0;
};
// Of what the entry computation reaches outside of fusions. A conditional's branches are all counted.
ModuleCost module_cost(const Module& m, const DeviceSpec& device);

// A class of work as a person calls it: "product", "convolution", "collective", "reduction", "elementwise", "copy" …;
// of a fusion by what it is built around. For library calls what they compute.
std::string kernel_class(const Module& m, InstId inst);

// `12.5 us`, `3.2 ms`, `1.8 s`.
std::string time_text(double seconds);
// `12.5 Gflop`, `3 flop`.
std::string flops_text(double flops);
std::string size_text(double bytes);

}  // namespace hlo
