// view: pages that step through what a folder holds.
#include <algorithm>
#include <filesystem>

#include "replay/cli/command.h"
#include "replay/files.h"
#include "replay/interrupt.h"
#include "replay/record/run.h"
#include "replay/terminal.h"
#include "viewer/drawing.h"
#include "viewer/pages.h"
#include "viewer/write_pages.h"

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
