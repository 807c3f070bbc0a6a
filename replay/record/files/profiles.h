// Profiles that lie in a folder or beside it, as jax's profiler leaves them.
#pragma once
#include <string>
#include <vector>

namespace hlo {

// `.xplane.pb`, packed or not, in the folder itself, else of the latest run in its plugins/profile, else the same of
// the folder around it. One a host, by name. Only lists: nothing is read.
std::vector<std::string> profiles_beside(const std::string& folder);

// The same of that folder alone: in it, else of the latest run in its plugins/profile.
std::vector<std::string> profiles_of_folder(const std::string& folder);
// `HOST` of `…/HOST.xplane.pb`.
std::string host_of_profile(const std::string& file);

}  // namespace hlo
