#include "replay/os/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/module.h"
#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/os/rename.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

bool write_whole(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), std::min<size_t>(content.size(), 1 << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Gives a whole file its name: in the place of another one or, where `new_name`, of none (EEXIST). 0, or what went
// wrong.
int give_name(const std::string& temporary, const std::string& path, bool new_name) {
  if (!new_name) return ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  int why = rename_to_new(temporary, path);
  if (!not_known(why)) return why;
  why = ::link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  if (!why) ::unlink(temporary.c_str());
  return why;
}

// A file of that name, whole: it has no name before it is, where the file system can do that. 0, or what went wrong:
// EEXIST where `new_name` and there is one; then `kept` is where the content lies.
int written_beside(const std::string& path, const std::string& content, bool new_name = false,
                   std::string* kept = nullptr) {
  std::string folder = fs::path(path).parent_path().string(), temporary = name_beside(path, "tmp");
  int fd = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (fd >= 0) {
    if (!write_whole(fd, content)) {
      int why = errno;
      ::close(fd);
      return why;
    }
    if (::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", fd).c_str(), AT_FDCWD, temporary.c_str(),
                 AT_SYMLINK_FOLLOW) != 0) {
      ::close(fd);
      fd = -1;
    }
  }
  remember_temporary(temporary);
  int why = 0;
  if (fd >= 0) {
    if (::close(fd) != 0) why = errno;
  } else {
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    why = fd < 0 ? errno : write_and_close(fd, content);
  }
  const bool whole = !why;
  if (whole) why = give_name(temporary, path, new_name);
  if (why == EEXIST && whole && kept) {
    *kept = name_beside(path, "kept");
    forget_temporary(temporary);
    if (::rename(temporary.c_str(), kept->c_str()) != 0) *kept = temporary;
    return why;
  }
  if (why) ::unlink(temporary.c_str());
  forget_temporary(temporary);
  return why;
}

}  // namespace

int write_and_close(int file, std::string_view content) {
  int why = write_whole(file, content) ? 0 : errno;
  if (::close(file) != 0 && !why) why = errno;
  return why;
}

std::string read_descriptor(int file, const std::string& label) {
  struct stat is {};
  std::string out;
  if (::fstat(file, &is) == 0 && S_ISREG(is.st_mode))
    out.resize(static_cast<size_t>(is.st_size) + 1);  // a byte more, to see the end
  size_t at = 0;
  for (;;) {
    if (at == out.size()) out.resize(out.size() + std::max<size_t>(65536, out.size() / 2));
    ssize_t n = ::read(file, out.data() + at, std::min<size_t>(out.size() - at, 1 << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int why = errno;
      ::close(file);
      fail(FailureKind::kIo, "cannot read {}: {}", label, std::strerror(why));
    }
    if (n == 0) break;
    at += static_cast<size_t>(n);
  }
  ::close(file);
  out.resize(at);
  return out;
}

bool same_files(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto size = fs::file_size(a, error);
  if (error || fs::file_size(b, error) != size || error) return false;
  return read_file(a) == read_file(b);
}

std::string read_file(const std::string& path) {
  if (path == "-") {
    std::stringstream all;
    all << std::cin.rdbuf();
    return all.str();
  }
  std::error_code error;
  if (fs::is_directory(path, error))
    fail(FailureKind::kIo, "{} is a folder; a stage of it is written {}:STAGE", path, path);
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(FailureKind::kIo, "cannot read {}: {}", path, std::strerror(errno));
  return read_descriptor(file, path);
}

void write_file(const std::string& path, const std::string& content) {
  if (path == "-") {
    errno = 0;
    std::fflush(stdout);
    std::cout.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!std::cout.flush())
      fail(FailureKind::kIo, "cannot write to standard output: {}",
           errno ? std::strerror(errno) : "the device takes no more");
    return;
  }
  std::error_code error;
  int why = 0;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {  // a device or pipe is not replaced by a file
    int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    why = fd < 0 ? errno : write_and_close(fd, content);
  } else {
    why = written_beside(path, content);
  }
  if (why) fail(FailureKind::kIo, "cannot write {}: {}", path, std::strerror(why));
}

void write_output_file(const std::string& path, const std::string& content, bool force) {
  std::error_code error;
  const fs::file_status is = fs::status(path, error);
  if (path == "-" || force || (fs::exists(is) && !fs::is_regular_file(is))) return write_file(path, content);
  std::string kept;
  const int why = written_beside(path, content, true, &kept);
  if (why == EEXIST && !kept.empty())
    fail(FailureKind::kUsage, "{} has appeared meanwhile and is left alone; what was to be written is kept in {}", path,
         kept);
  if (why) fail(FailureKind::kIo, "cannot write {}: {}", path, std::strerror(why));
}

void write_file_by(const std::string& path, const std::function<void(const std::string&)>& writer) {
  // In a folder, since libraries put temporary files of their own beside what they write.
  const std::string beginning = path + ".tmp.hlo-replay.";
  const fs::path parent = fs::path(path).parent_path();
  std::error_code error;
  if (!parent.empty() && !fs::is_directory(parent, error))
    fail(FailureKind::kIo, "cannot write {}: its folder {} does not exist", path, parent.string());
  remove_stale_folders(beginning);
  LockedFolder folder(beginning);
  remember_temporary(folder.path());
  auto remove = [&folder](void*) {
    std::error_code ignored;
    fs::remove_all(folder.path(), ignored);
    forget_temporary(folder.path());
  };
  std::unique_ptr<void, decltype(remove)> at_the_end(&folder, remove);
  const std::string file = folder.path() + "/file";
  writer(file);
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    write_file(path, read_file(file));
  else if (::rename(file.c_str(), path.c_str()) != 0)
    fail(FailureKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
}

namespace {

// Of this user's system; what dead runs left there is looked for once.
std::string temporary_beginning() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) fail(FailureKind::kIo, "no folder for temporary files: TMPDIR is no folder ({})", error.message());
  std::string out = (folder / "hlo-replay.").string();
  static const bool once = (remove_stale_folders(out), true);
  (void)once;
  return out;
}

}  // namespace

TemporaryFolder::TemporaryFolder() : folder_(temporary_beginning()) { remember_temporary(folder_.path()); }

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(folder_.path(), ignored);
  forget_temporary(folder_.path());
}

std::string name_in_files(std::string_view name) {
  constexpr size_t kMost = 120, kKept = 100;
  std::string out = sanitized_name(name);
  return out.size() <= kMost ? out : fmt::format("{}-{:016x}", out.substr(0, kKept), hash_bytes(out));
}

std::string shell_word(const std::string& text) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=./,:";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string user_cache_folder() {
  const char* told = std::getenv("XDG_CACHE_HOME");
  if (told && *told == '/') return std::string(told) + "/hlo-replay";
  told = std::getenv("HOME");
  return told && *told == '/' ? std::string(told) + "/.cache/hlo-replay" : std::string();
}

}  // namespace hlo
