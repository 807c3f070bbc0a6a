// What the writer and the reader of lineage.hlol share.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <string_view>

namespace hlo {

inline constexpr std::string_view kStoreMagic = "HLOLINE\n";
inline constexpr size_t kStoreHead = 16, kStoreEntry = 32, kStoreTag = 4;

inline uint32_t checksum_of(std::string_view bytes) {
  uLong crc = crc32(0L, Z_NULL, 0);
  while (!bytes.empty()) {
    size_t part = bytes.size() < (size_t{1} << 30) ? bytes.size() : size_t{1} << 30;
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(part));
    bytes.remove_prefix(part);
  }
  return static_cast<uint32_t>(crc);
}

// Sections in the order of the file. Those of stages carry the stage's number.
inline constexpr std::string_view kWords = "word", kStrings = "strs", kShapes = "shap", kLiterals = "lits",
                                  kMetadata = "meta", kAttributes = "attr", kRows = "rows", kJournal = "jrnl",
                                  kStage = "stag", kHeirs = "heir";

}  // namespace hlo
