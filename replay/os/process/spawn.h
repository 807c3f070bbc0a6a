// Other programs, run so that nothing of theirs outlives what this process wants of them.
#pragma once
#include <spawn.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hlo {

struct Command {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;  // set besides what this process has
  std::string log;                                               // file for all that it prints
  std::string output, errors;               // files for what it prints and complains; in place of `log`; reads nothing
  const std::atomic<bool>* stop = nullptr;  // set by another thread: the child is ended as if this process were
  bool silent = false;                      // reads nothing, prints nothing
  bool terminal =
      false;  // a person may talk to it: where standard input is a terminal it stays in this process's group
  double limit_seconds = 0;         // it is ended after so long; 0: never
  std::function<void()> meanwhile;  // called some times a second as long as it runs
};
constexpr int kTimedOut = -1;  // in the place of an exit code

// Its exit code, 128 + signal where one ended it, 127 where it cannot be run, kTimedOut. Throws Failure(kUsage)
// "interrupted" where this process is asked to end meanwhile: by then it and its children are gone.
int run_command(const Command& command);
// The same for a line of the shell's.
int run_shell(const std::string& line, bool terminal = false);

// Has the kernel kill a group of processes when this process is gone, whatever ended it. The group's processes hold
// `held()`, only this process the other end.
class Leash {
 public:
  Leash();
  ~Leash();  // lets go: the group lives on
  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;
  void tie(pid_t group);
  void in_child();  // to be called by the group's first process, where that is a copy of this one
  void hand_to_child(posix_spawn_file_actions_t* files) const;  // … where it is a program

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace hlo
