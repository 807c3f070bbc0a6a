// What a page carries: files in one ustar archive, bytes as base64.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

struct ArchiveFile {
  std::string name;  // below the archive's root, `/` between folders
  std::string bytes;
};

// POSIX ustar; names of more than 100 bytes by a pax header. The same files give the same bytes: no times, no owners.
std::string tar_of(const std::vector<ArchiveFile>& files);

std::string base64(std::string_view bytes);

}  // namespace hlo
