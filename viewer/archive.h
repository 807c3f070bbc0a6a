// What a page carries: files in one ustar archive.
#pragma once
#include <string>
#include <vector>

namespace hlo {

struct ArchiveFile {
  std::string name;  // below the archive's root, `/` between folders
  std::string bytes;
};

// POSIX ustar; names of more than 100 bytes by a pax header. The same files give the same bytes: no times, no owners.
std::string tar_of(const std::vector<ArchiveFile>& files);

}  // namespace hlo
