// The CUDA toolkit's own tools over our PTX, where they are installed.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hlo {

struct KernelResources {
  int registers = 0, shared = 0, spills = 0;  // a thread's, a block's bytes, bytes
};

struct Assembled {
  std::string report;  // ptxas -v
  std::map<std::string, KernelResources> kernels;
  std::string sass;          // the machine's instructions, by nvdisasm; empty where it is not to be found
  std::string without_sass;  // why it is empty
};

// What a PTX text is for (`sm_90a`), empty where it does not say.
std::string ptx_target(const std::string& text);

// A tool by name: on the PATH, or in /usr/local/cuda/bin; empty where it is not to be found.
std::string cuda_tool(const std::string& name);
// Throws Failure(kUnsupported) where there is no ptxas, or where it refuses the text.
Assembled assembled(const std::string& ptx, const std::string& sm, bool with_sass);

}  // namespace hlo
