#include "ir/target/gpu_target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ir/base/check.h"

namespace hlo {
namespace {

// The number behind `key:` as it stands at first; of the fields asked for here none has a namesake in an inner message
// that stands before it.
double number_behind(std::string_view text, std::string_view key, bool required) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    size_t end = at + key.size();
    const bool whole = (at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '\t') &&
                       end < text.size() && text[end] == ':';
    if (!whole) continue;
    for (++end; end < text.size() && text[end] == ' ';) ++end;
    double value = 0;
    auto [rest, error] = std::from_chars(text.data() + end, text.data() + text.size(), value);
    if (error != std::errc() || !(value >= 0) || value > 9e18)
      fail(FailureKind::kSyntax, "the GPU's description has no number at '{}'", key);
    return value;
  }
  if (required) fail(FailureKind::kSyntax, "the GPU's description has no '{}'", key);
  return 0;
}

// Letters and digits alone, small: `A100-SXM 80` is `a100sxm80`.
std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(c));
  return out;
}

// Tflop/s of all units of that block for a type, by its number in xla_data.proto's PrimitiveType; an operation of a
// unit is a multiply and an add. 0: the text says nothing of it.
double unit_rate(std::string_view text, std::string_view units, int type, double cores) {
  const size_t block = text.find(units);
  if (block == std::string_view::npos) return 0;
  // The next block of units ends this one.
  std::string_view within = text.substr(block + units.size());
  within = within.substr(0, within.find("_unit_description"));
  const size_t at = within.find(fmt::format("key: {}\n", type));
  if (at == std::string_view::npos) return 0;
  within = within.substr(at);
  return cores * number_behind(within, "clock_rate_ghz", false) * number_behind(within, "units_per_core", false) *
         number_behind(within, "ops_per_clock", false) * 2 / 1e3;
}

}  // namespace

const GpuDescription* find_gpu_description(std::string_view name) {
  // A card's name first: of several forms it says which.
  const std::string_view row = description_named_by_row(name);
  const std::string wanted = plain_name(row.empty() ? name : row);
  for (const GpuDescription& d : gpu_descriptions())
    if (plain_name(d.name) == wanted) return &d;
  return nullptr;
}

std::vector<std::string> described_gpus() {
  std::vector<std::string> out;
  for (const GpuDescription& d : gpu_descriptions()) {
    std::string name = d.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '_' ? '-' : static_cast<char>(std::toupper(c)); });
    out.push_back(name);
  }
  return out;
}

GpuTarget default_gpu_target() { return named_gpu_target(kDefaultGpu); }

GpuTarget named_gpu_target(std::string_view name) {
  if (name.find(':') != std::string_view::npos) return parse_gpu_target(name);
  const GpuDescription* known = find_gpu_description(name);
  if (!known)
    fail(FailureKind::kUsage, "no description of a GPU '{}'; there are {}", name, fmt::join(described_gpus(), ", "));
  return parse_gpu_target(known->text);
}

DeviceSpec described_spec(std::string_view text) {
  auto number = [&](std::string_view key) { return number_behind(text, key, false); };
  const double cores = number("core_count"), clock = number("clock_rate_ghz"), memory = number("memory_bandwidth");
  DeviceSpec out;
  out.name = "the target", out.sheet = "XLA's description of the target";
  out.memory_gb_s = memory / 1e9, out.memory_gb = number("device_memory_size") / (1 << 30);
  out.vector.f32 = cores * number("fpus_per_core") * 2 * clock / 1e3;
  if (!(out.vector.f32 > 0) || !(memory > 0))
    fail(FailureKind::kSyntax, "the GPU's description says nothing of its cores, clock or memory");
  out.l2_mib = number("l2_cache_size") / (1 << 20), out.l2_gb_s = l2_rate(cores, clock);
  // S8, F16, F32 (of matrix units: TF32), F64, BF16, F8E4M3FN.
  const std::string_view matrix = "matrix_unit_description";
  out.tensor.s8 = unit_rate(text, matrix, 2, cores), out.tensor.f16 = unit_rate(text, matrix, 10, cores);
  out.tensor.tf32 = unit_rate(text, matrix, 11, cores), out.tensor.f64 = unit_rate(text, matrix, 12, cores);
  out.tensor.bf16 = unit_rate(text, matrix, 16, cores), out.tensor.f8 = unit_rate(text, matrix, 20, cores);
  out.vector.f64 = unit_rate(text, "scalar_unit_description", 12, cores);
  return out;
}

GpuTarget parse_gpu_target(std::string_view text) {
  GpuTarget t;
  auto whole = [&](std::string_view key, int64_t* into) {
    *into = static_cast<int64_t>(number_behind(text, key, true));
    if (*into <= 0) fail(FailureKind::kSyntax, "the GPU's description has '{}' of {}", key, *into);
  };
  whole("threads_per_warp", &t.threads_per_warp);
  whole("threads_per_block_limit", &t.threads_per_block_limit);
  whole("threads_per_core_limit", &t.threads_per_core_limit);
  whole("registers_per_block_limit", &t.registers_per_block_limit);
  whole("core_count", &t.core_count);
  whole("fpus_per_core", &t.fpus_per_core);
  whole("shared_memory_per_block", &t.shared_memory_per_block);
  whole("shared_memory_per_block_optin", &t.shared_memory_per_block_optin);
  whole("l2_cache_size", &t.l2_cache_size);
  whole("memory_bandwidth", &t.memory_bandwidth);
  whole("major", &t.major);
  t.device_memory_size = static_cast<int64_t>(number_behind(text, "device_memory_size", false));
  t.minor = static_cast<int64_t>(number_behind(text, "minor", false));
  t.clock_rate_ghz = static_cast<float>(number_behind(text, "clock_rate_ghz", true));
  if (!(t.clock_rate_ghz > 0)) fail(FailureKind::kSyntax, "the GPU's description has no clock rate");
  return t;
}

}  // namespace hlo
