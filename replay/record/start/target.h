// What a module was compiled for, as far as a dump says it, and the data sheet that bounds are taken from.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "ir/cost/cost.h"
#include "ir/target/gpu_target.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct Target {
  std::string platform;  // "CUDA", "ROCM", "CPU", "TPU"; empty: unknown
  std::string device;    // "NVIDIA H200 141GB HBM3e", "sm_9.0a", "TPU v5e"; empty: unknown
  std::string versions;  // "CUDA 12.8.0, cuDNN 8.9.4"; empty: unknown
  DeviceSpec spec = default_device_spec();
  GpuTarget gpu = default_gpu_target();  // what thunks and buffers are made for
  bool described = false;                // of a card that the user names: `gpu` is that card
  bool spec_known = false;               // false: `spec` is the default's, for want of the target's
  std::string in_words() const;
};

// From gpu_target_config.pbtxt, of a TPU target_arguments.txt, and the names of files. `gpu`: a name of device_specs()
// that takes the target's place; empty: none. Throws Failure(kUsage) where there is no such device.
Target target_of(const Recording& recording, const std::string& gpu);

// The card that a user names: of device_specs(), or a file with XLA's description of a GPU. Throws Failure as
// device_spec() and gpu_description_file() do.
Target named_target(const std::string& gpu);

// The description of a GPU in the file of that name, XLA's GpuTargetConfigProto as text; nothing for the name of a GPU.
// Throws Failure: kIo where a path leads nowhere, kUsage where the file holds something else.
std::optional<std::string> gpu_description_file(const std::string& name);
// options_for_gpu() for the name of a GPU or of such a file.
std::map<std::string, std::string> gpu_options(const std::string& name);
// A GPU that passes are run for, as a dump or the user names it: XLA's description of it, and options_for_gpu().
struct NamedGpu {
  std::string name, description;
  std::map<std::string, std::string> options;
};
// The one that a dump says it was compiled for; nothing where it says none. Throws Failure kUnsupported where the
// passes do not know it, it is not one of NVIDIA's, or its description does not say enough.
std::optional<NamedGpu> gpu_of(const Recording& recording);
// The same of the dump that a spec names or lies in (replay/record/files/run.h); nothing for a file by itself.
std::optional<NamedGpu> gpu_of(const std::string& spec);

}  // namespace hlo
