// Profiles that lie in a folder or beside it, as jax's profiler leaves them.
#pragma once
#include <string>
#include <vector>

namespace hlo {

// `.xplane.pb`, packed or not, in the folder itself, else of the latest run in its plugins/profile, else the same of
// the folder around it. One a host, by name. Only lists: nothing is read.
std::vector<std::string> profiles_beside(const std::string& folder);

}  // namespace hlo
