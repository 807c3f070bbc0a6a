// Tests of the CUDA executor: on the card of this machine, or without one on the fake driver (tests/fake_cuda).
#pragma once
#include <dlfcn.h>

#include <cstdlib>

namespace hlo {

// Before anything asks for the driver.
inline void use_fake_driver_without_a_card() {
  if (std::getenv("HLO_CUDA_DRIVER")) return;
  void* real = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  bool card = false;
  if (real) {
    auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(real, "cuInit"));
    auto count = reinterpret_cast<int (*)(int*)>(::dlsym(real, "cuDeviceGetCount"));
    int n = 0;
    card = init && count && init(0) == 0 && count(&n) == 0 && n > 0;
  }
  if (!card) ::setenv("HLO_CUDA_DRIVER", HLO_FAKE_CUDA, 1);
}

}  // namespace hlo
