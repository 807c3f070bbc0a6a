// What an instruction costs before it runs: operations and bytes, as XLA's cost analysis counts them
// (xla/service/hlo_cost_analysis.cc): a multiply-add is two operations, a fusion reads its parameters and writes its
// results once.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/module.h"

namespace hlo {

struct Cost {
  double flops = 0, transcendentals = 0;
  double bytes_read = 0, bytes_written = 0;
  bool product = false;  // matrix units can do it
  bool narrow = false;   // …of elements of a byte, in part at least
  double bytes() const { return bytes_read + bytes_written; }
  Cost& operator+=(const Cost& o);
};

class CostAnalysis {
 public:
  explicit CostAnalysis(const Module& m) : m_(m) {}
  // One run of it; of loops and calls all that they run, loops without a known trip count once.
  Cost of(InstId inst);
  Cost of_computation(CompId comp);
  // How often the body runs, from known_trip_count; -1 where the module does not say.
  int64_t trip_count(InstId loop) const;
  // Does it run as something of its own: a kernel, a library's call, a collective? Not parameters, tuples, bitcasts.
  static bool runs(const Module& m, InstId inst);

 private:
  const Module& m_;
  std::unordered_map<CompId, Cost> known_;
};

// A device by its data sheet, for bounds.
struct DeviceSpec {
  std::string_view name;
  double memory_gb_s, f32_tflops, matrix_tflops;                             // matrix: bf16 with f32 sums, dense
  int sms, registers_per_sm, shared_kb_per_sm, warps_per_sm, blocks_per_sm;  // 0 of a TPU
  std::string_view sm;
  double narrow_tflops = 0;  // of products of bytes; 0: taken for matrix_tflops
  double memory_gb = 0;      // its size; 0: not told here
  bool is_gpu() const { return sms > 0; }
};
std::span<const DeviceSpec> device_specs();
// By name, whatever its case and spaces, of a TPU without that word, too; Failure(kUsage) listing them otherwise.
const DeviceSpec& device_spec(std::string_view name);

// Seconds that the cost takes at least, and which limit that is.
double least_seconds(const Cost& cost, const DeviceSpec& device, bool* by_memory);

}  // namespace hlo
