#include "replay/record/start/target.h"

#include <cstdlib>
#include <filesystem>

#include "ir/target/gpu_target.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {

// The value of the first `key: …` behind `from`, without quotes; empty where there is none. `end`: of the block.
std::string pbtxt_field(std::string_view text, std::string_view key, size_t from = 0,
                        size_t end = std::string_view::npos) {
  text = text.substr(0, end);
  for (size_t at = text.find(key, from); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    std::string_view rest = text.substr(at + key.size());
    if (!begins || !rest.starts_with(": ")) continue;
    rest = rest.substr(2, std::min(rest.find('\n'), rest.size()) - 2);
    if (rest.size() >= 2 && rest.front() == '"' && rest.back() == '"') rest = rest.substr(1, rest.size() - 2);
    return printable(rest.substr(0, 200));
  }
  return {};
}

double number_field(std::string_view text, std::string_view key, size_t from = 0) {
  std::string value = pbtxt_field(text, key, from);
  double v = value.empty() ? 0 : std::strtod(value.c_str(), nullptr);
  return v > 0 && v < 1e18 ? v : 0;
}

// Does the device's name have that of the data sheet as a word, whatever the spaces? `L4` is not in `L40S`.
bool names_device(std::string_view device, std::string_view sheet) {
  auto without_gaps = [](std::string_view text) {
    std::string out;
    for (char c : text)
      if (c != ' ' && c != '-') out += static_cast<char>(toupper(static_cast<unsigned char>(c)));
    return out;
  };
  const std::string packed = without_gaps(device), wanted = without_gaps(sheet);
  for (size_t at = packed.find(wanted); at != std::string::npos; at = packed.find(wanted, at + 1)) {
    size_t end = at + wanted.size();
    // Behind it a size or a form factor may stand: `A10080GB` was `A100 80GB`; so spaces of the original decide.
    size_t seen = 0, original = 0;
    while (original < device.size() && seen < end)
      seen += device[original] != ' ' && device[original] != '-', ++original;
    if (original >= device.size() || !isalnum(static_cast<unsigned char>(device[original]))) return true;
  }
  return false;
}

// A TPU by what libtpu writes into NAME.target_arguments.txt: a code name, and a variant where one name has two chips.
// Empty where the file says no version.
std::string tpu_of(std::string_view arguments) {
  const std::string version = pbtxt_field(arguments, "version"), variant = pbtxt_field(arguments, "variant");
  if (version.empty()) return {};
  struct Known {
    std::string_view version, variant, name;
  };
  // As libtpu 0.0.51 compiles for topologies of these names (tests/dev/oracle/tpu_dumps.py).
  constexpr Known kKnown[] = {
      {"TPU_VERSION_JELLYFISH", "", "TPU v2"},      {"TPU_VERSION_DRAGONFISH", "", "TPU v3"},
      {"TPU_VERSION_PUFFERFISH", "", "TPU v4"},     {"TPU_VERSION_VIPERFISH", "", "TPU v5p"},
      {"TPU_VERSION_VIPERFISH", "lite", "TPU v5e"}, {"TPU_VERSION_GHOSTLITE", "", "TPU v6e"},
  };
  for (const Known& k : kKnown)
    if (k.version == version && k.variant == variant) return std::string(k.name);
  return version + (variant.empty() ? "" : ", " + variant);
}

}  // namespace

std::string Target::in_words() const {
  std::string out = platform.empty() || device.starts_with(platform + " ") ? device
                    : device.empty()                                       ? platform
                                                                           : platform + ", " + device;
  if (!versions.empty()) out += (out.empty() ? "" : ", ") + versions;
  return out.empty() ? "unknown" : out;
}

