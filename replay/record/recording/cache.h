// Imports of foreign folders, kept between runs: $XDG_CACHE_HOME/hlo-replay/imports, else ~/.cache/…. The dump's own
// folder is never written to. Files are written beside and renamed; the longest unused go where they become too many
// (kImportCacheBytes in all); what is damaged is made anew. HLO_REPLAY_CACHE=FOLDER says where instead, empty: nowhere.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "replay/record/recording/recording.h"

namespace hlo {

inline constexpr uint64_t kImportCacheBytes = uint64_t{2} << 30;
// Counted up when the matcher answers otherwise than before.
inline constexpr uint32_t kMatcherVersion = 6;

// Empty where nothing is kept.
std::string import_cache_folder();

// What the recording's stages are known by: names, sizes, times and content of their files. Empty where one of them
// cannot be read.
std::string import_key(const Recording& recording);

// The lineage kept under that key, the rows' `stage` and counts filled in; nothing where there is none that fits.
std::shared_ptr<Lineage> cached_import(Recording& recording, const std::string& key);
// Failures are no matter: the next run imports again.
void keep_import(const Recording& recording, const Lineage& lineage, const std::string& key);

}  // namespace hlo
