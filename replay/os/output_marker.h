// What tells a folder that hlo-replay made from one of the user's: the file .hlo-replay in it, which lists its files
// (docs/formats.md).
#pragma once
#include <optional>
#include <set>
#include <string>

namespace hlo {

inline constexpr const char* kMarkerFile = ".hlo-replay";

// Paths of what lies below a folder, relative to it: files of every kind, links (which are not followed), and folders
// with nothing in them, which end with `/`. Throws Failure(kIo) where a part cannot be listed.
std::set<std::string> files_below(const std::string& folder);

// The marker's text. `files`: as of files_below.
std::string marker_json(const std::string& command, const std::set<std::string>& files);

// The files of a folder that hlo-replay made, whether they are still there or not: those that its marker lists or, of
// a recording older than markers, all that lies in it. Nothing where the folder is another's, and `why` says in words
// what shows that.
std::optional<std::set<std::string>> own_files(const std::string& folder, std::string* why);
// Has it a marker?
bool has_marker(const std::string& folder);

}  // namespace hlo
