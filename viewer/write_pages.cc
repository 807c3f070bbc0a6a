#include "viewer/write_pages.h"

#include <algorithm>
#include <optional>

#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "viewer/drawing.h"
#include "viewer/page_file.h"
#include "viewer/pages.h"

namespace hlo {
namespace {

// Files of the pages: `name`, which a stranger may have chosen, with an ending of ours.
std::string stem_of(const std::string& name) {
  for (const char* ending : {".txt", ".dot", ".hlo"})
    if (name.ends_with(ending)) return name.substr(0, name.size() - 4);
  return name;
}

// Writes the stages one by one in every format that is asked for; what changed in each, the lineage says.
class StageWriter {
 public:
  // `lineage`: null where no stage can be read.
  StageWriter(const Recording& r, const Lineage* lineage, const std::set<std::string>& formats, OutputFolder& out)
      : recording_(r), lineage_(lineage), formats_(formats), out_(out), drawers_(out) {}

  void put(StageRow& row) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
    StageDrawing drawing;
    drawing.base = stem_of(row.file), drawing.formats = formats_;
    drawing.command = fmt::format("hlo-replay convert {} stage.svg", shell_word(recording_.folder + "/" + row.file));
    const bool graph = row.file.ends_with(".dot");
    if (graph || formats_.contains("text") || !lineage_ || row.stage < 0) {
      std::string text = read_confined(recording_.folder, row.file);
      row.file = drawing.base + (graph ? ".dot" : ".txt");
      if (graph) {
        drawing.row = row;
        drawers_.draw_dot(text, drawing);
        return;
      }
      if (formats_.contains("text")) out_.write(row.file, text);
    } else {
      row.file = drawing.base + ".txt";
    }
    drawing.row = row;
    bool draws =
        std::any_of(formats_.begin(), formats_.end(), [](const std::string& f) { return f != "text" && f != "page"; });
    if (!draws || !lineage_ || row.stage < 0) return;  // what cannot be read is shown as it is
    const size_t k = static_cast<size_t>(row.stage);
    std::unique_ptr<Module> m = lineage_->module(k);
    drawing.options.title = recording_.module_name + "\n" + row.name();
    if (k > 0 && row.stage != last_) {
      StageDiff d = lineage_->changes(k);
      const Snapshot& before = lineage_->stage(k - 1);
      for (InstId i : d.added) drawing.options.added.insert((*m)[i].name);
      for (InstId i : d.modified) drawing.options.modified.insert((*m)[i].name);
      for (InstId i : d.removed) drawing.removed.emplace_back(m->u().text(before[i].name));
    }
    last_ = row.stage;
    drawers_.draw(*m, drawing);
  }
  void end() { drawers_.wait(); }

 private:
  const Recording& recording_;
  const Lineage* lineage_;
  const std::set<std::string>& formats_;
  OutputFolder& out_;
  Drawers drawers_;
  int last_ = -1;
};

// Null where there is no text, or none can be read: graphs and damaged stages are shown as they are.
const Lineage* lineage_of(Recording& r) {
  auto is_text = [](const StageRow& row) { return row.file.ends_with(".txt") || row.file.ends_with(".hlo"); };
  if (std::none_of(r.rows.begin(), r.rows.end(), is_text)) return nullptr;
  try {
    return &r.lineage();
  } catch (const Failure& e) {
    if (e.kind() != FailureKind::kIo) throw;
    return nullptr;
  }
}

}  // namespace

Pages write_pages(const Recording& given, const std::set<std::string>& formats, OutputFolder& out) {
  Recording r = given;
  const Lineage* lineage = lineage_of(r);
  StageWriter writer(r, lineage, formats, out);
  std::optional<Progress> progress("writing the stages of " + given.module_name);
  size_t done = 0;
  for (StageRow& row : r.rows) {
    progress->at(done++, r.rows.size(), row.file);
    if (row.file.empty()) continue;
    try {
      writer.put(row);
    } catch (const Failure& e) {
      // A stage that is not there or cannot be read does not keep the others from being shown.
      if (interrupted() || why_not_confined(given.folder, row.file).empty()) throw;
      r.problems.emplace_back(e.what());
      row.file.clear();
    }
  }
  writer.end();
  progress.reset();
  const std::vector<std::string> other_files = std::exchange(r.other_files, {});  // they stay where they are
  const bool drawn = formats.contains("html");
  if (!formats.contains("page") && !drawn) return {std::move(r), false};
  if (lineage) {
    Recording whole = r;
    whole.other_files = other_files;
    out.write("index.html", recording_page(whole, given.folder));
  } else {
    out.write("index.html", graphs_page(r, drawn));
  }
  Recording kept = r;
  if (!formats.contains("text"))
    for (StageRow& row : kept.rows)
      if (row.file.ends_with(".txt")) row.file.clear();
  out.write("recording.json", recording_json(kept));
  return {std::move(r), true};
}

}  // namespace hlo
