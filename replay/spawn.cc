#include "replay/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ir/base/check.h"
#include "replay/interrupt.h"

namespace hlo {
namespace {

void put_at(int wanted, const char* path, int flags) {
  int fd = ::open(path, flags, 0644);
  if (fd < 0) ::_exit(127);
  if (fd != wanted) ::dup2(fd, wanted), ::close(fd);
}

[[noreturn]] void become_program(const Command& c) {
  for (const auto& [name, value] : c.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (c.silent) put_at(0, "/dev/null", O_RDONLY), put_at(1, "/dev/null", O_WRONLY), ::dup2(1, 2);
  if (!c.log.empty()) put_at(1, c.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC), ::dup2(1, 2);
  if (!c.output.empty()) {
    put_at(0, "/dev/null", O_RDONLY);
    put_at(1, c.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC),
        put_at(2, c.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  }
  std::vector<char*> argv;
  for (const std::string& w : c.words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// Waits until the child has something to tell, or a little.
void wait_a_little(int child_fd) {
  pollfd one{child_fd, POLLIN, 0};
  ::poll(&one, child_fd >= 0 ? 1 : 0, child_fd >= 0 ? 50 : 5);
}

// A second's third for an orderly end, then none.
void end_child(pid_t child, bool group, int child_fd) {
  pid_t target = group ? -child : child;
  ::kill(target, SIGTERM);
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  bool gone = false;
  while (!gone && std::chrono::steady_clock::now() < until) {
    wait_a_little(child_fd);
    gone = ::waitpid(child, nullptr, WNOHANG) == child;
  }
  ::kill(target, SIGKILL);  // what the child leaves behind, too
  if (!gone) ::waitpid(child, nullptr, 0);
}

}  // namespace

Leash::Leash() {
  if (::pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  if (ends_[0] >= 0) ::fcntl(ends_[0], F_SETFD, 0);  // the programs hold it, too
}
Leash::~Leash() {
  if (ends_[0] < 0) return;
  ::fcntl(ends_[0], F_SETOWN, 0);
  ::close(ends_[0]), ::close(ends_[1]);
}
void Leash::tie(pid_t group) {
  if (ends_[0] < 0) return;
  // When the last writer of a pipe closes it, the kernel signals those who asked to be told.
  ::fcntl(ends_[0], F_SETOWN, -group);
  ::fcntl(ends_[0], F_SETSIG, SIGKILL);
  ::fcntl(ends_[0], F_SETFL, O_ASYNC);
}
void Leash::in_child() {
  if (ends_[1] >= 0) ::close(ends_[1]);
  ends_[0] = ends_[1] = -1;  // the first stays open, and is not for this object to let go
}

int run_command(const Command& c) {
  std::fflush(nullptr);
  const bool group = !(c.terminal && ::isatty(STDIN_FILENO));
  Leash leash;
  pid_t child = fork_tied();
  if (child < 0) fail(FailureKind::kIo, "cannot start {}: {}", c.words[0], std::strerror(errno));
  if (child == 0) {
    if (group) ::setpgid(0, 0);
    leash.in_child();
    become_program(c);
  }
  if (group) ::setpgid(child, child), leash.tie(child), remember_group(child);
  int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), status = 0;
  bool stopped = false;
  for (;;) {
    pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR)) break;
    // A terminal's Ctrl-C reaches both; what the program makes of it is awaited by who watches this process.
    if (interrupted() || (c.stop && *c.stop)) {
      end_child(child, group, fd);
      stopped = true;
      break;
    }
    wait_a_little(fd);
  }
  if (fd >= 0) ::close(fd);
  if (group) forget_group(child);
  if (stopped) fail(FailureKind::kUsage, "interrupted");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_shell(const std::string& line, bool terminal) {
  Command c;
  c.words = {"/bin/sh", "-c", line};
  c.silent = !terminal, c.terminal = terminal;
  return run_command(c);
}

}  // namespace hlo
