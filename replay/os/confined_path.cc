#include "replay/os/confined_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ir/base/check.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

// By the kernel, which follows links only while they stay below the folder. -1 with errno: EXDEV where one leads out,
// ENOSYS where there is no such call (before 5.6, in a browser), EPERM in some sandboxes.
int opened_by_kernel([[maybe_unused]] int base, [[maybe_unused]] const std::string& name, [[maybe_unused]] int flags) {
#if __has_include(<linux/openat2.h>)
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, base, name.c_str(), &how, sizeof how));
#else
  errno = ENOSYS;
  return -1;
#endif
}

// A link that somebody has put into a folder of files stores what it leads to there (DVC, git-annex, Bazel), wherever
// that lies. Not where a recording names its files: it may be a stranger's.
bool stored_by_link(const std::string& folder, const std::string& name) {
  std::error_code error;
  return name.find('/') == std::string::npos && fs::is_symlink(folder + "/" + name, error) &&
         !fs::exists(fs::symlink_status(folder + "/recording.json", error));
}

// The same where the kernel cannot, too: where the name leads is looked up first.
int open_below(const std::string& folder, const std::string& name, int flags) {
  int base = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base < 0) return -1;
  int file = opened_by_kernel(base, name, flags);
  if (file < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL)) {
    std::error_code error;
    fs::path root = fs::canonical(folder, error), real = fs::canonical(fs::path(folder) / name, error);
    if (error)
      errno = error.value();
    else if (auto [end, at] = std::mismatch(root.begin(), root.end(), real.begin(), real.end()); end != root.end())
      errno = EXDEV;
    else
      file = ::open(real.c_str(), flags | O_CLOEXEC | O_NOFOLLOW);
  }
  if (file < 0 && errno == EXDEV && stored_by_link(folder, name))
    file = ::openat(base, name.c_str(), flags | O_CLOEXEC);
  int why = errno;
  ::close(base);
  errno = why;
  return file;
}

std::string refused(int why) { return why == EXDEV ? "it leads out of the folder" : std::string(std::strerror(why)); }

}  // namespace

std::string why_not_below(std::string_view name) {
  constexpr const char* kOut = "it leads out of the folder";
  if (name.empty()) return kOut;
  if (printable(name) != name || name.find_first_of("\n\t") != std::string_view::npos)
    return "its name has control characters";
  for (size_t at = 0; at <= name.size();) {
    size_t end = std::min(name.find('/', at), name.size());
    std::string_view part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return kOut;
    at = end + 1;
  }
  return {};
}

std::string why_not_confined(const std::string& folder, const std::string& name, bool* missing) {
  if (missing) *missing = false;
  if (std::string why = why_not_below(name); !why.empty()) return why;
  int file = open_below(folder, name, O_PATH);
  if (file < 0) {
    int why = errno;
    if (missing) *missing = why == ENOENT;
    return refused(why);
  }
  struct stat is {};
  bool regular = ::fstat(file, &is) == 0 && S_ISREG(is.st_mode);
  ::close(file);
  return regular ? "" : "it is no regular file";
}

std::string confined_path(const std::string& folder, const std::string& name) {
  if (std::string why = why_not_confined(folder, name); !why.empty())
    fail(FailureKind::kIo, "cannot read '{}' of {}: {}", name, folder, why);
  return folder + "/" + name;
}

std::string read_confined(const std::string& folder, const std::string& name) {
  std::string path = confined_path(folder, name);
  // Whatever it has become since then, opening it does not wait.
  int file = open_below(folder, name, O_RDONLY | O_NONBLOCK);
  struct stat is {};
  if (file < 0 || ::fstat(file, &is) != 0 || !S_ISREG(is.st_mode)) {
    int why = errno;
    if (file >= 0) ::close(file);
    fail(FailureKind::kIo, "cannot read '{}' of {}: {}", name, folder,
         file < 0 ? refused(why) : "it is no regular file");
  }
  return read_descriptor(file, path);
}

}  // namespace hlo
