#include "ir/base/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hlo {
namespace {

thread_local bool inside = false;
std::atomic<bool> alone{false};

class Pool {
 public:
  explicit Pool(int threads) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's own threads' matter
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // One loop at a time; a second caller (another device's thread) runs its own in place.
  bool run(int64_t count, const std::function<void(int64_t)>& body) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return false;
    {
      std::lock_guard lock(mutex_);
      body_ = &body, count_ = count, next_ = 0, failed_at_ = INT64_MAX, failure_ = nullptr;
      active_ = static_cast<int>(threads_.size());
      ++round_;
    }
    wake_.notify_all();
    part();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return active_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
    return true;
  }

 private:
  void part() {
    inside = true;
    for (int64_t i; (i = next_.fetch_add(1)) < count_;) {
      try {
        (*body_)(i);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (i < failed_at_) failed_at_ = i, failure_ = std::current_exception();
      }
    }
    inside = false;
  }
  void work() {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
      }
      part();
      std::lock_guard lock(mutex_);
      if (--active_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex busy_, mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int64_t)>* body_ = nullptr;
  int64_t count_ = 0, failed_at_ = 0;
  std::atomic<int64_t> next_{0};
  int active_ = 0;
  uint64_t round_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

int worker_count() {
  if (alone) return 1;
  static const int count = [] {
    const char* wish = std::getenv("HLO_THREADS");
    int n = wish ? std::atoi(wish) : static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(n, 1, 256);
  }();
  return count;
}

void work_alone() {
  alone = true;
  ::setenv("OMP_NUM_THREADS", "1", 1);  // oneDNN's
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

void parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  if (count > 1 && !inside && worker_count() > 1) {
    // Never destroyed: a process that forks has no workers in its child, and none to wait for when that ends.
    static Pool* const pool = [] {
      ::pthread_atfork(nullptr, nullptr, [] { alone = true; });
      return new Pool(worker_count());
    }();
    if (pool->run(count, body)) return;
  }
  for (int64_t i = 0; i < count; ++i) body(i);
}

void parallel_ranges(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (n <= 0) return;
  int64_t parts = (n + grain - 1) / grain;
  parallel_for(parts, [&](int64_t i) { body(i * grain, std::min(n, (i + 1) * grain)); });
}

}  // namespace hlo
