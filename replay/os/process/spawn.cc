#include "replay/os/process/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
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
#include "replay/os/interrupt.h"

namespace hlo {
namespace {

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
  if (ends_[0] >= 0) ::fcntl(ends_[0], F_SETFD, 0);  // the programs that it runs hold it, too
  if (ends_[1] >= 0) ::close(ends_[1]);
  ends_[0] = ends_[1] = -1;  // the first stays open, and is not for this object to let go
}
void Leash::hand_to_child(posix_spawn_file_actions_t* files) const {
  if (ends_[0] >= 0) ::posix_spawn_file_actions_adddup2(files, ends_[0], ends_[0]);  // onto itself: not closed by exec
}

namespace {

// What posix_spawn is told, freed with the object.
struct Spawning {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Spawning() { ::posix_spawn_file_actions_init(&files), ::posix_spawnattr_init(&attributes); }
  ~Spawning() { ::posix_spawn_file_actions_destroy(&files), ::posix_spawnattr_destroy(&attributes); }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;
  void open(int wanted, const char* path, int flags) {
    ::posix_spawn_file_actions_addopen(&files, wanted, path, flags, 0644);
  }
};

// This process's, with what the command sets.
std::vector<std::string> environment_of(const Command& c) {
  std::vector<std::string> out;
  for (char** at = environ; at && *at; ++at) {
    const std::string_view entry = *at;
    bool set = false;
    for (const auto& [name, value] : c.environment) set |= entry.starts_with(name + "=");
    if (!set) out.emplace_back(entry);
  }
  for (const auto& [name, value] : c.environment) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& w : words) out.push_back(const_cast<char*>(w.c_str()));
  out.push_back(nullptr);
  return out;
}

// 0, or why it cannot be started. No copy of this process is made, which may have threads and files of other people's.
int start_program(const Command& c, bool group, Leash& leash, pid_t* child) {
  Spawning how;
  short flags = POSIX_SPAWN_SETSIGDEF;
  // A child has signals as they were before this process took them; handlers go by themselves.
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&how.attributes, &defaults);
  if (group) flags |= POSIX_SPAWN_SETPGROUP, ::posix_spawnattr_setpgroup(&how.attributes, 0);
  ::posix_spawnattr_setflags(&how.attributes, flags);
  if (c.silent) {
    how.open(0, "/dev/null", O_RDONLY), how.open(1, "/dev/null", O_WRONLY);
    ::posix_spawn_file_actions_adddup2(&how.files, 1, 2);
  }
  if (!c.log.empty()) {
    how.open(1, c.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
    ::posix_spawn_file_actions_adddup2(&how.files, 1, 2);
  }
  if (!c.output.empty()) {
    how.open(0, "/dev/null", O_RDONLY), how.open(1, c.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
    how.open(2, c.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  }
  leash.hand_to_child(&how.files);
  const std::vector<std::string> environment = environment_of(c);
  return ::posix_spawnp(child, c.words.at(0).c_str(), &how.files, &how.attributes, pointers(c.words).data(),
                        pointers(environment).data());
}

}  // namespace

int run_command(const Command& c) {
  if (!c.silent && c.log.empty()) std::fflush(stdout);  // what we said stands in front of what it says
  const bool group = !(c.terminal && ::isatty(STDIN_FILENO));
  Leash leash;
  pid_t child = 0;
  if (int error = start_program(c, group, leash, &child); error != 0) {
    if (error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR) return 127;
    fail(FailureKind::kIo, "cannot start {}: {}", c.words[0], std::strerror(error));
  }
  if (group) leash.tie(child), remember_group(child);
  int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), status = 0;
  bool stopped = false, late = false;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR)) break;
    // A terminal's Ctrl-C reaches both; what the program makes of it is awaited by who watches this process.
    late = c.limit_seconds > 0 &&
           std::chrono::steady_clock::now() - start > std::chrono::duration<double>(c.limit_seconds);
    if (interrupted() || late || (c.stop && *c.stop)) {
      end_child(child, group, fd);
      stopped = !late;
      break;
    }
    if (c.meanwhile) c.meanwhile();
    wait_a_little(fd);
  }
  if (fd >= 0) ::close(fd);
  if (group) forget_group(child);
  if (stopped) fail(FailureKind::kUsage, "interrupted");
  if (late) return kTimedOut;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_shell(const std::string& line, bool terminal) {
  Command c;
  c.words = {"/bin/sh", "-c", line};
  c.silent = !terminal, c.terminal = terminal;
  return run_command(c);
}

}  // namespace hlo
