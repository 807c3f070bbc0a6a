// Files of the user's in a folder of ours that is being replaced.
#pragma once
#include <set>
#include <string>

namespace hlo {

// Gives what lies in `old` and is not in `own` (as of files_below) a second name in `made`, at the same place: a hard
// link, else a copy. Throws Failure(kUsage) where something of another content has that place already, Failure(kIo)
// where it cannot be had; nothing has changed in `old` then. `label`: the folder's name in messages.
void carry_over(const std::string& old, const std::set<std::string>& own, const std::string& made,
                const std::string& label);

// Removes a folder that was replaced by `now`, without what lies in neither its own list nor `now`. True where it is
// gone.
bool clear_replaced(const std::string& old, const std::string& now);

// A file below a folder, in folders that are made; 0, or what went wrong.
int write_into(const std::string& folder, const std::string& name, const std::string& content);

}  // namespace hlo
