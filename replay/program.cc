#include "replay/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "ir/base/check.h"

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

std::string xla_flag_set(const std::string& flag) {
  std::string all = flags_set(), wanted = "--" + flag + "=";
  size_t at = all.rfind(wanted);
  if (at == std::string::npos) return {};
  at += wanted.size();
  return all.substr(at, all.find_first_of(" \t\n", at) - at);
}

int run_under_xla(const std::vector<std::string>& words, const std::string& flags, const std::string& log) {
  std::string all = flags_set();
  if (!all.empty()) all += " ";
  all += flags;
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) fail(FailureKind::kIo, "cannot start {}", words[0]);
  if (child == 0) {
    ::setenv("XLA_FLAGS", all.c_str(), 1);
    ::setenv("JAX_ENABLE_COMPILATION_CACHE", "false", 1);
    if (!log.empty()) {
      int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (fd >= 0) ::dup2(fd, 1), ::dup2(fd, 2), ::close(fd);
    }
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail(FailureKind::kIo, "lost {}", words[0]);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127) fail(FailureKind::kUsage, "cannot run {}", words[0]);
  return code;
}

}  // namespace hlo
