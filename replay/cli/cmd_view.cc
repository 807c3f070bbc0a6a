// view: pages that step through what a folder holds.
#include <filesystem>
#include <optional>

#include "parser/parser.h"
#include "replay/cli/command.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/progress.h"
#include "replay/record/recording.h"
#include "viewer/drawing.h"
#include "viewer/pages.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

std::set<std::string> view_formats(const std::string& asked, const Recording& r) {
  if (asked.empty()) {
    std::set<std::string> out = {"text", "dot", "page"};
    // Of 2018 there are graphs only: nothing else could be shown.
    try {
      if (r.pipeline == "graphs") require_graphviz(), out.insert("html");
    } catch (const Failure& e) {
      fmt::print(stderr, "warning: {}\n", e.what());
    }
    return out;
  }
  std::set<std::string> out = words(asked);
  for (const std::string& f : out)
    if (f != "text" && f != "dot" && f != "page" && f != "html" && f != "svg" && f != "png")
      fail(FailureKind::kUsage, "view has no format '{}'; it has text, dot, page, html, svg and png", f);
  return out;
}

// Files of the pages: `name`, which a stranger may have chosen, with an ending of ours.
std::string stem_of(const std::string& name) {
  for (const char* ending : {".txt", ".dot", ".hlo"})
    if (name.ends_with(ending)) return name.substr(0, name.size() - 4);
  return name;
}

// Reads the stages one by one, compares neighbours, and writes what is asked for.
class StageWriter {
 public:
  StageWriter(const Recording& r, const std::set<std::string>& formats, OutputFolder& out)
      : recording_(r), formats_(formats), out_(out), drawers_(out) {}

  void put(StageRow& row) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
    StageDrawing drawing;
    drawing.base = stem_of(row.file), drawing.formats = formats_;
    drawing.command = fmt::format("hlo-replay convert {} stage.svg", shell_word(recording_.folder + "/" + row.file));
    const bool graph = row.file.ends_with(".dot");
    std::string text = read_confined(recording_.folder, row.file);
    row.file = drawing.base + (graph ? ".dot" : ".txt");
    drawing.row = row;
    if (graph) {
      drawers_.draw_dot(text, drawing);
      return;
    }
    std::unique_ptr<Module> m;
    try {
      ParseOptions parse;
      parse.file = row.file;
      m = parse_module(text, universe_, parse);
    } catch (const Failure&) {  // it is shown as it is
    }
    if (formats_.contains("text")) out_.write(row.file, text);
    if (!m) return;
    auto index = std::make_unique<StageIndex>(*m);
    drawing.options.title = recording_.module_name + "\n" + row.name();
    if (last_) {
      auto d = StageIndex::compare(*last_, *index);
      drawing.options.added.insert(d.added.begin(), d.added.end());
      drawing.options.modified.insert(d.modified.begin(), d.modified.end());
      for (StrId n : d.removed) drawing.removed.emplace_back(universe_->text(n));
    }
    last_ = std::move(index);
    drawers_.draw(*m, drawing);
  }
  void end() { drawers_.wait(); }

 private:
  const Recording& recording_;
  const std::set<std::string>& formats_;
  OutputFolder& out_;
  Drawers drawers_;
  std::shared_ptr<Universe> universe_ = std::make_shared<Universe>();
  std::unique_ptr<StageIndex> last_;
};

}  // namespace

int cmd_view(const std::string& folder, const std::string& wanted, const std::string& asked, bool force) {
  std::vector<Recording> all = open_folder(folder);
  std::error_code error;
  if (fs::exists(folder + "/index.html", error) && wanted.empty() && asked.empty()) {
    fmt::print("open {}/index.html\n", folder);
    return kYes;
  }
  std::set<std::string> formats = view_formats(asked, all[0]);
  if (formats.contains("html") || formats.contains("svg") || formats.contains("png")) require_graphviz();
  std::string path = wanted.empty() ? fs::path(folder).lexically_normal().string() + ".view" : wanted;
  OutputFolder out(path, force);
  Recording r = all[0];
  StageWriter writer(all[0], formats, out);
  std::optional<Progress> progress("writing the stages of " + folder);
  size_t done = 0;
  for (StageRow& row : r.rows) {
    progress->at(done++, r.rows.size(), row.file);
    if (row.file.empty()) continue;
    try {
      writer.put(row);
    } catch (const Failure& e) {
      // A stage that is not there or cannot be read does not keep the others from being shown.
      if (interrupted() || why_not_confined(all[0].folder, row.file).empty()) throw;
      r.problems.emplace_back(e.what());
      row.file.clear();
    }
  }
  writer.end();
  progress.reset();
  r.other_files.clear();  // they stay where they are
  const bool drawn = formats.contains("html");
  if (!formats.contains("page") && !drawn) {
    out.commit();
    fmt::print("written to {}\n", path);
    return kYes;
  }
  std::string hint =
      fmt::format("Text only; drawings of every stage: hlo-replay view {} -o {} --force --formats=html,text",
                  shell_word(folder), shell_word(path));
  out.write("index.html", index_page(r, formats, drawn ? "" : hint));
  if (!formats.contains("text"))
    for (StageRow& row : r.rows)
      if (row.file.ends_with(".txt")) row.file.clear();
  out.write("recording.json", recording_json(r));
  out.commit();
  fmt::print("open {}/index.html\n", path);
  return kYes;
}

}  // namespace hlo
