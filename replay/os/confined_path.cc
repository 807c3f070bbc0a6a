#include "replay/os/confined_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include <cctype>
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

// Whether a name has a content's hash in it: 32 hexadecimal digits in a row (`SHA256E-s9--01ab….txt`, `01ab…`), or 30
// behind a folder of the first two (`01/ab…`).
bool named_by_content(const fs::path& path) {
  std::string name = path.filename().string();
  if (std::string folder = path.parent_path().filename().string(); folder.size() == 2) name = folder + name;
  size_t digits = 0;
  for (char c : name)
    if (digits = std::isxdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0; digits == 32) return true;
  return false;
}

// Where a link of a folder of files leads to what is stored elsewhere (git-annex, DVC, Bazel, a folder of links): a
// dump's file under its own name or under its content's. Empty for any other link, which could be a stranger's who
// wants to see a file of the user's, and where a recording names its files.
std::string stored_by_link(const std::string& folder, const std::string& name) {
  std::error_code error;
  const fs::path link = fs::path(folder) / name;
  if (!name.starts_with("module_") || name.find('/') != std::string::npos || !fs::is_symlink(link, error) ||
      fs::exists(fs::symlink_status(fs::path(folder) / "recording.json", error)))
    return {};
  const fs::path real = fs::canonical(link, error);
  return !error && (real.filename() == name || named_by_content(real)) ? real.string() : std::string();
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
  if (file < 0 && errno == EXDEV) {
    if (const std::string stored = stored_by_link(folder, name); !stored.empty())
      file = ::open(stored.c_str(), flags | O_CLOEXEC | O_NOFOLLOW);
    else
      errno = EXDEV;
  }
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
