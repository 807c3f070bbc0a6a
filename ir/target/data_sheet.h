// What a card does at most, by its vendor's data sheet: one table (cards.def) for all that prices work, asks for a
// card's size, or names a GPU that XLA describes.
#pragma once
#include <span>
#include <string_view>

namespace hlo {

// The GPU that bounds, passes, thunks and buffers are made for where nobody names one.
inline constexpr std::string_view kDefaultGpu = "H200";

// How the operands of a product, or the elements of an operation, are held while they are computed. kTF32: f32 that may
// be rounded to TF32, as XLA does by default where the card can.
enum class Arithmetic { kF64, kF32, kTF32, kBF16, kF16, kF8, kF4, kS8 };
inline constexpr size_t kArithmetics = 8;

// Tflop/s (Top/s), dense; 0: the sheet is silent.
struct Rates {
  double f64 = 0, f32 = 0, tf32 = 0, bf16 = 0, f16 = 0, f8 = 0, f4 = 0, s8 = 0;
  double of(Arithmetic p) const;
};

// A device by its data sheet, for bounds.
struct DeviceSpec {
  std::string_view name;
  std::string_view description;  // XLA's, by the name of its file in ir/target/targets; empty: it has none
  std::string_view sm;           // compute capability; empty: no NVIDIA GPU
  int sms = 0;                   // multiprocessors; 0: no NVIDIA GPU
  double l2_mib = 0;             // the cache that all of them share; 0: unknown, or none
  double memory_gb = 0;          // its size, of GPUs in units of 2^30 bytes; 0: unknown
  double memory_gb_s = 0;
  Rates vector = {}, tensor = {};
  std::string_view sheet;      // the title of the document that the numbers are from
  double l2_gb_s = 0;          // what the multiprocessors can take from that cache at most; 0: unknown
  double least_kernel_us = 0;  // no kernel takes less, by measurement; 0: not measured
  int registers_per_sm = 0, shared_kb_per_sm = 0, warps_per_sm = 0, blocks_per_sm = 0;  // 0: no NVIDIA GPU
  bool is_gpu() const { return sms > 0 && warps_per_sm > 0; }
  bool is_tpu() const { return name.starts_with("TPU"); }
  // Tflop/s of products, and of other operations, in that precision, at most; 0: unknown.
  double product_tflops(Arithmetic p) const;
  double vector_tflops(Arithmetic p) const;
  // Of products in bf16, or in f16 where there is no bf16, else in f32.
  double matrix_tflops() const;
};
// The rows of cards.def, with what XLA's descriptions add to them.
std::span<const DeviceSpec> device_specs();
// By name, whatever its case, spaces and dashes, of a TPU without that word, too; of a GPU that XLA alone describes by
// described_spec(). Failure(kUsage) listing them otherwise.
const DeviceSpec& device_spec(std::string_view name);
// kDefaultGpu's.
const DeviceSpec& default_device_spec();
// By XLA's description of a GPU, the text of a GpuTargetConfigProto: its clocks, units and memory, as a data sheet
// would have them; `name` is "the target". Throws Failure(kSyntax) where it says nothing of its cores, clock or memory.
DeviceSpec described_spec(std::string_view description);
// GB/s that multiprocessors take from the cache that they share: 64 bytes a clock each at most (NVIDIA A100 Tensor Core
// GPU Architecture whitepaper). `clock` in GHz.
inline double l2_rate(double multiprocessors, double clock) { return multiprocessors * 64 * clock; }
// The file of XLA's description that a row names; empty where no row has that name, or the row none.
std::string_view description_named_by_row(std::string_view name);

}  // namespace hlo
