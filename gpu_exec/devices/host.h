// The host as a device: kernels of the host's schedules by LLVM's JIT, on all cores; products by OpenBLAS and
// convolutions by oneDNN where they are found, the rest the evaluator's.
#pragma once
#include <memory>

#include "ir/module.h"

namespace hlo {

class Device;

// `exact`: no library.
std::unique_ptr<Device> host_device(bool exact);

}  // namespace hlo
