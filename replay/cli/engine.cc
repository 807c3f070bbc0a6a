#include "replay/cli/engine.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "dump/proto_writer.h"
#include "ir/print/print.h"
#include "replay/installed/figures.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/record/files/file_kind.h"
#include "replay/record/files/run.h"
#include "replay/record/start/start_stage.h"
#include "replay/replayer/replayer.h"
#include "replay/report/overview/overview.h"
#include "replay/report/what_if/what_if.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kShownLosses = 12;

// The bytes of a file that may be StableHLO; nothing where the spec is no file.
std::string bytes_of(const std::string& spec) {
  std::error_code error;
  return spec == "-" || fs::is_regular_file(spec, error) ? read_file(spec) : std::string();
}

bool looks_like_stablehlo(const std::string& label, const std::string& bytes) {
  return bytes.starts_with("ML\xefR") || (!bytes.empty() && file_kind(label, bytes) == FileKind::kMlir);
}

// The dump's first text of the module, in the universe of `given`.
std::optional<RoundTrip> lost_by(const Module& given, const std::string& folder) {
  const std::vector<Recording> all = open_folder(folder);
  const Recording& r = main_recording(all, std::string(given.name()));
  if (r.rows.empty() || r.rows[0].file.empty() || r.rows[0].kind != StageRow::kInput) return std::nullopt;
  LoadOptions options;
  options.universe = given.universe();
  return round_trip(given, *load(confined_path(r.folder, r.rows[0].file), options));
}

}  // namespace

void add_engine_options(CLI::App* c, EngineArgs& a) {
  const std::string group = "An installed XLA";
  c->add_option("--engine", a.engine,
                "own (ours), or installed: the jaxlib of $HLO_REPLAY_PYTHON, an active venv or python3 on PATH; "
                "installed:PYTHON, installed:VERSION (from PyPI)")
      ->group(group);
  c->add_option("--target", a.target, "cpu, gpu:H200 (A100, V100 …), gpu:FILE.pbtxt, tpu:v5e:2x2; none need be there")
      ->group(group);
  c->add_option("--xla-flags", a.flags, "XLA_FLAGS, after those of the environment")->group(group);
  c->add_option("--partitions", a.partitions, "N devices, the program partitioned over them (SPMD)")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  c->add_flag("--shardy", a.shardy, "partition by Shardy")->group(group);
  c->add_option("--time-limit", a.limit_seconds,
                "seconds for a compilation; without --engine, for bisect of a folder (no limit)")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  c->add_flag("--yes", a.yes, "take a release from PyPI without asking")->group(group);
  c->add_flag("--offline", a.offline, "never take anything from PyPI")->group(group);
}

ForXla for_xla(const std::string& file, const std::string& scratch) {
  ForXla out;
  out.question.label = file;
  if (const std::string bytes = bytes_of(file); looks_like_stablehlo(file, bytes)) {
    out.question.form = "stablehlo", out.question.input = scratch + "/module.stablehlo";
    write_file(out.question.input, bytes);
    return out;
  }
  return for_xla(load(file), file, scratch);
}

ForXla for_xla(std::unique_ptr<Module> module, const std::string& label, const std::string& scratch) {
  ForXla out;
  out.question.label = label;
  out.module = std::move(module);
  if (const size_t elided = out.module->elided_constants().size()) {
    // A proto has no word for them; of a text XLA makes values up.
    out.question.form = "hlo", out.question.input = scratch + "/module.hlo";
    write_file(out.question.input, lossless_text(*out.module));
    out.warnings.push_back(fmt::format("{} constants are elided: XLA makes values up for them", elided));
  } else {
    out.question.input = scratch + "/module.pb", out.question.plain = scratch + "/plain.hlo";
    PrintOptions plain;
    plain.metadata = plain.stack_tables = false, plain.large_constants = plain.stable_order = true;
    write_file(out.question.plain, print_module(*out.module, plain));
    write_file(out.question.input, module_to_proto_bytes(*out.module, ".pb"));
  }
  return out;
}

bool is_stablehlo(const std::string& file) { return looks_like_stablehlo(file, bytes_of(file)); }

void take_options(const EngineArgs& a, XlaQuestion& q) {
  q.target = parse_xla_target(a.target);
  q.partitions = a.partitions, q.shardy = a.shardy, q.flags = a.flags, q.limit_seconds = a.limit_seconds;
}

