#include "gpu_exec/executor.h"

#include <chrono>

#include "gpu_exec/device_runtime.h"
#include "gpu_exec/devices/host.h"
#include "gpu_exec/driver/cuda.h"
#include "gpu_exec/lower/device_program.h"
#include "ir/base/check.h"

namespace hlo {
namespace {

Execution run_evaluator(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                        const EvalOptions& options) {
  Execution out;
  out.run_s = 1e300;
  for (int i = 0; i < std::max(repeat, 1); ++i) {
    auto start = std::chrono::steady_clock::now();
    if (arguments.size() == 1) {
      Evaluator evaluator(m, options);
      out.results = {evaluator.run(arguments[0])};
    } else {
      out.results = run_devices(m, arguments, options);
    }
    out.run_s = std::min(out.run_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return out;
}

constexpr ExecutorInfo kExecutors[] = {
    {"evaluator", "exact interpreter on the CPU", [] { return std::string(); }, run_evaluator},
    {"host", "LLVM JIT on the CPU", [] { return std::string(); }, run_host},
    {"emulated", "the GPU's kernels thread by thread on the CPU", [] { return std::string(); }, run_emulated},
    {"cuda", "LLVM NVPTX on an NVIDIA GPU", cuda_unavailable, run_cuda},
};

}  // namespace

std::span<const ExecutorInfo> executors() { return kExecutors; }

const ExecutorInfo* find_executor(std::string_view name) {
  for (const ExecutorInfo& e : kExecutors)
    if (e.name == name) return &e;
  return nullptr;
}

void lower_for(std::string_view executor, const Module& m, const LoweringOptions& options) {
  if (executor == "cuda")
    if (std::string why = cuda_unavailable(); !why.empty()) fail(FailureKind::kUnsupported, "{}", why);
  std::unique_ptr<Device> device = executor == "host"       ? host_device(false)
                                   : executor == "emulated" ? emulated_device()
                                   : executor == "cuda"     ? cuda_device()
                                                            : nullptr;
  if (!device) fail(FailureKind::kUsage, "the executor {} makes no program", executor);
  EvalOptions plain;
  DeviceProgram(*device, m, m.config().replica_count * m.config().num_partitions, plain, options);
}

}  // namespace hlo
