#include "replay/os/output_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "ir/base/check.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/kept_files.h"
#include "replay/os/output_marker.h"
#include "replay/os/rename.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace fs = std::filesystem;

// What lies under the name.
struct OutputFolder::Target {
  enum State { kAbsent, kEmpty, kOurs } state = kAbsent;
  std::string real;           // without links
  std::set<std::string> own;  // of ours: its files
  bool marked = false;        // of ours: by a marker
  struct stat is {};
};

namespace {

bool is_or_holds(const fs::path& folder, const fs::path& other) {
  return std::mismatch(folder.begin(), folder.end(), other.begin(), other.end()).first == folder.end();
}

// The file or folder that a command's word names, without links; empty where there is none. `DIR:MODULE:STAGE` and
// `FILE@2` name what is in front of the last mark that leaves a name of something.
fs::path named_by(const std::string& word) {
  std::error_code error;
  for (size_t end = word.size(); end != std::string::npos && end > 0; end = word.find_last_of(":@!", end - 1)) {
    const std::string part = word.substr(0, end);
    if (!fs::exists(part, error)) continue;
    fs::path real = fs::canonical(part, error);
    if (!error) return real;
  }
  return {};
}

bool mounted(const std::string& real) {
#ifdef STATX_ATTR_MOUNT_ROOT
  struct statx more {};
  if (::statx(AT_FDCWD, real.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &more) == 0 &&
      (more.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
    return more.stx_attributes & STATX_ATTR_MOUNT_ROOT;
#endif
  struct stat is {
  }, above{};
  return ::stat(real.c_str(), &is) == 0 && ::stat((real + "/..").c_str(), &above) == 0 &&
         (is.st_dev != above.st_dev || is.st_ino == above.st_ino);
}

// Why a folder is not replaced whatever it holds; empty where it may be.
std::string why_never(const fs::path& real, const std::vector<std::string>& inputs) {
  std::error_code error;
  if (real == real.root_path()) return "it is the root folder";
  if (const char* told = std::getenv("HOME"); told && *told == '/') {
    const fs::path home = fs::canonical(told, error);
    if (!error && is_or_holds(real, home)) return "it is your home folder, or holds it";
  }
  if (const fs::path here = fs::current_path(error); !error && is_or_holds(real, here))
    return "it is the working folder, or holds it";
  for (const std::string& word : inputs)
    if (const fs::path input = named_by(word); !input.empty() && is_or_holds(real, input))
      return fmt::format("it is, or holds, {}, which the command reads", printable(word));
  if (mounted(real.string())) return "something is mounted there";
  return {};
}

std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// What a run that was killed while it replaced a folder has left under another name: what is not needed goes.
void finish_replacing(const std::string& real) {
  std::error_code error;
  const bool there = fs::exists(real, error);
  remove_stale_folders(real + ".old.hlo-replay.", [&](const std::string& old) {
    if (there)
      clear_replaced(old, real);
    else if (may_fork())  // a program of ours, which may speak
      complain("warning: a run that was killed has left what was in " + printable(real) + " in " + printable(old));
  });
}

// Where what is made lies until commit().
std::string beginning_beside(const std::string& real) {
  remove_stale_folders(real + ".tmp.hlo-replay.");
  finish_replacing(real);
  return real + ".tmp.hlo-replay.";
}

}  // namespace

OutputFolder::Target OutputFolder::look_at(const std::string& path, bool force,
                                           const std::vector<std::string>& inputs) {
  Target t;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) {
    const fs::path given(path);
    const fs::path parent = given.has_parent_path() ? given.parent_path() : fs::path(".");
    if (!fs::is_directory(parent, error))
      fail(FailureKind::kIo, "cannot make {}: its folder {} does not exist", path, parent.string());
    const fs::path real = fs::canonical(parent, error);
    if (error) fail(FailureKind::kIo, "cannot make {}: {}", path, error.message());
    t.real = (real / given.filename()).string();
    return t;
  }
  const fs::path real = fs::canonical(path, error);
  if (error) fail(FailureKind::kUsage, "{} is a link that leads nowhere; it is left alone", path);
  if (!fs::is_directory(real, error))
    fail(FailureKind::kUsage, "{} exists already and is no folder; --force replaces folders of hlo-replay only", path);
  t.real = real.string();
  if (const std::string why = why_never(real, inputs); !why.empty())
    fail(FailureKind::kUsage, "{} is left alone, with --force, too: {}", path, why);
  if (::stat(t.real.c_str(), &t.is) != 0) fail(FailureKind::kIo, "cannot look into {}: {}", path, std::strerror(errno));
  t.state = Target::kEmpty;
  if (fs::is_empty(real, error) && !error) return t;
  if (error) fail(FailureKind::kIo, "cannot look into {}: {}", path, error.message());
  std::string why;
  std::optional<std::set<std::string>> own = own_files(t.real, &why);
  if (!own)
    fail(FailureKind::kUsage, "{} exists already and is left alone, with --force, too: {}; name another folder", path,
         why);
  if (!force) fail(FailureKind::kUsage, "{} exists already; --force replaces what hlo-replay wrote there", path);
  t.state = Target::kOurs, t.own = std::move(*own), t.marked = has_marker(t.real);
  return t;
}

OutputFolder::OutputFolder(std::string path, bool force, std::string command, std::vector<std::string> inputs)
    : path_(without_end_slashes(std::move(path))),
      command_(std::move(command)),
      force_(force),
      inputs_(std::move(inputs)),
      real_(look_at(path_, force_, inputs_).real),
      folder_(beginning_beside(real_)),
      at_(folder_.path()) {
  remember_temporary(at_);
}

OutputFolder::~OutputFolder() {
  std::error_code error;
  if (!done_) fs::remove_all(at_, error);
  forget_temporary(folder_.path());
}

void OutputFolder::write(const std::string& name, const std::string& content) {
  if (interrupted()) fail(FailureKind::kIo, "interrupted; nothing was written");
  if (std::string why = why_not_below(name); !why.empty())
    fail(FailureKind::kIo, "cannot write '{}' into {}: {}", name, path_, why);
  if (const int why = write_into(at_, name, content))
    fail(FailureKind::kIo, "cannot write {}/{}: {}", path_, name, std::strerror(why));
}

void OutputFolder::commit() {
  if (interrupted()) fail(FailureKind::kIo, "interrupted; nothing was written");
  std::set<std::string> files = files_below(at_);
  files.insert(kMarkerFile);
  write(kMarkerFile, marker_json(command_, files));
  try {
    const Target target = look_at(path_, force_, inputs_);
    real_ = target.real;
    if (target.state == Target::kOurs)
      replace(target);
    else
      put(target);
  } catch (const Failure& e) {
    if (done_) throw;
    fail(e.kind(), "{}; what was made is kept in {}", e.what(), keep_beside());
  }
  done_ = true;
  forget_temporary(folder_.path());
}

// Into a place that is free, or where an empty folder lies.
void OutputFolder::put(const Target& target) {
  int why = 0;
  if (target.state == Target::kAbsent) {
    why = rename_to_new(at_, target.real);
    if (!why) return;
    // An empty folder is made where there is no such rename: the plain one below replaces nothing else.
    if (not_known(why)) why = ::mkdir(target.real.c_str(), 0777) == 0 ? 0 : errno;
  } else {
    ::chmod(at_.c_str(), target.is.st_mode & 07777);
  }
  if (!why || why == EEXIST) why = ::rename(at_.c_str(), target.real.c_str()) == 0 ? 0 : errno;
  if (why == ENOTEMPTY || why == EEXIST || why == ENOTDIR)
    fail(FailureKind::kUsage, "{} has appeared meanwhile, and is left alone", path_);
  if (why) fail(FailureKind::kIo, "cannot make {}: {}", path_, std::strerror(why));
}

// In the place of a folder of ours. Whenever this ends, by a kill, too, each file of the user's lies under the name or,
// where it came while this ran, in a folder beside that no run removes.
void OutputFolder::replace(const Target& target) {
  // What a killed run leaves beside is known by it.
  if (!target.marked) write_file(target.real + "/" + kMarkerFile, marker_json(command_, target.own));
  carry_over(target.real, target.own, at_, path_);
  ::chmod(at_.c_str(), target.is.st_mode & 07777);
  // From here on it is not ours alone: no run may remove it as a whole.
  forget_temporary(folder_.path());
  const std::string aside = name_beside(target.real, "old");
  if (const int why = rename_to_new(at_, aside); not_known(why)) {
    if (::rename(at_.c_str(), aside.c_str()) != 0)
      fail(FailureKind::kIo, "cannot replace {}: {}", path_, std::strerror(errno));
  } else if (why) {
    fail(FailureKind::kIo, "cannot replace {}: {}", path_, std::strerror(why));
  }
  at_ = aside;
  std::string old = swap_with(target);
  done_ = true;
  if (!clear_replaced(old, target.real) && may_fork())
    complain(fmt::format("warning: files that came into {} while it was replaced are kept in {}", printable(path_),
                         printable(old)));
}

// Puts what was made under the name; where what lay there lies now.
std::string OutputFolder::swap_with(const Target& target) {
  auto same = [&](const std::string& folder) {
    struct stat is {};
    return ::stat(folder.c_str(), &is) == 0 && is.st_ino == target.is.st_ino && is.st_dev == target.is.st_dev;
  };
  const int why = rename_swapping(at_, target.real);
  if (!why) {
    if (same(at_)) return at_;
    rename_swapping(at_, target.real);
    fail(FailureKind::kUsage, "{} was replaced meanwhile, and is left alone", path_);
  }
  if (!not_known(why)) fail(FailureKind::kIo, "cannot replace {}: {}", path_, std::strerror(why));
  // In two steps: a run that is killed between them leaves both beside, and the next one says so.
  std::string old = name_beside(target.real, "old");
  if (::rename(target.real.c_str(), old.c_str()) != 0)
    fail(FailureKind::kIo, "cannot replace {}: {}", path_, std::strerror(errno));
  try {
    if (!same(old)) fail(FailureKind::kUsage, "{} was replaced meanwhile, and is left alone", path_);
    Target free;
    free.real = target.real;
    put(free);
  } catch (const Failure&) {
    // Back, unless another one has taken the name: then it lies beside.
    if (::mkdir(target.real.c_str(), 0777) == 0 && ::rename(old.c_str(), target.real.c_str()) == 0) throw;
    fail(FailureKind::kUsage, "{} was made again meanwhile; what was there is kept in {}", path_, old);
  }
  return old;
}

std::string OutputFolder::keep_beside() {
  forget_temporary(folder_.path());
  std::string kept = name_beside(real_, "kept");
  done_ = true;
  if (::rename(at_.c_str(), kept.c_str()) != 0) return at_;
  at_ = kept;
  return kept;
}

void check_output_file(const std::string& path, bool force, const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status is = fs::status(path, error);
  if (!fs::exists(fs::symlink_status(path, error))) return;
  if (fs::is_directory(is)) fail(FailureKind::kUsage, "{} is a folder: a file is to be written there", path);
  if (fs::exists(is) && !fs::is_regular_file(is)) return;
  for (const std::string& word : inputs)
    if (const fs::path input = named_by(word); !input.empty() && fs::equivalent(path, input, error))
      fail(FailureKind::kUsage, "{} is left alone, with --force, too: the command reads it", path);
  if (!force) fail(FailureKind::kUsage, "{} exists already; --force replaces it", path);
}

std::vector<std::string> words_of_line(const std::string& line) {
  std::vector<std::string> out(1);
  for (char c : line) {
    const bool ends = std::strchr(" \t\n;&|<>()\"'=", c) != nullptr;
    if (!ends)
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  }
  return out;
}

}  // namespace hlo
