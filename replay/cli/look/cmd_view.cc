// view: one page that shows what a folder or a file holds, served where it is asked for; or a folder of files.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "ir/print/print.h"
#include "replay/cli/command.h"
#include "replay/cli/measured.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/process/spawn.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/start/target.h"
#include "replay/report/findings/tried_findings.h"
#include "replay/report/kernels/tuned.h"
#include "viewer/drawing.h"
#include "viewer/engine/engine.h"
#include "viewer/page_file.h"
#include "viewer/page_server.h"
#include "viewer/write_pages.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

// What is shown, and what of it is told.
struct Viewed {
  PageContents contents;
  Json modules = Json::array();
  size_t failed = 0;
};

Json told_module(const Recording& r, const std::string& where, const Json& page) {
  size_t stages = 0;
  for (const StageRow& row : r.rows) stages += !row.file.empty();
  return {{"module", r.module_name}, {"folder", where}, {"page", page}, {"stages", stages}, {"problems", r.problems}};
}

int tell(const ViewArgs& a, const std::string& folder, const Json& page, const Viewed& v) {
  size_t stages = 0;
  Json problems = Json::array();
  for (const Json& m : v.modules) {
    stages += m["stages"].get<size_t>();
    for (const Json& p : m["problems"]) problems.push_back(p);
  }
  for (const std::string& notice : v.contents.notices) fmt::print(stderr, "warning: {}\n", printable(notice));
  if (a.json)
    print_json(
        {{"folder", folder}, {"page", page}, {"stages", stages}, {"problems", problems}, {"modules", v.modules}});
  else if (page.is_null())
    fmt::print("written to {}\n", folder);
  else
    fmt::print("open {}\n", page.get<std::string>());
  return v.failed ? kBad : kYes;
}

// Of 2018, and with --xla_dump_hlo_as_dot alone, there are graphs only.
bool has_text(const Recording& r) { return final_row(r).has_value(); }

// --- a folder of files: --formats ---

std::set<std::string> view_formats(const std::string& asked, const std::vector<Recording>& modules) {
  std::set<std::string> out = words(asked);
  for (const std::string& f : out)
    if (f != "text" && f != "dot" && f != "page" && f != "html" && f != "svg" && f != "png")
      fail(FailureKind::kUsage, "view has no format '{}'; it has text, dot, page, html, svg and png", f);
  if (asked.empty()) {
    out = {"dot", "page"};
    try {
      for (const Recording& r : modules)
        if (!has_text(r)) require_graphviz(), out.insert("html");
    } catch (const Failure& e) {
      fmt::print(stderr, "warning: {}\n", e.what());
    }
  }
  if (out.contains("html") || out.contains("svg") || out.contains("png")) require_graphviz();
  return out;
}

// The run's page, of the modules that could be read.
Viewed viewed_run(const ViewArgs& a, const Run& run);

int view_files(const ViewArgs& a, const Run& run, const std::string& path) {
  const std::set<std::string> formats = view_formats(a.formats, run.modules);
  OutputFolder out(path, a.force, "view", {run.folder});
  Viewed v;
  if (run.modules.size() == 1) {
    Pages p = write_pages(run.modules[0], formats, out);
    out.commit();
    const Json page = p.page ? Json(path + "/index.html") : Json();
    v.modules.push_back(told_module(p.recording, path, page));
    return tell(a, path, page, v);
  }
  std::set<std::string> names;
  bool page = false;
  for (const Recording& r : run.modules) {
    std::string name = name_in_files(fmt::format("module_{:04}.{}", r.module_number, r.module_name));
    if (!names.insert(name).second) name += fmt::format(".{}", v.modules.size());  // of several folders
    const std::string where = path + "/" + name;
    try {
      OutputFolder one(out.temporary() + "/" + name, true, "view");
      Pages p = write_pages(r, formats, one);
      one.commit();
      page |= p.page;
      v.modules.push_back(told_module(p.recording, where, p.page ? Json(where + "/index.html") : Json()));
    } catch (const Failure& e) {
      // One module does not keep the others from being shown.
      if (interrupted()) throw;
      ++v.failed;
      Recording nothing;
      nothing.module_name = r.module_name, nothing.problems = {e.what()};
      v.modules.push_back(told_module(nothing, where, Json()));
      v.contents.notices.push_back(fmt::format("module {:04} {}: {}", r.module_number, r.module_name, e.what()));
    }
  }
  if (page) out.write("index.html", page_html(viewed_run(a, run).contents));
  out.commit();
  return tell(a, path, page ? Json(path + "/index.html") : Json(), v);
}

