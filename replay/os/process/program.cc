#include "replay/os/process/program.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "ir/base/check.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"

namespace hlo {

int run_under_xla(const std::vector<std::string>& words, const std::string& flags, const std::string& log,
                  const std::vector<std::string>& without, double limit_seconds, const KeptByProgram& kept) {
  std::string all = xla_flags_set();
  if (!all.empty()) all += " ";
  all += flags;
  if (!without.empty()) all = without_xla_flags(all, without);
  Command command;
  command.words = words, command.log = log, command.terminal = true, command.limit_seconds = limit_seconds;
  command.environment = {{"XLA_FLAGS", all}, {"JAX_ENABLE_COMPILATION_CACHE", "false"}};
  std::optional<TemporaryFolder> hook;
  if (!kept.folder.empty()) {
    hook.emplace();
    write_file(hook->path() + "/sitecustomize.py", kArgumentHook);
    const char* set = std::getenv("PYTHONPATH");
    command.environment.emplace_back("PYTHONPATH", hook->path() + (set && *set ? ":" + std::string(set) : ""));
    command.environment.emplace_back("HLO_REPLAY_KEPT", std::filesystem::absolute(kept.folder).string());
    command.environment.emplace_back("HLO_REPLAY_ARGUMENTS", kept.arguments);
  }
  int code = run_command(command);
  if (code == 127) fail(FailureKind::kUsage, "cannot run {}", words[0]);
  return code;
}

}  // namespace hlo
