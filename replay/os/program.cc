#include "replay/os/program.h"

#include <cstdlib>

#include "ir/base/check.h"
#include "replay/os/spawn.h"

namespace hlo {
namespace {

std::string flags_set() {
  const char* set = std::getenv("XLA_FLAGS");
  return set ? set : "";
}

}  // namespace

std::string xla_dump_flags(const std::string& folder) {
  return fmt::format(
      "--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_large_constants "
      "--xla_dump_module_metadata",
      folder);
}

std::string xla_flag_set(const std::string& flag) { return xla_flag_in(flags_set(), flag); }

std::string xla_flag_in(const std::string& all, const std::string& flag) {
  std::string wanted = "--" + flag + "=";
  size_t at = all.rfind(wanted);
  if (at == std::string::npos) return {};
  at += wanted.size();
  return all.substr(at, all.find_first_of(" \t\n", at) - at);
}

int run_under_xla(const std::vector<std::string>& words, const std::string& flags, const std::string& log,
                  double limit_seconds) {
  std::string all = flags_set();
  if (!all.empty()) all += " ";
  all += flags;
  Command command;
  command.words = words, command.log = log, command.terminal = true, command.limit_seconds = limit_seconds;
  command.environment = {{"XLA_FLAGS", all}, {"JAX_ENABLE_COMPILATION_CACHE", "false"}};
  int code = run_command(command);
  if (code == 127) fail(FailureKind::kUsage, "cannot run {}", words[0]);
  return code;
}

}  // namespace hlo
