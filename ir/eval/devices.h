// Several replicas and partitions of one module, simulated on one machine. Each device has its own thread and its own
// evaluator; one of them runs at a time (the universe is shared), and gives way where it waits for others.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

class DeviceGrid {
 public:
  DeviceGrid(int64_t replicas, int64_t partitions)
      : replicas_(replicas), partitions_(partitions), alive_(replicas * partitions) {}

  int64_t replicas() const { return replicas_; }
  int64_t partitions() const { return partitions_; }
  int64_t size() const { return replicas_ * partitions_; }

  // What every member brought, in the order of `members`. Waits for the others; `what` names the operation where they
  // never come (Failure(kInvalid)).
  std::shared_ptr<const std::vector<std::vector<Value>>> rendezvous(const std::string& key, int64_t device,
                                                                    const std::vector<int64_t>& members,
                                                                    std::vector<Value> brought,
                                                                    const std::string& what);
  void send(int64_t channel, int64_t to, Value value);
  Value receive(int64_t channel, int64_t device, const std::string& what);

  // Runs `body(device)` on every device; the first failure, by device number, is thrown again.
  template <class Body>
  void run(Body body) {
    std::vector<std::exception_ptr> failures(static_cast<size_t>(size()));
    std::vector<std::thread> threads;
    for (int64_t d = 0; d < size(); ++d)
      threads.emplace_back([&, d] {
        std::unique_lock<std::mutex> turn(mutex_);
        turn_ = &turn;
        try {
          if (!failed_) body(d);
        } catch (...) {
          failures[static_cast<size_t>(d)] = std::current_exception();
          failed_ = true;
        }
        --alive_;
        changed_.notify_all();
      });
    for (std::thread& t : threads) t.join();
    // What others say that waited in vain for one that failed is of no use.
    std::exception_ptr first;
    for (const std::exception_ptr& e : failures) {
      if (!e) continue;
      try {
        std::rethrow_exception(e);
      } catch (const Forsaken&) {
      } catch (...) {
        if (!first) first = e;
      }
    }
    if (first) std::rethrow_exception(first);
  }

 private:
  struct Forsaken {};
  struct Rendezvous {
    std::shared_ptr<std::vector<std::vector<Value>>> brought;
    size_t missing = 0;
  };
  // Gives way until `ready`.
  void wait(const std::function<bool()>& ready, const std::string& what);

  int64_t replicas_, partitions_;
  std::mutex mutex_;  // whoever holds it runs
  std::condition_variable changed_;
  int64_t alive_;
  std::vector<const std::function<bool()>*> waiters_;
  bool failed_ = false;
  std::map<std::pair<std::string, int64_t>, Rendezvous> rendezvous_;  // by operation and round
  std::map<std::pair<std::string, int64_t>, int64_t> rounds_;         // of each device
  std::map<std::pair<int64_t, int64_t>, std::vector<Value>> mail_;    // by channel and receiver
  static thread_local std::unique_lock<std::mutex>* turn_;
};

}  // namespace hlo
