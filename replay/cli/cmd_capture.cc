// capture: runs a program so that XLA dumps what it does.
#include <filesystem>

#include "replay/cli/command.h"
#include "replay/os/files.h"
#include "replay/os/program.h"

namespace hlo {
namespace fs = std::filesystem;

int cmd_capture(const CaptureArgs& a) {
  OutputFolder out(a.out, a.force, "capture", a.program);
  // The program may run in another folder.
  int code = run_under_xla(a.program, xla_dump_flags(fs::absolute(out.temporary()).string()), "");
  if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was kept");
  std::error_code error;
  if (fs::is_empty(out.temporary(), error))
    fail(FailureKind::kUsage,
         "{} dumped nothing (exit code {}): it compiled nothing with XLA, or was compiled before (a cache)",
         a.program[0], code);
  out.commit();
  if (code) fmt::print(stderr, "warning: {} ended with exit code {}\n", a.program[0], code);
  OpenArgs open;
  open.folder = a.out, open.json = a.json;
  return cmd_open(open);
}

}  // namespace hlo
