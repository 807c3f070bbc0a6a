#include "replay/os/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ir/base/check.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kEnding = 6;
constexpr std::string_view kEndingCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";

// The folder locked by this process, -1 where another run has it or it is gone or no folder of the user's.
int lock_folder(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat held {
  }, there{};
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
      held.st_ino == there.st_ino && held.st_dev == there.st_dev && held.st_uid == ::geteuid())
    return fd;
  ::close(fd);
  return -1;
}

}  // namespace

std::string unique_ending() {
  unsigned char random[kEnding];
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    fail(FailureKind::kIo, "no random numbers for a temporary name: {}", std::strerror(errno));
  std::string out;
  for (unsigned char r : random) out += kEndingCharacters[r % kEndingCharacters.size()];
  return out;
}

std::string name_beside(const std::string& path, const char* what) {
  return fmt::format("{}.{}.hlo-replay.{}", path, what, unique_ending());
}

LockedFolder::LockedFolder(const std::string& beginning) {
  for (int round = 0; round < 100; ++round) {
    path_ = beginning + unique_ending();
    if (::mkdir(path_.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      fail(FailureKind::kIo, "cannot make {}: {}", path_, std::strerror(errno));
    }
    lock_ = lock_folder(path_);
    std::error_code error;
    // Another run may have taken it for a dead one's before it was locked. File systems without locks do without.
    if (lock_ >= 0 || fs::exists(path_, error)) return;
  }
  fail(FailureKind::kIo, "cannot make {}XXXXXX: all such names are taken", beginning);
}

LockedFolder::~LockedFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void remove_stale_folders(const std::string& beginning, const std::function<void(const std::string&)>& remove) {
  fs::path start(beginning);
  std::string name = start.filename().string();
  std::error_code error;
  for (fs::directory_iterator at(start.has_parent_path() ? start.parent_path() : fs::path("."), error), end;
       !error && at != end; at.increment(error)) {
    std::string file = at->path().filename().string();
    if (file.size() != name.size() + kEnding || !file.starts_with(name) ||
        file.find_first_not_of(kEndingCharacters, name.size()) != std::string::npos)
      continue;
    int lock = lock_folder(at->path().string());
    if (lock < 0) continue;
    std::error_code ignored;
    if (remove)
      remove(at->path().string());
    else
      fs::remove_all(at->path(), ignored);
    ::close(lock);
  }
}

}  // namespace hlo
