#include "work.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>

namespace nb = nanobind;

namespace hlo::python {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50), kPatience = std::chrono::milliseconds(700);

thread_local Work* t_work = nullptr;
std::atomic<int> g_left{0};  // threads that nobody waits for any more

// The process ends while such a thread works: what it works with must not be destroyed under it.
void end_at_once(int status, void*) {
  if (!g_left) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

bool Work::stopped() {
  if (!t_work) return false;
  std::lock_guard lock(t_work->mutex_);
  return t_work->stop_;
}

void Work::call_back(const std::function<void()>& f) {
  Work* work = t_work;
  if (!work) return f();
  std::unique_lock lock(work->mutex_);
  if (work->stop_) throw Ended();
  work->asked_ = &f;
  work->changed_.notify_all();
  work->changed_.wait(lock, [&] { return !work->asked_ || work->left_; });
  work->asked_ = nullptr;
  if (work->stop_) throw Ended();
}

void Work::run(std::function<void()> f) {
  std::thread thread([self = shared_from_this(), f = std::move(f)]() mutable {
    t_work = self.get();
    std::exception_ptr failed;
    try {
      f();
    } catch (...) {
      failed = std::current_exception();
    }
    f = nullptr;  // what it owns goes before the caller hears of the end
    std::lock_guard lock(self->mutex_);
    if (self->left_)
      --g_left;
    else
      self->failed_ = failed;
    self->done_ = true;
    self->changed_.notify_all();
  });
  wait();
  std::exception_ptr raised = std::exchange(raised_, nullptr);
  bool done;
  {
    std::lock_guard lock(mutex_);
    done = done_;
    if (!done) {
      static const int registered = on_exit(end_at_once, nullptr);
      static_cast<void>(registered);
      left_ = true, ++g_left;
      changed_.notify_all();
    }
  }
  if (done)
    thread.join();
  else
    thread.detach();
  if (raised) std::rethrow_exception(raised);
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void Work::wait() {
  nb::gil_scoped_release without;
  std::unique_lock lock(mutex_);
  auto look = Clock::now() + kBetweenLooks;
  std::optional<Clock::time_point> patience;
  while (!done_) {
    changed_.wait_until(lock, look, [&] { return done_ || asked_; });
    if (done_) break;
    if (asked_) answer(lock);
    if (Clock::now() >= look) {
      if (!raised_) look_for_signals(lock);
      look = Clock::now() + kBetweenLooks;
    }
    if (raised_ && !patience) patience = Clock::now() + kPatience;
    if (patience && Clock::now() > *patience) return;
  }
}

void Work::answer(std::unique_lock<std::mutex>& lock) {
  const std::function<void()>* f = asked_;
  if (!stop_) {
    lock.unlock();
    std::exception_ptr raised;
    {
      nb::gil_scoped_acquire with;
      try {
        (*f)();
      } catch (...) {
        raised = std::current_exception();
      }
    }
    lock.lock();
    if (raised) raised_ = raised, stop_ = true;
  }
  asked_ = nullptr;
  changed_.notify_all();
}

void Work::look_for_signals(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::exception_ptr raised;
  {
    nb::gil_scoped_acquire with;
    if (PyErr_CheckSignals()) raised = std::make_exception_ptr(nb::python_error());
  }
  lock.lock();
  if (raised) raised_ = raised, stop_ = true;
}

}  // namespace hlo::python
