// Runs a module on a device by the program made of it (device_program.h): every value in its buffer slice, what asks
// nobody as graphs, asynchronous calls on streams of their own. What has no code runs in the evaluator, and is told.
#pragma once
#include "gpu_exec/driver/device.h"
#include "gpu_exec/executor.h"

namespace hlo {

// An array's elements in logical order as its layout has them in a device's memory, or back.
std::vector<char> laid_out(const Shape& s, const char* data, bool back);

Execution run_on_device(Device& device, const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                        const EvalOptions& options);

// The host's kernels.
Execution run_host(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options);
// The GPU's kernels on the host: slow, to see that they are right where there is no GPU.
Execution run_emulated(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                       const EvalOptions& options);
Execution run_cuda(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options);

}  // namespace hlo