XlaCompilation compile_by_xla(const EngineArgs& a, const std::string& file, const std::string& folder,
                              const std::vector<std::string>& disabled) {
  XlaCompilation c;
  TemporaryFolder scratch;
  XlaQuestion options;
  take_options(a, options);  // what is wrong there is said before anything is read
  c.interpreter = find_interpreter(a.engine, options.target.platform, {a.yes, a.offline});
  ForXla from = for_xla(file, scratch.path());
  c.question = std::move(from.question), c.warnings = std::move(from.warnings);
  take_options(a, c.question);
  c.question.disabled = disabled, c.question.dump = fs::absolute(folder).string();
  c.answer = ask_xla(c.interpreter, c.question);
  require_answer(c.answer, c.interpreter, c.question);
  c.warnings.insert(c.warnings.end(), c.answer.warnings.begin(), c.answer.warnings.end());
  std::error_code error;
  if (fs::is_empty(folder, error))
    fail(FailureKind::kUnsupported, "{}: jaxlib {} compiled it and dumped nothing", file, c.answer.jaxlib);
  if (from.module) try {
      c.round_trip = lost_by(*from.module, folder);
    } catch (const Failure& e) {
      if (interrupted()) throw;
      const std::string what = e.what();
      c.warnings.push_back("what the way through StableHLO lost is unknown: " + what.substr(0, what.find('\n')));
    }
  write_file(folder + "/engine.json", engine_json(c).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  return c;
}

Json engine_json(const XlaCompilation& c) {
  Json seconds = Json::object();
  for (const auto& [what, s] : c.answer.seconds) seconds[what] = s;
  seconds["all"] = c.answer.wall_seconds;
  const RoundTrip* trip = c.round_trip ? &*c.round_trip : nullptr;
  return {{"jaxlib", c.answer.jaxlib},
          {"python", c.answer.python},
          {"target", c.question.target.spec},
          {"device", c.answer.device},
          {"platform_version", c.answer.platform_version},
          {"partitions", c.question.partitions},
          {"flags", c.answer.flags},
          {"seconds", seconds},
          {"from", c.question.form == "stablehlo" ? "stablehlo" : "hlo"},
          {"same_as_file", trip ? Json(trip->same) : Json()},
          {"lost", trip ? Json(trip->lost) : Json::array()},
          {"restated", trip ? Json(trip->restated) : Json::array()},
          {"warnings", c.warnings}};
}

void tell_engine(const XlaCompilation& c, const std::string& file, const std::string& folder) {
  const auto at = c.answer.seconds.find("compile");
  fmt::print("{}: compiled by jaxlib {} ({}) for {}{}{}\n", file, c.answer.jaxlib, c.interpreter.which,
             c.question.target.spec, c.answer.device.empty() ? "" : ", " + c.answer.device,
             at == c.answer.seconds.end() ? "" : fmt::format(", in {:.2f} s", at->second));
  if (!c.answer.flags.empty()) fmt::print("XLA_FLAGS: {}\n", c.answer.flags);
  for (const std::string& w : c.warnings) fmt::print(stderr, "warning: {}\n", w);
  if (!c.round_trip) return;
  auto list = [&](const char* what, const std::vector<std::string>& all) {
    if (all.empty()) return;
    fmt::print("{}: {}{}\n", what,
               fmt::join(all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), kShownLosses)), "; "),
               all.size() > kShownLosses ? fmt::format("; … and {} more (--json)", all.size() - kShownLosses) : "");
  };
  if (c.round_trip->same) {
    fmt::print("what XLA was given has FILE's structure\n");
    return;
  }
  list("lost on the way through StableHLO", c.round_trip->lost);
  list("restated there", c.round_trip->restated);
  if (!folder.empty())
    fmt::print("  (hlo-replay diff {} {}:before_optimizations)\n", shell_word(file), shell_word(folder));
}

CompiledFigures compiled_figures(const EngineArgs& a, const Module& m, const std::string& label,
                                 const std::optional<NamedGpu>& gpu, const std::string& sheet,
                                 const std::set<std::string>& disabled, const std::string& flags) {
  if (!a.installed()) {
    const WhatIfSide side = compiled_side(m, gpu, {}, disabled);
    return {side.seconds, static_cast<double>(side.allocated)};
  }
  TemporaryFolder scratch;
  ForXla from = for_xla(m.clone(), label, scratch.path());
  take_options(a, from.question);
  if (!flags.empty()) from.question.flags += " " + flags;
  from.question.disabled.assign(disabled.begin(), disabled.end());
  from.question.dump = scratch.path() + "/dump", from.question.every_stage = false;
  fs::create_directory(from.question.dump);
  const Interpreter who = find_interpreter(a.engine, from.question.target.platform, {a.yes, a.offline});
  require_answer(ask_xla(who, from.question), who, from.question);
  Run run;
  run.folder = from.question.dump, run.modules = open_folder(run.folder);
  const ModuleOverview made = module_overview(run, main_recording(run.modules, ""), sheet, false);
  if (!made.last) fail(FailureKind::kIo, "{}", made.unreadable);
  return {made.cost.seconds, made.memory ? static_cast<double>(made.memory->allocated) : 0};
}

ToCompile to_compile(const EngineArgs& a, const Recording& r, const Target& target) {
  ToCompile out;
  const StartStage start = start_stage(r);
  if (!start.recording && start.name.empty()) {
    out.why_not = "there is no stage before the passes";
    return out;
  }
  out.first = load(start.spec);
  if (const std::string why = already_optimised(*out.first); !why.empty())
    out.why_not = "the first stage is optimised: " + why;
  if (!a.installed() && target.platform != "CUDA")
    out.why_not =
        fmt::format("it was compiled for {}, and our passes are a GPU's; --engine=installed has XLA compile it",
                    target.platform.empty() ? "no known device" : target.platform);
  if (!a.installed() && out.why_not.empty()) {
    out.gpu = gpu_of(r);
    if (const std::string why = not_partitioned(*out.first); !why.empty()) out.why_not = why;
  }
  return out;
}

std::string hlo_of_stablehlo(const EngineArgs& a, const std::string& file, const std::string& scratch) {
  const std::string bytes = bytes_of(file);
  if (!looks_like_stablehlo(file, bytes))
    fail(FailureKind::kUsage, "{} is no StableHLO: convert reads it without --engine=installed", file);
  const Interpreter interpreter = find_interpreter(a.engine, "cpu", {a.yes, a.offline});
  XlaQuestion q = for_xla(file, scratch).question;
  q.what = "convert", q.output = scratch + "/converted.pb";
  require_answer(ask_xla(interpreter, q), interpreter, q);
  return q.output;
}

}  // namespace hlo
