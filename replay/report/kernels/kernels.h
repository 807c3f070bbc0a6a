// What a module runs, kernel by kernel, and what each costs at least: the rows of `cost`, `summary` and the first look
// at a folder.
#pragma once
#include <string>
#include <vector>

#include "ir/cost/cost.h"

namespace hlo {

struct KernelCost {
  InstId inst;
  Cost cost;                // of one run
  double times = 1;         // runs in one run of the module, loops counted by their trip counts
  bool times_known = true;  // false: within a loop that does not say how often it runs; counted once
  double seconds = 0;       // all its runs together, at least
  bool by_memory = true;    // which limit that is
  bool by_launch = false;   // neither: no kernel takes less
  double cached = 0;        // of the bytes that one run reads: they may lie in the cache that multiprocessors share
  bool known = true;        // false: a call's operations are unknown, or the data sheet is silent; more than `seconds`
  bool beside = false;      // it begins here and is done elsewhere: others may run meanwhile
};

// `memory`, `compute`, `launch`.
std::string_view limit_name(const KernelCost& k);

struct ModuleCost {
  std::vector<KernelCost> kernels;  // dearest first
  Cost all;                         // over all runs
  double seconds = 0;               // of one call, at least: those in a row, or the longest that runs beside them
  double sum = 0;                   // of all kernels: no bound where some run beside others
  size_t unknown_calls = 0;         // kernels of which the cost is not known: `seconds` is without them
  size_t beside = 0;                // kernels that others may run beside
  size_t loops_without_trip_count = 0;
  const KernelCost* of(InstId inst) const;  // null: it runs nothing of its own
};
// Of what the entry computation reaches outside of fusions. A conditional's branches are all counted.
ModuleCost module_cost(const Module& m, const DeviceSpec& device);

// A class of work as a person calls it: "product", "convolution", "collective", "reduction", "elementwise", "copy" …;
// of a fusion by what it is built around. For library calls what they compute.
std::string kernel_class(const Module& m, InstId inst);

// `12.5 us`, `3.2 ms`, `1.8 s`.
std::string time_text(double seconds);
// What a call takes at least: `1.2 ms and 3 calls of unknown cost`.
std::string bound_text(double seconds, size_t unknown_calls);
// `12.5 Gflop`, `3 flop`.
std::string flops_text(double flops);
std::string size_text(double bytes);

}  // namespace hlo
