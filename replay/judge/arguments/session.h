// A module with its inputs, run on as many simulated devices as it takes; shared by exec, bisect, reduce and explain.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_exec/executor.h"
#include "ir/eval/value.h"
#include "ir/module.h"
#include "replay/judge/arguments/inputs.h"

namespace hlo {

class Session {
 public:
  // Inputs and outputs have the shapes of `shapes` (the module before partitioning, or the module itself).
  Session(const Module& shapes, const InputOptions& options);
  // The same inputs for another module of that signature, which may lie in another universe.
  const std::vector<Value>& arguments() const { return arguments_; }
  const std::shared_ptr<Universe>& universe() const { return keep_; }
  ShapeId result_shape() const { return result_shape_; }  // of the whole arrays
  // How devices share a parameter's array, or the result's, as `m` says it; else as the last stage of whole arrays
  // does: XLA 0.12 takes shardings away when it partitions.
  std::string_view sharding_of(const Module& m, size_t parameter) const;
  std::string_view result_sharding(const Module& m) const;
  // From a stage of whole arrays. False where it has another signature, as those behind the partitioner.
  bool take_shardings(const Module& stage);
  void set_arguments(std::vector<Value> arguments) { arguments_ = std::move(arguments); }

  // The result in the shapes of the whole arrays; `high`: floats in f64. Throws what the executor throws.
  Value run(const Module& m, const ExecutorInfo& executor, const EvalOptions& options, int repeat, bool high,
            Execution* times = nullptr) const;

 private:
  Universe& u_;
  std::shared_ptr<Universe> keep_;
  std::vector<Value> arguments_;
  ShapeId result_shape_;
  std::vector<std::string> shardings_;  // by parameter
  std::string output_sharding_;
};

// Has the session know how devices share arrays, from the stages in front of the partitioner: the first of `stages` and
// those behind it that have its signature. Nothing where it is for one device.
void take_shardings(Session* session, const Module& first, size_t stages,
                    const std::function<std::unique_ptr<Module>(size_t)>& load);

}  // namespace hlo
