// Reading and writing at the edge: whole files or none, folders made beside and renamed.
#pragma once
#include <string>

namespace hlo {

std::string read_file(const std::string& path);                        // `-` is standard input; throws Failure(kIo)
void write_file(const std::string& path, const std::string& content);  // beside, then renamed

// A folder that appears under its name only when commit() is called; removed when it is not.
class OutputFolder {
 public:
  // Throws Failure(kUsage) when `path` exists and not `force`, Failure(kIo) when it cannot be made.
  OutputFolder(std::string path, bool force);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  void write(const std::string& name, const std::string& content);
  void commit();
  const std::string& path() const { return path_; }
  // Where it lies until then, for what writes files itself.
  const std::string& temporary() const { return temporary_; }

 private:
  std::string path_, temporary_;
  bool done_ = false, force_;
};

// A folder for other programs' files, gone with the object. Throws Failure(kIo).
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The text as one word of a shell's command line.
std::string shell_word(const std::string& text);

// Ctrl-C was pressed: long work looks at it and stops cleanly.
bool interrupted();
void catch_interrupts();

}  // namespace hlo
