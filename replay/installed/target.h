// What an installed XLA compiles for: `cpu`, `gpu:H200`, `gpu:FILE.pbtxt`, `tpu:v5e:2x2`. Neither GPU nor TPU needs to
// be there: they are described.
#pragma once
#include <string>
#include <vector>

namespace hlo {

struct XlaTarget {
  std::string platform = "cpu";  // cpu, gpu or tpu
  std::string spec = "cpu";      // as it was asked for
  std::string text;              // of a GPU XLA's description (GpuTargetConfigProto), of a TPU its topology (`v5e:2x2`)
};

// Throws Failure: kUsage with the names that there are, kIo where a file cannot be read.
XlaTarget parse_xla_target(const std::string& spec);

}  // namespace hlo
