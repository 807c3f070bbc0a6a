#include "viewer/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/base/check.h"

namespace hlo {
namespace {

constexpr size_t kBlock = 512, kNameMost = 100;
constexpr uint64_t kSizeMost = uint64_t{8} << 30;  // eleven octal digits

void add_entry(std::string* out, std::string_view name, char type, std::string_view bytes) {
  if (bytes.size() >= kSizeMost) fail(FailureKind::kUnsupported, "{} is too large for an archive", name);
  std::array<char, kBlock> header{};
  auto put = [&](size_t at, std::string_view text) { std::copy(text.begin(), text.end(), header.begin() + at); };
  put(0, name.substr(0, kNameMost));
  put(100, "0000644"), put(108, "0000000"), put(116, "0000000");
  put(124, fmt::format("{:011o}", bytes.size())), put(136, "00000000000");
  put(148, "        ");  // the checksum is taken with spaces in its place
  header[156] = type;
  put(257, "ustar"), put(263, "00");
  unsigned sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum)), header[154] = '\0';
  out->append(header.data(), kBlock);
  out->append(bytes);
  out->append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
}

// `LENGTH path=NAME\n`, whose length counts its own digits.
std::string pax_path(const std::string& name) {
  const size_t rest = name.size() + sizeof(" path=\n") - 1;
  size_t length = rest + 1;
  while (rest + std::to_string(length).size() != length) ++length;
  return fmt::format("{} path={}\n", length, name);
}

}  // namespace

std::string tar_of(const std::vector<ArchiveFile>& files) {
  std::string out;
  size_t size = 2 * kBlock;
  for (const ArchiveFile& f : files) size += f.bytes.size() + 4 * kBlock;
  out.reserve(size);
  for (const ArchiveFile& f : files) {
    if (f.name.size() > kNameMost) add_entry(&out, "pax", 'x', pax_path(f.name));
    add_entry(&out, f.name, '0', f.bytes);
  }
  out.append(2 * kBlock, '\0');
  return out;
}

}  // namespace hlo
