#include "replay/os/process/ahead.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "replay/os/files.h"
#include "replay/os/process/spawn.h"

namespace hlo {
namespace {

enum Answer : char { kNo, kYes, kThrows };

struct Result {
  uint64_t question;
  char answer;
};

// Small enough to be written and read in one piece.
bool read_all(int from, void* to, size_t size) {
  ssize_t n = 0;
  do n = ::read(from, to, size);
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}
bool write_all(int to, const void* from, size_t size) {
  ssize_t n = 0;
  do n = ::write(to, from, size);
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

}  // namespace

Ahead::Ahead(int most) : most_(most), main_(::getpid()) {
  if (most_ < 2) return;
  folder_ = std::make_unique<TemporaryFolder>();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // children of children that ended are waited for here
}

Ahead::~Ahead() {
  if (!child_) stop();
}

void Ahead::leave() const {
  if (child_) ::_exit(0);
}

void Ahead::work_as_child(uint64_t question, const std::function<bool()>& work) const {
  Result result{question, kNo};
  try {
    result.answer = work() ? kYes : kNo;
  } catch (...) {
    result.answer = kThrows;
  }
  char token = 0;
  (void)(write_all(results_[1], &result, sizeof result) && write_all(tokens_[1], &token, 1));
  ::_exit(0);
}

bool Ahead::timed(const std::function<bool()>& work) {
  auto begin = std::chrono::steady_clock::now();
  bool yes = work();
  usual_ = (3 * usual_ + (std::chrono::steady_clock::now() - begin)) / 4;
  return yes;
}

bool Ahead::start(const std::function<bool()>& work) {
  answers_.clear();
  if (::pipe2(tokens_, O_CLOEXEC) || ::pipe2(results_, O_CLOEXEC)) {
    stop();
    return timed(work);
  }
  const char token = 0;
  for (int k = 1; k < most_; ++k) (void)write_all(tokens_[1], &token, 1);
  std::fflush(nullptr);
  leash_ = std::make_unique<Leash>();
  pid_t first = fork_tied();
  if (first < 0) {
    stop();
    return timed(work);
  }
  if (first == 0) {
    ::setpgid(0, 0);
    leash_->in_child();
    ::close(results_[0]);
    ::setenv("TMPDIR", folder_->path().c_str(), 1);
    child_ = true;
    return false;
  }
  ::setpgid(first, first);
  leash_->tie(first);
  remember_group(first);
  group_ = first;
  ::close(results_[1]);
  results_[1] = -1;
  bool yes = timed(work);
  (void)write_all(tokens_[1], &token, 1);  // from here on this process only waits
  if (yes) stop();
  return yes;
}

void Ahead::stop() {
  if (group_) {
    ::kill(-group_, SIGKILL);
    while (::waitpid(-group_, nullptr, 0) > 0 || errno == EINTR) {
    }
    forget_group(group_);
    leash_.reset();
    group_ = 0;
    folder_ = std::make_unique<TemporaryFolder>();  // what they left goes with the old one
  }
  for (int* end : {&tokens_[0], &tokens_[1], &results_[0], &results_[1]}) {
    if (*end >= 0) ::close(*end);
    *end = -1;
  }
}

bool Ahead::ask(uint64_t question, const std::function<bool()>& work) {
  if (most_ < 2) return work();
  if (child_) {
    char token = 0;
    // Should the leash not hold, a child that waits looks whether there is still somebody to work for.
    pollfd one{tokens_[0], POLLIN, 0};
    while (::poll(&one, 1, 500) <= 0)
      if (::kill(main_, 0) != 0) ::_exit(0);
    if (!read_all(tokens_[0], &token, 1) || ::kill(main_, 0) != 0) ::_exit(0);
    std::fflush(nullptr);
    // The copy goes on to the next question.
    if (fork_loose() == 0) return false;
    work_as_child(question, work);
  }
  // What takes less time than to start a child is not worth one.
  if (!group_) return usual_ < std::chrono::milliseconds(3) ? timed(work) : start(work);
  while (!answers_.contains(question)) {
    while (::waitpid(-group_, nullptr, WNOHANG) > 0) {
    }
    Result result;
    if (!read_all(results_[0], &result, sizeof result)) {  // the last child has ended without that question
      stop();
      return start(work);
    }
    answers_[result.question] = result.answer;
  }
  char answer = answers_[question];
  answers_.erase(question);
  if (answer == kNo) return false;
  stop();
  return answer == kYes || work();
}

}  // namespace hlo
