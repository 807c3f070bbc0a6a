// view: pages that step through what a folder holds.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "parser/parser.h"
#include "replay/cli/command.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/interrupt.h"
#include "replay/progress.h"
#include "replay/record/run.h"
#include "replay/terminal.h"
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

struct Pages {
  Recording recording;  // as it was written: rows without what could not be read
  bool page = false;    // an index.html
};

// The pages of one module, into a folder that the caller commits.
Pages write_pages(const Recording& given, const std::set<std::string>& formats, const std::string& hint,
                  OutputFolder& out) {
  Recording r = given;
  StageWriter writer(r, lineage_of(r), formats, out);
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
  r.other_files.clear();  // they stay where they are
  const bool drawn = formats.contains("html");
  if (!formats.contains("page") && !drawn) return {std::move(r), false};
  out.write("index.html", index_page(r, formats, drawn ? "" : hint));
  Recording kept = r;
  if (!formats.contains("text"))
    for (StageRow& row : kept.rows)
      if (row.file.ends_with(".txt")) row.file.clear();
  out.write("recording.json", recording_json(kept));
  return {std::move(r), true};
}

Json pages_json(const std::string& where, const Pages& p) {
  size_t stages = 0;
  for (const StageRow& row : p.recording.rows) stages += !row.file.empty();
  return {{"module", p.recording.module_name},
          {"folder", where},
          {"page", p.page ? Json(where + "/index.html") : Json()},
          {"stages", stages},
          {"problems", p.recording.problems}};
}

int tell_pages(const ViewArgs& a, const std::string& where, bool page, const Json& modules, size_t failed) {
  size_t stages = 0;
  Json problems = Json::array();
  for (const Json& m : modules) {
    stages += m["stages"].get<size_t>();
    for (const Json& p : m["problems"]) problems.push_back(p);
  }
  const std::string index = where + "/index.html";
  if (a.json)
    print_json({{"folder", where},
                {"page", page ? Json(index) : Json()},
                {"stages", stages},
                {"problems", problems},
                {"modules", modules}});
  else
    fmt::print("{} {}\n", page ? "open" : "written to", page ? index : where);
  return failed ? kBad : kYes;
}

std::string redraw_hint(const std::string& spec, const std::string& path) {
  return fmt::format("Text only; drawings of every stage: hlo-replay view {} -o {} --force --formats=html,text",
                     shell_word(spec), shell_word(path));
}

// A folder a module, and an index of all.
int view_run(const ViewArgs& a, const Run& run, const std::string& path) {
  OutputFolder out(path, a.force);
  Json modules = Json::array();
  std::vector<std::vector<std::string>> rows;
  size_t failed = 0;
  bool page = false;
  std::set<std::string> names;
  for (const Recording& r : run.modules) {
    std::string name = name_in_files(fmt::format("module_{:04}.{}", r.module_number, r.module_name));
    if (!names.insert(name).second) name += fmt::format(".{}", rows.size());  // of several folders
    try {
      OutputFolder one(out.temporary() + "/" + name, true);
      std::string spec = a.folder + ":" + module_selector(run, r);
      Pages p = write_pages(r, view_formats(a.formats, r), redraw_hint(spec, path + "/" + name), one);
      one.commit();
      page |= p.page;
      modules.push_back(pages_json(path + "/" + name, p));
      rows.push_back({p.page ? name + "/index.html" : "", fmt::format("{:04}", r.module_number), r.module_name,
                      std::to_string(modules.back()["stages"].get<size_t>()), ""});
    } catch (const Failure& e) {
      // One module does not keep the others from being shown.
      if (interrupted()) throw;
      ++failed;
      std::string why = e.what();
      Pages nothing;
      nothing.recording.module_name = r.module_name, nothing.recording.problems = {why};
      modules.push_back(pages_json(path + "/" + name, nothing));
      rows.push_back({"", fmt::format("{:04}", r.module_number), r.module_name, "0", why.substr(0, why.find('\n'))});
      fmt::print(stderr, "warning: module {:04} {}: {}\n", r.module_number, printable(r.module_name), printable(why));
    }
  }
  if (page) out.write("index.html", run_page(run.folder, rows));
  out.commit();
  return tell_pages(a, path, page, modules, failed);
}

}  // namespace

int cmd_view(const ViewArgs& a) {
  Run run;
  run.modules = select_modules(a.folder);
  run.folder = split_selector(a.folder)->folder;
  for (const Recording& r : run.modules) {
    std::set<std::string> formats = view_formats(a.formats, r);
    if (formats.contains("html") || formats.contains("svg") || formats.contains("png")) require_graphviz();
  }
  std::string named = a.folder;
  std::replace(named.begin() + static_cast<std::ptrdiff_t>(run.folder.size()), named.end(), ':', '.');
  const std::string path = a.out.empty() ? fs::path(named).lexically_normal().string() + ".view" : a.out;
  if (run.modules.size() > 1) return view_run(a, run, path);
  const Recording& r = run.modules[0];
  std::error_code error;
  // A page of ours has the recording beside it; another's index.html shows none of the stages.
  if (fs::exists(r.folder + "/index.html", error) && fs::exists(r.folder + "/recording.json", error) && a.out.empty() &&
      a.formats.empty()) {
    Json modules = Json::array();
    modules.push_back(pages_json(r.folder, {r, true}));
    return tell_pages(a, r.folder, true, modules, 0);
  }
  std::set<std::string> formats = view_formats(a.formats, r);
  OutputFolder out(path, a.force);
  Pages p = write_pages(r, formats, redraw_hint(a.folder, path), out);
  out.commit();
  Json modules = Json::array();
  modules.push_back(pages_json(path, p));
  return tell_pages(a, path, p.page, modules, 0);
}

}  // namespace hlo
