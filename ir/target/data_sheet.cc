#include "ir/target/data_sheet.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "ir/target/gpu_target.h"

namespace hlo {
namespace {

#define RATES(...) \
  Rates { __VA_ARGS__ }
#define CARD(name, description, sm, sms, l2, gb, gb_s, vector, tensor, sheet) \
  {name, description, sm, sms, l2, gb, gb_s, vector, tensor, sheet},
constexpr DeviceSpec kCards[] = {
#include "ir/target/cards.def"
};
#undef CARD
#undef RATES

// What a multiprocessor holds, by compute capability (CUDA C++ Programming Guide, table of technical specifications).
struct Multiprocessor {
  std::string_view sm;
  int registers, shared_kb, warps, blocks;
};
constexpr Multiprocessor kMultiprocessors[] = {{"sm_70", 65536, 96, 64, 32},  {"sm_75", 65536, 64, 32, 16},
                                               {"sm_80", 65536, 164, 64, 32}, {"sm_86", 65536, 100, 48, 16},
                                               {"sm_89", 65536, 100, 48, 24}, {"sm_90", 65536, 228, 64, 32},
                                               {"sm_100", 65536, 228, 64, 32}};

// Other names of rows.
constexpr std::array<std::array<std::string_view, 2>, 6> kAliases = {{{"A10080", "A100"},
                                                                      {"A100SXM80", "A100"},
                                                                      {"A100SXM40", "A100-40"},
                                                                      {"H100SXM", "H100"},
                                                                      {"DEFAULT", kDefaultGpu},
                                                                      {"RTXPRO6000", "RTX6000PRO"}}};

// The shortest of 18,700 spans of nine programs on an H200, in and out of command buffers, took 0.54 us (CUPTI's, by
// tests/dev/figures/measured_bounds.py). An H100 SXM is the same chip with other memory. Others were not measured.
constexpr double kShortestKernelUs = 0.5;

std::string plain(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != ' ' && c != '-' && c != '_') out += static_cast<char>(toupper(static_cast<unsigned char>(c)));
  return out;
}

DeviceSpec whole(DeviceSpec row) {
  if (!row.description.empty()) {
    const GpuTarget t = parse_gpu_target(find_gpu_description(row.description)->text);
    row.sms = static_cast<int>(t.core_count);
    row.l2_mib = static_cast<double>(t.l2_cache_size) / (1 << 20),
    row.l2_gb_s = l2_rate(static_cast<double>(t.core_count), t.clock_rate_ghz);
  }
  for (const Multiprocessor& m : kMultiprocessors)
    if (m.sm == row.sm)
      row.registers_per_sm = m.registers, row.shared_kb_per_sm = m.shared_kb, row.warps_per_sm = m.warps,
      row.blocks_per_sm = m.blocks;
  if (row.name == "H200" || row.name == "H100") row.least_kernel_us = kShortestKernelUs;
  return row;
}

// The row's name in cards.def, or what was asked for.
std::string row_name(std::string_view name) {
  std::string wanted = plain(name);
  for (const auto& [other, known] : kAliases)
    if (wanted == other) return plain(known);
  return wanted;
}

bool is_named(const DeviceSpec& d, const std::string& wanted) {
  return plain(d.name) == wanted || (d.is_tpu() && plain(d.name) == "TPU" + wanted);
}

}  // namespace

double Rates::of(Arithmetic p) const {
  constexpr std::array<double Rates::*, kArithmetics> kEach = {&Rates::f64, &Rates::f32, &Rates::tf32, &Rates::bf16,
                                                               &Rates::f16, &Rates::f8,  &Rates::f4,   &Rates::s8};
  return this->*kEach[static_cast<size_t>(p)];
}

double DeviceSpec::product_tflops(Arithmetic p) const {
  // A TPU multiplies f32 in passes of bf16, one at the least.
  if (is_tpu() && (p == Arithmetic::kF32 || p == Arithmetic::kTF32)) p = Arithmetic::kBF16;
  if (p == Arithmetic::kTF32 && tensor.tf32 <= 0) p = Arithmetic::kF32;
  return std::max(tensor.of(p), p == Arithmetic::kTF32 ? vector.f32 : vector.of(p));
}

double DeviceSpec::vector_tflops(Arithmetic p) const {
  if (is_tpu()) return std::max(tensor.bf16, tensor.s8);
  if (p == Arithmetic::kF64) return vector.f64;
  // XLA computes most of what is narrower in f32; two of f16 or bf16 may be one operation, and an A100 does 78 Tflop/s
  // of f16, four times its f32 (NVIDIA A100 Tensor Core GPU Architecture whitepaper).
  const double narrow = p == Arithmetic::kF16 ? 4 * vector.f32 : p == Arithmetic::kBF16 ? 2 * vector.f32 : vector.f32;
  return std::max(narrow, vector.of(p));
}

double DeviceSpec::matrix_tflops() const {
  return tensor.bf16 > 0 ? tensor.bf16 : tensor.f16 > 0 ? tensor.f16 : product_tflops(Arithmetic::kF32);
}

std::span<const DeviceSpec> device_specs() {
  static const std::vector<DeviceSpec> all = [] {
    std::vector<DeviceSpec> out;
    for (const DeviceSpec& row : kCards) out.push_back(whole(row));
    return out;
  }();
  return all;
}

std::string_view description_named_by_row(std::string_view name) {
  const std::string wanted = row_name(name);
  for (const DeviceSpec& d : kCards)
    if (is_named(d, wanted)) return d.description;
  return {};
}

const DeviceSpec& device_spec(std::string_view name) {
  const std::string wanted = row_name(name);
  std::string list;
  for (const DeviceSpec& d : device_specs()) {
    if (is_named(d, wanted)) return d;
    list += (list.empty() ? "" : ", ") + std::string(d.name);
  }
  static const std::map<std::string, DeviceSpec> described = [] {
    std::map<std::string, DeviceSpec> out;
    for (const GpuDescription& g : gpu_descriptions()) {
      if (std::any_of(std::begin(kCards), std::end(kCards),
                      [&](const DeviceSpec& d) { return d.description == g.name; }))
        continue;
      DeviceSpec& d = out.emplace(plain(g.name), described_spec(g.text)).first->second;
      d.description = g.name;
    }
    for (auto& [known, spec] : out) spec.name = known;
    return out;
  }();
  if (auto found = described.find(wanted); found != described.end()) return found->second;
  for (const auto& [known, spec] : described) list += ", " + known;
  fail(FailureKind::kUsage, "unknown device '{}'; there are {}", name, list);
}

const DeviceSpec& default_device_spec() { return device_spec(kDefaultGpu); }

}  // namespace hlo
