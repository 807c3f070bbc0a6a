// The command line. Nothing else opens files.
#ifdef __linux__
#include <malloc.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "hlo/command_line.h"
#include "ir/verify/verifier.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/start/target.h"
#include "viewer/page_file.h"

namespace hlo {

std::unique_ptr<Module> load_verified(const std::string& spec, bool verify, Loaded* rest, const LoadOptions& options) {
  Loaded all = load_all(spec, options);
  auto m = std::move(all.module);
  require_whole(spec, all.excerpt);
  if (rest) *rest = std::move(all);
  std::vector<VerifyError> errors = verify ? verify_module(*m) : std::vector<VerifyError>{};
  if (errors.empty()) return m;
  std::string text;
  for (const VerifyError& e : errors) text += fmt::format("{}: {} [{}]\n", spec, e.message, e.rule);
  fail(FailureKind::kInvalid, "{}the module does not verify; --no-verify continues all the same", text);
}

std::string pipeline_for(const std::string& given, const std::string& spec, bool of_2019) {
  if (!given.empty()) return pipeline_or_fail(given), given;
  if (std::optional<Selector> selector = split_selector(spec)) {
    const Recording r =
        selector->parts.empty() || names_modules(spec) ? select_module(spec) : select_stage(*selector).module;
    if (r.source == "hlo-replay" && find_pipeline(r.pipeline)) return r.pipeline;
  }
  return default_pipeline(of_2019);
}

std::map<std::string, std::string> gpu_options_for(const std::string& pipeline, const std::string& spec) {
  if (pipeline != "xla-gpu") return {};
  try {
    const std::optional<NamedGpu> gpu = gpu_of(spec);
    return gpu ? gpu->options : std::map<std::string, std::string>();
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported) throw;
    fail(FailureKind::kUnsupported, "{}; a copy of the file outside of its folder is treated as an H200's", f.what());
  }
}

namespace {
namespace fs = std::filesystem;

const CLI::App* named_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* c : app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; })) return c;
  return nullptr;
}

// "did you mean 'exec'?" of a first word that is no command. Empty where it may be meant for a file: `x.hlo`, `DIR:7`.
std::string nearest_command(const CLI::App& app, const std::string& word) {
  const bool plain = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) &&
                     word.find_first_of(".:/@\\") == std::string::npos;
  std::pair<int, bool> best = {word.size() < 3 ? 2 : 4, false};  // so many edits are too many
  std::string nearest;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    // Who mistypes a word mostly begins it right.
    if (const bool other = sub->get_name()[0] != word[0];
        std::pair(edit_distance(sub->get_name(), word) + other, other) < best)
      best = {edit_distance(sub->get_name(), word) + other, other}, nearest = sub->get_name();
  if (!plain && (nearest.empty() || best.first > 2)) return "";
  return nearest.empty() ? "see hlo-replay --help" : fmt::format("did you mean '{}'?", nearest);
}

// "; did you mean '--json'?" for the first flag that its command does not have. `args`: the command last, as CLI11
// takes them.
std::string nearest_option(const CLI::App& app, const std::vector<std::string>& args) {
  const CLI::App* command = args.empty() ? nullptr : named_command(app, args.back());
  if (!command) return "";
  for (auto arg = args.rbegin(); arg != args.rend(); ++arg) {
    std::string name = arg->substr(0, arg->find('='));
    if (!name.starts_with("--") || name == "--") continue;
    std::string nearest;
    int distance = 3;
    bool known = false;
    for (const CLI::Option* o : command->get_options())
      for (const std::string& long_name : o->get_lnames()) {
        known |= "--" + long_name == name;
        if (int d = edit_distance(long_name, name.substr(2)); d < distance) distance = d, nearest = long_name;
      }
    if (!known) return nearest.empty() ? "" : fmt::format("; did you mean '--{}'?", nearest);
  }
  return "";
}

// Of `--version --json`.
const char* page_engine_in_words() { return !page_engine_inside() ? "none" : page_engine_older() ? "older" : "same"; }

// A line, and where the pages of this program are answered by other code than its own, one that says so.
std::string version_in_words() {
  std::string out = fmt::format("hlo-replay {}", kVersion);
  if (!page_engine_inside())
    out += "\nits pages have no engine: the one in its sources understands other questions than they ask";
  else if (page_engine_older())
    out += "\nits pages have an engine made from older sources than this tool";
  return out;
}

