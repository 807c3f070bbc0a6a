// What is opened: folders, stores, texts; from the disk or from what was put.
#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/base/check.h"
#include "replay/os/confined_path.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/recording/store.h"
#include "viewer/engine/read_modules.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

using Opened = std::vector<std::unique_ptr<PageModule>>;

// A recording's other files that are not there, or are no files of its folder, are not asked for later.
void keep_present_files(PageModule& m) {
  Recording& r = m.recording;
  std::erase_if(r.other_files, [&](const std::string& file) {
    std::string why = why_not_below(file);
    bool missing = false;
    if (why.empty()) why = why_not_confined(r.folder, file, &missing);
    if (why.empty()) return false;
    if (!missing) m.lost.push_back(fmt::format("{}: {}", printable(file), why));
    return true;
  });
}

std::unique_ptr<PageModule> module_of(Recording r) {
  auto out = std::make_unique<PageModule>();
  out->recording = std::move(r);
  out->function = function_of(out->recording.module_name);
  keep_present_files(*out);
  return out;
}

// A file beside the store, where somebody put it: `read` takes its text and name.
template <class T, class Read>
void read_beside(PageModule& m, const char* file, T* to, Read read) {
  bool missing = false;
  const std::string why = why_not_confined(m.recording.folder, file, &missing);
  if (missing) return;
  try {
    if (!why.empty()) fail(FailureKind::kIo, "{}: {}", file, why);
    *to = read(read_confined(m.recording.folder, file), file);
  } catch (const Failure& e) {
    m.lost.push_back(printable(e.what()));
  }
}

std::unique_ptr<PageModule> stored(const std::string& folder, const std::string& file) {
  StoredRecording s = read_store(read_confined(folder, file), file);
  s.recording.folder = folder;
  s.recording.keep(std::move(s.lineage));
  auto out = module_of(std::move(s.recording));
  out->read = true;
  for (std::string& why : s.lost) out->lost.push_back(std::move(why));
  read_beside(*out, kMeasuredFile, &out->measured, read_measured_page);
  read_beside(*out, kTriedFile, &out->tried, read_tried_page);
  return out;
}

std::unique_ptr<PageModule> bench_of(std::unique_ptr<Module> m, const std::string& name) {
  auto out = std::make_unique<PageModule>();
  out->kind = PageModule::Kind::kBench, out->read = true;
  Recording& r = out->recording;
  r.module_name = name.empty() ? printable(m->name()) : name, r.source = "bench";
  auto lineage = std::make_shared<Lineage>(m->universe());
  StageRow input;
  input.kind = StageRow::kInput;
  input.before = input.after = m->instruction_count();
  input.stage = static_cast<int>(lineage->add(*m));
  r.rows.push_back(std::move(input));
  r.keep(std::move(lineage));
  out->function = function_of(r.module_name);
  return out;
}

// The temporary folder's name is nobody's business.
std::string without_folder(const std::vector<std::string>& messages, const std::string& folder) {
  std::string out = fmt::format("{}", fmt::join(messages, "\n"));
  for (size_t at = 0; (at = out.find(folder, at)) != std::string::npos;) {
    const bool below = out.compare(at + folder.size(), 1, "/") == 0;
    out.replace(at, folder.size() + below, below ? "" : "what was opened");
  }
  return out;
}

bool is_store(const fs::path& file) { return file.extension() == ".hlol"; }

}  // namespace

void PageSession::replace(Opened modules) {
  if (modules.empty()) fail(FailureKind::kUsage, "there is nothing to open");
  cache_.clear(), drawn_.reset();
  modules_ = std::move(modules);
  // Of a single one the page wants all at once; of many it asks for what is looked at.
  if (modules_.size() == 1) module(0);
}

std::vector<std::unique_ptr<PageModule>> PageSession::opened_folder(const std::string& folder) const {
  Opened out;
  Run run = open_run(folder);
  for (Recording& r : run.modules) out.push_back(module_of(std::move(r)));
  return out;
}

