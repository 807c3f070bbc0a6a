#include "replay/os/output_marker.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "ir/base/check.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr int kMarkerVersion = 1;
constexpr size_t kNamesShown = 3;

// Nothing where it is no JSON.
nlohmann::json json_in_folder(const std::string& folder, const std::string& name) {
  bool missing = false;
  if (!why_not_confined(folder, name, &missing).empty()) return {};
  return nlohmann::json::parse(read_confined(folder, name), nullptr, false);
}

std::string text_in_row(const nlohmann::json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// The name that a recording gives its row's files, without their ending; `prefix`: module_0001.NAME.
std::string base_in_recording(const nlohmann::json& row, const std::string& prefix) {
  const std::string kind = text_in_row(row, "kind");
  if (kind == "input") return prefix + ".before_optimizations";
  if (kind == "result") return prefix + ".after_optimizations";
  const auto number = row.find("number");
  if (number == row.end() || !number->is_number_integer()) return {};
  const std::string next = text_in_row(row, "next");
  return fmt::format("{}.{:04}.{}.after_{}{}{}", prefix, number->get<int64_t>(), text_in_row(row, "pipeline"),
                     text_in_row(row, "pass"), next.empty() ? "" : ".before_", next);
}

// All files that a recording of ours may hold, by its recording.json. Recordings had no marker before 0.30.
std::set<std::string> files_of_recording(const nlohmann::json& recording) {
  std::set<std::string> out = {"recording.json", "lineage.hlol", "index.html"};
  const int64_t number = recording.value("module_number", int64_t{1});
  const std::string prefix = fmt::format("module_{:04}.{}", number, name_in_files(text_in_row(recording, "module")));
  for (const nlohmann::json& row : recording.value("stages", nlohmann::json::array())) {
    if (!row.is_object()) continue;
    if (const std::string file = text_in_row(row, "file"); !file.empty()) out.insert(file);
    const std::string base = base_in_recording(row, prefix);
    if (base.empty()) continue;
    for (const char* ending : {".txt", ".json", ".hlo.pb", ".dot", ".svg", ".png", ".html"}) out.insert(base + ending);
  }
  for (const nlohmann::json& file : recording.value("files", nlohmann::json::array()))
    if (file.is_string()) out.insert(file.get<std::string>());
  return out;
}

// Nothing where it is no recording of ours, or holds anything else: `others`.
std::optional<std::set<std::string>> old_recording(const std::string& folder, std::set<std::string>* others) {
  std::error_code error;
  for (const char* name : {"recording.json", "lineage.hlol"})
    if (!fs::is_regular_file(fs::symlink_status(folder + "/" + name, error))) return std::nullopt;
  const nlohmann::json recording = json_in_folder(folder, "recording.json");
  if (!recording.is_object() || text_in_row(recording, "source") != "hlo-replay") return std::nullopt;
  std::string start(8, '\0');
  std::ifstream(folder + "/lineage.hlol", std::ios::binary).read(start.data(), 8);
  if (start != "HLOLINE\n") return std::nullopt;  // kStoreMagic of replay/record
  std::set<std::string> own;
  try {
    own = files_of_recording(recording);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  std::set<std::string> all = files_below(folder);
  std::set_difference(all.begin(), all.end(), own.begin(), own.end(), std::inserter(*others, others->end()));
  if (!others->empty()) return std::nullopt;
  return all;
}

// `a, b, c and 4 more`
std::string few_names(const std::set<std::string>& all) {
  std::vector<std::string> first;
  for (const std::string& name : all) {
    if (first.size() == kNamesShown) break;
    first.push_back(printable(name));
  }
  std::string out = fmt::format("{}", fmt::join(first, ", "));
  return all.size() > first.size() ? out + fmt::format(" and {} more", all.size() - first.size()) : out;
}

}  // namespace

std::set<std::string> files_below(const std::string& folder) {
  std::set<std::string> out;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error), end;
  for (; !error && at != end; at.increment(error)) {
    const bool is_folder = fs::is_directory(at->symlink_status(error));
    if (error) break;
    const std::string name = at->path().lexically_relative(folder).string();
    if (!is_folder)
      out.insert(name);
    else if (fs::is_empty(at->path(), error))
      out.insert(name + "/");
    if (error) break;
  }
  if (error) fail(FailureKind::kIo, "cannot list {}: {}", folder, error.message());
  return out;
}

std::string marker_json(const std::string& command, const std::set<std::string>& files) {
  return nlohmann::json{{"version", kMarkerVersion}, {"command", command}, {"files", files}}.dump(
             1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

bool has_marker(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(folder + "/" + kMarkerFile, error));
}

std::optional<std::set<std::string>> own_files(const std::string& folder, std::string* why) {
  if (!has_marker(folder)) {
    std::set<std::string> names;
    if (auto all = old_recording(folder, &names)) return all;
    std::error_code error;
    if (names.empty())
      for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        names.insert(at->path().filename().string());
    *why = fmt::format("it holds what hlo-replay did not make: {}", few_names(names));
    return std::nullopt;
  }
  const nlohmann::json marker = json_in_folder(folder, kMarkerFile);
  const auto files = marker.is_object() ? marker.find("files") : marker.end();
  if (!marker.is_object() || files == marker.end() || !files->is_array()) {
    *why = fmt::format("its {} cannot be read, which would list what hlo-replay made", kMarkerFile);
    return std::nullopt;
  }
  const auto version = marker.find("version");
  if (version == marker.end() || *version != kMarkerVersion) {
    *why = fmt::format("its {} is of another version of hlo-replay", kMarkerFile);
    return std::nullopt;
  }
  std::set<std::string> out = {kMarkerFile};
  for (const nlohmann::json& file : *files)
    if (file.is_string()) out.insert(file.get<std::string>());
  return out;
}

}  // namespace hlo
