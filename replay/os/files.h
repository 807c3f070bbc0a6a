// Reading and writing at the edge: whole files or none, folders made beside and renamed.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "replay/os/interrupt.h"
#include "replay/os/output_folder.h"
#include "replay/os/temporary.h"

namespace hlo {

std::string read_file(const std::string& path);  // `-` is standard input; throws Failure(kIo)
// Do both hold the same bytes? False where one cannot be read.
bool same_files(const std::string& a, const std::string& b);
// The rest of an open file, which is closed. `label`: for messages. Throws Failure(kIo).
std::string read_descriptor(int file, const std::string& label);
// Beside, then renamed; into it where it is a pipe or a device. `-` is standard output. Throws Failure(kIo).
void write_file(const std::string& path, const std::string& content);

// Writes to an open file and closes it; 0, or what went wrong.
int write_and_close(int file, std::string_view content);

// The same for what `writer` writes under the name that it is given.
void write_file_by(const std::string& path, const std::function<void(const std::string&)>& writer);

// Where what can be made again is kept between runs: $XDG_CACHE_HOME/hlo-replay, else ~/.cache/hlo-replay; empty where
// neither is told.
std::string user_cache_folder();

// A folder for other programs' files, gone with the object. Throws Failure(kIo).
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return folder_.path(); }

 private:
  LockedFolder folder_;
};

// The name of a module or instruction as part of file names, which must not get longer than file systems take.
std::string name_in_files(std::string_view name);

// The text as one word of a shell's command line.
std::string shell_word(const std::string& text);

}  // namespace hlo