std::vector<std::unique_ptr<PageModule>> PageSession::opened_bytes(const std::string& label, std::string bytes) const {
  Opened out;
  int number = 0;
  for (std::unique_ptr<Module>& m : read_modules(label, std::move(bytes))) {
    out.push_back(bench_of(std::move(m), ""));
    out.back()->recording.module_number = ++number;
  }
  return out;
}

void PageSession::open_path(const std::string& path) {
  Opened opened;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    opened = opened_folder(path);
  } else if (fs::path file(path); is_store(file)) {
    std::string folder = file.parent_path().string();
    opened.push_back(stored(folder.empty() ? "." : folder, file.filename().string()));
  } else {
    opened = opened_bytes(file.filename().string(), read_file(path));
  }
  folder_.reset();
  replace(std::move(opened));
}

void PageSession::put(std::string name, std::string bytes) {
  if (std::string why = why_not_below(name); !why.empty())
    fail(FailureKind::kIo, "'{}' cannot be opened: {}", printable(name.substr(0, 80)), why);
  put_.emplace_back(std::move(name), std::move(bytes));
}

// Files of a question into a folder; their bytes are let go of as they are written.
std::set<std::string> PageSession::written(std::vector<std::pair<std::string, std::string>>& files,
                                           const std::string& folder) {
  std::set<std::string> names;
  for (auto& [name, bytes] : files) {
    if (!names.insert(name).second) fail(FailureKind::kUsage, "two files are called {}", printable(name));
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error || fs::is_directory(path, error))
      fail(FailureKind::kIo, "{} is a file and a folder at once", printable(name));
    write_file(path.string(), bytes);
    std::string().swap(bytes);
  }
  return names;
}

void PageSession::open_files() {
  auto files = std::exchange(put_, {});
  if (files.empty()) fail(FailureKind::kUsage, "no files came with the question");
  if (files.size() == 1 && !is_store(files[0].first)) {
    Opened opened = opened_bytes(files[0].first, std::move(files[0].second));
    folder_.reset();
    return replace(std::move(opened));
  }
  auto folder = std::make_unique<TemporaryFolder>();
  const std::set<std::string> names = written(files, folder->path());
  Opened opened;
  std::vector<std::string> refused;
  auto attempt = [&](const std::function<Opened()>& open) {
    try {
      for (auto& m : open()) opened.push_back(std::move(m));
    } catch (const Failure& e) {
      refused.emplace_back(e.what());
    }
  };
  // A store holds all of its recording, whoever made that.
  for (const std::string& name : names) {
    const fs::path path(name);
    if (!is_store(path)) continue;
    attempt([&] {
      Opened one;
      one.push_back(stored((fs::path(folder->path()) / path.parent_path()).string(), path.filename().string()));
      return one;
    });
  }
  if (opened.empty())
    attempt([&] {
      Opened all = opened_folder(folder->path());
      // What is in the temporary folder is gone with it: nothing of it belongs into the user's cache.
      for (auto& m : all) m->recording.keep_import = false;
      return all;
    });
  if (opened.empty())
    for (const std::string& name : names)
      attempt([&] { return opened_bytes(name, read_confined(folder->path(), name)); });
  if (opened.empty()) fail(FailureKind::kIo, "{}", without_folder(refused, folder->path()));
  for (std::string& why : refused) opened[0]->lost.push_back(without_folder({why}, folder->path()));
  folder_ = std::move(folder);
  replace(std::move(opened));
}

uint32_t PageSession::add_bench(std::unique_ptr<Module> m, const std::string& name, std::optional<StateRef> origin) {
  constexpr size_t kMostModules = 10000;
  if (modules_.size() >= kMostModules) fail(FailureKind::kUnsupported, "{} modules are open: no more", kMostModules);
  modules_.push_back(bench_of(std::move(m), name));
  modules_.back()->origin = origin;
  modules_.back()->recording.module_number = static_cast<int>(modules_.size());
  return static_cast<uint32_t>(modules_.size() - 1);
}

}  // namespace hlo
