#include "viewer/page_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/base/base64.h"
#include "ir/base/check.h"
#include "parser/proto/proto_reader.h"
#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/recording/store.h"
#include "viewer/markup.h"
#include "viewer/page_answers.h"
#include "viewer/page_data.h"

namespace hlo {
namespace {

// Of other files, unpacked: texts pack to about a tenth.
constexpr size_t kOtherBytes = size_t{24} << 20;

// The most wanted files first; what no view of the page shows, last of all: nothing.
int rank_of(const std::string& file) {
  auto has = [&](const char* part) { return file.find(part) != std::string::npos; };
  if (has("buffer-assignment.txt") || has("thunk_")) return 0;
  if (has("live-range") || has("memory-usage-report.txt")) return 1;
  if (file.ends_with(".py")) return 1;  // the program, where somebody put it there
  if (file.ends_with(".ptx") || file.ends_with(".ll")) return 2;
  if (has("buffer-assignment") || has("priority_fusion_dump") || has("gpu_target_config")) return 3;
  if (file.ends_with(".txt") || file.ends_with(".pbtxt") || file.ends_with(".textproto")) return 4;
  return 5;
}

std::string bytes_in_words(size_t bytes) {
  return bytes < size_t{1} << 20 ? fmt::format("{} KiB", (bytes + 1023) >> 10)
                                 : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// The files that fit; they stay in the recording's list, the others leave it.
std::vector<ArchiveFile> other_files(Recording* r, const std::string& files_in, const std::string& folder,
                                     std::vector<std::string>* notices) {
  std::vector<ArchiveFile> out;
  std::vector<std::string> wanted = r->other_files, kept, left;
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  size_t used = 0, left_bytes = 0;
  for (const std::string& file : wanted) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
    bool missing = false;
    if (std::string why = why_not_confined(files_in, file, &missing); !why.empty()) {
      if (!missing) notices->push_back(fmt::format("{}: {}", printable(file), why));
      continue;
    }
    if (rank_of(file) == 5) continue;  // protos and the like: their content is in the store, or nothing shows it
    std::string bytes;
    try {
      bytes = read_confined(files_in, file);
    } catch (const Failure& e) {
      notices->emplace_back(e.what());
      continue;
    }
    if (used + bytes.size() > kOtherBytes) {
      left.push_back(file), left_bytes += bytes.size();
      continue;
    }
    used += bytes.size();
    kept.push_back(file);
    out.push_back({folder + "/" + file, std::move(bytes)});
  }
  if (!left.empty())
    notices->push_back(fmt::format("{}: {} files of {} in all are left out of this page: {}{}",
                                   printable(r->module_name), left.size(), bytes_in_words(left_bytes),
                                   printable(left[0]), left.size() > 1 ? " …" : ""));
  std::sort(kept.begin(), kept.end());
  r->other_files = std::move(kept);
  return out;
}

// Base64 between the tags of a script that no browser runs: no letter of it is markup.
Markup as_base64(std::string_view bytes) { return MarkupMaker::trusted(base64(bytes)); }

}  // namespace

std::vector<LessonName> lesson_names() {
  std::vector<LessonName> out;
  for (const PageLesson& l : page_data().lessons) {
    if (!l.file.ends_with(".md")) continue;
    // 3_fusion.md: the number is its place; `# Title` is its first line.
    std::string_view name = l.file.substr(0, l.file.size() - 3);
    name.remove_prefix(std::min(name.find('_') + 1, name.size()));
    const std::string_view first = l.text.substr(0, l.text.find('\n'));
    out.push_back({std::string(name), std::string(first.substr(std::min<size_t>(2, first.size())))});
  }
  return out;
}

bool page_engine_inside() { return page_engine_state() != PageEngineState::kOtherProtocol; }
bool page_engine_older() { return page_engine_state() == PageEngineState::kOlder; }

bool add_recording(const Recording& recording, const std::string& files_in, const std::string& folder,
                   PageContents* contents) {
  Recording r = recording;
  const std::string name = fmt::format("module {:04} {}", r.module_number, printable(r.module_name));
  try {
    const Lineage& lineage = r.lineage();
    for (const std::string& why : r.problems) contents->notices.push_back(name + ": " + printable(why));
    std::vector<ArchiveFile> others = other_files(&r, files_in, folder, &contents->notices);
    r.missing.clear();
    contents->files.push_back({folder + "/recording.json", recording_json(r)});
    contents->files.push_back({folder + "/" + kStoreFile, store_bytes(r, lineage)});
    for (ArchiveFile& f : others) contents->files.push_back(std::move(f));
    return true;
  } catch (const Failure& e) {
    // What one module has wrong does not keep the others from being shown.
    if (interrupted() || e.kind() == FailureKind::kInternal) throw;
    for (const std::string& why : r.problems) contents->notices.push_back(name + ": " + printable(why));
    contents->notices.push_back(fmt::format("{}: {}", name, printable(e.what())));
    return false;
  }
}

std::string page_html(const PageContents& contents, PageEngineKind engine) {
  const PageData parts = page_data();
  std::vector<std::string> notices = contents.notices;
  std::vector<ArchiveFile> files;
  if (engine == PageEngineKind::kNone)
    // Base64 makes four bytes of three; packed one by one, answers are a little larger than together.
    files = carried_answers(contents, (kPageBytes - parts.script.size() - parts.style.size()) / 4 * 3, &notices);
  if (!contents.note.empty()) notices.insert(notices.begin(), contents.note);
  nlohmann::ordered_json about{{"version", 1},
                               {"title", contents.title},
                               {"engine", engine == PageEngineKind::kInside   ? "inside"
                                          : engine == PageEngineKind::kServer ? "server"
                                                                              : "none"},
                               {"notices", notices}};
  if (engine == PageEngineKind::kInside && page_engine_older()) about["engine_older"] = true;
  if (contents.lesson) {
    about["lesson"] = *contents.lesson;
    for (const PageLesson& l : parts.lessons) files.push_back({"lessons/" + std::string(l.file), std::string(l.text)});
  }
  files.insert(files.begin(), {"page.json", about.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)});
  if (engine == PageEngineKind::kInside) files.insert(files.end(), contents.files.begin(), contents.files.end());
  const bool inside = engine == PageEngineKind::kInside;
  return page_of(parts.skeleton, {{"title", contents.title.empty() ? "hlo-replay" : contents.title + " — hlo-replay"},
                                  {"connect", engine == PageEngineKind::kServer ? "'self'" : "'none'"},
                                  {"script_hash", parts.script_hash},
                                  {"style_hash", parts.style_hash},
                                  {"style", MarkupMaker::trusted(std::string(parts.style))},
                                  {"script", MarkupMaker::trusted(std::string(parts.script))},
                                  {"worker", MarkupMaker::trusted(std::string(inside ? parts.worker : ""))},
                                  {"engine", as_base64(inside ? parts.engine : "")},
                                  {"data", as_base64(gzip(tar_of(files)))}});
}

