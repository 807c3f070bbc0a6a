#include "replay/os/progress.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "replay/os/terminal.h"

namespace hlo {
namespace {

using ProgressClock = std::chrono::steady_clock;

struct Activity {
  const Progress* owner;
  std::string what, detail;
  size_t done = 0, all = 0;
  ProgressClock::time_point start = ProgressClock::now();
};

// Never destroyed: the painting thread outlives main's objects.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Activity> activities;
  std::atomic<bool> terminal = false;  // there is one, and the program wants to be shown on it
  bool painted = false, thread = false;
  pid_t process = ::getpid();  // a forked child paints nothing
};
Board& board() {
  static Board* const one = new Board;
  return *one;
}

void put_on_terminal(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

void wipe(Board& b) {
  if (b.painted) put_on_terminal("\r\x1b[K");
  b.painted = false;
}

void paint(Board& b) {
  if (b.activities.empty()) return;
  const Activity& a = b.activities.front();
  double seconds = std::chrono::duration<double>(ProgressClock::now() - a.start).count();
  if (seconds < 1) return;
  std::string line;
  if (a.all) {
    constexpr size_t kWidth = 20;
    size_t full = std::min(a.done, a.all) * kWidth / a.all;
    line = fmt::format("[{}{}] {}/{} ", std::string(full, '='), std::string(kWidth - full, ' '), a.done, a.all);
  } else if (a.done) {
    line = fmt::format("{} ", a.done);
  }
  line += fmt::format("{} {:.0f} s", printable(a.what), seconds);
  if (a.all && a.done)
    line += fmt::format(", {:.0f} s to go",
                        seconds / static_cast<double>(a.done) * static_cast<double>(a.all - std::min(a.done, a.all)));
  const std::string& detail = b.activities.size() > 1 ? b.activities.back().what : a.detail;
  if (!detail.empty()) line += "  " + printable(detail);
  std::replace(line.begin(), line.end(), '\n', ' ');
  winsize size{};
  size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
  if (line.size() > columns) line.resize(columns);
  put_on_terminal("\r" + line + "\x1b[K");
  b.painted = true;
}

void paint_on() {
  Board& b = board();
  std::unique_lock<std::mutex> lock(b.mutex);
  for (;;) {
    if (b.activities.empty()) b.changed.wait(lock);
    b.changed.wait_for(lock, std::chrono::milliseconds(250), [] { return false; });
    paint(b);
  }
}

thread_local ProgressSink* t_sink = nullptr;

}  // namespace

ProgressSink::ProgressSink(Hear hear) : hear_(std::move(hear)), outer_(t_sink) { t_sink = this; }
ProgressSink::~ProgressSink() { t_sink = outer_; }

void Progress::show() { board().terminal = ::isatty(STDERR_FILENO) == 1; }

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (t_sink) t_sink->hear_(what_, 0, 0);
  Board& b = board();
  if (!b.terminal || b.process != ::getpid()) return;
  const std::lock_guard<std::mutex> lock(b.mutex);
  b.activities.push_back({this, what_, {}});
  if (!b.thread) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are not for this thread
    std::thread(paint_on).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    b.thread = true;
  }
  b.changed.notify_one();
}

Progress::~Progress() {
  Board& b = board();
  if (!b.terminal || b.process != ::getpid()) return;
  const std::lock_guard<std::mutex> lock(b.mutex);
  std::erase_if(b.activities, [this](const Activity& a) { return a.owner == this; });
  wipe(b);
}

void Progress::at(size_t done, size_t all, std::string_view detail) {
  if (t_sink) t_sink->hear_(what_, done, all);
  Board& b = board();
  if (!b.terminal || b.process != ::getpid()) return;
  const std::lock_guard<std::mutex> lock(b.mutex);
  for (Activity& a : b.activities)
    if (a.owner == this) a.done = done, a.all = all, a.detail = detail;
}

void Progress::clear() {
  Board& b = board();
  if (!b.terminal || b.process != ::getpid()) return;
  const std::lock_guard<std::mutex> lock(b.mutex);
  wipe(b);
}

}  // namespace hlo
