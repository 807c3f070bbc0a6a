#include "replay/installed/target.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "ir/base/check.h"
#include "replay/files.h"
#include "replay/installed/embedded.h"

namespace hlo {
namespace {

// Letters and digits alone, small: `A100-SXM 80` is `a100sxm80`.
std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(c));
  return out;
}

// Short names, of several forms of a card the usual one.
constexpr std::array<std::array<std::string_view, 2>, 5> kShort = {{{"a100", "a100_sxm_80"},
                                                                    {"a10080", "a100_sxm_80"},
                                                                    {"a10040", "a100_sxm_40"},
                                                                    {"h100", "h100_sxm"},
                                                                    {"rtxpro6000", "rtx6000pro"}}};

std::string gpu_text(const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) {
    std::string text = read_file(name);
    if (text.find("gpu_device_info") == std::string::npos)
      fail(FailureKind::kUsage,
           "{} is no description of a GPU: it has no gpu_device_info (XLA writes one into every dump for a GPU, "
           "gpu_target_config.pbtxt)",
           name);
    return text;
  }
  std::string wanted = plain_name(name);
  for (const auto& [from, to] : kShort)
    if (wanted == from) wanted = plain_name(to);
  for (const EmbeddedTarget& t : embedded_targets())
    if (plain_name(t.name) == wanted) return t.text;
  if (name.find_first_of("./") != std::string::npos) fail(FailureKind::kIo, "cannot read {}: no such file", name);
  fail(FailureKind::kUsage, "no description of a GPU '{}'; there are {}, or a file: --target=gpu:FILE.pbtxt", name,
       fmt::join(described_gpus(), ", "));
}

}  // namespace

std::vector<std::string> described_gpus() {
  std::vector<std::string> out;
  for (const EmbeddedTarget& t : embedded_targets()) {
    std::string name = t.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '_' ? '-' : static_cast<char>(std::toupper(c)); });
    out.push_back(name);
  }
  return out;
}

XlaTarget parse_xla_target(const std::string& spec) {
  const size_t colon = spec.find(':');
  XlaTarget t;
  t.platform = spec.substr(0, colon), t.spec = spec;
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (t.platform == "cpu" && colon == std::string::npos) return t;
  if (t.platform == "gpu") {
    t.text = gpu_text(rest.empty() ? "H200" : rest);
    if (rest.empty()) t.spec = "gpu:H200";
    return t;
  }
  if (t.platform == "tpu") {
    // The chip, a colon, its dimensions: libtpu knows which there are, and says so.
    t.text = rest.empty() ? "v5e:2x2" : rest;
    if (t.text.find(':') == std::string::npos)
      fail(FailureKind::kUsage, "a TPU is named with its topology, as tpu:v5e:2x2 or tpu:v4:2x2x1, not '{}'", spec);
    t.spec = "tpu:" + t.text;
    return t;
  }
  fail(FailureKind::kUsage, "--target is cpu, gpu:NAME, gpu:FILE.pbtxt or tpu:TOPOLOGY (tpu:v5e:2x2), not '{}'", spec);
}

}  // namespace hlo
