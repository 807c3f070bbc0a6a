#include "replay/files.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "ir/base/check.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {
std::atomic<bool> g_interrupted{false};
}

bool interrupted() { return g_interrupted.load(); }
void catch_interrupts() {
  // The first one asks for an orderly end; a second one ends what does not come to it.
  auto ask = [](int signal) {
    g_interrupted = true;
    std::signal(signal, SIG_DFL);
  };
  std::signal(SIGINT, ask);
  std::signal(SIGTERM, ask);
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
  FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) fail(FailureKind::kIo, "cannot read {}: {}", path, std::strerror(errno));
  std::string out;
  if (auto size = fs::file_size(path, error); !error) out.resize(size + 1);  // a byte more, to see the end
  size_t at = 0;
  for (;;) {
    if (at == out.size()) out.resize(out.size() + 65536);
    size_t n = std::fread(out.data() + at, 1, out.size() - at, file);
    if (!n) break;
    at += n;
  }
  bool bad = std::ferror(file);
  std::fclose(file);
  if (bad) fail(FailureKind::kIo, "cannot read {}", path);
  out.resize(at);
  return out;
}

void write_file(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::cout.write(content.data(), static_cast<std::streamsize>(content.size()));
    return;
  }
  std::string temporary = fmt::format("{}.tmp{}", path, ::getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) {
      std::remove(temporary.c_str());
      fail(FailureKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str())) {
    std::remove(temporary.c_str());
    fail(FailureKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
  }
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "hlo-replay-XXXXXX").string();
  if (!::mkdtemp(name.data())) fail(FailureKind::kIo, "cannot make a folder in {}", fs::temp_directory_path().string());
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string shell_word(const std::string& text) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=./,:";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

OutputFolder::OutputFolder(std::string path, bool force) : path_(std::move(path)), force_(force) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  std::error_code error;
  if (fs::exists(path_, error) && !force_) {
    bool empty = fs::is_directory(path_, error) && fs::is_empty(path_, error);
    if (!empty) fail(FailureKind::kUsage, "{} exists already; --force replaces it", path_);
    force_ = true;
  }
  temporary_ = fmt::format("{}.tmp{}", path_, ::getpid());
  fs::path parent = fs::path(temporary_).parent_path();
  if (!parent.empty() && !fs::exists(parent, error))
    fail(FailureKind::kIo, "cannot make {}: its folder {} does not exist", path_, parent.string());
  if (!fs::create_directory(temporary_, error)) fail(FailureKind::kIo, "cannot make {}: {}", path_, error.message());
}

OutputFolder::~OutputFolder() {
  std::error_code error;
  if (!done_) fs::remove_all(temporary_, error);
}

void OutputFolder::write(const std::string& name, const std::string& content) {
  if (interrupted()) fail(FailureKind::kIo, "interrupted; nothing was written");
  std::ofstream file(temporary_ + "/" + name, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) fail(FailureKind::kIo, "cannot write {}/{}: {}", path_, name, std::strerror(errno));
}

void OutputFolder::commit() {
  std::error_code error;
  std::string old;
  if (force_ && fs::exists(path_, error)) {
    old = fmt::format("{}.old{}", path_, ::getpid());
    fs::rename(path_, old, error);
    if (error) fail(FailureKind::kIo, "cannot replace {}: {}", path_, error.message());
  }
  fs::rename(temporary_, path_, error);
  if (error) fail(FailureKind::kIo, "cannot make {}: {}", path_, error.message());
  done_ = true;
  if (!old.empty()) fs::remove_all(old, error);
}

}  // namespace hlo
