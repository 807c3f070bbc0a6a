// One kernel of XLA's on a device: loaded by its PTX, launched as its thunk says.
#pragma once
#include <functional>

#include "gpu_exec/driver/device.h"
#include "replay/emitted/guarded_memory.h"
#include "replay/report/kernels/emitted_kernels.h"

namespace hlo {

// The number by which the device knows it. Throws Failure(kUnsupported): what the device says of the code, or which
// parameter is more than a pointer (a tensor map, which the host makes and which is not made here).
size_t load_emitted(Device& device, const EmittedProgram& program, const EmittedThunk& thunk);
// `place`: where a slice's bytes begin on the device.
void launch_emitted(Device& device, size_t number, const EmittedThunk& thunk,
                    const std::function<char*(const XlaSlice&)>& place);

}  // namespace hlo