// --- one page ---

// What is measured of a module's last stage, with what data sheet and autotuner say of each kernel.
std::string measured_file(const Run& run, const Recording& r, const std::string& stage, MeasuredRun measured) {
  const Target target = target_of(r, "");
  std::vector<std::string> problems;
  const std::vector<TunedInWords> tuned = choices_in_words(run.folder, {r}, &problems);
  std::vector<MeasuredInstruction> all = measured.all();
  for (MeasuredInstruction& i : all) {
    if (i.details && target.spec_known)
      if (const std::optional<Occupancy> o = occupancy_of_kernel(target.spec, *i.details))
        i.estimated_occupancy = o->share, i.limiter = o->limiter;
    for (const TunedInWords& t : tuned)
      if (t.name == i.name || t.became == i.name) i.chosen.push_back(t.text);
  }
  // Where it lies is no reader's business.
  measured.file = fs::path(measured.file).filename().string();
  for (MeasuredDevice& d : measured.devices) d.file = fs::path(d.file).filename().string();
  return measured_page(measured, all, r.module_name, stage)
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// measured.json of each module that a profile has; `folders`: of each in the archive, empty: it is not there.
void add_measured(const Run& run, const ProfileChoice& profile, const std::vector<std::string>& folders,
                  PageContents* contents) {
  std::vector<LookedAt> looked;
  for (const Recording& r : run.modules) looked.push_back(last_stage(r, module_selector(run, r)));
  const std::vector<MeasuredRun> runs = measured_runs(profile, run.folder, looked);
  bool any = false;
  for (size_t k = 0; k < runs.size(); ++k) {
    if (!runs[k].why_not.empty() || !runs[k].all || folders[k].empty()) continue;
    any = true;
    contents->files.push_back(
        {folders[k] + "/" + kMeasuredFile, measured_file(run, run.modules[k], looked[k].stage, runs[k])});
  }
  if (!runs.empty() && !any)
    contents->notices.push_back(
        printable(fmt::format("not measured: {}: {}", fs::path(runs[0].file).filename().string(),
                              runs[0].why_not.empty() ? "a table of kernels by name" : runs[0].why_not)));
}

// tried.json of each module that --tried=FILE has.
void add_tried(const ViewArgs& a, const Run& run, const std::vector<std::string>& folders, PageContents* contents) {
  if (a.tried.empty()) return;
  const std::string answer = read_file(a.tried);
  bool any = false;
  for (size_t k = 0; k < run.modules.size(); ++k) {
    const Recording& r = run.modules[k];
    std::string text = tried_page(answer, a.tried, r.module_number, r.module_name);
    if (text.empty() || folders[k].empty()) continue;
    any = true;
    contents->files.push_back({folders[k] + "/" + kTriedFile, std::move(text)});
  }
  if (!any)
    fail(FailureKind::kUsage,
         "--tried={}: it has no tried finding of a module of {}; `hlo-replay open DIR --try --json` prints them",
         a.tried, run.folder);
}

Viewed viewed_run(const ViewArgs& a, const Run& run) {
  Viewed v;
  v.contents.title =
      printable(run.modules.size() == 1 ? run.modules[0].module_name : fs::path(run.folder).filename().string());
  std::set<std::string> names;
  std::vector<std::string> folders;
  for (const Recording& r : run.modules) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
    // Short: names of files in the archive end at 100 bytes.
    std::string name = fmt::format("module_{:04}", r.module_number);
    for (size_t k = 2; !names.insert(name).second; ++k) name = fmt::format("module_{:04}.{}", r.module_number, k);
    const size_t notices = v.contents.notices.size();
    const bool read = add_recording(r, r.folder, name, &v.contents);
    folders.push_back(read ? name : "");
    Recording told = r;
    if (!read) {
      ++v.failed;
      told.rows.clear();
    }
    told.problems.assign(v.contents.notices.begin() + static_cast<std::ptrdiff_t>(notices), v.contents.notices.end());
    v.modules.push_back(told_module(told, r.folder, Json()));
  }
  if (v.failed == run.modules.size())
    fail(FailureKind::kIo, "{}: no stage can be read\n{}", printable(run.folder), fmt::join(v.contents.notices, "\n"));
  add_measured(run, {a.profile, a.profile_device}, folders, &v.contents);
  add_tried(a, run, folders, &v.contents);
  return v;
}

