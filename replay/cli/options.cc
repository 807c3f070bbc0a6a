// Options that several commands share, and the debugger's commands.
#include <CLI/CLI.hpp>

#include "replay/cli/command.h"
#include "replay/os/files.h"

namespace hlo {

void add_run_options(CLI::App* c, RunArgs& a) {
  c->add_option("--backend", a.backend, "evaluator, host, emulated (GPU kernels on the CPU) or cuda");
  c->add_option("--seed", a.seed,
                "of the inputs, which are random then, also where arguments were kept with the module; from 1000000 on "
                "they reach "
                "bounds of indices, ties, zeros of both signs, infinities and NaN")
      ->each([&a](const std::string&) { a.seeded = true; });
  c->add_option("--scheme", a.scheme, "mixed or positive");
  c->add_option("--inputs", a.inputs, ".npz with arrays p0, p1 …, .npy, or text with a literal a parameter");
  c->add_flag("--fit-inputs", a.fit, "indices in range, initial values that leave sums alone");
  c->add_flag("--unique-keys", a.unique_keys, "with --fit-inputs: no duplicates among sort keys");
  c->add_option("--fill-elided", a.fill_elided,
                "values for constants that are elided ({...}): random (default), zeros or refuse");
  c->add_option("--tolerance", a.tolerance, "share of the largest magnitude, in place of the types' own");
  c->add_option("--rng-seed", a.rng_seed, "of the module's own random numbers: rng, GetRngSeed");
  c->add_option("--max-steps", a.max_steps, "refuse loops that take more");
  c->add_flag("--no-verify", a.no_verify, kNoVerifyHelp);
}

std::vector<std::string> read_by(const RunArgs& a) { return {a.file, a.inputs}; }

std::vector<std::string> read_by(const JudgeArgs& a) {
  std::vector<std::string> out = words_of_line(a.check);
  out.insert(out.end(), {a.file, a.inputs});
  return out;
}

const ExecutorInfo& checked_executor(const RunArgs& a) {
  const ExecutorInfo* executor = find_executor(a.backend);
  if (!executor)
    fail(FailureKind::kUsage, "unknown backend '{}'; there are evaluator, host, emulated and cuda", a.backend);
  if (std::string why = executor->unavailable(); !why.empty())
    fail(FailureKind::kUnsupported, "backend {}: {}", a.backend, why);
  if (a.scheme != "mixed" && a.scheme != "positive")
    fail(FailureKind::kUsage, "unknown scheme '{}'; there are mixed and positive", a.scheme);
  if (!a.fill_elided.empty() && a.fill_elided != "random" && a.fill_elided != "zeros" && a.fill_elided != "refuse")
    fail(FailureKind::kUsage, "--fill-elided is random, zeros or refuse, not '{}'", a.fill_elided);
  return *executor;
}

InputOptions input_options(const RunArgs& a) {
  InputOptions o;
  o.seed = a.seed, o.positive = a.scheme == "positive", o.file = a.inputs, o.label = o.place = a.file;
  o.fit = a.fit, o.unique_keys = a.unique_keys, o.fill_elided = a.fill_elided;
  return o;
}

EvalOptions eval_options(const RunArgs& a) {
  EvalOptions options;
  options.max_while_steps = a.max_steps;
  options.rng_seed = a.rng_seed;
  options.stop = interrupted;
  return options;
}

void add_judge_options(CLI::App* c, JudgeArgs& a) {
  add_run_options(c, a);
  c->add_option("--check", a.check, "shell command, {} is the module's file: exit 0 good, 125 unknown, others bad");
  c->add_option("--regex", a.regex, "a line of the text that matches is bad");
  c->add_flag("--verify", a.verify, "what the verifier refuses is bad");
  c->add_option("--slower", a.slower, "bad is what takes N times the first one's time")->check(CLI::PositiveNumber);
  c->add_option("--repeat", a.repeat, "ask a command N times, the majority counts")->check(CLI::Range(1, 1000));
}

JudgeOptions judge_options(const JudgeArgs& a) {
  if ((!a.check.empty()) + (!a.regex.empty()) + a.verify + (a.slower > 0) > 1)
    fail(FailureKind::kUsage, "one of --check, --regex, --verify and --slower, not several");
  JudgeOptions o;
  o.verify = a.verify, o.command = a.check, o.regex = a.regex, o.slower = a.slower, o.backend = a.backend;
  o.eval = eval_options(a), o.tolerance = a.tolerance, o.repeat = a.repeat, o.no_verify = a.no_verify;
  return o;
}

namespace {

// Of bisect, over compilations by an installed XLA.
void add_compilation_options(CLI::App* c, BisectArgs& bisect) {
  const std::string over = "Over compilations by an installed XLA";
  c->add_option("--releases", bisect.releases, "A..B: which release of jaxlib, flag and pass; newest is a release, too")
      ->group(over);
  c->add_flag("--flags", bisect.flags, "which of --xla-flags; with --releases=A..B which default that changed")
      ->group(over);
  c->add_flag("--passes", bisect.passes, "which pass, left out")->group(over);
  c->add_option("--by", bisect.by, "value (for the CPU), memory, time (bound), kernels (else), compile-time or crash")
      ->group(over);
}

void add_bisect(CLI::App& app, int* code) {
  static BisectArgs bisect;
  CLI::App* c = app.add_subcommand("bisect", "the pass, then the rewrite, that turns good into bad");
  c->footer(
      "Examples:\n"
      "  hlo-replay bisect /tmp/xla_dump                          which stage of XLA's gives other results?\n"
      "  hlo-replay bisect model.hlo --pipeline=xla-2019          which of our passes, and which of its rewrites?\n"
      "  hlo-replay bisect /tmp/xla_dump --regex='f64\\['          where does the first f64 come from?\n"
      "  hlo-replay bisect model.hlo --check='./still_right.sh {}' -o report\n"
      "  hlo-replay bisect --program='python3 train.py'           which pass of that XLA, left out, fixes it?\n"
      "  hlo-replay bisect --program='./hangs' --run-limit=30     …where it never ends\n"
      "  hlo-replay bisect model.hlo --releases=0.8.0..newest --by=kernels --target=gpu:H200\n"
      "  hlo-replay bisect model.hlo --engine=installed --passes   which pass of the installed XLA, left out, fixes "
      "it?\n"
      "Exit code 1 where something bad was found, 0 where all is good, 2 where that is unknown.");
  c->add_option("FILE", bisect.file, "a folder of stages, or a module to take through our pipeline");
  c->add_option("--program", bisect.program, "in place of FILE: a shell command that XLA compiles for; exit 0 good");
  c->add_option("--run-limit", bisect.run_limit,
                "seconds after which a run of the program is ended, as one that hangs (600 for the first, then four "
                "times what that took, 60 at least)")
      ->check(CLI::Range(0.1, 1e6));
  add_judge_options(c, bisect);
  c->add_option("--pipeline", bisect.pipeline, "for a module: xla-2019 or xla-gpu (that of the module's time)");
  c->add_option("--passes-only", bisect.only, "for a module: run only these passes");
  c->add_option("--disable-passes", bisect.disabled, "for a module: leave these out");
  c->add_option("-o,--out", bisect.out, "folder to make: both stages and the report; of --program: all stages");
  c->add_flag("--force", bisect.force, "replace it");
  c->add_option("--resume", bisect.resume, "file that keeps verdicts, to continue from after a break");
  c->add_option("--outputs", bisect.outputs,
                ".npz with what the device gave, o0, o1 …: where all stages agree with each other but not with it");
  c->add_flag("--outputs-only", bisect.outputs_only, "compare the outputs alone, not what is computed inside");
  c->add_flag("--smaller", bisect.smaller,
              "a folder's stages with small arrays, all by one choice (reduce --sizes): for programs too large to run; "
              "by itself for stages that chosen elements leave open");
  c->add_option("--memory-limit", bisect.memory_limit,
                "GiB (what is free): what takes more is compared at chosen elements, then at smaller sizes")
      ->check(CLI::Range(0.25, 1e6));
  c->add_flag("--elements", bisect.elements,
              "compare chosen elements, without running the stages (the default for what is too large to run)");
  c->add_flag(
      "--quick", bisect.quick,
      "where the last stage is good, do not look at the others; over compilations: no decision, and of flags and "
      "releases no pass");
  c->add_flag("--json", bisect.json);
  add_engine_options(c, bisect.engine);
  add_compilation_options(c, bisect);
  c->callback([code] { *code = cmd_bisect(bisect); });
}

void add_check(CLI::App& app, int* code) {
  static CheckArgs check;
  CLI::App* c = app.add_subcommand("check", "is a compiled result right, or is it rounding, or what HLO leaves open?");
  c->footer(
      "Examples:\n"
      "  hlo-replay check dump:before_optimizations --inputs=in.npz --outputs=got.npz\n"
      "  hlo-replay check before.hlo --inputs=in.npz --outputs=got.npz --dump=dump   a wrong one: which stage "
      "differs?\n"
      "  hlo-replay check before.hlo --inputs=in.npz --outputs=got.npz --reference=eager.npz\n"
      "  hlo-replay check dump --kernels=dump   each kernel that XLA emitted (.ptx), alone on a GPU, against the "
      "evaluator\n"
      "Right means: as the module that XLA was given. What is wrong before it, --reference shows.\n"
      "Exit code 1 where it is wrong, or the reference is something else; 0 where it is right, rounded, or decided by "
      "what HLO leaves open; 2 where that is unknown, as where a kernel was not run.");
  c->add_option("FILE", check.file, "the module before any pass; with --kernels a dump, DIR or DIR:MODULE")->required();
  CLI::Option* kernels =
      c->add_option("--kernels", check.kernels,
                    "dump: XLA's own kernels (MODULE.N.ptx next to the final module, its buffer assignment and thunks) "
                    "are launched alone on a GPU, on random inputs, between guard zones")
          ->check(CLI::IsMember({"dump"}));
  c->add_option("--only", check.only, "with --kernels: those whose name, or their instruction's, holds this word")
      ->needs(kernels);
  c->add_option("--seed", check.seed, "of the random inputs")->needs(kernels);
  c->add_option("--tolerance", check.tolerance, "share of the largest magnitude, in place of the types' own")
      ->needs(kernels);
  c->add_option("--inputs", check.inputs, ".npz with arrays p0, p1 …: what the compiled module was given");
  c->add_option("--outputs", check.outputs, ".npz with arrays o0, o1 …: what it gave");
  c->add_option("--reference", check.reference,
                ".npz with arrays o0, o1 …: what the program gives without this compilation (jax operation by "
                "operation): what is wrong already in the module that XLA was given");
  c->add_option("--dump", check.dump, "its stages: where something is wrong, bisect asks which one differs");
  c->add_option("--fill-elided", check.fill_elided,
                "values for constants that are elided ({...}): random (default), zeros or refuse");
  c->add_option("--max-steps", check.max_steps, "refuse loops that take more");
  c->add_flag("--no-verify", check.no_verify, kNoVerifyHelp);
  c->add_flag("--json", check.json);
  c->callback([code] { *code = cmd_check(check); });
}

void add_capture(CLI::App& app, int* code) {
  static CaptureArgs capture;
  CLI::App* c = app.add_subcommand(
      "capture", "run a program (jax, TensorFlow, PyTorch/XLA) and keep every stage of what it compiles");
  c->footer(
      "Examples:\n"
      "  hlo-replay capture -o /tmp/xla_dump -- python3 train.py\n"
      "  hlo-replay capture -o /tmp/xla_dump --arguments=all -- python3 train.py\n"
      "  hlo-replay capture --hook=/tmp/hook                       for programs that others start: prints what to set");
  c->add_option("-o,--out", capture.out, "folder to make (xla_dump)");
  c->add_flag("--force", capture.force, "replace it");
  c->add_option("--arguments", capture.arguments,
                "what functions of jax are called with first: none, small (256 MiB together, the default) or all")
      ->check(CLI::IsMember({"none", "small", "all"}));
  c->add_flag("--no-arguments", capture.no_arguments, "--arguments=none");
  c->add_option(
      "--hook", capture.hook,
      "folder to make, in place of running a program: with it in PYTHONPATH every Python process dumps and keeps "
      "its arguments below $HLO_REPLAY_CAPTURE");
  c->add_flag("--json", capture.json);
  c->add_option("COMMAND", capture.program, "after --");
  c->callback([code] { *code = cmd_capture(capture); });
}

void add_reduce(CLI::App& app, int* code) {
  static ReduceArgs reduce;
  CLI::App* c = app.add_subcommand("reduce", "the smallest module that still goes wrong");
  c->footer(
      "Examples:\n"
      "  hlo-replay reduce model.hlo --passes=algsimp -o bug       results differ after these passes\n"
      "  hlo-replay reduce model.hlo --check='./fine.sh {}' -o bug  what the command says is bad (exit code other than "
      "0)\n"
      "  hlo-replay reduce model.hlo --nan -o bug                  a NaN that no operand has or, where there is none, "
      "an infinity\n"
      "  hlo-replay reduce model.hlo --sizes -o small.hlo           the same program with small arrays\n"
      "The folder holds the module, its inputs, how to run it, and a script for jax. To continue later, reduce what it "
      "holds.\n"
      "Exit code 0 where it was reduced, 1 where no size can be cut, 2 where nothing is wrong with the module as it "
      "came.");
  c->add_option("FILE", reduce.file, "module or stage; with --sizes a folder of stages, too")->required();
  add_judge_options(c, reduce);
  c->add_flag(
      "--sizes", reduce.sizes,
      "the same program with small arrays, in a file (-o) that runs in about a second; of a folder all stages, by "
      "one choice, into a folder");
  c->add_option("--keep", reduce.keep, "with --sizes: sizes that stay, as 128,4096")->delimiter(',');
  c->add_option("--work", reduce.work, "with --sizes: operations and bytes that the first stage may take (3e8)")
      ->check(CLI::PositiveNumber);
  c->add_option("--passes", reduce.passes, "a,b{option=value}: what they leave must give other results, or they fail");
  c->add_option("--pipeline", reduce.pipeline, "the same for a whole pipeline");
  c->add_flag("--nan", reduce.nan, "an instruction makes a NaN that no operand has or, where none does, an infinity");
  c->add_flag("--keep-shapes", reduce.keep_shapes, "leave dimensions and counts as they are");
  c->add_flag("--scrub", reduce.scrub, "take the program's names and paths out");
  c->add_option("--most", reduce.most, "candidates to try");
  c->add_option("-j,--jobs", reduce.jobs, "N candidates at once, each in its own process; the result is the same")
      ->check(CLI::Range(1, 256));
  c->add_option("-o,--out", reduce.out,
                "folder to make (NAME.reduced); with --sizes of a file the file (NAME.smaller.hlo)");
  c->add_flag("--force", reduce.force, "replace it");
  c->add_flag("--json", reduce.json);
  c->callback([code] { *code = cmd_reduce(reduce); });
}

void add_explain(CLI::App& app, int* code) {
  static ExplainArgs explain;
  CLI::App* c = app.add_subcommand("explain", "what became of an instruction, why two did not fuse, what a pass did");
  c->footer(
      "Examples:\n"
      "  hlo-replay explain /tmp/xla_dump dot.5              its history through every stage, buffer, thunk, source\n"
      "  hlo-replay explain out --why-not add.1 reduce.2     the last decision of fusion about both, names of any "
      "stage\n"
      "  hlo-replay explain out --why-not add.1 reduce.2 --raw  and all of them as they are recorded\n"
      "  hlo-replay explain /tmp/xla_dump fused_computation  who calls a computation, what it holds, which pass made "
      "it\n"
      "  hlo-replay explain out --pass algsimp               what each run did, rule by rule\n"
      "Exit code 1: no decision about the two instructions is recorded.");
  c->add_option("DIR", explain.file, "a recording or a folder that XLA dumped")->required();
  c->add_option("INSTRUCTION", explain.instruction,
                "name of an instruction in any stage, of a computation, or of a command buffer");
  c->add_option("--why-not", explain.why_not, "names of two instructions: the last decision about fusing them")
      ->expected(2);
  c->add_flag("--raw", explain.raw, "with --why-not: all decisions, as they were recorded");
  c->add_option("--pass", explain.pass, "name of a pass: what each run of it did");
  c->add_flag("--frames", explain.frames, "print the whole stack of the source line");
  c->add_option("--trace,--profile", explain.trace,
                "times of a run: .xplane.pb, trace events (.json, .gz), or a table of nsys or nvprof (.csv)");
  c->add_flag("--json", explain.json);
  c->callback([code] { *code = cmd_explain(explain); });
}

void add_extract(CLI::App& app, int* code) {
  static ExtractArgs extract;
  CLI::App* c = app.add_subcommand("extract", "an instruction and what it is computed from, as a module that runs");
  c->footer("Example:\n  hlo-replay extract model.hlo fusion.12 --hops=0 -o fusion.hlo --inputs-out=fusion.npz");
  c->add_option("FILE", extract.file, "module or stage")->required();
  c->add_option("INSTRUCTION", extract.instruction, "its name");
  c->add_option("--constants", extract.constants,
                ".npz for all constants of FILE, and a snapshot's arguments as p0, p1 …");
  add_run_options(c, extract);
  c->add_option("--hops", extract.hops, "operands of operands to take along (all)");
  c->add_option("-o,--out", extract.out, "file to write (standard output)");
  c->add_option("--inputs-out", extract.inputs_out, ".npz with the values that a run of FILE gives its parameters");
  c->add_flag("--json", extract.json, "what was written, and the module's text where no file is named");
  c->callback([code] { *code = cmd_extract(extract); });
}

void add_step(CLI::App& app, int* code) {
  static StepArgs step;
  CLI::App* c = app.add_subcommand("step", "a pipeline as in a debugger: next, back, break, print, diff, exec, edit");
  c->footer(
      "Examples:\n"
      "  hlo-replay step model.hlo\n"
      "  printf 'until algsimp\\nnotes\\ndiff\\nexec\\n' | hlo-replay step model.hlo\n"
      "  hlo-replay step out:1:7 --from=reshape-mover             continue from a stage, edited or not\n"
      "help at its prompt lists the commands.");
  c->add_option("FILE", step.file, "module or stage")->required();
  c->add_option("--pipeline", step.pipeline, "xla-2019 or xla-gpu (that of the module's time)");
  c->add_option("--from", step.from, "leave out what comes before the first run of this pass");
  c->add_option("--disable-passes", step.disabled, "leave these out");
  add_run_options(c, step.how);
  c->callback([code] { *code = cmd_step(step); });
}

void add_link(CLI::App& app, int* code) {
  static LinkArgs link;
  CLI::App* c = app.add_subcommand("link", "the modules of one run as one graph: which result feeds which parameter");
  c->footer(
      "Examples:\n"
      "  hlo-replay link /tmp/xla_dump                                 every module of a folder\n"
      "  hlo-replay link add.hlo mul.hlo --edge=0.o0=1.p0 --emit=both.hlo\n"
      "  hlo-replay link /tmp/dump --graph=after_clustering.pbtxt -o run.svg\n"
      "  hlo-replay link --graph=graph.pbtxt -o graph.png              a TensorFlow graph alone\n"
      "Confidence above 50 % counts as a link; what several pairs fit equally is called ambiguous.");
  c->add_option("FILE", link.files, "modules in the order in which they run, snapshots, or folders");
  c->add_option("--graph", link.graph, "TensorFlow GraphDef, .pbtxt: makes edges between clusters exact");
  c->add_option("--edge", link.edges, "A.oI=B.pJ: result I of module A feeds parameter J of B (numbers or names)")
      ->allow_extra_args(false);
  c->add_option("--emit", link.emit, "write one module that runs all");
  c->add_option("-o,--out", link.out, ".dot .svg .png .html or .json");
  c->add_option("--least", link.least, "confidence below which pairs are not shown (0.1)");
  c->add_flag("--force", link.force, "replace existing files");
  c->add_flag("--json", link.json);
  c->callback([code] { *code = cmd_link(link); });
}

void add_isolate(CLI::App& app, int* code) {
  static IsolateArgs isolate;
  CLI::App* c = app.add_subcommand(
      "isolate", "every distinct fusion, call of a library and large operation, alone, run and compared");
  c->footer("Example:\n  hlo-replay isolate /tmp/xla_dump:after_optimizations -o kernels");
  c->add_option("FILE", isolate.file, "module or stage")->required();
  add_run_options(c, isolate);
  c->add_option("-o,--out", isolate.out, "folder to make: a module and its inputs a fusion");
  c->add_option("--against", isolate.reference, "backend that results are compared with (evaluator)");
  c->add_flag("--force", isolate.force, "replace it");
  c->add_flag("--json", isolate.json);
  c->callback([code] { *code = cmd_isolate(isolate); });
}

void add_occupancy(CLI::App& app, int* code) {
  static OccupancyArgs occupancy;
  CLI::App* c = app.add_subcommand(
      "occupancy", "registers, blocks and occupancy of every kernel, what limits it, whether it matters");
  c->footer(
      "Examples:\n  hlo-replay occupancy out:after_optimizations --gpu=A10G,H100   kernels that hlo-replay makes of "
      "it\n"
      "  hlo-replay occupancy /tmp/xla_dump                             XLA's own, where the folder has .ptx files\n"
      "Needs ptxas of the CUDA toolkit.");
  c->add_option("FILE", occupancy.file, "module or stage, a .ptx, or a folder: XLA's own .ptx where it has them")
      ->required();
  c->add_option("--gpu", occupancy.gpus, "T4, V100, A10G, A100, L4, RTX4090, H100, H200; several with commas");
  c->add_flag("--json", occupancy.json);
  c->callback([code] { *code = cmd_occupancy(occupancy); });
}

}  // namespace

void add_debug_commands(CLI::App& app, int* code) {
  add_bisect(app, code);
  add_check(app, code);
  add_capture(app, code);
  add_reduce(app, code);
  add_explain(app, code);
  add_extract(app, code);
  add_step(app, code);
  add_link(app, code);
  add_isolate(app, code);
  add_occupancy(app, code);
}

}  // namespace hlo
