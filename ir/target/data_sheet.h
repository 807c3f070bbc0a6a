// What a card does at most, by its vendor's data sheet: one table for all that prices work or asks for a card's size.
#pragma once
#include <span>
#include <string_view>

namespace hlo {

// The GPU that passes, thunks and buffers are made for where nobody names one.
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
  double memory_gb_s = 0;
  double f32_tflops = 0, matrix_tflops = 0;  // of vectors in f32; of products in bf16, or f16 before there was bf16
  int sms = 0, registers_per_sm = 0, shared_kb_per_sm = 0, warps_per_sm = 0, blocks_per_sm = 0;  // 0: no NVIDIA GPU
  std::string_view sm;
  double memory_gb = 0;  // its size, of GPUs in units of 2^30 bytes; 0: unknown
  Rates vector = {}, tensor = {};
  std::string_view sheet;  // the title of the document that the numbers are from
  bool is_gpu() const { return sms > 0; }
  // Tflop/s of products, and of other operations, in that precision, at most; 0: unknown.
  double product_tflops(Arithmetic p) const;
  double vector_tflops(Arithmetic p) const;
};
std::span<const DeviceSpec> device_specs();
// By name, whatever its case, spaces and dashes, of a TPU without that word, too; Failure(kUsage) listing them
// otherwise.
const DeviceSpec& device_spec(std::string_view name);

}  // namespace hlo
