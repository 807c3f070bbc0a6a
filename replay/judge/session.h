// A module with its inputs, run on as many simulated devices as it takes; shared by exec, bisect, reduce and explain.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "gpu_exec/executor.h"
#include "ir/eval/value.h"
#include "ir/module.h"
#include "replay/judge/inputs.h"

namespace hlo {

class Session {
 public:
  // Inputs and outputs have the shapes of `shapes` (the module before partitioning, or the module itself).
  Session(const Module& shapes, const InputOptions& options);
  // The same inputs for another module of that signature, which may lie in another universe.
  const std::vector<Value>& arguments() const { return arguments_; }
  const std::shared_ptr<Universe>& universe() const { return keep_; }
  ShapeId result_shape() const { return result_shape_; }  // of the whole arrays
  const std::string& output_sharding() const { return output_sharding_; }
  void set_arguments(std::vector<Value> arguments) { arguments_ = std::move(arguments); }

  // The result in the shapes of the whole arrays; `high`: floats in f64. Throws what the executor throws.
  Value run(const Module& m, const ExecutorInfo& executor, const EvalOptions& options, int repeat, bool high,
            Execution* times = nullptr) const;

 private:
  Universe& u_;
  std::shared_ptr<Universe> keep_;
  std::vector<Value> arguments_;
  ShapeId result_shape_;
  std::string output_sharding_;
};

}  // namespace hlo
