// Long work beside the interpreter: on a thread of its own while the calling one waits without the GIL, so that Ctrl-C
// ends the call within a second whatever the work is at, other threads of Python run, and callbacks come on the thread
// that called.
#pragma once
#include <nanobind/nanobind.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace hlo::python {

// What one call shares with its thread.
class Work : public std::enable_shared_from_this<Work> {
 public:
  // Of the work that this thread is at: has it been asked to end? False outside of work.
  static bool stopped();
  // Runs `f` on the calling thread, under the GIL, and waits for it. Where it throws, or the call has ended already,
  // the work is over: the exception goes to the caller as it is, and this throws Ended. Under the GIL already where the
  // thread is at no work: `f` runs here.
  static void call_back(const std::function<void()>& f);
  struct Ended {};

  // Runs `f` on a thread and waits, GIL held on entry and on return. Rethrows what a callback or a signal raised, else
  // what `f` threw. Where `f` does not heed stopped() within a second it is left alone: `f` must own all that it needs,
  // and nothing of Python's.
  void run(std::function<void()> f);

 private:
  void wait();
  void answer(std::unique_lock<std::mutex>& lock);
  void look_for_signals(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* asked_ = nullptr;
  bool stop_ = false, done_ = false, left_ = false;
  std::exception_ptr raised_, failed_;
};

// The same for work that gives something: it has to own nothing of Python's either.
template <class F>
auto beside(F f) {
  using Result = decltype(f());
  auto work = std::make_shared<Work>();
  if constexpr (std::is_void_v<Result>) {
    work->run(std::move(f));
  } else {
    auto result = std::make_shared<std::optional<Result>>();
    work->run([result, f = std::move(f)]() mutable { result->emplace(f()); });
    return std::move(**result);
  }
}

}  // namespace hlo::python
