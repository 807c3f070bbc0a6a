// The smallest module that still has a fault, by delta debugging over outputs, instructions, nested computations,
// constants, dimensions and attributes.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "ir/module.h"

namespace hlo {

struct ReduceOptions {
  bool keep_shapes = false;   // leave dimensions and trip counts as they are
  bool keep_invalid = false;  // candidates need not pass the verifier
  int jobs = 1;  // candidates asked at once, in child processes (replay/os/process/ahead.h says what they may do)
  size_t most_candidates = SIZE_MAX;
  std::function<bool()> stop;
  std::function<void(size_t candidates, size_t instructions)> progress;
};

struct Reduction {
  std::unique_ptr<Module> module;
  size_t candidates = 0, accepted = 0;
  bool finished = true;  // false: stopped by the limit or by hand, the module is the smallest so far
};

// `faulty` tells of a candidate; it holds for `m` itself, which the caller has checked. It must not throw.
Reduction reduce(const Module& m, const std::function<bool(const Module&)>& faulty, const ReduceOptions& options);

// Names like p0, add.1 in the place of the module's own; metadata and other texts of the program go.
void scrub(Module& m);

}  // namespace hlo
