// The one place that decides what a name in a recording may mean. Names come from recording.json, from the listing of a
// dump folder or from XLA's metadata, which may be a stranger's: they name regular files of that folder and nothing
// else. Links lead out of it only where a store of files puts them: to a dump's file (`module_…`) that has the link's
// own name or is named by its content's hash, in a folder without a recording.json.
#pragma once
#include <string>
#include <string_view>

namespace hlo {

// Why the name, as it stands, cannot be one of a file below a folder: it is absolute, empty, has `..`, `.` or empty
// parts, or control characters, which terminals would act on. Empty where it can.
std::string why_not_below(std::string_view name);
// Why `name` is no file of `folder`, in words; empty where it may be read. Links that lead out of the folder, pipes and
// devices are none; what does not exist is told apart by `missing`. Opens nothing, so it never waits.
std::string why_not_confined(const std::string& folder, const std::string& name, bool* missing = nullptr);
// FOLDER/NAME. Throws Failure(kIo) with the reason where it is no file of the folder.
std::string confined_path(const std::string& folder, const std::string& name);
// What the file holds. Throws Failure(kIo).
std::string read_confined(const std::string& folder, const std::string& name);

}  // namespace hlo
