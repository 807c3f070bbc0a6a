// capture: runs a program so that XLA dumps what it does.
#include <csignal>
#include <filesystem>

#include "replay/cli/command.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/process/program.h"
#include "replay/os/temporary.h"

namespace hlo {
namespace fs = std::filesystem;

namespace {

// For programs that others start: the folder stands first in PYTHONPATH, HLO_REPLAY_CAPTURE names where the dump goes.
int write_hook(const CaptureArgs& a) {
  if (!a.program.empty() || a.json) fail(FailureKind::kUsage, "--hook={} goes without a program and --json", a.hook);
  OutputFolder out(a.hook, a.force, "capture", {});
  out.write("sitecustomize.py", kArgumentHook);
  out.commit();
  fmt::print("export PYTHONPATH={}${{PYTHONPATH:+:$PYTHONPATH}} HLO_REPLAY_CAPTURE=FOLDER\n",
             shell_word(fs::absolute(a.hook).string()));
  return kYes;
}

}  // namespace

int cmd_capture(const CaptureArgs& a) {
  if (!a.hook.empty()) return write_hook(a);
  if (a.program.empty()) fail(FailureKind::kUsage, "a program must follow --, or --hook=FOLDER be given");
  OutputFolder out(a.out, a.force, "capture", a.program);
  // The program may run in another folder.
  const std::string folder = fs::absolute(out.temporary()).string();
  std::string flags = xla_dump_flags(folder);
  if (xla_flag_set("xla_gpu_dump_autotune_results_to").empty())
    flags += fmt::format(" --xla_gpu_dump_autotune_results_to={}/autotune_results.pbtxt", folder);
  TemporaryFolder kept;
  const KeptByProgram keep{kept.path(), a.no_arguments ? "none" : a.arguments};
  int code = run_under_xla(a.program, flags, "", {}, 0, keep);
  if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was kept");
  std::error_code error;
  // An XLA that does not know a flag aborts with its name before it does anything.
  if (code == 128 + SIGABRT && fs::is_empty(out.temporary(), error)) {
    TemporaryFolder scratch;
    const std::string log = scratch.path() + "/log";
    run_under_xla(a.program, flags, log);
    const std::vector<std::string> unknown = unknown_xla_flags(read_file(log));
    if (!unknown.empty() && !interrupted()) {
      fmt::print(stderr, "warning: this XLA does not know {}: left out, and {} is run again\n", fmt::join(unknown, " "),
                 a.program[0]);
      code = run_under_xla(a.program, flags, "", unknown, 0, keep);
    }
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was kept");
  }
  if (fs::is_empty(out.temporary(), error))
    fail(FailureKind::kUsage,
         "{} dumped nothing (exit code {}): it compiled nothing with XLA, or was compiled before (a cache)",
         a.program[0], code);
  for (const fs::directory_entry& e : fs::directory_iterator(kept.path(), error))
    fs::copy_file(e.path(), out.temporary() + "/" + e.path().filename().string(), error);
  out.commit();
  if (code) fmt::print(stderr, "warning: {} ended with exit code {}\n", a.program[0], code);
  OpenArgs open;
  open.folder = a.out, open.json = a.json;
  return cmd_open(open);
}

}  // namespace hlo
