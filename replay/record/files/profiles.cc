#include "replay/record/files/profiles.h"

#include <algorithm>
#include <filesystem>

namespace hlo {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> profiles_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if ((name.ends_with(".xplane.pb") || name.ends_with(".xplane.pb.gz")) && at->is_regular_file(ignored))
      out.push_back(at->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Runs are named after the time at which they began.
std::vector<std::string> latest_run(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator at(folder / "plugins" / "profile", error), end; !error && at != end; at.increment(error))
    runs.push_back(at->path());
  std::sort(runs.rbegin(), runs.rend());
  for (const fs::path& run : runs)
    if (std::vector<std::string> found = profiles_in(run); !found.empty()) return found;
  return {};
}

}  // namespace

std::vector<std::string> profiles_beside(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return {};
  std::vector<fs::path> places{fs::path(folder)};
  if (real.has_parent_path() && real.parent_path() != real) places.push_back(real.parent_path());
  for (const fs::path& place : places)
    if (std::vector<std::string> found = profiles_of_folder(place.string()); !found.empty()) return found;
  return {};
}

std::vector<std::string> profiles_of_folder(const std::string& folder) {
  std::vector<std::string> found = profiles_in(folder);
  return found.empty() ? latest_run(folder) : found;
}

std::string host_of_profile(const std::string& file) {
  std::string name = fs::path(file).filename().string();
  for (const char* end : {".gz", ".pb", ".xplane", ".json", ".trace"})
    if (name.ends_with(end)) name = name.substr(0, name.rfind(end));
  return name;
}

}  // namespace hlo
