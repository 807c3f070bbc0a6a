// Renames that replace nothing.
#pragma once
#include <string>

namespace hlo {

// Both names are swapped in one step. 0, or what went wrong; see not_known().
int rename_swapping(const std::string& a, const std::string& b);
// `to` must not exist. 0, EEXIST or what else went wrong; see not_known().
int rename_to_new(const std::string& from, const std::string& to);
// Did a rename of these fail since the kernel or the file system has no such thing (NFS, FUSE)?
bool not_known(int why);

}  // namespace hlo
