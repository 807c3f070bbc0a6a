// Options of the commands that look at a run or one module of it.
#include <CLI/CLI.hpp>

#include "ir/target/data_sheet.h"
#include "replay/cli/command.h"
#include "viewer/page_file.h"

namespace hlo {
namespace {

constexpr const char* kFoundProfileHelp =
    "profile with measured times: .xplane.pb, trace events, or a table of nsys or nvprof; none: no times (a .xplane.pb "
    "or plugins/profile/RUN in the folder or next to it)";
constexpr const char* kProfileDeviceHelp =
    "of several devices the one to show: HOST:N, HOST, N, or the profile's name for it (the slowest)";
constexpr const char* kFramesHelp = "the whole stack below what names a source line";
// Names of data sheets.
std::string gpu_help() {
  std::string names;
  for (const DeviceSpec& d : device_specs()) names += (names.empty() ? "" : ", ") + std::string(d.name);
  return fmt::format("data sheet for bounds: {} (what the dump was compiled for, else {})", names, kDefaultGpu);
}

void add_open(CLI::App& app, int* code) {
  static OpenArgs open;
  CLI::App* c = app.add_subcommand("open", "what a recording or XLA dump folder holds (also: hlo-replay DIR)");
  c->footer(
      "Example:\n"
      "  hlo-replay /tmp/xla_dump                    the modules of a run, or the overview of the only one\n"
      "  hlo-replay /tmp/xla_dump:train_step         …with one of several (by name or number: DIR:12)\n"
      "  hlo-replay open /tmp/xla_dump:12 --stages   every stage: which pass changed how much\n"
      "  hlo-replay open /tmp/xla_dump:12 --frames   …with the whole stack of each line\n"
      "  hlo-replay open /tmp/xla_dump:12 --profile=host.xplane.pb   …with measured times; found where it is next to "
      "the folder\n"
      "  hlo-replay open /tmp/xla_dump:12 --try      findings, changed as advised and compiled by our passes\n"
      "  hlo-replay open /tmp/xla_dump:12 --try --engine=installed --target=cpu   …by an installed XLA");
  c->add_option("DIR", open.folder, "a folder, or DIR:MODULE")->required();
  c->add_option("--profile", open.profile, kFoundProfileHelp);
  c->add_option("--profile-device", open.profile_device, kProfileDeviceHelp);
  c->add_flag("--stages", open.stages, "the table of all stages");
  c->add_option("--gpu", open.gpu, gpu_help());
  c->add_flag("--frames", open.frames, kFramesHelp);
  c->add_flag("--try", open.tries, "make the change that each finding advises, and compile it");
  add_engine_options(c, open.engine);
  c->add_flag("--json", open.json);
  c->callback([code] { *code = cmd_open(open); });
}

void add_view(CLI::App& app, int* code) {
  static ViewArgs view;
  CLI::App* c = app.add_subcommand("view", "one page that shows a recording, a dump or a module, offline");
  c->footer(
      "Example:\n"
      "  hlo-replay view /tmp/xla_dump                 all modules of a run: /tmp/xla_dump.html\n"
      "  hlo-replay view /tmp/xla_dump:train_step -o step.html --open\n"
      "  hlo-replay view model.hlo                     a module by itself\n"
      "  hlo-replay view                               an empty bench to paste HLO into: hlo-replay.html\n"
      "  hlo-replay view /tmp/xla_dump --serve         what is too large for a file, at an address of this machine");
  c->add_option("FILE", view.spec, "a folder, DIR:MODULE, DIR:MODULE:STAGE, or a module (an empty bench)");
  c->add_option("-o,--out", view.out, "page to write (FILE.html); with --formats the folder to make (DIR.view)");
  c->add_option("--profile", view.profile, kFoundProfileHelp);
  c->add_option("--profile-device", view.profile_device, kProfileDeviceHelp);
  c->add_option("--tried", view.tried,
                "what `hlo-replay open DIR --try --json` printed: findings show what came of it");
  c->add_option("--note", view.note, "a sentence that the page shows above all");
  c->add_flag("--force", view.force, "replace a file that is no page of hlo-replay; with --formats the folder");
  c->add_option("--formats", view.formats, "a folder of text, dot, page, and drawn: html, svg, png, instead of a page");
  c->add_flag("--serve{0}", view.serve, "serve it on 127.0.0.1 until Ctrl-C: --serve=PORT, or a port that is free");
  c->add_flag("--open", view.open, "show it in the browser");
  c->add_flag("--json", view.json, "where the page is");
  c->callback([code] { *code = cmd_view(view); });
}

void add_lesson(CLI::App& app, int* code) {
  static LessonArgs lesson;
  CLI::App* c = app.add_subcommand("lesson", "a course in a page: reading HLO, simplification, fusion, thunks");
  std::string known;
  for (const LessonName& l : lesson_names()) known += fmt::format("\n  {:<16}{}", l.name, l.title);
  c->footer(
      "Example:\n"
      "  hlo-replay lesson                             all lessons: lessons.html\n"
      "  hlo-replay lesson fusion --open               …opens with the one on fusion, in the browser\n"
      "  hlo-replay lesson thunks -o /tmp/thunks.html\n"
      "Lessons:" +
      known);
  c->add_option("NAME", lesson.name, "lesson to open with (a list of them)");
  c->add_option("-o,--out", lesson.out, "page to write (lessons.html)");
  c->add_flag("--force", lesson.force, "replace a file that is no page of hlo-replay");
  c->add_flag("--open", lesson.open, "show it in the browser");
  c->add_flag("--json", lesson.json, "where the page is, and which lessons there are");
  c->callback([code] { *code = cmd_lesson(lesson); });
}

constexpr const char* kProfileHelp =
    "profile whose measured times are shown next to the bounds: .xplane.pb, trace events (.json, .gz), or for one "
    "module a table of nsys or nvprof (.csv)";
constexpr const char* kLookedAt =
    "module or stage (DIR:MODULE:STAGE); for DIR or DIR:MODULE the last stage of each module";

void add_memory(CLI::App& app, int* code) {
  static MemoryArgs memory;
  CLI::App* c = app.add_subcommand("memory", "what a module holds on its device, and what is alive at the peak");
  c->footer(
      "Example:\n"
      "  hlo-replay memory /tmp/xla_dump                          every module of a run, a row each\n"
      "  hlo-replay memory /tmp/xla_dump:train_step --by=scope    what is alive at the peak, by scope\n"
      "  hlo-replay memory /tmp/xla_dump --log=train.log          what ran out of memory: module, allocation, line\n"
      "  hlo-replay memory /tmp/xla_dump:train_step --stages      which pass raised the peak, and by how much\n"
      "  hlo-replay memory /tmp/xla_dump:train_step --try         donations, recomputations, passes: compiled by ours\n"
      "  hlo-replay memory /tmp/xla_dump:train_step --try --engine=installed --target=gpu:A100   …by your XLA, flags "
      "too\n"
      "  hlo-replay memory /tmp/xla_dump:train_step --orders      …and by other orders of the same program\n"
      "Sizes are from XLA's buffer assignment if the folder has one, else from hlo-replay's.\n"
      "Exit code 1: no allocation in the log belongs to a module of the folder.");
  c->add_option("FILE", memory.file, kLookedAt)->required();
  c->add_option("--by", memory.by, "line, scope or value (line)");
  c->add_option(
      "--gpu", memory.gpu,
      "GPU to assume for the memory size and hlo-replay's buffer assignment: a name, or a file with XLA's description "
      "of it (what the dump was compiled for)");
  c->add_option("--profile", memory.profile, kFoundProfileHelp);
  c->add_option("--profile-device", memory.profile_device, kProfileDeviceHelp);
  c->add_option("--most", memory.most, "rows to show (20)");
  c->add_option("--log", memory.log,
                "what the program printed (- is standard input): shows which module and allocation ran out of memory");
  c->add_flag("--stages", memory.stages, "the peak stage by stage: which pass raised it, and by how much");
  c->add_flag("--try", memory.tries,
              "compile changes that may need less memory, and show the memory that each one needs");
  c->add_option("-o,--out", memory.out, "with --try: a folder for the changed modules, to compile or run elsewhere");
  c->add_flag("--force", memory.force, "replace that folder");
  c->add_flag("--orders", memory.orders, "memory that other orders of the instructions would need");
  add_engine_options(c, memory.engine);
  c->add_flag("--json", memory.json);
  c->callback([code] { *code = cmd_memory(memory); });
}

void add_cost(CLI::App& app, int* code) {
  static CostArgs cost;
  CLI::App* c =
      app.add_subcommand("cost", "operations and bytes of every instruction, and the time a GPU needs at least");
  c->footer(
      "Example:\n"
      "  hlo-replay cost out:after_optimizations --gpu=H100\n"
      "  hlo-replay cost /tmp/xla_dump                            the modules of a run");
  c->add_option("FILE", cost.file, kLookedAt)->required();
  c->add_option("--gpu", cost.gpu, gpu_help());
  c->add_flag("--frames", cost.frames, kFramesHelp);
  c->add_option("--most", cost.most, "instructions to show (30)");
  c->add_option("--profile", cost.profile, kProfileHelp);
  c->add_option("--profile-device", cost.profile_device, kProfileDeviceHelp);
  c->add_flag("--no-verify", cost.no_verify, kNoVerifyHelp);
  c->add_flag("--json", cost.json);
  c->callback([code] { *code = cmd_cost(cost); });
}

void add_summary(CLI::App& app, int* code) {
  static SummaryArgs summary;
  CLI::App* c = app.add_subcommand("summary", "operations, bytes, least time and memory by line, scope, class …");
  c->footer(
      "Example:\n"
      "  hlo-replay summary /tmp/xla_dump:train_step --by=line    which line of the program costs what\n"
      "  hlo-replay summary /tmp/xla_dump --by=module             the modules of a run\n"
      "  hlo-replay summary /tmp/xla_dump --by=pass               which pass of the compiler did how much");
  c->add_option("FILE", summary.file, kLookedAt)->required();
  c->add_option("--by", summary.by, "line, scope, class, module or pass (line)");
  c->add_option("--gpu", summary.gpu, gpu_help());
  c->add_flag("--frames", summary.frames, kFramesHelp);
  c->add_option("--most", summary.most, "rows to show (30)");
  c->add_option("--profile", summary.profile, kProfileHelp);
  c->add_option("--profile-device", summary.profile_device, kProfileDeviceHelp);
  c->add_flag("--json", summary.json);
  c->callback([code] { *code = cmd_summary(summary); });
}

void add_profile(CLI::App& app, int* code) {
  static ProfileArgs profile;
  static double at_ms = -1;
  CLI::App* c = app.add_subcommand("profile", "a profile of jax, TensorFlow or torch_xla, joined to instructions");
  c->footer(
      "Examples:\n"
      "  hlo-replay profile host.xplane.pb                        with the modules that the profile holds\n"
      "  hlo-replay profile host.trace.json.gz /tmp/xla_dump      with those of a dump folder\n"
      "  hlo-replay profile host.xplane.pb --by=line              which line of the program took how long\n"
      "  hlo-replay profile host.xplane.pb --op=fusion.3          one instruction: time, source, contents, spans\n"
      "  hlo-replay profile host.xplane.pb --at=12.5              what ran at 12.5 ms\n"
      "A module of a profile is FILE:MODULE for every command. Exit code 1 where nothing names an instruction.");
  c->add_option("PROFILE", profile.file, ".xplane.pb, or trace events (.trace.json.gz); packed or not")->required();
  c->add_option("MODULES", profile.modules, "what ran: DIR, DIR:MODULE or FILE (the modules that the profile holds)");
  c->add_option("--by", profile.by, "op, line, scope, class or module (op)");
  c->add_option("--op", profile.op, "name of an instruction");
  c->add_flag("--spans", profile.spans, "every span of time by its begin, with its instruction");
  c->add_option("--at", at_ms, "milliseconds since the profile's start: what ran then");
  c->add_option("--gpu", profile.gpu, "data sheet for bounds (what a dump was compiled for, else none)");
  c->add_option("--most", profile.most, "rows to show (30)");
  c->add_flag("--json", profile.json);
  c->callback([code] {
    profile.at = at_ms < 0 ? -1 : at_ms / 1e3;
    *code = cmd_profile(profile);
  });
}

void add_search(CLI::App& app, int* code) {
  static SearchArgs search;
  CLI::App* c = app.add_subcommand("search", "instructions by name, opcode, op_name, shape or source line");
  c->footer(
      "Examples:\n"
      "  hlo-replay search /tmp/xla_dump fusion.3                 in the last stage of every module\n"
      "  hlo-replay search /tmp/xla_dump:step:0012 --opcode=dot --shape='f32[128'\n"
      "Parts of words will do, whatever their case; opcodes are whole. Exit code 1 where nothing fits.");
  c->add_option("FILE", search.file, kLookedAt)->required();
  c->add_option("NAME", search.name, "part of the name");
  c->add_option("--opcode", search.opcode, "opcode, or part of a custom call's target");
  c->add_option("--op-name", search.op_name, "part of the metadata's op_name");
  c->add_option("--shape", search.shape, "part of the shape");
  c->add_option("--line", search.line, "part of the source line: model.py:12");
  c->add_option("--most", search.most, "instructions to show (100)");
  c->add_flag("--frames", search.frames, kFramesHelp);
  c->add_flag("--json", search.json);
  c->callback([code] { *code = cmd_search(search); });
}

void add_tuned(CLI::App& app, int* code) {
  static TunedArgs tuned;
  CLI::App* c = app.add_subcommand("tuned", "what XLA's autotuner chose, and what two dumps chose otherwise");
  c->footer(
      "Examples:\n"
      "  hlo-replay tuned /tmp/xla_dump                            back end, tiles, algorithm of every kernel\n"
      "  hlo-replay tuned /tmp/xla_dump:step --results=tuned.pbtxt of --xla_gpu_dump_autotune_results_to\n"
      "  hlo-replay tuned tuned.pbtxt                              what the file holds\n"
      "  hlo-replay tuned /tmp/one:step /tmp/two:step --difference=3e-4\n"
      "Results of the autotuner in the folder, and next to it, are found without being named. Exit code 1 where two\n"
      "dumps chose otherwise, or no kernel has anything to choose.");
  c->add_option("FILE", tuned.file, "a dump, a module or stage of it, a module's file, or results of the autotuner")
      ->required();
  c->add_option("OTHER", tuned.other, "another of the first three: kernels that do the same work are compared");
  c->add_option("--results", tuned.results, "files of the autotuner's results: text or binary, either of XLA's forms");
  c->add_option("--difference", tuned.difference,
                "of two results, relative to their largest magnitude (as `compare` reports it): is it explained?")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--most", tuned.most, "kernels to show (40)");
  c->add_flag("--all", tuned.all, "kernels of the native emitters, too");
  c->add_flag("--json", tuned.json);
  c->callback([code] { *code = cmd_tuned(tuned); });
}

void add_compile_time(CLI::App& app, int* code) {
  static CompileTimeArgs times;
  CLI::App* c = app.add_subcommand(
      "compile-time", "what the time of a compilation went into: passes, autotuning, and below HLO LLVM and ptxas");
  c->footer(
      "Examples:\n"
      "  hlo-replay compile-time /tmp/xla_dump                 by XLA's record of passes and the times of its files\n"
      "  hlo-replay compile-time train.log                     by what XLA and jax printed\n"
      "  hlo-replay compile-time /tmp/xla_dump --log=train.log both, joined by module\n"
      "Only what these record: the rest is unknown, with the flags that would record it. Exit code 1 where nothing "
      "does.");
  c->add_option("WHAT", times.what,
                "a dump, a module of it (DIR:MODULE), or what a program printed (- is standard input)")
      ->required();
  c->add_option("--log", times.log, "of a dump: what the program printed while it compiled");
  c->add_option("--most", times.most, "modules to show (8)");
  c->add_flag("--json", times.json);
  c->callback([code] { *code = cmd_compile_time(times); });
}

void add_recompiles(CLI::App& app, int* code) {
  static RecompilesArgs recompiles;
  CLI::App* c = app.add_subcommand("recompiles", "which modules are one function, compiled again, and what differs");
  c->footer(
      "Examples:\n"
      "  hlo-replay recompiles /tmp/xla_dump                    the modules of a run\n"
      "  hlo-replay recompiles ~/.cache/jax                     entries of jax's compilation cache: why keys differ\n"
      "  hlo-replay recompiles train.log                        what JAX_LOG_COMPILES=1 JAX_EXPLAIN_CACHE_MISSES=1 "
      "print\n"
      "  hlo-replay recompiles /tmp/xla_dump --log=train.log    both: seconds, weak types, static arguments\n"
      "Exit code 0 where nothing was compiled again, 1 where something was.");
  c->add_option("WHAT", recompiles.what, "dumps, compilation caches, logs (- is standard input)")->required();
  c->add_option("--log", recompiles.log, "what the program printed while it compiled these");
  c->add_option("--most", recompiles.most, "functions to show (20)");
  c->add_flag("--json", recompiles.json);
  c->callback([code] { *code = cmd_recompiles(recompiles); });
}

void add_mcp(CLI::App& app, int* code) {
  static McpArgs mcp;
  CLI::App* c = app.add_subcommand(
      "mcp", "the commands as tools for agents: Model Context Protocol, on standard input and output");
  c->footer(
      "Example:\n"
      "  claude mcp add hlo -- hlo-replay mcp --root=/tmp/xla_dump\n"
      "Writes nothing unless --allow-write says where. Tools and an example: docs/mcp.md.");
  c->add_option("--root", mcp.root, "read nothing outside of this folder; paths count from it");
  c->add_option("--allow-write", mcp.allow_write, "tools that write are there, too, and write below this folder");
  c->callback([code] { *code = cmd_mcp(mcp); });
}

}  // namespace

void add_run_commands(CLI::App& app, int* code) {
  add_open(app, code);
  add_view(app, code);
  add_lesson(app, code);
  add_memory(app, code);
  add_summary(app, code);
  add_cost(app, code);
  add_profile(app, code);
  add_search(app, code);
  add_tuned(app, code);
  add_compile_time(app, code);
  add_recompiles(app, code);
  add_mcp(app, code);
}

}  // namespace hlo
