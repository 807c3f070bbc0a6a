// What is done to a module before it runs on a device: a pipeline with a name ("lower-host", "lower-cuda") whose steps
// ask the device. They are passes, and changes of its own; all go through the scope of passes (passes/scope.h).
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "passes/scope.h"

namespace hlo {

struct LoweringOptions {
  // Told of the pipeline's start and of every step, with the module as it is then.
  std::function<void(Module&, const PassEvent&)> observe;
  bool verify = false;  // after every step; a run trusts what tests have seen
};

class Lowering {
 public:
  // `options` must outlive it.
  Lowering(std::string name, const LoweringOptions& options) : name_(std::move(name)), options_(options) {}

  // Throws as run_pass does. True where it changed the module.
  bool pass(Module& m, std::string_view name, std::map<std::string, std::string> given = {});
  bool step(Module& m, std::string_view name, const std::function<void(Module&, PassContext&)>& change);

 private:
  bool run(Module& m, std::string_view name, const std::function<void(const ScopeOptions&, PassEvent*)>& one);

  std::string name_;
  const LoweringOptions& options_;
  bool started_ = false;
};

// Random bits, topk, factorizations and the like as operations that a card has kernels for. Throws
// Failure(kUnsupported) of a library call that is no such call.
void expand_for_device(Lowering& lowering, Module& m);

// Fusions of our own where the module has none: the same for the host and the GPU.
void fuse_for_device(Lowering& lowering, Module& m);

}  // namespace hlo
