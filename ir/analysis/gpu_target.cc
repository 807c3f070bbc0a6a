#include "ir/analysis/gpu_target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "ir/base/check.h"
#include "ir/target/data_sheet.h"

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

constexpr std::array<std::array<std::string_view, 2>, 5> kShort = {{{"a100", "a100_sxm_80"},
                                                                    {"a10080", "a100_sxm_80"},
                                                                    {"a10040", "a100_sxm_40"},
                                                                    {"h100", "h100_sxm"},
                                                                    {"rtxpro6000", "rtx6000pro"}}};

}  // namespace

const GpuDescription* find_gpu_description(std::string_view name) {
  std::string wanted = plain_name(name);
  for (const auto& [from, to] : kShort)
    if (wanted == from) wanted = plain_name(to);
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
  const GpuDescription* known = find_gpu_description(name == "default" ? kDefaultGpu : name);
  if (!known)
    fail(FailureKind::kUsage, "no description of a GPU '{}'; there are {}", name, fmt::join(described_gpus(), ", "));
  return parse_gpu_target(known->text);
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
