#include "replay/os/interrupt.h"

#include <semaphore.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "ir/base/check.h"

namespace hlo {
namespace {

constexpr int kAsking[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> g_asked{0};
std::atomic<bool> g_late{false}, g_answering{false};
std::atomic<bool> g_may_fork{false};
sem_t g_asked_once_more;
thread_local InterruptSource* t_source = nullptr;

// Never destroyed: the watching thread may run while the process exits.
struct Remembered {
  std::mutex mutex;
  std::vector<std::string> temporaries;
  std::vector<pid_t> groups;
  std::optional<std::chrono::system_clock::time_point> end;  // as sem_timedwait counts
  std::function<int()> answer;
};
Remembered*& remembered_here() {
  static Remembered* all = new Remembered;
  return all;
}
Remembered& remembered() { return *remembered_here(); }

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
  if (all.answer) {
    // Who reads it may have stopped to.
    std::signal(SIGALRM, [](int) { ::_exit(2); });
    ::alarm(1);
    ::_exit(all.answer());
  }
  constexpr char kSaid[] = "error: interrupted\n";
  ssize_t unheard = ::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  (void)unheard;
  ::_exit(2);
}

// Until a signal has come beyond the first `signals`, or the time has.
void wait_asked(int signals, const std::function<std::optional<std::chrono::system_clock::time_point>()>& until) {
  using std::chrono::nanoseconds;
  while (g_asked <= signals) {
    const auto end = until();
    if (!end) {
      ::sem_wait(&g_asked_once_more);
      continue;
    }
    if (*end <= std::chrono::system_clock::now()) return;
    const int64_t at = std::chrono::duration_cast<nanoseconds>(end->time_since_epoch()).count();
    const timespec then{at / 1'000'000'000, at % 1'000'000'000};
    ::sem_timedwait(&g_asked_once_more, &then);
  }
}

void watch_interrupts() {
  wait_asked(0, [] {
    Remembered& all = remembered();
    const std::lock_guard<std::mutex> lock(all.mutex);
    return all.end;
  });
  g_late = g_asked == 0;
  // The first one asks for an orderly end, a second one does not wait for it. A large process takes a while to go, too.
  const auto now = std::chrono::system_clock::now();
  const int signals = g_late ? 0 : 1;
  wait_asked(signals, [&] { return std::optional(now + std::chrono::milliseconds(300)); });
  if (g_answering)  // what is over in time may take its time to be read
    wait_asked(signals, [&] { return g_late ? std::nullopt : std::optional(now + std::chrono::seconds(1)); });
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
  g_asked = 0, g_late = false;
  if (!tied) return 0;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(2);  // it went meanwhile
  return 0;
}

}  // namespace

bool interrupted() {
  return g_asked.load(std::memory_order_relaxed) != 0 || g_late.load(std::memory_order_relaxed) ||
         (t_source && t_source->ask_());
}
bool time_is_up() { return g_late; }

EndsAfter::EndsAfter(double seconds) {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  // Nobody waits for more than a year.
  const std::chrono::duration<double> longest = std::chrono::hours(24 * 366);
  all.end = std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                                   std::min(longest, std::chrono::duration<double>(seconds)));
  ::sem_post(&g_asked_once_more);
}
EndsAfter::~EndsAfter() {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.end.reset();
}

LastAnswer::LastAnswer(std::function<int()> say) {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.answer = std::move(say);
}
LastAnswer::~LastAnswer() {
  Remembered& all = remembered();
  const std::lock_guard<std::mutex> lock(all.mutex);  // for ever where it is being said
  all.answer = nullptr;
  g_answering = true;
}

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
pid_t fork_watched() {
  const pid_t child = fork_as(true);
  if (child != 0) return child;
  // The parent's may be held by a thread that this copy does not have.
  remembered_here() = new Remembered;
  g_answering = false;
  catch_interrupts();
  return 0;
}

}  // namespace hlo
