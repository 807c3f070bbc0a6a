// Questions that come next if the one at hand is answered no, worked on meanwhile in child processes.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace hlo {

class Leash;
class TemporaryFolder;

// Answers come as they would one after another: a child is a copy of this process that takes the answer to be no and
// runs on to its next question. Only for work that needs no threads of this process and no device: commands, or the
// evaluator and the host's kernels behind work_alone() (ir/base/parallel.h).
class Ahead {
 public:
  explicit Ahead(int most);  // so many at once; 1: no children
  ~Ahead();                  // ends the children and removes what they leave in the temporary folder
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  // `work()`, or what a child found out for a question of that number. Throws what `work` throws.
  bool ask(uint64_t question, const std::function<bool()>& work);
  // Is this process a child? Then it must neither show nor write anything.
  bool in_child() const { return child_; }
  // To be called where the questions end, by whatever way: a child ends here.
  void leave() const;

 private:
  [[noreturn]] void work_as_child(uint64_t question, const std::function<bool()>& work) const;
  bool timed(const std::function<bool()>& work);
  bool start(const std::function<bool()>& work);
  void stop();

  int most_;
  bool child_ = false;
  std::chrono::steady_clock::duration usual_{0};  // of the questions worked on here, the late ones first
  pid_t main_ = 0, group_ = 0;                    // group_: the children's, 0 where there are none
  int tokens_[2] = {-1, -1};                      // a byte for each that may work
  int results_[2] = {-1, -1};                     // of type Result
  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<Leash> leash_;  // of the group
  std::unordered_map<uint64_t, char> answers_;
};

}  // namespace hlo
