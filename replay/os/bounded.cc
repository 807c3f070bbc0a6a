#include "replay/os/bounded.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <thread>

#include "ir/base/check.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"

namespace hlo {
namespace {

// What is mapped for data now, in bytes; RLIMIT_DATA counts it.
int64_t data_now() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == "VmData:") {
      int64_t kib = 0;
      status >> kib;
      return kib << 10;
    }
  return 0;
}

}  // namespace

void limit_memory(int64_t bytes) {
  const auto most = static_cast<rlim_t>(data_now() + bytes);
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_DATA, &limit);
}

namespace {

constexpr double kSecondsToEnd = 2;  // seconds between being asked to end and being killed
constexpr int kNoMemory = 3, kThrew = 4;

const char* kind_word(FailureKind kind) {
  switch (kind) {
    case FailureKind::kUsage:
      return "usage";
    case FailureKind::kSyntax:
      return "syntax";
    case FailureKind::kInvalid:
      return "invalid";
    case FailureKind::kUnsupported:
      return "unsupported";
    case FailureKind::kIo:
      return "io";
    case FailureKind::kInternal:
      break;
  }
  return "internal";
}

void redirect(int to, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) ::_exit(kThrew);
  ::dup2(file, to);
  ::close(file);
}

[[noreturn]] void work_bounded(const std::function<int()>& job, double seconds, int64_t bytes,
                               const std::string& scratch) {
  ::setpgid(0, 0);
  redirect(STDOUT_FILENO, scratch + "/said");
  redirect(STDERR_FILENO, scratch + "/complained");
  ::setenv("TMPDIR", scratch.c_str(), 1);
  if (bytes > 0) limit_memory(bytes);
  int code = kThrew;
  auto threw = [&](const std::string& kind, const std::string& what) {
    std::ofstream(scratch + "/threw", std::ios::binary) << kind << '\n' << what;
  };
  try {
    const EndsAfter end(seconds);
    code = job();
  } catch (const Failure& f) {
    threw(kind_word(f.kind()), f.what());
  } catch (const std::bad_alloc&) {
    code = kNoMemory;
  } catch (const std::exception& e) {
    threw("internal", e.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

std::string contents(const std::string& path) {
  std::error_code error;
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Waits until `until`; has it ended?
bool ended_by(pid_t child, int* status, std::chrono::steady_clock::time_point until, bool heed) {
  using Clock = std::chrono::steady_clock;
  for (auto pause = std::chrono::milliseconds(1);; pause = std::min(2 * pause, std::chrono::milliseconds(20))) {
    const pid_t got = ::waitpid(child, status, WNOHANG);
    if (got == child || (got < 0 && errno != EINTR)) return true;
    if ((heed && interrupted()) || Clock::now() >= until) return false;
    std::this_thread::sleep_for(pause);
  }
}

void put_end(BoundedRun& out, int status, double seconds, const std::string& scratch) {
  out.output = contents(scratch + "/said");
  if (WIFSIGNALED(status)) {
    out.end = BoundedRun::kDied, out.code = WTERMSIG(status);
    return;
  }
  out.code = WEXITSTATUS(status);
  const std::string threw = contents(scratch + "/threw");
  if (out.seconds >= seconds) {
    out.end = BoundedRun::kTime;
  } else if (out.code == kNoMemory) {
    out.end = BoundedRun::kMemory;
  } else if (!threw.empty()) {
    const size_t line = threw.find('\n');
    out.end = BoundedRun::kFailed, out.kind = threw.substr(0, line), out.error = threw.substr(line + 1);
  } else {
    out.end = out.code == kThrew ? BoundedRun::kFailed : BoundedRun::kDone;
  }
}

}  // namespace

BoundedRun run_bounded(const std::function<int()>& job, double seconds, int64_t bytes, const std::string& scratch) {
  using Clock = std::chrono::steady_clock;
  for (const char* name : {"/said", "/complained", "/threw"}) ::unlink((scratch + name).c_str());
  std::fflush(nullptr);
  const auto begin = Clock::now();
  auto after = [&](double s) {
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const pid_t child = fork_watched();
  if (child < 0) fail(FailureKind::kIo, "no process can be made for a part of the work");
  if (child == 0) work_bounded(job, seconds, bytes, scratch);
  ::setpgid(child, child);
  remember_group(child);
  BoundedRun out;
  int status = 0;
  bool ended = ended_by(child, &status, after(seconds + kSecondsToEnd), true);
  const bool killed = !ended;
  if (!ended) {
    // What it has made goes with it where it has the time; this process has a second altogether.
    ::kill(child, SIGTERM);
    ended = ended_by(child, &status, Clock::now() + std::chrono::milliseconds(100), false);
  }
  if (!ended) {
    ::kill(-child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  forget_group(child);
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (killed)
    out.end = interrupted() ? BoundedRun::kInterrupted : BoundedRun::kTime, out.output = contents(scratch + "/said");
  else
    put_end(out, status, seconds, scratch);
  return out;
}

}  // namespace hlo
