#include "replay/record/files/held_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ir/base/check.h"
#include "parser/excerpt/pieces.h"
#include "parser/proto/executable.h"
#include "parser/proto/proto_reader.h"
#include "parser/proto/unpack.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/files/timeline.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kCandidates = 12;  // shown
constexpr std::string_view kEntry = "-cache";

// jax/_src/compilation_cache.py: the time that compiling took, in seconds, big endian, then the program.
HeldModules of_program(std::string_view bytes, bool cached) {
  HeldModules out;
  out.what = cached ? "an entry of a compilation cache" : "a compiled program";
  out.why_none =
      "it holds machine code and no HLO, as programs for TPUs and those of some releases do; XLA_FLAGS="
      "--xla_dump_to=DIR, with the cache off, gives its stages (hlo-replay capture -- PROGRAM)";
  std::vector<CarriedModule> found;
  if (cached && bytes.size() > 4) {
    found = carried_modules(bytes.substr(4));
    if (!found.empty()) {
      uint32_t seconds = 0;
      for (int k = 0; k < 4; ++k) seconds = seconds << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(k)]);
      out.compile_ms = int64_t{seconds} * 1000;
    }
  }
  if (found.empty()) found = carried_modules(bytes);
  for (const CarriedModule& m : found) out.modules.push_back({m.name, -1, std::string(m.bytes)});
  return out;
}

std::string_view without_gz(std::string_view label) {
  if (label.ends_with(".gz")) label.remove_suffix(3);
  return label;
}

