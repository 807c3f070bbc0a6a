// lineage.hlol: a recording in one file that opens without parsing a text. Specified in docs/formats.md.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replay/record/recording/lineage.h"
#include "replay/record/recording/recording.h"

namespace hlo {

inline constexpr const char* kStoreFile = "lineage.hlol";
inline constexpr uint32_t kStoreVersion = 1;

// The same input gives the same bytes. Ids are numbered anew, in their order, without those that no stage has.
std::string store_bytes(const Recording& recording, const Lineage& lineage);

struct StoredRecording {
  Recording recording;  // rows, notes and names of files; without its folder
  std::shared_ptr<Lineage> lineage;
  std::vector<std::string> lost;  // what could not be read, in words; empty where all is there
};

// `label`: names the file in messages. Of a damaged or truncated file what can be relied on is read: the stages in
// front of the damage, rows and notes where they are whole. Without heirs nothing is decided at that stage. Throws
// Failure: kUnsupported of another version or with operations that this program does not know, kIo where not even the
// first stage can be read.
StoredRecording read_store(std::string_view bytes, const std::string& label);

}  // namespace hlo
