#include "replay/record/recording/recording.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/recording/import.h"
#include "replay/record/recording/store.h"

namespace hlo {
namespace fs = std::filesystem;

std::string_view StageRow::kind_name() const {
  switch (kind) {
    case kInput:
      return "input";
    case kPipelineStart:
      return "pipeline-start";
    case kInnerStep:
      return "step";
    case kResult:
      return "result";
    case kPass:
      break;
  }
  return "pass";
}

std::string StageRow::name() const {
  switch (kind) {
    case kInput:
      return "before_optimizations";
    case kResult:
      return "after_optimizations";
    default:
      // Of no pipeline: after_spmd_partitioner, before_config_assignment.
      if (pipeline.empty()) return pass.empty() ? "before_" + next : "after_" + pass;
      return pipeline + ".after_" + pass;
  }
}

StageRow row_of(const PassEvent& e) {
  StageRow row;
  row.kind = e.kind == PassEvent::kPipelineStart ? StageRow::kPipelineStart
             : e.kind == PassEvent::kInnerStep   ? StageRow::kInnerStep
                                                 : StageRow::kPass;
  row.pipeline = e.pipeline, row.pass = e.pass, row.next = e.next;
  row.changed = e.kind == PassEvent::kInnerStep || e.changed || e.claimed;
  row.implemented = e.implemented, row.disabled = e.disabled;
  row.before = e.instructions_before, row.after = e.instructions_after;
  row.rewrites = e.rewrites;
  row.notes = e.notes;
  if (e.kind == PassEvent::kPass) row.microseconds = e.microseconds;
  return row;
}

std::string Recording::text_file(size_t row) const {
  for (size_t i = std::min(row, rows.size() - 1) + 1; i-- > 0;)
    if (!rows[i].file.empty()) return rows[i].file;
  return {};
}

// --- the lineage ---

Lineage& Recording::lineage() {
  if (lineage_) return *lineage_;
  for (StageRow& row : rows) row.stage = -1;
  if (!open_store()) lineage_ = import_stages(*this);
  return *lineage_;
}

// False, and the reason in `problems`, where the folder has none that belongs to its listing. Folders of ours have one,
// and what pages carry of foreign ones.
bool Recording::open_store() {
  bool missing = false;
  if (source != "hlo-replay" && (!why_not_confined(folder, "recording.json", &missing).empty() && missing))
    return false;
  if (!why_not_confined(folder, kStoreFile, &missing).empty() && missing) return false;  // of before there were any
  try {
    StoredRecording stored = read_store(read_confined(folder, kStoreFile), folder + "/" + kStoreFile);
    const std::vector<StageRow>& own = stored.recording.rows;
    bool same = own.size() == rows.size() && stored.recording.module_name == module_name;
    for (size_t k = 0; same && k < rows.size(); ++k)
      same = own[k].name() == rows[k].name() && own[k].number == rows[k].number && own[k].after == rows[k].after &&
             own[k].notes.size() == rows[k].notes.size();
    if (!same) {
      for (const std::string& why : stored.lost) problems.push_back(why);
      problems.push_back(std::string(kStoreFile) + " does not belong to recording.json: the texts are read instead");
      return false;
    }
    for (size_t k = 0; k < rows.size(); ++k) rows[k].stage = own[k].stage, rows[k].notes = own[k].notes;
    for (std::string& why : stored.lost) problems.push_back(std::move(why));
    lineage_ = std::move(stored.lineage);
    return true;
  } catch (const Failure& e) {
    problems.push_back(fmt::format("{}: the texts are read instead", e.what()));
    return false;
  }
}

// --- opening folders ---

namespace {

// What it names is below its folder, or it is no recording; what is not there, or cannot be read, is told.
void check_names(Recording* r) {
  auto check = [r](const std::string& file) {
    if (std::string why = why_not_below(file); !why.empty())
      fail(FailureKind::kIo, "{}/recording.json names '{}': {}", r->folder, file, why);
    bool missing = false;
    std::string why = why_not_confined(r->folder, file, &missing);
    if (missing)
      r->missing.push_back(file);
    else if (!why.empty())
      r->problems.push_back(fmt::format("{}: {}", file, why));
  };
  bool no_store = false;
  why_not_confined(r->folder, kStoreFile, &no_store);
  const size_t before = r->missing.size();
  for (const StageRow& row : r->rows)
    if (!row.file.empty()) check(row.file);
  if (!no_store) r->missing.resize(before);  // the store has what stands in the texts
  for (const std::string& file : r->other_files) check(file);
}

std::vector<Recording> open_ours(const std::string& folder) {
  nlohmann::json j;
  try {
    j = nlohmann::json::parse(read_confined(folder, "recording.json"));
    Recording r;
    r.folder = folder;
    if (j.at("version") != 1)
      fail(FailureKind::kUnsupported, "{}/recording.json has version {}, this program reads 1", folder,
           j.at("version").dump());
    // A stranger's words are shown on terminals.
    auto text = [](const nlohmann::json& v) { return printable(v.get<std::string>()); };
    auto text_of = [](const nlohmann::json& v, const char* key) { return printable(v.value(key, "")); };
    r.source = text(j.at("source")), r.module_name = text(j.at("module")), r.module_number = j.at("module_number"),
    r.pipeline = text(j.at("pipeline"));
    for (const auto& s : j.at("stages")) {
      StageRow row;
      std::string kind = s.at("kind");
      row.kind = kind == "input"            ? StageRow::kInput
                 : kind == "pipeline-start" ? StageRow::kPipelineStart
                 : kind == "step"           ? StageRow::kInnerStep
                 : kind == "result"         ? StageRow::kResult
                                            : StageRow::kPass;
      row.number = s.value("number", -1);
      row.pipeline = text_of(s, "pipeline"), row.pass = text_of(s, "pass"), row.next = text_of(s, "next");
      row.changed = s.at("changed"), row.implemented = s.value("implemented", true),
      row.disabled = s.value("disabled", false);
      row.microseconds = s.value("microseconds", int64_t{-1});
      row.before = s.at("instructions_before"), row.after = s.at("instructions_after");
      row.added = s.at("added"), row.removed = s.at("removed"), row.modified = s.at("modified");
      row.rewrites = s.value("rewrites", int64_t{0});
      row.stage = s.value("stage", -1);
      row.file = s.value("file", "");
      if (s.contains("notes"))
        for (const auto& n : s["notes"]) {
          Note note;
          note.rule = text(n.at("rule")), note.text = text_of(n, "text");
          for (const auto& name : n.at("instructions")) note.names.push_back(text(name));
          row.notes.push_back(std::move(note));
        }
      r.rows.push_back(std::move(row));
    }
    for (const auto& f : j.at("files")) r.other_files.push_back(f);
    check_names(&r);
    return {r};
  } catch (const nlohmann::json::exception& e) {
    fail(FailureKind::kIo, "{}/recording.json is damaged: {}", folder, e.what());
  }
}

}  // namespace

bool is_packed_folder(std::string_view name, std::string_view content) {
  constexpr size_t kMagicAt = 257;  // of a header of tar
  if (content.size() > kMagicAt && content.substr(kMagicAt).starts_with("ustar")) return true;
  for (std::string_view end : {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2", ".zip"})
    if (name.ends_with(end)) return true;
  return false;
}

namespace {

// Of a folder without a recording: the first packed one in it, by name.
std::string packed_inside(const std::string& folder) {
  std::string first;
  std::error_code error;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, error)) {
    const std::string name = e.path().filename().string();
    if (is_packed_folder(name, "") && (first.empty() || name < first)) first = name;
  }
  return first.empty() ? first : fmt::format("; {} in it {}", printable(first), kPackedFolder);
}

}  // namespace

std::vector<Recording> open_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    if (is_packed_folder(folder, "")) fail(FailureKind::kUnsupported, "{} {}", folder, kPackedFolder);
    fail(FailureKind::kIo, "{} is not a folder{}", folder,
         fs::is_regular_file(folder, error) ? "; of a module by itself use cost, memory, summary, view, print" : "");
  }
  Progress progress("reading folder " + folder);
  std::vector<Recording> out = fs::exists(folder + "/recording.json", error) ? open_ours(folder) : open_xla(folder);
  if (out.empty()) out = open_graphs(folder);
  if (out.empty())
    fail(FailureKind::kIo,
         "{} holds no recording: neither recording.json nor files named module_NNNN.NAME….txt or hlo_graph_N.dot as "
         "XLA dumps them{}",
         folder, packed_inside(folder));
  return out;
}

}  // namespace hlo
