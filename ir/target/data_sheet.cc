#include "ir/target/data_sheet.h"

#include <algorithm>
#include <string>

#include "ir/base/check.h"

namespace hlo {
namespace {

// One GPU's limits of a multiprocessor are those of its compute capability. Rates are dense: where a sheet gives a
// sparse one alone, half of it. Of a kind with several forms the plain name is the SXM one.
constexpr DeviceSpec kDevices[] = {
    {"T4",
     320,
     8.1,
     65,
     40,
     65536,
     64,
     32,
     16,
     "sm_75",
     16,
     {.f32 = 8.1},
     {.f16 = 65, .s8 = 130},
     "NVIDIA T4 Tensor Core GPU datasheet"},
    {"V100",
     900,
     15.7,
     125,
     80,
     65536,
     96,
     64,
     32,
     "sm_70",
     32,
     {.f64 = 7.8, .f32 = 15.7},
     {.f16 = 125},
     "NVIDIA V100 Tensor Core GPU datasheet"},
    {"A10G",
     600,
     35,
     70,
     80,
     65536,
     100,
     48,
     16,
     "sm_86",
     24,
     {.f32 = 35},
     {.tf32 = 35, .bf16 = 70, .f16 = 70, .s8 = 140},
     "NVIDIA A10G Tensor Core GPU datasheet"},
    {"A100",
     2039,
     19.5,
     312,
     108,
     65536,
     164,
     64,
     32,
     "sm_80",
     80,
     {.f64 = 9.7, .f32 = 19.5},
     {.f64 = 19.5, .tf32 = 156, .bf16 = 312, .f16 = 312, .s8 = 624},
     "NVIDIA A100 Tensor Core GPU datasheet (80GB SXM)"},
    {"A100-40",
     1555,
     19.5,
     312,
     108,
     65536,
     164,
     64,
     32,
     "sm_80",
     40,
     {.f64 = 9.7, .f32 = 19.5},
     {.f64 = 19.5, .tf32 = 156, .bf16 = 312, .f16 = 312, .s8 = 624},
     "NVIDIA A100 Tensor Core GPU datasheet (40GB)"},
    {"L4",
     300,
     30.3,
     121,
     58,
     65536,
     100,
     48,
     24,
     "sm_89",
     24,
     {.f32 = 30.3},
     {.tf32 = 60, .bf16 = 121, .f16 = 121, .f8 = 242.5, .s8 = 242.5},
     "NVIDIA L4 Tensor Core GPU datasheet"},
    {"L40S",
     864,
     91.6,
     362,
     142,
     65536,
     100,
     48,
     24,
     "sm_89",
     48,
     {.f32 = 91.6},
     {.tf32 = 183, .bf16 = 362, .f16 = 362, .f8 = 733, .s8 = 733},
     "NVIDIA L40S GPU datasheet"},
    {"RTX4090",
     1008,
     82.6,
     165.2,
     128,
     65536,
     100,
     48,
     24,
     "sm_89",
     24,
     {.f32 = 82.6, .bf16 = 82.6, .f16 = 82.6},
     {.tf32 = 82.6, .bf16 = 165.2, .f16 = 330.3, .f8 = 660.6, .s8 = 660.6},
     "NVIDIA Ada GPU Architecture whitepaper"},
    {"H100",
     3350,
     67,
     989,
     132,
     65536,
     228,
     64,
     32,
     "sm_90",
     80,
     {.f64 = 34, .f32 = 67},
     {.f64 = 67, .tf32 = 495, .bf16 = 989, .f16 = 989, .f8 = 1979, .s8 = 1979},
     "NVIDIA H100 Tensor Core GPU datasheet (SXM)"},
    {"H100-PCIe",
     2000,
     51,
     756.5,
     114,
     65536,
     228,
     64,
     32,
     "sm_90",
     80,
     {.f64 = 26, .f32 = 51},
     {.f64 = 51, .tf32 = 378, .bf16 = 756.5, .f16 = 756.5, .f8 = 1513, .s8 = 1513},
     "NVIDIA H100 Tensor Core GPU datasheet (PCIe)"},
    {"H200",
     4800,
     67,
     989,
     132,
     65536,
     228,
     64,
     32,
     "sm_90",
     141,
     {.f64 = 34, .f32 = 67},
     {.f64 = 67, .tf32 = 495, .bf16 = 989, .f16 = 989, .f8 = 1979, .s8 = 1979},
     "NVIDIA H200 Tensor Core GPU datasheet (SXM)"},
    // A GPU of a board of eight, and of a superchip of two.
    {"B200",
     8000,
     75,
     2250,
     148,
     65536,
     228,
     64,
     32,
     "sm_100",
     180,
     {.f64 = 37, .f32 = 75},
     {.f64 = 37, .tf32 = 1100, .bf16 = 2250, .f16 = 2250, .f8 = 4500, .f4 = 9000, .s8 = 4500},
     "NVIDIA HGX platform datasheet (HGX B200)"},
    {"GB200",
     8000,
     80,
     2500,
     148,
     65536,
     228,
     64,
     32,
     "sm_100",
     186,
     {.f64 = 40, .f32 = 80},
     {.f64 = 40, .tf32 = 1250, .bf16 = 2500, .f16 = 2500, .f8 = 5000, .f4 = 10000, .s8 = 5000},
     "NVIDIA GB200 NVL72 datasheet"},
    // Of a MI250X one of its two dies, which is a device to XLA.
    {"MI250X",
     1638.4,
     23.95,
     191.5,
     0,
     0,
     0,
     0,
     0,
     "",
     64,
     {.f64 = 23.95, .f32 = 23.95},
     {.f64 = 47.85, .f32 = 47.85, .bf16 = 191.5, .f16 = 191.5, .s8 = 191.5},
     "AMD Instinct MI250X accelerator data sheet"},
    {"MI300X",
     5300,
     163.4,
     1307.4,
     0,
     0,
     0,
     0,
     0,
     "",
     192,
     {.f64 = 81.7, .f32 = 163.4},
     {.f64 = 163.4, .f32 = 163.4, .tf32 = 653.7, .bf16 = 1307.4, .f16 = 1307.4, .f8 = 2614.9, .s8 = 2614.9},
     "AMD Instinct MI300X accelerator data sheet"},
    {"MI325X",
     6000,
     163.4,
     1307.4,
     0,
     0,
     0,
     0,
     0,
     "",
     256,
     {.f64 = 81.7, .f32 = 163.4},
     {.f64 = 163.4, .f32 = 163.4, .tf32 = 653.7, .bf16 = 1307.4, .f16 = 1307.4, .f8 = 2614.9, .s8 = 2614.9},
     "AMD Instinct MI325X accelerator data sheet"},
    {"MI355X",
     8000,
     157.3,
     2516.6,
     0,
     0,
     0,
     0,
     0,
     "",
     288,
     {.f64 = 78.6, .f32 = 157.3},
     {.f64 = 78.6, .f32 = 157.3, .bf16 = 2516.6, .f16 = 2516.6, .f8 = 5033.2, .f4 = 10066.3, .s8 = 5033.2},
     "AMD Instinct MI355X GPU data sheet"},
    // A chip each. Their vector units are in no sheet: the matrix units' peak is a bound that holds for them as well.
    {"TPU v4", 1228, 275, 275, 0, 0, 0, 0, 0, "", 32, {}, {.bf16 = 275, .s8 = 275}, "Cloud TPU documentation: TPU v4"},
    {"TPU v5e", 819, 197, 197, 0, 0, 0, 0, 0, "", 16, {}, {.bf16 = 197, .s8 = 393}, "Cloud TPU documentation: TPU v5e"},
    {"TPU v5p",
     2765,
     459,
     459,
     0,
     0,
     0,
     0,
     0,
     "",
     95,
     {},
     {.bf16 = 459, .s8 = 918},
     "Cloud TPU documentation: TPU v5p"},
    {"TPU v6e",
     1638,
     918,
     918,
     0,
     0,
     0,
     0,
     0,
     "",
     32,
     {},
     {.bf16 = 918, .s8 = 1836},
     "Cloud TPU documentation: TPU v6e"},
};

std::string plain(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != ' ' && c != '-' && c != '_') out += static_cast<char>(toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

double Rates::of(Arithmetic p) const {
  switch (p) {
    case Arithmetic::kF64:
      return f64;
    case Arithmetic::kF32:
      return f32;
    case Arithmetic::kTF32:
      return tf32;
    case Arithmetic::kBF16:
      return bf16;
    case Arithmetic::kF16:
      return f16;
    case Arithmetic::kF8:
      return f8;
    case Arithmetic::kF4:
      return f4;
    case Arithmetic::kS8:
      return s8;
  }
  return 0;
}

double DeviceSpec::product_tflops(Arithmetic p) const {
  // A TPU multiplies f32 in passes of bf16, one at the least.
  if (name.starts_with("TPU") && (p == Arithmetic::kF32 || p == Arithmetic::kTF32)) p = Arithmetic::kBF16;
  if (p == Arithmetic::kTF32 && tensor.tf32 <= 0) p = Arithmetic::kF32;
  return std::max(tensor.of(p), p == Arithmetic::kTF32 ? vector.f32 : vector.of(p));
}

double DeviceSpec::vector_tflops(Arithmetic p) const {
  if (name.starts_with("TPU")) return std::max(tensor.bf16, tensor.s8);
  // What is narrower than f32 is as fast at least; XLA computes most of it in f32.
  return p == Arithmetic::kF64 ? vector.f64 : std::max(vector.f32, vector.of(p));
}

std::span<const DeviceSpec> device_specs() { return kDevices; }

const DeviceSpec& device_spec(std::string_view name) {
  const std::string wanted = plain(name);
  std::string list;
  for (const DeviceSpec& d : kDevices) {
    const std::string_view sheet = d.name;
    if (plain(sheet) == wanted || (sheet.starts_with("TPU") && plain(sheet) == "TPU" + wanted)) return d;
    list += (list.empty() ? "" : ", ") + std::string(sheet);
  }
  for (const auto& [other, known] : {std::pair("A10080", "A100"), std::pair("A100SXM80", "A100"),
                                     std::pair("A100SXM40", "A100-40"), std::pair("H100SXM", "H100")})
    if (wanted == other) return device_spec(known);
  fail(FailureKind::kUsage, "unknown device '{}'; there are {}", name, list);
}

}  // namespace hlo