std::string page_html(const PageContents& contents) {
  return page_html(contents, page_engine_inside() ? PageEngineKind::kInside : PageEngineKind::kNone);
}

void write_page(const std::string& path, const std::string& page, bool force, const std::vector<std::string>& inputs) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    fail(FailureKind::kUsage, "{} is a folder: -o page.html", printable(path));
  if (!force && std::filesystem::is_regular_file(path, error)) {
    std::string start(4096, '\0');
    std::ifstream file(path, std::ios::binary);
    start.resize(static_cast<size_t>(file.read(start.data(), static_cast<std::streamsize>(start.size())).gcount()));
    if (!start.empty() && start.find("<meta name=\"generator\" content=\"hlo-replay\">") == std::string::npos)
      fail(FailureKind::kUsage, "{} exists and is no page of hlo-replay; --force replaces it", printable(path));
  }
  const bool is_new = !std::filesystem::exists(std::filesystem::symlink_status(path, error));
  check_output_file(path, true, inputs);
  write_output_file(path, page, force || !is_new);
}

std::string recording_page(const Recording& recording, const std::string& files_in) {
  PageContents contents;
  contents.title = printable(recording.module_name);
  add_recording(recording, files_in, "module", &contents);
  return page_html(contents);
}

void write_recording_page(const Recording& recording, OutputFolder& out) {
  out.write("index.html", recording_page(recording, out.temporary()));
}

}  // namespace hlo
