// The one way in which folders and files of the user's choosing come about and are replaced. Nothing of the user's is
// lost by it: not by --force, not by another run, not by a kill at any moment.
#pragma once
#include <string>
#include <vector>

#include "replay/os/temporary.h"

namespace hlo {

// A folder that appears under its name, whole, only when commit() is called; what was written is removed when it is
// not. It holds a marker with the list of its files (output_marker.h). With `force` a folder that has a marker is
// replaced: the files that it lists go, and what else lies there (notes beside stages) stays under its name. Never
// replaced, whatever it holds, is a folder that is or holds the root, home, the working folder, a place where something
// is mounted or one of the inputs.
class OutputFolder {
 public:
  // `command`: who writes, for the marker. `inputs`: what the command reads: files, folders, `DIR:STAGE`, `FILE@2`;
  // what does not exist is passed over. Throws Failure(kUsage) where `path` is no folder that may be written,
  // Failure(kIo) where it cannot be made.
  OutputFolder(std::string path, bool force, std::string command = {}, std::vector<std::string> inputs = {});
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  // Names stay below the folder (confined_path.h); folders within are made.
  void write(const std::string& name, const std::string& content);
  // Throws Failure(kUsage) where something has appeared under the name meanwhile that may not be replaced, or a file of
  // the user's has the name of a new one; then what was written is kept beside, and the message names it.
  void commit();
  const std::string& path() const { return path_; }
  // Where it lies until then, for what writes files itself.
  const std::string& temporary() const { return at_; }

 private:
  struct Target;
  static Target look_at(const std::string& path, bool force, const std::vector<std::string>& inputs);
  void put(const Target& target);
  void replace(const Target& target);
  std::string swap_with(const Target& target);
  std::string keep_beside();

  std::string path_, command_;
  bool force_;
  std::vector<std::string> inputs_;
  std::string real_;  // without links
  LockedFolder folder_;
  std::string at_;
  bool done_ = false;
};

// Whether `path` may be written at the end, to be asked at the beginning. Throws Failure(kUsage) where it is a folder
// or one of the inputs, with `force`, too, and where it exists and not `force`. Pipes and devices are written into, `-`
// is standard output.
void check_output_file(const std::string& path, bool force, const std::vector<std::string>& inputs = {});
// As write_file, but without `force` a file that is there, since when it may be, is not replaced: Failure(kUsage), and
// what was written is kept beside, and named.
void write_output_file(const std::string& path, const std::string& content, bool force);

// Words of a shell's command line that may name files; no shell's rules.
std::vector<std::string> words_of_line(const std::string& line);

// Folders are swapped and put in their place by plain renames alone, as on file systems that have no others. For tests.
void use_plain_renames(bool plain);

}  // namespace hlo