Target target_of(const Recording& r, const std::string& gpu) {
  Target t;
  std::string config, tpu;
  for (const std::string& f : r.other_files) {
    if (f.ends_with(".target_arguments.txt")) try {
        tpu = tpu_of(read_confined(r.folder, f));
      } catch (const Failure&) {  // what cannot be read says nothing
      }
    if (f.ends_with("gpu_target_config.pbtxt")) try {
        config = read_confined(r.folder, f);
      } catch (const Failure&) {  // what cannot be read says nothing
      }
    size_t end = f.find("_gpu_after_optimizations");
    if (end != std::string::npos && t.device.empty()) {
      size_t dot = f.find("sm_");
      if (dot == std::string::npos || dot > end) dot = f.find("gfx");
      if (dot != std::string::npos && dot < end) t.device = printable(f.substr(dot, end - dot));
      t.platform = t.device.starts_with("sm_") ? "CUDA" : t.device.starts_with("gfx") ? "ROCM" : "GPU";
    } else if (f.find(".cpu_after_optimizations") != std::string::npos) {
      t.platform = "CPU";
    }
  }
  if (!tpu.empty()) {
    t.platform = "TPU", t.device = tpu;
    // Behind the module's name: `.cl_1003875606`, the change of Google's sources that libtpu was built from.
    if (size_t at = r.module_name.rfind(".cl_"); at != std::string::npos)
      t.versions = "libtpu " + printable(r.module_name.substr(at + 1));
  }
  if (!config.empty()) {
    const std::string described = pbtxt_field(config, "device_description_str"), name = pbtxt_field(config, "name");
    const std::string sm = t.device;
    if (!described.empty() || !name.empty()) t.device = described.empty() ? name : described;
    if (!sm.empty() && t.device != sm) t.device += fmt::format(" ({})", sm);
    if (std::string p = pbtxt_field(config, "platform_name"); !p.empty()) t.platform = p;
    std::string runtime = pbtxt_field(config, "runtime_version"), dnn = pbtxt_field(config, "dnn_version");
    if (!runtime.empty()) t.versions = fmt::format("{} {}", t.platform == "CUDA" ? "CUDA" : "runtime", runtime);
    if (!dnn.empty()) t.versions += fmt::format("{}DNN library {}", t.versions.empty() ? "" : ", ", dnn);
  }
  if (r.source != "xla") t.versions = "replayed by hlo-replay through " + printable(r.pipeline);
  if (!gpu.empty()) {
    const Target named = named_target(gpu);
    t.spec = named.spec, t.spec_known = true;
    if (named.described || t.platform != "CUDA") t.gpu = named.gpu;
    if (named.described) return t;
  }
  try {
    if (t.platform == "CUDA" && !config.empty()) t.gpu = parse_gpu_target(config);
  } catch (const Failure&) {  // what says too little is no description: the default's stands in
  }
  if (t.spec_known) return t;
  for (const DeviceSpec& d : device_specs())
    if (!tpu.empty() && d.name == tpu) t.spec = d, t.spec_known = true;
  if (config.empty()) return t;
  for (const DeviceSpec& d : device_specs())
    if (names_device(t.device, d.name)) t.spec = d, t.spec_known = true;
  if (!t.spec_known) try {
      t.spec = described_spec(config), t.spec_known = true;
    } catch (const Failure&) {  // what says too little of the card leaves it unknown
    }
  if (double memory = number_field(config, "memory_bandwidth"); t.spec_known && memory > 0)
    t.spec.memory_gb_s = memory / 1e9;  // of that very card: PCIe and SXM differ
  if (double memory = number_field(config, "device_memory_size"); t.spec_known && memory > 0)
    t.spec.memory_gb = memory / (1024.0 * 1024 * 1024);
  return t;
}

Target named_target(const std::string& gpu) {
  Target t;
  t.spec_known = true;
  const std::optional<std::string> text = gpu_description_file(gpu);
  const GpuDescription* known = text ? nullptr : find_gpu_description(gpu);
  t.spec = text ? described_spec(*text) : device_spec(gpu);
  t.described = text || known;
  if (t.described) t.gpu = parse_gpu_target(text ? std::string_view(*text) : known->text);
  return t;
}

std::optional<std::string> gpu_description_file(const std::string& name) {
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
  if (!find_gpu_description(name) && name.find_first_of("./") != std::string::npos)
    fail(FailureKind::kIo, "cannot read {}: no such file", name);
  return std::nullopt;
}

std::map<std::string, std::string> gpu_options(const std::string& name) {
  const std::optional<std::string> text = gpu_description_file(name);
  return options_for_gpu(name, text ? *text : name);
}

std::optional<NamedGpu> gpu_of(const Recording& r) {
  for (const std::string& file : r.other_files) {
    if (!file.ends_with("gpu_target_config.pbtxt")) continue;
    NamedGpu out;
    out.description = read_confined(r.folder, file);
    out.name = target_of(r, "").device;
    if (const std::string platform = pbtxt_field(out.description, "platform_name");
        !platform.empty() && platform != "CUDA")
      fail(FailureKind::kUnsupported,
           "{}: XLA compiled it for {} ({}), and the passes here are those for NVIDIA's GPUs", printable(file),
           out.name, platform);
    try {
      out.options = options_for_gpu(out.name, out.description);
    } catch (const Failure& f) {
      if (f.kind() != FailureKind::kSyntax) throw;
      fail(FailureKind::kUnsupported, "{}: {}", printable(file), f.what());
    }
    return out;
  }
  return std::nullopt;
}

std::optional<NamedGpu> gpu_of(const std::string& spec) {
  if (names_modules(spec)) return gpu_of(select_module(spec));
  const std::optional<StageChoice> stage = stage_of(spec);
  return stage ? gpu_of(stage->module) : std::nullopt;
}

}  // namespace hlo