// Modules of a file, or a stage: as texts.
Viewed viewed_texts(const std::string& spec) {
  Viewed v;
  v.contents.title = printable(fs::path(spec).filename().string());
  Input input = read_input(spec);
  const size_t parts = read_parts(&input);
  for (size_t k = 0; k < parts; ++k) {
    if (input.chosen && k + 1 != input.chosen) continue;
    Loaded all = load_part(input, k);
    Recording told;
    told.module_name = all.module->name();
    v.modules.push_back(told_module(told, spec, Json()));
    v.modules.back()["stages"] = 1;
    v.contents.files.push_back({fmt::format("module_{:04}.hlo", k + 1), lossless_text(*all.module)});
  }
  return v;
}

uint16_t port_of(const std::string& text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size())
    fail(FailureKind::kUsage, "--serve=PORT takes a number from 0 to 65535, not '{}'", printable(text));
  return port;
}

int serve(const ViewArgs& a, const std::string& opened, Viewed& v) {
  PageEngine engine;
  if (!opened.empty()) {
    engine.open(opened);
  } else if (!v.contents.files.empty()) {
    for (const ArchiveFile& f : v.contents.files) engine.put(f.name, f.bytes);
    Json answer = Json::parse(engine.answer(R"({"method":"open"})"));
    if (answer.contains("error")) fail(FailureKind::kIo, "{}", answer["error"].value("message", ""));
  }
  v.contents.files.clear();
  PageServerOptions options;
  options.port = port_of(a.serve);
  options.ready = [&](const std::string& url) {
    tell(a, a.spec, url, v);
    if (!a.json) fmt::print("Ctrl-C ends it\n");
    std::fflush(stdout);
    if (a.open) open_in_browser(url);
  };
  serve_page(page_html(v.contents, PageEngineKind::kServer), engine, options);
  return kYes;
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

void open_in_browser(const std::string& address) {
  Command command;
  command.words = {"xdg-open", address}, command.silent = true, command.limit_seconds = 10;
  if (int code = run_command(command))
    fmt::print(stderr, "warning: no browser opens it: xdg-open ends with {}\n", code);
}

int cmd_view(const ViewArgs& a) {
  Viewed v;
  std::string path = a.out, served;
  if (!a.formats.empty() && (!a.serve.empty() || a.spec.empty()))
    fail(FailureKind::kUsage, "--formats is of a recording's stages: view DIR --formats=html,svg -o DIR");
  if (!a.serve.empty() && !a.out.empty()) fail(FailureKind::kUsage, "--serve writes nothing: leave -o out");
  if (!a.serve.empty()) port_of(a.serve);
  if (!a.tried.empty() && (a.spec.empty() || !names_modules(a.spec) || !a.formats.empty()))
    fail(FailureKind::kUsage, "--tried is of a page of a dump: view DIR --tried=FILE");
  if (a.spec.empty()) {
    if (path.empty()) path = "hlo-replay.html";
  } else if (auto selector = split_selector(a.spec); selector && names_modules(a.spec)) {
    Run run;
    run.modules = select_modules(a.spec), run.folder = selector->folder;
    std::string named = a.spec;
    std::replace(named.begin() + static_cast<std::ptrdiff_t>(run.folder.size()), named.end(), ':', '.');
    named = fs::path(without_slashes(named)).lexically_normal().string();
    const bool graphs = std::none_of(run.modules.begin(), run.modules.end(), has_text);
    if (!a.formats.empty() || graphs) return view_files(a, run, path.empty() ? named + ".view" : path);
    if (path.empty()) path = named + ".html";
    v = viewed_run(a, run);
  } else {
    if (!a.formats.empty()) fail(FailureKind::kUsage, "--formats is of folders; for one module: hlo-replay convert");
    v = viewed_texts(a.spec);
    if (path.empty()) path = (a.spec == "-" ? "stdin" : fs::path(a.spec).filename().string()) + ".html";
  }
  if (!a.note.empty()) v.contents.note = printable(a.note);
  if (!a.serve.empty()) return serve(a, served, v);
  write_page(path, page_html(v.contents), a.force, {a.spec});
  for (Json& m : v.modules) m["page"] = path;
  const int code = tell(a, fs::path(path).parent_path().string(), path, v);
  if (a.open) open_in_browser(fs::absolute(path).string());
  return code;
}

}  // namespace hlo
