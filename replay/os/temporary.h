// Names beside a target, for what is being made. No process id is in them, so that what a dead run left blocks nobody;
// a lock tells whether the run that made a folder lives, and the next run takes away what dead ones left.
#pragma once
#include <functional>
#include <string>

namespace hlo {

// Six characters that no other run has.
std::string unique_ending();
// `path` with `what` (tmp, old) and a unique ending, by which our own leavings are known.
std::string name_beside(const std::string& path, const char* what);

// A new empty folder beginning with `beginning` (a path), locked as long as this object or a forked child lives.
class LockedFolder {
 public:
  explicit LockedFolder(const std::string& beginning);  // throws Failure(kIo)
  ~LockedFolder();                                      // unlocks; what becomes of the folder is the owner's matter
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

// Removes folders of ours that begin so and that no run holds; `remove` does it in the place of removing all.
void remove_stale_folders(const std::string& beginning, const std::function<void(const std::string&)>& remove = {});

}  // namespace hlo
