#include "replay/os/interrupt.h"

#include <semaphore.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "ir/base/check.h"

namespace hlo {
namespace {

constexpr int kAsking[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> g_asked{0};
std::atomic<bool> g_may_fork{false};
sem_t g_asked_once_more;
thread_local InterruptSource* t_source = nullptr;

// Never destroyed: the watching thread may run while the process exits.
struct Remembered {
  std::mutex mutex;
  std::vector<std::string> temporaries;
  std::vector<pid_t> groups;
};
Remembered& remembered() {
  static Remembered* const all = new Remembered;
  return *all;
}

void ask_to_end(int) {
  int before = errno;
  g_asked.fetch_add(1);
  ::sem_post(&g_asked_once_more);
  errno = before;
}

[[noreturn]] void end_at_once() {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);  // kept: nothing is made or renamed any more
  for (pid_t group : all.groups) ::kill(-group, SIGKILL);
  std::error_code ignored;
  for (const std::string& path : all.temporaries)
    for (int round = 0; round < 3 && std::filesystem::exists(path, ignored); ++round)
      std::filesystem::remove_all(path, ignored);
  constexpr char kSaid[] = "error: interrupted\n";
  ssize_t unheard = ::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  (void)unheard;
  ::_exit(2);
}

void wait_asked() {
  while (::sem_wait(&g_asked_once_more) != 0 && errno == EINTR) {
  }
}

void watch_interrupts() {
  wait_asked();
  // The first one asks for an orderly end, a second one does not wait for it.
  timespec end{};
  ::clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += 300'000'000;  // a large process takes a while to go, too
  end.tv_sec += end.tv_nsec / 1'000'000'000, end.tv_nsec %= 1'000'000'000;
  while (::sem_timedwait(&g_asked_once_more, &end) != 0 && errno == EINTR) {
  }
  end_at_once();
}

pid_t fork_as(bool tied) {
  if (!g_may_fork)
    fail(FailureKind::kUnsupported, "children of ours are for the program hlo-replay: not in this process");
  const pid_t parent = ::getpid();
  pid_t child = ::fork();
  if (child != 0) return child;
  for (int signal : kAsking) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
  }
  std::signal(SIGPIPE, SIG_DFL);
  g_asked = 0;
  if (!tied) return 0;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(2);  // it went meanwhile
  return 0;
}

}  // namespace

bool interrupted() { return g_asked.load(std::memory_order_relaxed) != 0 || (t_source && t_source->ask_()); }

InterruptSource::InterruptSource(std::function<bool()> ask) : ask_(std::move(ask)), outer_(t_source) {
  t_source = this;
}
InterruptSource::~InterruptSource() { t_source = outer_; }

bool may_fork() { return g_may_fork; }

void catch_interrupts() {
  g_may_fork = true;
  remembered();
  ::sem_init(&g_asked_once_more, 0, 0);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread takes no signals
  std::thread(watch_interrupts).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (int signal : kAsking) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (signal == SIGHUP && now.sa_handler == SIG_IGN) continue;  // nohup
    now = {};
    now.sa_handler = ask_to_end, now.sa_flags = SA_RESTART;
    ::sigaction(signal, &now, nullptr);
  }
}

void remember_temporary(const std::string& path) {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.temporaries.push_back(path);
}
void forget_temporary(const std::string& path) {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase(all.temporaries, path);
}
void remember_group(pid_t group) {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.groups.push_back(group);
}
void forget_group(pid_t group) {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase(all.groups, group);
}

pid_t fork_tied() { return fork_as(true); }
pid_t fork_loose() { return fork_as(false); }

}  // namespace hlo
