#include "gpu_exec/driver/kernel_cache.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "ir/base/hash.h"

namespace hlo {
namespace {

std::mutex lock;
std::string& folder_of_cache() {
  static std::string folder = [] {
    const char* said = std::getenv("HLO_KERNEL_CACHE");
    return std::string(said ? said : "");
  }();
  return folder;
}

std::string folder() {
  std::lock_guard guard(lock);
  return folder_of_cache();
}

}  // namespace

void set_kernel_cache(std::string f) {
  std::lock_guard guard(lock);
  folder_of_cache() = std::move(f);
}

std::string cached_code(std::string_view source, std::string_view target, const std::function<std::string()>& make) {
  std::string where = folder();
  if (where.empty()) return make();
  // 128 bits by two passes over different texts; the first line says what it is of, so that another one is not taken.
  std::string head = fmt::format("LLVM {} {}, {} bytes of IR\n", LLVM_VERSION_STRING, target, source.size());
  std::string salted = head + std::string(source);
  std::string path =
      fmt::format("{}/{:016x}{:016x}.kernels", where, hash_bytes(salted), hash_combine(hash_bytes(source), 0x6b65726e));
  // Code runs as it stands in the file: a bit that has turned over there is found by the sum in front of it.
  auto sum = [&](std::string_view code) {
    return fmt::format("{:016x} of {} bytes\n", hash_combine(hash_bytes(code), code.size()), code.size());
  };
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {  // a pipe or device of that name would be read for ever
    std::ifstream file(path, std::ios::binary);
    std::stringstream stream;
    if (file && stream << file.rdbuf()) {
      std::string text = std::move(stream).str();
      size_t end = text.starts_with(head) ? text.find('\n', head.size()) : std::string::npos;
      if (end != std::string::npos) {
        std::string code = text.substr(end + 1);
        if (text.compare(head.size(), end + 1 - head.size(), sum(code)) == 0) return code;
      }
    }
  }
  std::string made = make();
  // A cache that cannot be written costs time only.
  static std::atomic<int> number = 0;
  std::filesystem::create_directories(where, ignored);
  std::string beside = fmt::format("{}.{}.{}", path, ::getpid(), number++);
  std::ofstream out(beside, std::ios::binary);
  out << head << sum(made) << made;
  out.close();
  if (out)
    std::filesystem::rename(beside, path, ignored);
  else
    std::filesystem::remove(beside, ignored);
  return made;
}

size_t kept_choice(std::string_view what, std::string_view target, size_t count,
                   const std::function<size_t()>& measure) {
  if (count < 2) return 0;
  std::string said = cached_code(what, target, [&] { return std::to_string(measure()); });
  size_t number = 0;
  auto [end, code] = std::from_chars(said.data(), said.data() + said.size(), number);
  bool good = code == std::errc() && end == said.data() + said.size() && number < count;
  return good ? number : measure();  // damaged, or of a library that knew more
}

}  // namespace hlo
