// A recording: what happened to a module, stage by stage. Made by replaying our pipeline, or by importing a folder that
// XLA dumped; everything downstream works on both.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "passes/pass.h"
#include "passes/scope.h"
#include "replay/record/recording/lineage.h"

namespace hlo {

struct StageRow {
  enum Kind { kInput, kPipelineStart, kPass, kInnerStep, kResult } kind = kPass;
  int number = -1;  // SSSS of the file name; -1 where there is none
  std::string pipeline, pass, next;
  bool changed = false, implemented = true, disabled = false;
  int64_t microseconds = -1;     // -1: unknown
  size_t before = 0, after = 0;  // instructions
  size_t added = 0, removed = 0, modified = 0;
  int64_t rewrites = 0;
  int stage = -1;    // of the lineage, that the row ends with; -1: unknown
  std::string file;  // text of this stage, base name; empty where nothing was written (nothing changed)
  std::vector<Note> notes;
  std::string_view kind_name() const;  // input, pipeline-start, pass, step or result
  std::string name() const;            // `simplification.after_algsimp`, `before_optimizations` …
};

// What happened as a row, without the stage and what comes of it.
StageRow row_of(const PassEvent& event);

struct Recording {
  std::string folder;
  std::string module_name;
  int module_number = 1;
  std::string source;  // "hlo-replay" or "xla"
  std::string pipeline;
  std::vector<StageRow> rows;
  std::vector<std::string> other_files;  // of the same module: buffer assignment, thunks, .ll, .ptx …
  std::string metadata;                  // XLA's record of passes, a file of the folder; empty where there is none
  std::vector<std::string> missing;      // what a complete dump would have
  std::vector<std::string> problems;     // files that could not be read, and why
  bool keep_import = true;               // in the user's cache, where it is a foreign folder's

  // The text file that holds the module after that row (its own, or the last one written before it); empty if none.
  std::string text_file(size_t row) const;

  // All stages under one numbering. The first call opens the store, or else reads and matches the texts, which takes
  // its time; it fills in the rows' `stage`, the counts of imported rows and the ids of notes, and what could not be
  // read into `problems`. Throws Failure where no stage can be read. Copies of a recording share it.
  Lineage& lineage();
  void keep(std::shared_ptr<Lineage> lineage) { lineage_ = std::move(lineage); }

 private:
  bool open_store();
  std::shared_ptr<Lineage> lineage_;
};

std::string recording_json(const Recording& r);

// Is that an archive of a folder (tar, zip), by its name or what it holds? Nobody unpacks one here: kPackedFolder is
// said of it.
bool is_packed_folder(std::string_view name, std::string_view content);
inline constexpr std::string_view kPackedFolder =
    "is a packed folder: unpack it first (tar -xf FILE; zstd -d --long=31 -c FILE | tar -x; unzip FILE)";

// All recordings in a folder, in module order: ours (recording.json) or XLA's file names. Names and listings only:
// counts of a foreign folder's instructions come with its lineage. Throws Failure(kIo) when there is nothing.
std::vector<Recording> open_folder(const std::string& folder);

}  // namespace hlo
