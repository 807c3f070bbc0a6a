// A smaller program that is the same: every size becomes a smaller one, by one choice for all stages of a dump, so that
// a program of any size is run, and told of in a report.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "replay/smaller/choice.h"

namespace hlo {

struct SmallerOptions {
  double most_work = 3e8;      // floating-point operations and bytes of the first stage, together
  std::vector<int64_t> keep;   // sizes that stay
  bool roomy = false;          // arrays of some hundred elements, where the work allows it: they tell more
  std::function<bool()> stop;  // asked between stages; then Failure(kUsage)
};

// What a program has to do: floating-point operations and bytes of arrays that are read and written, loops whose count
// nothing tells taken once.
struct Work {
  double flops = 0, bytes = 0;
};
Work work_of(const Module& m);

struct SmallerPlan {
  SizeChoice choice;
  struct Size {
    int64_t before, after;
    size_t arrays;           // dimensions of that size, of different shapes
    std::string where, why;  // of one that stays: the instruction and what it does; empty: it was cut
  };
  std::vector<Size> sizes;  // the largest first; those that are small enough as they are left out
  Work before, after;       // of the first stage
  bool within = true;       // `after` is within the budget
};

// The stages of one program, by number.
struct SmallerStages {
  size_t count = 0;
  std::function<std::unique_ptr<Module>(size_t)> load;  // throws Failure where one cannot be read: it is left out
  std::function<std::string(size_t)> label;             // empty where there is one stage alone
};

// One choice for all. Each stage as it is made verifies, or sizes that are in the way stay. Throws what reading the
// first stage throws.
SmallerPlan plan_smaller(const SmallerStages& stages, const SmallerOptions& options);

// A copy with the sizes of the choice. Throws Failure(kUnsupported), naming the instruction, where it does not verify.
std::unique_ptr<Module> with_sizes(const Module& m, const SizeChoice& choice);

}  // namespace hlo
