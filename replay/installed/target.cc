#include "replay/installed/target.h"

#include "ir/base/check.h"
#include "ir/target/data_sheet.h"
#include "ir/target/gpu_target.h"
#include "replay/record/start/target.h"

namespace hlo {
namespace {

std::string gpu_text(const std::string& name) {
  if (std::optional<std::string> text = gpu_description_file(name)) return *text;
  if (const GpuDescription* known = find_gpu_description(name)) return known->text;
  fail(FailureKind::kUsage, "no description of a GPU '{}'; there are {}, or a file: --target=gpu:FILE.pbtxt", name,
       fmt::join(described_gpus(), ", "));
}

}  // namespace

XlaTarget parse_xla_target(const std::string& spec) {
  const size_t colon = spec.find(':');
  XlaTarget t;
  t.platform = spec.substr(0, colon), t.spec = spec;
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (t.platform == "cpu" && colon == std::string::npos) return t;
  if (t.platform == "gpu") {
    t.text = gpu_text(rest.empty() ? std::string(kDefaultGpu) : rest);
    if (rest.empty()) t.spec = fmt::format("gpu:{}", kDefaultGpu);
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
