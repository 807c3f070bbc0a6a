// What the commands share.
#pragma once
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "ir/target/data_sheet.h"
#include "passes/pass.h"
#include "replay/compare/diff.h"
#include "replay/judge/judge.h"
#include "replay/record/files/input.h"
#include "replay/record/start/wanted_passes.h"
#include "replay/report/overview/answers.h"

namespace CLI {
class App;
}

namespace hlo {

class OutputFolder;
struct Recording;

// Exit codes: yes, equal, fine; no, different; usage, unsupported, unreadable.
constexpr const char* kVersion = HLO_VERSION;  // CMakeLists.txt's; python/ and CHANGELOG.md have it, too
constexpr int kYes = 0, kNo = 1, kBad = 2;
constexpr const char* kNoVerifyHelp =
    "do not verify: passes and executors take what the verifier would refuse, and may crash on it";

// One object on standard output; json_output.h has more of it.
void print_json(const Json& j);

// `--permissive` of every command that reads modules, and what it tells: notes on standard error, one line that says
// that it is an excerpt in front of the command's own output, `excerpts` in an object of --json.
void add_permissive(CLI::App& app);
// `command`: its name; print's line is a comment, so that what it prints can be read again.
void tell_excerpts(const std::string& command);
// Makes every value that is made up for an elided constant known, once a file: a note, `elided_constants` of --json.
void tell_elided();
// Failure(kUnsupported) where something of the module is missing: for commands that run it or take its meaning.
void require_whole(const std::string& spec, const Excerpt& excerpt);

// A module that the verifier has passed (or `verify` is false); otherwise Failure(kInvalid) with its errors.
std::unique_ptr<Module> load_verified(const std::string& spec, bool verify, Loaded* rest = nullptr,
                                      const LoadOptions& options = {});

// The pipeline's name for a module of `spec`: `given`, or where that is empty the one that the module has gone through
// already (a stage of a recording of ours), or else default_pipeline(). Throws Failure(kUsage) where there is none of
// that name.
std::string pipeline_for(const std::string& given, const std::string& spec, bool of_2019);
// What that pipeline's passes are told of the GPU that the dump, of which `spec` is a part, was compiled for.
std::map<std::string, std::string> gpu_options_for(const std::string& pipeline, const std::string& spec);

// How a module is run: exec, bisect, reduce and explain.
struct RunArgs {
  std::string file, backend = "evaluator", scheme = "mixed", inputs, fill_elided;
  uint64_t seed = 1;
  int64_t max_steps = INT64_MAX;
  uint64_t rng_seed = EvalOptions().rng_seed;
  double tolerance = -1;
  bool no_verify = false, fit = false, unique_keys = false;
  bool seeded = false;  // --seed was given: inputs are drawn, whatever lies with the module
};
void add_run_options(CLI::App* c, RunArgs& a);
// What such a command reads, for what must not be written over (output_folder.h).
std::vector<std::string> read_by(const RunArgs& a);
// The executor by name. Throws Failure(kUsage, kUnsupported) where an option is wrong or the backend is not to be had.
const ExecutorInfo& checked_executor(const RunArgs& a);
InputOptions input_options(const RunArgs& a);
EvalOptions eval_options(const RunArgs& a);

// Whose passes: ours, or those of an XLA that the user has installed (--engine=installed).
struct EngineArgs {
  std::string engine = "own", target = "cpu", flags;
  int partitions = 1;
  double limit_seconds = 0;
  bool shardy = false, yes = false, offline = false;
  bool installed() const { return engine != "own"; }
};
void add_engine_options(CLI::App* c, EngineArgs& a);

struct ReplayArgs {
  EngineArgs engine;
  std::string lower;
  std::string file, out, pipeline, formats, only, disabled, from, stop_after, gpu;
  std::string autotune_results;  // a file or a dump; `none`; empty: what lies with the dump that is replayed
  std::vector<std::string> fuel;
  std::string sm = "sm_90a";
  bool force = false, json = false, force_replay = false, no_verify = false, every_pass = false, verbose = false;
};
int cmd_replay(const ReplayArgs& a);
int replay_installed(const ReplayArgs& a);
// All rows, or those that changed something, as a table; passes that have no code here or not.
void stage_table(const Recording& r, bool all, bool without_code);

struct WhatIfArgs {
  std::string file, disabled, gpu, batch;
  std::string profile, profile_device;  // as in OpenArgs
  std::vector<std::string> set;         // PASS.OPTION=VALUE
  size_t most = 20;
  bool json = false, no_verify = false;
};
// xla-gpu over a module as it is and changed: exit 1 where nothing differs.
int cmd_whatif(const WhatIfArgs& a);

struct OptArgs {
  std::string file, passes, call_site, style = "default";
  std::string autotune_results;
  std::string at_step;         // of a pass that shows its inner steps: the module as it stands there
  std::string users = "auto";  // whose order: listed or replayed
  bool list = false, json = false, no_verify = false;
  std::vector<std::string> fuel;
};
int cmd_opt(const OptArgs& a);

struct PrintArgs {
  std::string file, style = "default", dialect;
  bool no_metadata = false, compact_gte = false, color = false, large = false;
};
int cmd_print(const PrintArgs& a);
int cmd_verify(const std::string& file, bool json, const std::string& layouts, bool mixed);
int cmd_fmt(const std::vector<std::string>& files, bool check, bool write, bool json);
int cmd_stats(const std::string& file, bool json, bool bench);

struct ExecArgs : RunArgs {
  std::string out, precision = "own", compare_with, trace, like;
  std::vector<std::string> profile, replace_kernel;
  std::string kernel_cache;
  std::string kernels;    // whose: `dump`, XLA's own; empty: ours
  std::string self_test;  // the word that names have to hold; "all" for every one
  int repeat = 1;
  bool json = false, nan = false, all_stages = false, whole = false, exact = false, as_is = false, force = false;
  bool ignore_memory = false, evaluate_others = false;
};
int cmd_exec(const ExecArgs& a);

// What bisect and reduce judge by.
struct JudgeArgs : RunArgs {
  std::string check, regex;
  bool verify = false;
  double slower = 0;
  int repeat = 1;
  bool by_running() const { return check.empty() && regex.empty() && !verify; }
};
void add_judge_options(CLI::App* c, JudgeArgs& a);
std::vector<std::string> read_by(const JudgeArgs& a);
JudgeOptions judge_options(const JudgeArgs& a);

struct ConvertArgs {
  EngineArgs engine;
  std::string in, out, sm = "sm_90a";
  bool json = false;
};
int cmd_convert(const ConvertArgs& a);

struct BisectArgs : JudgeArgs {
  EngineArgs engine;
  std::string out, pipeline, only, disabled, resume, program, outputs;
  bool json = false, force = false, quick = false, outputs_only = false;
  bool elements = false;               // at chosen elements, whatever the size
  bool smaller = false;                // all stages with small arrays, by one choice
  double memory_limit = 0;             // GiB beyond what the program itself takes; 0: what is free
  double run_limit = 0;                //  seconds for a run of the program; 0: by what the first one took
  std::shared_ptr<OutputFolder> made;  // of `out`, since before the search; cmd_bisect's
  std::string releases, by;            // A..B of jaxlib; what compilations are compared by
  bool flags = false, passes = false;
  bool over_compilations() const { return !releases.empty() || flags || passes; }
  // Values inside are compared, not the outputs alone. What --resume keeps is of the outputs.
  bool looks_inside() const { return by_running() && slower <= 0 && !quick && !outputs_only && resume.empty(); }
};
int cmd_bisect(const BisectArgs& a);
// Which pass of the compiler that a program brings, left out, makes it exit 0?
int bisect_program(const BisectArgs& a);
// The stages of FILE's compilation by an installed XLA.
int bisect_installed(const BisectArgs& a);
// Which release, flag, pass of an installed XLA changes what FILE comes to.
int bisect_compilations(const BisectArgs& a);

struct CheckArgs : RunArgs {
  std::string outputs, dump, reference;
  std::string kernels, only;  // of whom: XLA's own, as the dump has them
  bool json = false;
};
// Is what was compiled right (replay/judge/contract/check.h)?
int cmd_check(const CheckArgs& a);

struct CaptureArgs {
  std::vector<std::string> program;
  std::string out = "xla_dump";
  std::string arguments = "small";                         // of jax's functions: none, small or all
  std::string hook;                                        // a folder to make, for programs that others start
  bool json = false, force = false, no_arguments = false;  // no_arguments: `none`, by its older name
};
int cmd_capture(const CaptureArgs& a);

struct ViewArgs {
  std::string spec, out, formats;
  std::string note;                     // a sentence that the page shows above all
  std::string serve;                    // the port: empty: nothing is served, 0: one that is free
  std::string profile, profile_device;  // as in OpenArgs
  std::string tried;                    // a file: what `open --try --json` printed; empty: none
  bool force = false, json = false, open = false;
};
// One page of a folder, of a module in it or of a file of modules; an empty bench where nothing is named. `formats`:
// with commas; a folder of files instead.
int cmd_view(const ViewArgs& a);

// Another program's window. Where there is none, that is a warning: the page is there all the same.
void open_in_browser(const std::string& address);

struct LessonArgs {
  std::string name, out = "lessons.html";
  bool json = false, open = false, force = false;
};
// The page with the lessons; it opens with the one that is named, else with their list.
int cmd_lesson(const LessonArgs& a);

struct MemoryArgs {
  std::string file, by = "line", gpu;   // of the card: empty: what the dump was compiled for
  std::string profile, profile_device;  // as in OpenArgs
  std::string log;                      // what the program printed when memory ran out
  std::string out;                      // folder for what --try changes; empty: none
  EngineArgs engine;                    // of --try
  size_t most = 20;
  bool json = false, orders = false, stages = false, tries = false, force = false;
};
int cmd_memory(const MemoryArgs& a);

struct SummaryArgs {
  std::string file, by = "line", gpu, profile, profile_device;
  size_t most = 30;
  bool json = false, frames = false;
};
int cmd_summary(const SummaryArgs& a);

struct OpenArgs {
  EngineArgs engine;                 // of --try
  std::string folder, gpu, profile;  // profile: "" looks beside the folder, "none" does not
  std::string profile_device;        // of several the one to show; empty: the slowest
  bool json = false, stages = false, frames = false, tries = false;
};
// Is it a file, and a log of XLA or jax? `only`: one that no command could take for a module.
bool holds_a_log(const std::string& path);
bool only_a_log(const std::string& path);
int open_log(const std::string& path, bool json);
// What a folder holds.
int cmd_open(const OpenArgs& a);

struct DiffArgs {
  EngineArgs engine;
  std::string flags_a, flags_b, engine_b, target_b, disabled, out;  // of two compilations of `a`
  Json compilations;                                                // what is said of them beside the difference
  std::string a, b, by = "structure", html;
  size_t most = 50;
  bool json = false, run = false, force = false, profile = false;
  RunArgs how;
};
int cmd_diff(const DiffArgs& a);
// Two compilations of one module by an installed XLA.
int diff_installed(const DiffArgs& a);
// The first stage at which two recordings part, in words, and how; "same: …" where they do not.
std::string first_difference(const Recording& a, const Recording& b, ModuleDiff* diff);
// At most so many kinds of difference, for a person.
void show_module_diff(const ModuleDiff& d, size_t most);

struct CostArgs {
  std::string file, gpu;       // empty: what the dump was compiled for, else kDefaultGpu
  std::string profile;         // measured times; empty: none
  std::string profile_device;  // as in OpenArgs
  size_t most = 30;
  bool json = false, no_verify = false, frames = false;
};
int cmd_cost(const CostArgs& a);

struct CompileTimeArgs {
  std::string what, log;  // a dump or a module of one, with what the program printed; or that alone
  size_t most = 8;
  bool json = false;
};
// What the time of compilations went into. Exit 1 where nothing tells.
int cmd_compile_time(const CompileTimeArgs& a);
// The same of what a program printed.
int compile_time_of_log(const std::string& label, const std::string& text, const CompileTimeArgs& a);

struct RecompilesArgs {
  std::vector<std::string> what;  // dumps, caches, logs
  std::string log;                // what the program printed while it made them
  size_t most = 20;
  bool json = false;
};
// Which modules are one function, compiled again, and why. Exit 1 where something was.
int cmd_recompiles(const RecompilesArgs& a);

struct TunedArgs {
  std::string file, other;
  std::vector<std::string> results;  // files of the autotuner's; none: those in and beside the folders
  double difference = -1;            // of results, relative to their largest magnitude; -1: not asked
  size_t most = 40;
  bool json = false, all = false;  // all: native emitters' kernels, too
};
// What the autotuner chose; of two dumps what it chose otherwise (exit 1).
int cmd_tuned(const TunedArgs& a);
// What the passes are told of the autotuner's results: of a file of them, of a dump or a module of one, or, where
// nothing is named, of the dump that `start` is a stage of, if results lie with it. Empty: nothing. `told`: what was
// taken, in words. Throws Failure.
std::string autotune_results_for(const std::string& named, const Recording* start, std::string* told);

struct SearchArgs {
  std::string file, name, opcode, op_name, shape, line;
  size_t most = 100;
  bool json = false, frames = false;
};
int cmd_search(const SearchArgs& a);

struct McpArgs {
  std::string root, allow_write;  // folders; empty: everything may be read, nothing written
};
int cmd_mcp(const McpArgs& a);

struct ProfileArgs {
  std::string file, modules, by = "op", op, gpu;
  double at = -1;  // seconds since the profile's start; -1: not asked
  size_t most = 30;
  bool spans = false, json = false;
};
int cmd_profile(const ProfileArgs& a);

struct OccupancyArgs {
  std::string file, gpus{kDefaultGpu};
  bool json = false;
};
int cmd_occupancy(const OccupancyArgs& a);

struct LinkArgs {
  std::vector<std::string> files, edges;
  std::string graph, emit, out;
  double least = 0.1;
  bool json = false, force = false;
};
int cmd_link(const LinkArgs& a);

struct IsolateArgs : RunArgs {
  std::string out, reference;
  bool json = false, force = false;
};
// Every distinct fusion of a module as a module of its own, run with the inputs that a run gives it.
int cmd_isolate(const IsolateArgs& a);

struct StepArgs {
  std::string file, pipeline, from, disabled;
  RunArgs how;
};
int cmd_step(const StepArgs& a);

struct CompareArgs {
  std::string a, b, reference, module;
  double tolerance = -1;
  bool json = false;
};
int cmd_compare(const CompareArgs& a);

struct ReduceArgs : JudgeArgs {
  std::string out, passes, pipeline;
  size_t most = SIZE_MAX;
  double seconds = 0;  // to try candidates; 0: as long as it takes
  int jobs = 1;
  bool json = false, force = false, nan = false, scrub = false, keep_shapes = false;
  bool sizes = false;         // the same program with small arrays
  std::vector<int64_t> keep;  // sizes that stay
  double work = 0;            // operations and bytes that it may take; 0: as SmallerOptions have it
};
int cmd_reduce(const ReduceArgs& a);
// reduce --sizes.
int cmd_smaller(const ReduceArgs& a);

struct ExtractArgs : RunArgs {
  std::string instruction, out, inputs_out, constants;
  size_t hops = SIZE_MAX;
  bool json = false;
};
int cmd_extract(const ExtractArgs& a);

struct ExplainArgs {
  std::string file, instruction, pass, trace;
  std::vector<std::string> why_not;
  bool json = false, frames = false, raw = false;
};
int cmd_explain(const ExplainArgs& a);

void save_arrays(const Universe& u, const std::string& path, const std::vector<Value>& arguments,
                 const std::vector<Value>& outputs);

// o0, o1 … of an .npz as a result of that shape.
Value outputs_of(const Universe& u, const std::string& path, ShapeId shape);

// Those that take modules, those that take runs, and those that look for what is wrong.
void add_module_commands(CLI::App& app, int* code);
void add_run_commands(CLI::App& app, int* code);
void add_debug_commands(CLI::App& app, int* code);
void add_triage_command(CLI::App& app, int* code);

}  // namespace hlo
