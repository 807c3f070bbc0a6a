// The host as a device: kernels of the host's schedules by LLVM's JIT, on all cores; products by OpenBLAS and
// convolutions by oneDNN where they are found, the rest the evaluator's.
#pragma once
#include <memory>

#include "ir/module.h"

namespace hlo {

class Device;

// `exact`: no library.
std::unique_ptr<Device> host_device(bool exact);

// The module that the host and the GPU run: with fusions of our own where it has none.
std::unique_ptr<Module> fused_for_host(const Module& m);

}  // namespace hlo
