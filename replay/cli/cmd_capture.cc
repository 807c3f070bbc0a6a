// capture: runs a program so that XLA dumps what it does; bisect --program: the pass of the program's own compiler.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "replay/cli/command.h"
#include "replay/files.h"
#include "replay/recording.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

// XLA's flags behind those that are set already, and no answers from caches.
Environment with_flags(const std::string& flags) {
  const char* set = ::getenv("XLA_FLAGS");
  return {{"XLA_FLAGS", set && *set ? std::string(set) + " " + flags : flags},
          {"JAX_ENABLE_COMPILATION_CACHE", "false"}};
}

std::string dump_flags(const std::string& folder) {
  return fmt::format(
      "--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_large_constants "
      "--xla_dump_module_metadata",
      folder);
}

// Exit code of the program, 128 + signal where one ended it. `log`: file for what it prints, or empty.
int run_program(const std::vector<std::string>& words, const Environment& environment, const std::string& log) {
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) fail(FailureKind::kIo, "cannot start {}", words[0]);
  if (child == 0) {
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    if (!log.empty()) {
      int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (fd >= 0) ::dup2(fd, 1), ::dup2(fd, 2), ::close(fd);
    }
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail(FailureKind::kIo, "lost {}", words[0]);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127) fail(FailureKind::kUsage, "cannot run {}", words[0]);
  return code;
}

// Names of passes that changed something in any module, in the order in which they first did.
std::vector<std::string> passes_that_worked(const std::string& folder) {
  std::vector<std::string> out;
  for (const Recording& r : open_folder(folder, false))
    for (const StageRow& row : r.rows)
      if (row.kind == StageRow::kPass && row.changed && !row.pass.empty() &&
          std::find(out.begin(), out.end(), row.pass) == out.end())
        out.push_back(row.pass);
  return out;
}

}  // namespace

int cmd_capture(const CaptureArgs& a) {
  OutputFolder out(a.out, a.force);
  // The program may run in another folder.
  int code = run_program(a.program, with_flags(dump_flags(fs::absolute(out.temporary()).string())), "");
  if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was kept");
  std::error_code error;
  if (fs::is_empty(out.temporary(), error))
    fail(FailureKind::kUsage,
         "{} dumped nothing (exit code {}): it compiled nothing with XLA, or was compiled before (a cache)",
         a.program[0], code);
  out.commit();
  if (code) fmt::print(stderr, "warning: {} ended with exit code {}\n", a.program[0], code);
  return cmd_folder(a.out, a.json);
}

int bisect_program(const BisectArgs& a) {
  std::vector<std::string> words{"/bin/sh", "-c", a.program};
  TemporaryFolder folder;
  std::string dump = folder.path() + "/dump", log = folder.path() + "/log";
  size_t runs = 0;
  auto good = [&](const std::string& flags) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted after {} runs", runs);
    ++runs;
    return run_program(words, with_flags(flags), log) == 0;
  };
  if (good(dump_flags(dump))) {
    fmt::print("nothing to look for: {} exits 0\n", a.program);
    return kYes;
  }
  std::error_code error;
  if (!fs::exists(dump, error)) fail(FailureKind::kUsage, "{} fails and compiles nothing with XLA", a.program);
  std::vector<std::string> passes = passes_that_worked(dump);
  // Without a set of passes: halves of what heals it, and of what may just not compile without a pass that it needs.
  auto without = [&](size_t first, size_t last) {
    std::string list;
    for (size_t k = first; k < last; ++k) list += (list.empty() ? "" : ",") + passes[k];
    return "--xla_disable_hlo_passes=" + list;
  };
  std::string guilty;
  auto find = [&](auto&& self, size_t first, size_t last) -> bool {
    if (first >= last) return false;
    bool heals = good(without(first, last));
    if (last - first == 1) {
      if (heals) guilty = passes[first];
      return heals;
    }
    size_t middle = first + (last - first) / 2;
    return self(self, first, middle) || self(self, middle, last);
  };
  bool found = find(find, 0, passes.size());
  Json j{{"found", found}, {"runs", runs}, {"passes", passes}};
  if (found) j["pass"] = guilty;
  if (a.json)
    print_json(j);
  else if (found)
    fmt::print("{} runs over {} passes that change something\nguilty: with --xla_disable_hlo_passes={} it exits 0\n",
               runs, passes.size(), guilty);
  else
    fmt::print(
        "{} runs: no pass of the {} that change something heals it by being left out; the fault lies in the program, "
        "below HLO, or in a pass that it does not compile without\n",
        runs, passes.size());
  return found ? kNo : kBad;
}

}  // namespace hlo