bool only_digits(std::string_view s) {
  return !s.empty() && s.size() < 18 && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string HeldModule::label() const { return number < 0 ? name : fmt::format("{}({})", name, number); }

std::optional<HeldModules> held_modules(std::string_view label, std::string_view text) {
  std::string inside;
  const std::string file(label);
  const bool packed = looks_packed(text), gzipped = text.starts_with("\x1f\x8b");
  const bool entry = label.ends_with(kEntry);
  if (is_packed_folder(label, text)) fail(FailureKind::kUnsupported, "{} {}", printable(file), kPackedFolder);
  if (packed && (gzipped ? without_gz(label).ends_with(".xplane.pb") : true)) {
    inside = unpacked(text, file);
    text = inside;
    if (is_packed_folder("", text)) fail(FailureKind::kUnsupported, "{} {}", printable(file), kPackedFolder);
  }
  if (is_xspace(without_gz(label), text)) {
    Timeline t = read_timeline(text, file);
    HeldModules out{"a profile", std::move(t.modules), -1, ""};
    out.why_none =
        "the profiler wrote none of its modules into it (jax: on GPUs and TPUs with python_tracer_level and "
        "host_tracer_level as they are by default; XLA_FLAGS=--xla_dump_to=DIR gives them)";
    return out;
  }
  if (packed && !gzipped) return of_program(text, true);
  if (entry) return of_program(text, true);
  // Neither text nor one of XLA's messages, which begin with field 1.
  if (!looks_like_proto(text) && text.substr(0, 512).find('\0') != std::string_view::npos)
    if (HeldModules held = of_program(text, false); !held.modules.empty()) return held;
  return {};
}

HeldModules program_modules(std::string_view bytes) { return of_program(bytes, false); }

const HeldModule& one_held_module(const HeldModules& all, const std::string& file, const std::string& wanted) {
  std::vector<const HeldModule*> fits;
  auto keep = [&](auto fit) {
    if (!fits.empty()) return;
    for (const HeldModule& m : all.modules)
      if (fit(m)) fits.push_back(&m);
  };
  if (all.modules.empty())
    fail(FailureKind::kUnsupported, "{} is {} without a module: {}", printable(file), all.what, all.why_none);
  if (wanted.empty()) keep([](const HeldModule&) { return true; });
  keep([&](const HeldModule& m) { return m.label() == wanted; });
  if (only_digits(wanted)) keep([&](const HeldModule& m) { return m.number == std::stoll(wanted); });
  keep([&](const HeldModule& m) { return m.name == wanted; });
  keep([&](const HeldModule& m) { return function_of(m.name) == wanted; });
  keep([&](const HeldModule& m) { return m.label().find(wanted) != std::string::npos; });
  if (fits.size() == 1) return *fits[0];
  std::string list;
  size_t shown = 0;
  auto say = [&](const HeldModule& m) {
    if (shown++ < kCandidates) list += fmt::format("\n  {}:{}", printable(file), printable(m.label()));
  };
  if (fits.empty())
    for (const HeldModule& m : all.modules) say(m);
  else
    for (const HeldModule* m : fits) say(*m);
  if (shown > kCandidates) list += fmt::format("\n  … and {} more", shown - kCandidates);
  if (fits.empty())
    fail(FailureKind::kUsage, "{} has no module '{}'; it holds{}", printable(file), printable(wanted), list);
  if (wanted.empty())
    fail(FailureKind::kUsage, "{} is {} with {} modules; name one of them{}", printable(file), all.what, fits.size(),
         list);
  fail(FailureKind::kUsage, "'{}' fits {} modules of {}; name one of them{}", printable(wanted), fits.size(),
       printable(file), list);
}

std::optional<HeldSpec> split_held(const std::string& spec) {
  std::error_code error;
  for (size_t colon = spec.rfind(':'); colon != std::string::npos && colon > 0; colon = spec.rfind(':', colon - 1))
    if (fs::is_regular_file(spec.substr(0, colon), error))
      return HeldSpec{spec.substr(0, colon), spec.substr(colon + 1)};
  return {};
}

bool graphs_as_modules(std::string_view text, std::string* out) {
  constexpr std::string_view kBegin = "## BEGIN_GRAPH", kEnd = "## END_GRAPH", kHash = "Graph Hash:";
  constexpr std::string_view kSharding = "#OUTPUT_SHARDING_BEGIN", kShardingEnd = "#OUTPUT_SHARDING_END";
  if (text.find(kBegin) == std::string_view::npos) return false;
  bool inside = false, any = false, sharding = false;
  size_t unnamed = std::string::npos;  // where the name of this graph's module is to stand
  out->clear();
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(kBegin)) {
      // What follows is HLO, or torch's own listing (`IR {`), or dot.
      size_t first = text.find_first_not_of(" \t\r\n", std::min(at, text.size()));
      std::string_view begin = first == std::string_view::npos ? "" : text.substr(first);
      inside = begin.starts_with("HloModule") || begin.starts_with("ENTRY ") || begin.starts_with("%");
      sharding = false, unnamed = std::string::npos;
      any |= inside;
      *out += inside ? "// -----" : "//";
    } else if (line.starts_with(kHash)) {
      // torch_xla's own name of the graph, where the module has none.
      std::string_view hash = trimmed(line.substr(kHash.size()));
      if (unnamed != std::string::npos && !hash.empty() && hash.find_first_not_of("0123456789abcdef") == hash.npos)
        out->insert(unnamed, fmt::format(" graph_{}", hash));
      unnamed = std::string::npos;
      *out += "// ", *out += line;
    } else if (line.starts_with(kEnd) || line.starts_with("[ScheduleSyncTensorsGraph]") ||
               line.starts_with("TensorsGraphInfo:")) {
      inside = sharding = false;
      *out += "//";
    } else if (line.starts_with(kSharding)) {
      sharding = true;
      *out += "//";
    } else if (inside && !sharding) {
      if (line.starts_with("HloModule") &&
          trimmed(line.substr(9)).find_first_of(',') == (line.size() == 9 ? line.npos : 0))
        unnamed = out->size() + 9;
      *out += line;
    } else {
      *out += "//";
    }
    if (line.starts_with(kShardingEnd)) sharding = false;
    *out += '\n';
  }
  return any;
}

std::vector<std::string> holding_files(const std::string& folder, size_t most) {
  constexpr int kDeepest = 4;
  std::vector<std::string> out;
  std::error_code error;
  size_t seen = 0;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end && out.size() < most && ++seen < 10 * most; at.increment(error)) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    std::string name = at->path().filename().string();
    std::error_code ignored;
    const bool snapshot = name.find("snapshot") != std::string::npos &&
                          (name.ends_with(".pb") || name.ends_with(".txt") || name.ends_with(".pbtxt"));
    if (!(name.ends_with(kEntry) && name.size() > kEntry.size()) && !without_gz(name).ends_with(".xplane.pb") &&
        !snapshot)
      continue;
    if (!at->is_symlink(ignored) && at->is_regular_file(ignored))
      out.push_back(at->path().lexically_relative(folder).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace hlo