int run(int argc, char** argv) {
  CLI::App app{"hlo-replay: reads HLO of any age, replays XLA's passes over it, runs it, and shows every stage"};
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", version_in_words,
                       "The version; with --json whether the page's engine is of the same sources, too");
  app.footer(
      "Examples:\n"
      "  hlo-replay testdata/mobilenet_v1.hlo -o out       every pass over the module, every stage in out/\n"
      "  hlo-replay DUMPDIR                                what XLA's dump folder holds\n"
      "  hlo-replay opt --passes=algsimp,dce model.hlo     the module after these passes\n"
      "  hlo-replay exec out:1:7 --seed=1 --out=o.npz      run a stage\n"
      "FILE is a path, - for standard input, or a stage of a folder: DIR:MODULE:STAGE, each by number, name or a part\n"
      "of it that only one has; with one module DIR:NAME, too. DIR:NUMBER is a module.\n"
      "Exit codes: 0 fine or same, 1 the answer is no, 2 usage, unreadable or unsupported.");
  int code = kYes;
  add_module_commands(app, &code);
  add_run_commands(app, &code);
  add_triage_command(app, &code);
  add_debug_commands(app, &code);
  add_permissive(app);

  // `hlo-replay FILE` replays, `hlo-replay DIR` and `hlo-replay DIR:MODULE` open.
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    fmt::print("{}", app.help());
    return kBad;
  }
  if (args.size() == 2 && json_asked() && std::count(args.begin(), args.end(), "--version")) {
    print_json({{"version", kVersion}, {"page_engine", page_engine_in_words()}});
    return kYes;
  }
  const bool known = named_command(app, args[0]);
  std::error_code error;
  if (!known && !fs::exists(args[0], error))
    if (std::string hint = nearest_command(app, args[0]); !hint.empty())
      fail(FailureKind::kUsage, "no command and no file is called '{}'; {}", args[0], hint);
  if (!known && (args[0] == "-" || args[0][0] != '-')) {
    const bool selector = !fs::exists(args[0], error) && split_selector(args[0]).has_value();
    const bool folder = fs::is_directory(args[0], error) || (selector && names_modules(args[0]));
    if (selector && !folder)
      fail(FailureKind::kUsage,
           "{0} names a stage, and no command says what to do: print {0}, view {0}, replay {0} -o OUT", args[0]);
    args.insert(args.begin(), folder || only_a_log(args[0])     ? "open"
                              : args[0].ends_with(".xplane.pb") ? "profile"
                                                                : "replay");
  }
  // `--passes=` asks for none; CLI11 would take the next word as its value.
  std::erase(args, std::string("--passes="));
  tell_excerpts(args[0]);
  tell_elided();
  std::reverse(args.begin(), args.end());
  const std::vector<std::string> given = args;  // CLI11 empties it
  try {
    app.parse(args);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e), kYes;  // --help
    fail(FailureKind::kUsage, "{}{}; see hlo-replay {}--help", e.what(), nearest_option(app, given),
         !named_command(app, given.back()) ? "" : given.back() + " ");
  }
  return code;
}

}  // namespace
}  // namespace hlo

int hlo::api::command_line(int argc, char** argv) {
  hlo::open_standard_streams();
  hlo::catch_interrupts();
  hlo::Progress::show();
#ifdef __linux__
  // Modules come and go; giving their pages back to the system each time costs more than parsing does.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
  std::ios::sync_with_stdio(false);
  hlo::note_json_asked(argc, argv);
  try {
    return hlo::end_of_output(hlo::run(argc, argv));
  } catch (const hlo::Failure& e) {
    hlo::print_json_error(e);
    hlo::end_of_output(2);
    hlo::complain((e.kind() == hlo::FailureKind::kSyntax ? "" : "error: ") + std::string(e.what()));
    return e.kind() == hlo::FailureKind::kInvalid ? 1 : 2;
  } catch (const std::bad_alloc&) {
    hlo::print_json_error("memory", "no memory is left for this");
    hlo::end_of_output(2);
    std::fputs("error: no memory is left for this (of this machine, or of a limit such as ulimit -v)\n", stderr);
    return 2;
  } catch (const std::length_error&) {
    hlo::print_json_error("memory", "this takes more memory than any machine has");
    hlo::end_of_output(2);
    std::fputs("error: this takes more memory than any machine has\n", stderr);
    return 2;
  } catch (const std::exception& e) {
    hlo::print_json_error("internal", e.what());
    hlo::end_of_output(2);
    hlo::complain("error: " + std::string(e.what()));
    return 2;
  }
}
