// What the writer and the reader of lineage.hlol share.
#pragma once
#include <cstdint>
#include <string_view>

#include "ir/base/checksum.h"

namespace hlo {

inline constexpr std::string_view kStoreMagic = "HLOLINE\n";
inline constexpr size_t kStoreHead = 16, kStoreEntry = 32, kStoreTag = 4;

// Sections in the order of the file. Those of stages carry the stage's number.
inline constexpr std::string_view kWords = "word", kStrings = "strs", kShapes = "shap", kLiterals = "lits",
                                  kMetadata = "meta", kAttributes = "attr", kRows = "rows", kJournal = "jrnl",
                                  kStage = "stag", kHeirs = "heir";

}  // namespace hlo
