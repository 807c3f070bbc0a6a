// Which bytes a kernel reads may still lie in the cache that a GPU's multiprocessors share: what was read or written
// since less than the cache's size went by. It may be so, and need not be: for bounds.
#pragma once
#include <unordered_map>

#include "ir/cost/cost.h"

namespace hlo {

struct KernelReads {
  Cost cost;          // of one run
  double cached = 0;  // of the bytes that it reads: they may lie in the cache
};

class SharedCache {
 public:
  // `bytes`: the cache's size; 0: nothing is kept. Module and costs must live as long.
  SharedCache(const Module& m, CostAnalysis& costs, double bytes) : m_(m), costs_(costs), capacity_(bytes) {}
  // Each kernel of `comp`, outside of fusions. The computation has run before: a body in the turn before, the entry in
  // the call before.
  const std::unordered_map<InstId, KernelReads>& kernels(CompId comp);

 private:
  // Bytes that are read from the device's memory, at least: in one run of a computation, of a loop or a call in it.
  double from_memory_of(CompId comp);
  double from_memory_inside(InstId i);

  const Module& m_;
  CostAnalysis& costs_;
  double capacity_;
  std::unordered_map<CompId, std::unordered_map<InstId, KernelReads>> known_;
  std::unordered_map<CompId, double> from_memory_;  // of from_memory_of
};

// The instructions of a computation as they run: the schedule's order where there is one, else some order that may be.
std::vector<InstId> running_order(const Module& m, CompId comp);

}  // namespace hlo
