// What XLA's cost model asks of a GPU, as its device descriptions tell it (stream_executor/device_description.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/target/data_sheet.h"

namespace hlo {

// Sizes in bytes, bandwidth in bytes a second. As made: an H200.
struct GpuTarget {
  int64_t threads_per_warp = 32;
  int64_t threads_per_block_limit = 1024, threads_per_core_limit = 2048;
  int64_t registers_per_block_limit = 65536;
  int64_t core_count = 132, fpus_per_core = 128;
  int64_t shared_memory_per_block = 49152, shared_memory_per_block_optin = 232448, l2_cache_size = 52428800;
  int64_t memory_bandwidth = 4800000000000;
  int64_t device_memory_size = 151397597184;  // 0: the description does not tell
  float clock_rate_ghz = 1.98F;
  int64_t major = 9, minor = 0;  // compute capability
  // No description holds these; XLA has them in its code, one for all CUDA devices.
  int64_t l1_cache_per_core = 2048, dram_transaction = 64, bytes_per_clock = 32;
};

// From the text form of a GpuTargetConfigProto (`gpu_device_info { … }`) or of what stands in its braces; fields that
// are not asked for are passed over. Throws Failure(kSyntax) where one that is asked for is missing or no number.
GpuTarget parse_gpu_target(std::string_view text);

// XLA's own descriptions of GPUs, from P100 to B200 (ir/target/targets).
struct GpuDescription {
  const char *name, *text;  // `h100_sxm`; XLA's GpuTargetConfigProto as text
};
const std::vector<GpuDescription>& gpu_descriptions();
// `H100-SXM`, `h100_sxm`, `A100` (of several forms of a card the usual one); null where there is none.
const GpuDescription* find_gpu_description(std::string_view name);
// `H200`, `H100-SXM` …
std::vector<std::string> described_gpus();
// kDefaultGpu's.
GpuTarget default_gpu_target();
// By name, `default` for that one, or from a description itself, which has colons. Throws Failure: kUsage with the
// names that there are, kSyntax for a description in which something is missing.
GpuTarget named_gpu_target(std::string_view name);

}  // namespace hlo
