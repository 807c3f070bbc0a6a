// Options of the commands that take modules.
#include <CLI/CLI.hpp>

#include "replay/cli/command.h"

namespace hlo {
namespace {

CLI::App* add_command(CLI::App& app, const char* name, const char* help, const char* example) {
  CLI::App* c = app.add_subcommand(name, help);
  c->footer(std::string("Example:\n  ") + example);
  return c;
}

void add_replay(CLI::App& app, int* code) {
  static ReplayArgs replay_args;
  CLI::App* c =
      add_command(app, "replay", "run a pipeline over a module and write every stage",
                  "hlo-replay replay testdata/mobilenet_v1.hlo -o out --formats=text,html\n"
                  "  hlo-replay replay model.hlo --engine=installed --target=gpu:H200   by the XLA of your jax");
  c->add_option("FILE", replay_args.file, "module, stage, or DIR:MODULE: its first stage")->required();
  c->add_option("-o,--out", replay_args.out, "folder to make (NAME.replay)");
  c->add_option("--pipeline", replay_args.pipeline, "xla-2019 or xla-gpu (that of the module's time)");
  c->add_option(
      "--gpu", replay_args.gpu,
      "whose layouts, fusions and tiles xla-gpu makes: a name, or a description of XLA's (the dump's own, else H200)");
  c->add_option("--autotune-results,--xla_gpu_load_autotune_results_from", replay_args.autotune_results,
                "what XLA's autotuner chose, in place of defaults: a file of its results, or a dump (that which is"
                " replayed, where results are with it; none: defaults)");
  c->add_option("--formats", replay_args.formats,
                "text,dot,page,buffers,thunks (the default), drawn: svg,png,html, and json,proto,ll,ptx,sass");
  c->add_flag("--every-pass", replay_args.every_pass, "a text after every pass that ran, changed or not");
  c->add_flag("--verbose", replay_args.verbose, "passes that have no code here, too, and what they would do");
  c->add_option("--sm", replay_args.sm, "architecture for ll, ptx and sass: sm_75 to sm_90a");
  c->add_option("--passes-only", replay_args.only, "run only these passes");
  c->add_option("--disable-passes", replay_args.disabled, "leave these out");
  c->add_option("--lower", replay_args.lower, "then the steps to a program for the host, emulated or cuda");
  c->add_option("--from", replay_args.from, "leave out what comes before the first run of this pass");
  c->add_option("--stop-after", replay_args.stop_after, "number or name of a stage");
  c->add_option("--fuel", replay_args.fuel, "PASS=N: at most N rewrites by that pass")->allow_extra_args(false);
  c->add_flag("--force", replay_args.force, "replace an existing folder");
  c->add_flag("--force-replay", replay_args.force_replay, "replay a module that is optimised already");
  c->add_flag("--no-verify", replay_args.no_verify, kNoVerifyHelp);
  c->add_flag("--json", replay_args.json, "the recording on standard output");
  add_engine_options(c, replay_args.engine);
  c->callback([code] { *code = cmd_replay(replay_args); });
}

void add_whatif(CLI::App& app, int* code) {
  static WhatIfArgs what_if;
  CLI::App* c = add_command(
      app, "whatif", "kernels, bytes, memory and time of xla-gpu as it is and changed, side by side",
      "hlo-replay whatif model.hlo --disable=priority-fusion\n"
      "  hlo-replay whatif /tmp/xla_dump:train_step --gpu=A100          on another GPU\n"
      "  hlo-replay whatif model.hlo --batch=64                         another batch (x:64 names the parameter)\n"
      "  hlo-replay whatif model.hlo --set=algsimp.fixpoint=true --disable=dot-merger --most=5\n"
      "Where the batch cannot be followed, it says at which instruction. Exit code 1 where nothing differs.");
  c->add_option("FILE", what_if.file, "module, stage before the passes, or DIR:MODULE: its first stage")->required();
  c->add_option("--disable", what_if.disabled, "passes that are left out, with commas");
  c->add_option("--gpu", what_if.gpu, "another GPU than the dump's own, or an H200: a name, or a description of XLA's");
  c->add_option("--batch", what_if.batch, "another size of the leading dimension: N, or PARAMETER:N");
  c->add_option("--set", what_if.set, "PASS.OPTION=VALUE (repeat); opt --list-passes names them")
      ->allow_extra_args(false);
  c->add_option(
      "--profile", what_if.profile,
      "measured times to start from: .xplane.pb, trace events, or a table of nsys or nvprof (a .xplane.pb, or "
      "plugins/profile/RUN, in the folder or next to it); none: no times");
  c->add_option("--profile-device", what_if.profile_device, "of several devices the one to start from (the slowest)");
  c->add_option("--most", what_if.most, "kernels to show (20)");
  c->add_flag("--no-verify", what_if.no_verify, kNoVerifyHelp);
  c->add_flag("--json", what_if.json);
  c->callback([code] { *code = cmd_whatif(what_if); });
}

void add_opt(CLI::App& app, int* code) {
  static OptArgs opt_args;
  CLI::App* c = add_command(app, "opt", "run passes and print the module",
                            "hlo-replay opt --passes='algsimp{layout_sensitive=true},dce' model.hlo");
  c->add_option("FILE", opt_args.file);
  c->add_option("--passes", opt_args.passes, "a,b{option=value}");
  c->add_option("--call-site", opt_args.call_site, "pipeline of XLA whose options the passes take");
  c->add_option("--style", opt_args.style, "print style");
  c->add_option("--at-step", opt_args.at_step,
                "print the module as it is at this step inside of a pass (adding_special-case_copies)");
  c->add_option("--users", opt_args.users,
                "order of an array's users: listed in the file, replayed from the dump's stages before it, or auto: "
                "replayed for passes that depend on it, with --call-site")
      ->check(CLI::IsMember({"auto", "listed", "replayed"}));
  c->add_option("--autotune-results,--xla_gpu_load_autotune_results_from", opt_args.autotune_results,
                "what XLA's autotuner chose, in place of defaults: a file of its results, or a dump (autotuner)");
  c->add_option("--fuel", opt_args.fuel, "PASS=N")->allow_extra_args(false);  // FILE may follow
  c->add_flag("--list-passes", opt_args.list, "all passes");
  c->add_flag("--no-verify", opt_args.no_verify, kNoVerifyHelp);
  c->add_flag("--json", opt_args.json, "what each pass did, in place of the module");
  c->callback([code] { *code = cmd_opt(opt_args); });
}

void add_texts(CLI::App& app, int* code) {
  static std::string file;
  static bool json = false;
  static PrintArgs print_args;
  CLI::App* c =
      add_command(app, "print", "read modules and print them as XLA does", "hlo-replay print --style=short model.hlo");
  c->add_option("FILE", print_args.file)->required();
  c->add_option("--style", print_args.style, "default, long, short, canonical or fingerprint");
  c->add_option("--dialect", print_args.dialect, "2019: typed operands, no header fields");
  c->add_flag("--large-constants", print_args.large, "every constant in full");
  c->add_flag("--compact-gte", print_args.compact_gte, "%t#1 in place of get-tuple-elements");
  c->add_flag("--no-metadata", print_args.no_metadata);
  c->add_flag("--color", print_args.color);
  c->callback([code] { *code = cmd_print(print_args); });

  static std::vector<std::string> files;
  static bool fmt_check = false, fmt_write = false;
  c = add_command(app, "fmt", "the text of modules in one form, without loss", "hlo-replay fmt --check testdata/*.hlo");
  c->add_option("FILE", files)->required();
  c->add_flag("--check", fmt_check, "exit 1 where a file differs");
  c->add_flag("--write", fmt_write, "rewrite files that differ");
  c->add_flag("--json", json, "with --check or --write: the files");
  c->callback([code] { *code = cmd_fmt(files, fmt_check, fmt_write, json); });

  c = add_command(app, "verify", "check every invariant", "hlo-replay verify model.hlo");
  c->add_option("FILE", file)->required();
  static std::string layouts = "auto";
  c->add_option("--layouts", layouts, "auto (binding where a module is scheduled), binding or free");
  static bool mixed = false;
  c->add_flag("--allow-mixed-precision", mixed,
              "operations may take f32 next to bf16 (taken for granted where layouts have tiles, as a TPU's do)");
  c->add_flag("--json", json);
  c->callback([code] { *code = cmd_verify(file, json, layouts, mixed); });

  static ConvertArgs convert_args;
  c = add_command(app, "convert", "from one format to another, by the files' endings",
                  "hlo-replay convert model.hlo model.svg");
  c->add_option("IN", convert_args.in)->required();
  c->add_option("OUT", convert_args.out, ".hlo .txt .pb .pb.gz .pbtxt .json .dot .svg .png, kernels: .ll .ptx")
      ->required();
  c->add_option("--sm", convert_args.sm, "architecture for .ll and .ptx: sm_75 to sm_90a");
  c->add_option("--engine", convert_args.engine.engine, "installed: IN is StableHLO, which your jaxlib takes into HLO");
  c->add_flag("--yes", convert_args.engine.yes, "with --engine=installed:VERSION: take it from PyPI without asking");
  c->add_flag("--offline", convert_args.engine.offline, "never take anything from PyPI");
  c->add_flag("--json", convert_args.json, "what was written");
  c->callback([code] { *code = cmd_convert(convert_args); });

  static bool bench = false;
  c = add_command(app, "stats", "counts of a module: instructions, opcodes, bytes",
                  "hlo-replay stats --bench model.hlo");
  c->add_option("FILE", file)->required();
  c->add_flag("--json", json);
  c->add_flag("--bench", bench, "time parsing and printing, best of 5");
  c->callback([code] { *code = cmd_stats(file, json, bench); });
}

void add_exec(CLI::App& app, int* code) {
  static ExecArgs exec_args;
  CLI::App* c =
      add_command(app, "exec", "run a module", "hlo-replay exec testdata/mobilenet_v1.hlo --seed=1 --out=out.npz");
  c->add_option("FILE", exec_args.file, "a module, or a folder with --all-stages");
  add_run_options(c, exec_args);
  c->add_option("--self-test", exec_args.self_test,
                "in the place of FILE: does the backend compute here what XLA does? Operations and modules that the "
                "program carries, a line for each that fails, exit 1 then; =WORD: those whose name holds it")
      ->expected(0, 1)
      ->default_str("all")
      ->allow_extra_args(false);
  c->add_option("--like", exec_args.like, "module before partitioning, whose shapes inputs and outputs have");
  c->add_option(
      "--precision", exec_args.precision,
      "own; high: floats in f64; tf32: f32 products and convolutions as XLA has them on a GPU, rounded to TF32 "
      "where the module does not forbid it, with --backend=cuda (compared as f16 is)");
  c->add_option("--out", exec_args.out, ".npz for inputs p0 … and outputs o0 …");
  c->add_option("--compare-with", exec_args.compare_with, "a backend, another module, or OUT.npz; exit 1 if different");
  c->add_option("--trace", exec_args.trace, "new folder for statistics of every instruction's value");
  c->add_option("--profile", exec_args.profile,
                "file for every instruction's time: .json (trace events), .html or .txt")
      ->allow_extra_args(false);
  c->add_flag("--force", exec_args.force, "replace the folder of --trace, the files of --profile");
  c->add_flag("--nan", exec_args.nan,
              "the first instruction that makes a NaN which no operand has, and the first that makes an infinity of "
              "finite ones");
  c->add_option("--replace-kernel", exec_args.replace_kernel,
                "NAME=FILE.ll or .ptx (repeat): run that in the place of a kernel; names as in the PTX of a replay")
      ->allow_extra_args(false);
  CLI::Option* kernels =
      c->add_option("--kernels", exec_args.kernels,
                    "dump: FILE is a folder (DIR or DIR:MODULE) that holds XLA's own kernels (MODULE.N.ptx next to the "
                    "final module, its buffer assignment and thunks): these are run, by XLA's thunks in XLA's buffers; "
                    "with --backend=cuda")
          ->check(CLI::IsMember({"dump"}));
  c->add_flag("--evaluate-others", exec_args.evaluate_others,
              "with --kernels: thunks that have neither a kernel nor a library here are the evaluator's (else refused)")
      ->needs(kernels);
  c->add_option("--kernel-cache", exec_args.kernel_cache,
                "folder that keeps compiled kernels between runs (or HLO_KERNEL_CACHE)");
  c->add_flag("--ignore-memory", exec_args.ignore_memory,
              "Run it even where it takes more memory than the machine can give");
  c->add_flag("--as-is", exec_args.as_is,
              "kernels of the module's own instructions (else those before fusion are fused first)");
  c->add_flag("--exact", exec_args.exact, "no library for large products: sums in one plain order");
  CLI::Option* stages =
      c->add_flag("--all-stages", exec_args.all_stages, "FILE is a folder: every stage against the first");
  c->add_flag("--whole", exec_args.whole,
              "with --all-stages: every stage evaluated whole, bit by bit, none by its operations")
      ->needs(stages);
  c->add_option("--repeat", exec_args.repeat, "best of N runs")->check(CLI::Range(1, 1000000));
  c->add_flag("--json", exec_args.json);
  c->callback([code] { *code = cmd_exec(exec_args); });
}

void add_comparisons(CLI::App& app, int* code) {
  static CompareArgs compare_args;
  CLI::App* c = add_command(app, "compare", "are two results the same?", "hlo-replay compare a.npz b.npz");
  c->add_option("A", compare_args.a)->required();
  c->add_option("B", compare_args.b)->required();
  c->add_option("--reference", compare_args.reference,
                ".npz of exec --precision=high, to distinguish rounding from error");
  c->add_option("--module", compare_args.module, "whose outputs these are: distinguishes bf16 and f8 from integers");
  c->add_option("--tolerance", compare_args.tolerance, "share of the largest magnitude, in place of the types' own");
  c->add_flag("--json", compare_args.json);
  c->callback([code] { *code = cmd_compare(compare_args); });

  static DiffArgs diff_args;
  c = add_command(app, "diff", "two modules or stages by structure, or two folders: the first stage that differs",
                  "hlo-replay diff out:1:3 out:1:4\n  hlo-replay diff dump_of_monday dump_of_today\n"
                  "  hlo-replay diff model.hlo --engine=installed --target=gpu:H200 "
                  "--flags-b=--xla_gpu_enable_triton_gemm=false");
  c->add_option("A", diff_args.a)->required();
  c->add_option("B", diff_args.b);
  c->add_option("--by", diff_args.by, "structure (whatever the names) or text");
  c->add_flag("--run", diff_args.run, "run both on the same inputs: exit 1 only where results differ");
  c->add_flag("--profile", diff_args.profile,
              "A and B are traces (exec --profile=A.json, or a profiler's): time by class and op_name");
  c->add_option("--most", diff_args.most, "kinds of difference to show");
  c->add_option("--html", diff_args.html, "page to write");
  c->add_flag("--force", diff_args.force, "replace the page");
  c->add_flag("--json", diff_args.json);
  add_engine_options(c, diff_args.engine);
  c->add_option("--flags-a", diff_args.flags_a, "XLA's flags of the first compilation");
  c->add_option("--flags-b", diff_args.flags_b, "…of the second");
  c->add_option("--disable", diff_args.disabled, "passes that the second leaves out, with commas");
  c->add_option("--engine-b", diff_args.engine_b, "another XLA for the second: installed:VERSION, installed:PYTHON");
  c->add_option("--target-b", diff_args.target_b, "another target for the second");
  c->add_option("-o,--out", diff_args.out, "with --engine: folder to make for both compilations, a and b");
  add_run_options(c, diff_args.how);
  c->callback([code] { *code = cmd_diff(diff_args); });
}

}  // namespace

void add_module_commands(CLI::App& app, int* code) {
  add_replay(app, code);
  add_whatif(app, code);
  add_opt(app, code);
  add_texts(app, code);
  add_exec(app, code);
  add_comparisons(app, code);
}

}  // namespace hlo
