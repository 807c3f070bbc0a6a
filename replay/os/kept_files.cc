#include "replay/os/kept_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "ir/base/check.h"
#include "replay/os/files.h"
#include "replay/os/output_marker.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kCollisionsNamed = 5;

bool same_bytes(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const auto size = fs::file_size(a, error);
  if (error || fs::file_size(b, error) != size || error) return false;
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  std::array<char, 1 << 16> p{}, q{};
  for (;;) {
    x.read(p.data(), p.size()), y.read(q.data(), q.size());
    if (x.bad() || y.bad() || x.gcount() != y.gcount()) return false;
    if (!x.gcount()) return x.eof() && y.eof();
    if (!std::equal(p.begin(), p.begin() + x.gcount(), q.begin())) return false;
  }
}

// Does the second hold all that the first does?
bool same_thing(const fs::path& a, const fs::path& b) {
  struct stat x {
  }, y{};
  if (::lstat(a.c_str(), &x) != 0 || ::lstat(b.c_str(), &y) != 0) return false;
  if (x.st_ino == y.st_ino && x.st_dev == y.st_dev) return true;
  if ((x.st_mode & S_IFMT) != (y.st_mode & S_IFMT)) return false;
  std::error_code error, other;
  if (S_ISLNK(x.st_mode)) return fs::read_symlink(a, error) == fs::read_symlink(b, other) && !error && !other;
  return S_ISREG(x.st_mode) && same_bytes(a, b);
}

// A part of the path that is no folder in the new one, or the place itself.
bool place_taken(const fs::path& made, const fs::path& old, const std::string& name) {
  std::error_code error;
  fs::path at = made;
  const fs::path relative(name);
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    at /= *part;
    const fs::file_status is = fs::symlink_status(at, error);
    if (!fs::exists(is)) return false;
    if (std::next(part) == relative.end()) return !same_thing(old / name, at);
    if (!fs::is_directory(is)) return true;
  }
  return false;
}

// Folders on the way to `name`, as they are in the old one.
void make_folders(const fs::path& old, const fs::path& made, const fs::path& name) {
  fs::path at;
  for (const fs::path& part : name) {
    at /= part;
    struct stat is {};
    if (::lstat((old / at).c_str(), &is) != 0 || !S_ISDIR(is.st_mode)) return;
    if (::mkdir((made / at).c_str(), 0700) == 0)
      ::chmod((made / at).c_str(), is.st_mode & 07777);
    else if (errno != EEXIST)
      fail(FailureKind::kIo, "cannot keep {}: {}", (old / at).string(), std::strerror(errno));
  }
}

void give_second_name(const fs::path& from, const fs::path& to) {
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0) return;
  const int why = errno;
  std::error_code error;
  const fs::file_status is = fs::symlink_status(from, error);
  if (fs::is_symlink(is)) {
    fs::copy_symlink(from, to, error);
  } else if (fs::is_regular_file(is)) {
    if (!fs::copy_file(from, to, error) && !error) error = std::make_error_code(std::errc::io_error);
    const auto time = fs::last_write_time(from, error);
    if (!error) fs::last_write_time(to, time, error);
  } else {
    error = std::error_code(why, std::generic_category());
  }
  if (error) fail(FailureKind::kIo, "cannot keep {}: {}", from.string(), error.message());
}

// Folders below, without links, the deepest first.
std::vector<fs::path> folders_within(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (fs::is_directory(at->symlink_status(error))) out.push_back(at->path());
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

void carry_over(const std::string& old, const std::set<std::string>& own, const std::string& made,
                const std::string& label) {
  struct stat root {};
  if (::stat(old.c_str(), &root) != 0) fail(FailureKind::kIo, "cannot look into {}: {}", label, std::strerror(errno));
  for (const fs::path& folder : folders_within(old)) {
    struct stat is {};
    if (::lstat(folder.c_str(), &is) != 0 || is.st_dev != root.st_dev)
      fail(FailureKind::kUsage, "{} is left alone, with --force, too: something is mounted at {}", label,
           folder.string());
  }
  std::vector<std::string> users, collide;
  for (const std::string& name : files_below(old)) {
    if (own.contains(name) || name == kMarkerFile) continue;
    const bool is_folder = name.ends_with('/');
    // Of an empty folder that held files of ours nothing is left to be kept.
    if (is_folder && own.lower_bound(name) != own.end() && own.lower_bound(name)->starts_with(name)) continue;
    users.push_back(is_folder ? name.substr(0, name.size() - 1) : name);
    std::error_code error;
    const bool merges = is_folder && fs::is_directory(fs::symlink_status(fs::path(made) / users.back(), error));
    if (!merges && place_taken(made, old, users.back())) collide.push_back(printable(users.back()));
  }
  if (collide.size() > kCollisionsNamed) collide.resize(kCollisionsNamed), collide.push_back("…");
  if (!collide.empty())
    fail(FailureKind::kUsage,
         "{} is left alone: it holds files that hlo-replay did not make and would write now: {}; move them away", label,
         fmt::join(collide, ", "));
  for (const std::string& name : users) {
    make_folders(old, made, name);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(fs::path(made) / name, error)))
      give_second_name(fs::path(old) / name, fs::path(made) / name);
  }
}

namespace {

bool cleared(const std::string& old, const std::string& now) {
  std::string why;
  std::set<std::string> own, all, left;
  if (auto listed = own_files(old, &why)) own = std::move(*listed);
  std::error_code error;
  all = files_below(old);
  for (const std::string& name : all) {
    if (name == kMarkerFile || name.ends_with('/')) continue;
    if (own.contains(name) || same_thing(fs::path(old) / name, fs::path(now) / name))
      fs::remove(fs::path(old) / name, error);
  }
  for (const fs::path& folder : folders_within(old)) {
    const std::string name = folder.lexically_relative(old).string() + "/";
    const auto first = own.lower_bound(name);
    if ((first != own.end() && first->starts_with(name)) ||
        fs::is_directory(fs::symlink_status(fs::path(now) / name, error)))
      fs::remove(folder, error);  // where nothing is in it
  }
  // The marker last: whoever is killed before leaves what the next run can finish.
  const std::string marker = old + "/" + kMarkerFile;
  left = files_below(old);
  if (left.empty() || (left.size() == 1 && left.contains(kMarkerFile))) fs::remove(marker, error);
  return ::rmdir(old.c_str()) == 0 || !fs::exists(old, error);
}

}  // namespace

bool clear_replaced(const std::string& old, const std::string& now) {
  try {
    return cleared(old, now);
  } catch (const Failure&) {
    return false;  // what cannot be looked at stays
  }
}

int write_into(const std::string& folder, const std::string& name, const std::string& content) {
  const fs::path file = fs::path(folder) / name;
  std::error_code error;
  if (name.find('/') != std::string::npos) fs::create_directories(file.parent_path(), error);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  return fd < 0 ? errno : write_and_close(fd, content);
}

}  // namespace hlo
