// Being asked to end: SIGINT, SIGTERM, SIGHUP. Long work looks at interrupted() and stops cleanly; what does not come
// to that within a second is ended from outside, without temporaries or children left.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

namespace hlo {

bool interrupted();
// While one lives, interrupted() on this thread asks it, too; of several the innermost alone. For programs that have
// ways of their own to ask for an end (include/hlo/progress.h). It must not throw.
class InterruptSource {
 public:
  explicit InterruptSource(std::function<bool()> ask);
  ~InterruptSource();
  InterruptSource(const InterruptSource&) = delete;
  InterruptSource& operator=(const InterruptSource&) = delete;

 private:
  friend bool interrupted();
  std::function<bool()> ask_;
  InterruptSource* outer_;
};
// While one lives, the process is asked to end after so many seconds as a signal asks it to: all threads' interrupted()
// say so. One at a time, in programs of ours (catch_interrupts).
class EndsAfter {
 public:
  explicit EndsAfter(double seconds);
  ~EndsAfter();
  EndsAfter(const EndsAfter&) = delete;
  EndsAfter& operator=(const EndsAfter&) = delete;
};
bool time_is_up();  // was it that who asked?

// While one lives, this is what the process says where it has to end at once, in the place of "error: interrupted": on
// another thread, while the others go on; it returns the exit code. Destroyed by who answers himself, which may take a
// second then. One at a time.
class LastAnswer {
 public:
  explicit LastAnswer(std::function<int()> say);
  ~LastAnswer();
  LastAnswer(const LastAnswer&) = delete;
  LastAnswer& operator=(const LastAnswer&) = delete;
};

// Once, in main, before anything is made. Starts the thread that ends what does not end. The process is the program's
// own from then on: it may fork.
void catch_interrupts();

// Files and folders that go when this process has to end at once. Whoever makes them removes them otherwise.
void remember_temporary(const std::string& path);
void forget_temporary(const std::string& path);
// Groups of processes that are killed then.
void remember_group(pid_t group);
void forget_group(pid_t group);

// May this process be copied? Only a program of ours that has called catch_interrupts(): others have threads and files
// that a copy must not touch. What forks asks first and does without, or throws.
bool may_fork();
// fork() whose child dies with this process, has signals as they were before catch_interrupts() and owns nothing of
// what is remembered. To be called by a thread that lives as long as the child may: the kernel watches the thread.
// Throws Failure(kUnsupported) where the process may not fork.
pid_t fork_tied();
// fork_tied() whose child is a program of its own as catch_interrupts() makes one: EndsAfter, LastAnswer and signals
// work in it, what it remembers goes when it has to end.
pid_t fork_watched();
// The same without the tie to the parent's life, for children that outlive those that made them.
pid_t fork_loose();

}  // namespace hlo
