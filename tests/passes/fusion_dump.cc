#include "tests/passes/fusion_dump.h"

#include <fstream>
#include <iterator>

#include "parser/parser.h"

namespace hlo {
namespace {

std::string quoted(std::string_view line) {
  const size_t from = line.find('"'), to = line.rfind('"');
  return from == std::string_view::npos || to <= from ? "" : std::string(line.substr(from + 1, to - from - 1));
}

}  // namespace

FusionDump read_fusion_dump(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(FailureKind::kIo, "no file {}", path);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  FusionDump d;
  const size_t info = text.find("gpu_device_info {"), module = text.find("hlo_module_before_fusion: \"");
  if (info == std::string::npos || module == std::string::npos) fail(FailureKind::kSyntax, "{}: no fusion dump", path);
  d.target = parse_gpu_target(std::string_view(text).substr(info, module - info));
  for (size_t at = 0; at < info;) {
    size_t end = text.find('\n', at);
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    auto is = [&](std::string_view key) { return line.starts_with(key); };
    if (is("fusion_steps")) d.steps.emplace_back();
    if (d.steps.empty()) continue;
    FusionStep& s = d.steps.back();
    if (is("fusion {")) s.kind = FusionStep::kFusion;
    if (is("producer_ineligible")) s.kind = FusionStep::kIneligible;
    if (is("producer_name")) s.producer = quoted(line);
    if (is("consumer_name:")) s.consumer = quoted(line);
    if (is("consumer_names")) s.users.push_back(quoted(line));
    if (is("fusion_name")) s.fusion = quoted(line);
    if (is("reason")) s.reason = quoted(line);
    if (is("us_fused")) s.fused = std::atof(line.data() + 9);
    if (is("us_unfused")) s.unfused = std::atof(line.data() + 11);
  }
  std::string body;
  if (!c_unescape(quoted(std::string_view(text).substr(module)), &body))
    fail(FailureKind::kSyntax, "{}: the module's text has a bad escape", path);
  d.module = parse_module(body, std::make_shared<Universe>(), {.file = path});
  return d;
}

}  // namespace hlo
