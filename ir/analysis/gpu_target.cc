#include "ir/analysis/gpu_target.h"

#include <charconv>
#include <string>

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

}  // namespace

GpuTarget parse_gpu_target(std::string_view text) {
  GpuTarget t;
  auto whole = [&](std::string_view key, int64_t* into) {
    *into = static_cast<int64_t>(number_behind(text, key, true));
    if (*into <= 0) fail(FailureKind::kSyntax, "the GPU's description has '{}' of {}", key, *into);
  };
  whole("threads_per_warp", &t.threads_per_warp);
  whole("threads_per_block_limit", &t.threads_per_block_limit);
  whole("threads_per_core_limit", &t.threads_per_core_limit);
  whole("core_count", &t.core_count);
  whole("fpus_per_core", &t.fpus_per_core);
  whole("shared_memory_per_block", &t.shared_memory_per_block);
  whole("l2_cache_size", &t.l2_cache_size);
  whole("memory_bandwidth", &t.memory_bandwidth);
  whole("major", &t.major);
  t.minor = static_cast<int64_t>(number_behind(text, "minor", false));
  t.clock_rate_ghz = static_cast<float>(number_behind(text, "clock_rate_ghz", true));
  if (!(t.clock_rate_ghz > 0)) fail(FailureKind::kSyntax, "the GPU's description has no clock rate");
  return t;
}

}  // namespace hlo
