#include "replay/record/recording/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "ir/base/hash.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/record/recording/store.h"

namespace hlo {
namespace {

constexpr size_t kChunk = size_t{1} << 20;

// Size, time and content of one file into both hashes; false where it cannot be read.
bool add_file(const std::string& path, std::vector<char>& buffer, uint64_t hashes[2]) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat about {};
  bool good = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  auto add = [&](uint64_t what) {
    hashes[0] = hash_combine(hashes[0], what);
    hashes[1] = hash_combine(hashes[1] ^ 0x5DEECE66Dull, what);
  };
  add(static_cast<uint64_t>(about.st_size));
  add(static_cast<uint64_t>(about.st_mtim.tv_sec)), add(static_cast<uint64_t>(about.st_mtim.tv_nsec));
  while (good) {
    ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got < 0) good = false;
    if (got <= 0) break;
    add(hash_bytes(buffer.data(), static_cast<size_t>(got)));
  }
  ::close(file);
  return good;
}

// Away with the longest unused, until what is left and `more` bytes fit.
void make_room(const std::string& folder, uint64_t more) {
  struct Entry {
    std::filesystem::file_time_type time;
    uint64_t size;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = more;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code one, two;
    Entry e{at->last_write_time(one), at->file_size(two), at->path()};
    if (one || two || !at->is_regular_file(one)) continue;
    total += e.size;
    entries.push_back(std::move(e));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.time != b.time ? a.time < b.time : a.path < b.path; });
  for (const Entry& e : entries) {
    if (total <= kImportCacheBytes) break;
    std::error_code ignored;
    if (std::filesystem::remove(e.path, ignored)) total -= e.size;
  }
}

}  // namespace

std::string import_cache_folder() {
  if (const char* said = std::getenv("HLO_REPLAY_CACHE")) return said;
  const std::string base = user_cache_folder();
  return base.empty() ? base : base + "/imports";
}

std::string import_key(const Recording& r) {
  uint64_t hashes[2] = {kStoreVersion, kMatcherVersion};
  auto add = [&](std::string_view text) {
    uint64_t h = hash_bytes(text);
    hashes[0] = hash_combine(hashes[0], h), hashes[1] = hash_combine(hashes[1], ~h);
  };
  add(r.module_name), add(std::to_string(r.module_number));
  std::vector<char> buffer(kChunk);
  for (const StageRow& row : r.rows) {
    add(row.name()), add(row.file);
    if (row.file.empty()) continue;
    try {
      if (!add_file(confined_path(r.folder, row.file), buffer, hashes)) return {};
    } catch (const Failure&) {
      return {};
    }
  }
  return fmt::format("{:016x}{:016x}", hashes[0], hashes[1]);
}

std::shared_ptr<Lineage> cached_import(Recording& r, const std::string& key) {
  const std::string folder = import_cache_folder();
  if (folder.empty() || key.empty()) return nullptr;
  const std::string path = folder + "/" + key + ".hlol";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  try {
    StoredRecording stored = read_store(read_file(path), path);
    const std::vector<StageRow>& own = stored.recording.rows;
    bool same = stored.lost.empty() && own.size() == r.rows.size();
    for (size_t k = 0; same && k < own.size(); ++k)
      same = own[k].name() == r.rows[k].name() && own[k].number == r.rows[k].number;
    if (!same) return nullptr;
    for (size_t k = 0; k < own.size(); ++k) {
      StageRow& row = r.rows[k];
      row.stage = own[k].stage, row.before = own[k].before, row.after = own[k].after;
      row.added = own[k].added, row.removed = own[k].removed, row.modified = own[k].modified;
    }
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), error);
    return std::move(stored.lineage);
  } catch (const Failure&) {
    return nullptr;  // damaged, or of another version: made anew
  }
}

void keep_import(const Recording& r, const Lineage& lineage, const std::string& key) {
  const std::string folder = import_cache_folder();
  if (folder.empty() || key.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return;
  try {
    std::string bytes = store_bytes(r, lineage);
    if (bytes.size() > kImportCacheBytes / 2) return;
    make_room(folder, bytes.size());
    write_file(folder + "/" + key + ".hlol", bytes);
  } catch (const Failure&) {  // a full disk, a folder that is not ours: the next run imports again
    return;
  }
}

}  // namespace hlo
