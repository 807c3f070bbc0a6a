// Options of triage.
#include <CLI/CLI.hpp>

#include "replay/cli/triage/triage.h"

namespace hlo {

void add_triage_command(CLI::App& app, int* code) {
  static TriageArgs triage;
  CLI::App* c = app.add_subcommand("triage", "from \"it is wrong\" to the cause: verdict, how sure, what was tried");
  c->footer(
      "Examples:\n"
      "  hlo-replay triage /tmp/xla_dump                          wrong results: which stage, pass, instruction?\n"
      "  hlo-replay triage /tmp/xla_dump:train_step --inputs=in.npz --outputs=got.npz -o report\n"
      "  hlo-replay triage model.hlo --complaint=nan              who makes the first NaN?\n"
      "  hlo-replay triage crash.log                              what a crash printed; - for standard input\n"
      "  hlo-replay triage /tmp/xla_dump --log=crash.log          the stages of what crashed, too\n"
      "  hlo-replay triage rank0 rank1 rank2                      where the programs of ranks part\n"
      "  hlo-replay triage run0 run1 --complaint=not-reproducible --outputs=o0.npz --outputs-again=o1.npz\n"
      "  hlo-replay triage --time-limit=300 -- python3 train.py   a program, run under XLA's dump flags\n"
      "Verdicts: fault (of a pass), contract (HLO leaves it open), rounding, program (its own), below (HLO), nothing,\n"
      "unknown; sure: proved, tested (on N inputs), guessed. With -o a second run continues where one was "
      "stopped.\n"
      "Exit code 1: fault, program or below; 0: contract, rounding or nothing wrong; 2: unknown, unreadable, stopped.");
  c->add_option("WHAT", triage.what, "DIR, DIR:MODULE, a module, a log, - or after -- a program; of ranks all folders")
      ->required();
  c->add_option("--complaint", triage.complaint,
                "wrong, nan, crash, hang, memory, slow, compile-time, ranks-differ, not-reproducible (seen from WHAT)");
  c->add_option("--log", triage.log, "what it printed, next to a dump");
  c->add_option("--outputs", triage.outputs, ".npz with what the device gave, o0, o1 …");
  c->add_option("--outputs-again", triage.again,
                "of not-reproducible: .npz with what another run gave, next to --outputs");
  c->add_option("--releases", triage.releases, "A..B: with --engine=installed, which release of jaxlib changes it");
  c->add_option("--gpu", triage.gpu, "GPU, for memory and slow (what the dump was compiled for)");
  c->add_option("--memory-limit", triage.memory_limit, "GiB for a step (8, or four fifths of what is free)")
      ->check(CLI::PositiveNumber);
  c->add_option("-o,--out", triage.out, "folder to make: a report, and what a later run continues from");
  c->add_flag("--force", triage.force, "replace it");
  c->add_flag("--json", triage.json);
  add_run_options(c, triage);
  add_engine_options(c, triage.engine);
  c->get_option("--time-limit")->description("seconds for all steps together (120)");
  c->callback([code] { *code = cmd_triage(triage); });
}

}  // namespace hlo
