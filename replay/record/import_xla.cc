#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "parser/parser.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/progress.h"
#include "replay/record/dump_names.h"
#include "replay/record/import.h"

namespace hlo {

std::vector<std::string> files_of(const std::string& folder, std::vector<std::string>* problems) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    bool link = at->is_symlink(ignored);
    if (!link && !at->is_regular_file(ignored)) continue;
    std::string file = at->path().filename().string();
    if (std::string why = link ? why_not_confined(folder, file) : why_not_below(file); !why.empty())
      problems->push_back(fmt::format("{}: {}", file, why));
    else
      out.push_back(std::move(file));
  }
  if (error) fail(FailureKind::kIo, "cannot read folder {}: {}", folder, error.message());
  std::sort(out.begin(), out.end());
  return out;
}

void count_changes(Recording* r) {
  const bool texts = std::any_of(r->rows.begin(), r->rows.end(), [](const StageRow& row) {
    return !row.file.empty() && !row.file.ends_with(".dot");
  });
  if (r->source != "xla" || !texts) return;  // graphs are counted when they are listed
  auto universe = std::make_shared<Universe>();
  std::unique_ptr<StageIndex> last;
  size_t last_count = 0, seen = 0;
  bool elided = false;
  Progress progress("comparing the stages of " + r->folder);
  for (StageRow& row : r->rows) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    progress.at(seen++, r->rows.size(), row.file);
    row.before = row.after = last_count;
    if (row.file.empty() || row.file.ends_with(".dot")) continue;
    try {
      std::string text = read_confined(r->folder, row.file);
      elided |= text.find("constant({...})") != std::string::npos;
      ParseOptions parse;
      parse.file = r->folder + "/" + row.file;
      auto m = parse_module(text, universe, parse);
      auto index = std::make_unique<StageIndex>(*m);
      row.after = m->instruction_count();
      if (last) {
        auto d = StageIndex::compare(*last, *index);
        row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
      } else {
        row.before = row.after;
      }
      last = std::move(index);
      last_count = row.after;
    } catch (const Failure& e) {
      std::string what = e.what();
      r->problems.push_back(row.file + ": " + what.substr(0, what.find('\n')));
    }
  }
  if (elided) r->missing.push_back("values of large constants (--xla_dump_large_constants=true)");
}

std::vector<Recording> open_xla(const std::string& folder, bool compare) {
  struct Files {
    std::vector<std::pair<DumpName, std::string>> stages;
    std::string before, after, metadata, name;
    std::string before_graph, after_graph;  // where texts were not asked for
    std::vector<std::string> others;
  };
  std::map<int, Files> modules;
  std::vector<std::string> problems;
  for (const std::string& file : files_of(folder, &problems)) {
    DumpName n;
    if (!parse_name(file, &n)) continue;
    Files& f = modules[n.module];
    if (n.stage) {
      f.stages.push_back({n, file});
      f.name = n.name;
      continue;
    }
    if (file.ends_with(".before_optimizations.txt")) {
      f.before = file;
      std::string rest = n.rest.substr(0, n.rest.size() - std::string(".before_optimizations.txt").size());
      if (f.name.empty()) f.name = rest;
    } else if (file.ends_with("after_optimizations.txt")) {
      f.after = file;
      f.others.push_back(file);
    } else if (file.ends_with(".before_optimizations.dot")) {
      f.before_graph = file;
      f.others.push_back(file);
      if (f.name.empty()) f.name = n.rest.substr(0, n.rest.size() - std::string(".before_optimizations.dot").size());
    } else if (file.ends_with("after_optimizations.dot")) {
      f.after_graph = file;
      f.others.push_back(file);
    } else if (file.ends_with(".metadata.textproto")) {
      f.metadata = file;
    } else {
      f.others.push_back(file);
    }
  }
  std::vector<Recording> out;
  for (auto& [number, f] : modules) {
    if (f.stages.empty() && f.before.empty() && f.after.empty()) {
      if (f.before_graph.empty() && f.after_graph.empty()) continue;
      f.before = f.before_graph, f.after = f.after_graph;
    }
    Recording r;
    r.folder = folder, r.source = "xla", r.module_name = f.name, r.module_number = number, r.pipeline = "as dumped";
    std::sort(f.others.begin(), f.others.end());
    r.other_files = f.others;
    std::sort(f.stages.begin(), f.stages.end(),
              [](const auto& a, const auto& b) { return a.first.number < b.first.number; });
    if (!f.before.empty()) {
      StageRow row;
      row.kind = StageRow::kInput, row.file = f.before;
      r.rows.push_back(row);
    } else {
      r.missing.push_back("before_optimizations.txt");
    }
    std::map<std::string, const PassRun*> by_file;
    std::vector<PassRun> runs;
    if (!f.metadata.empty())
      runs = read_metadata(read_confined(folder, f.metadata));
    else
      r.missing.push_back(
          "metadata.textproto (--xla_dump_module_metadata=true): passes that changed nothing, and times");
    for (const PassRun& run : runs)
      if (!run.file.empty()) by_file[run.file] = &run;
    // Every pass that ran, in order, where the metadata tells; else those with files.
    auto stage_row = [&](const DumpName& n, const std::string& file) {
      StageRow row;
      row.kind = n.pass == "pipeline-start"                         ? StageRow::kPipelineStart
                 : n.next.empty() && n.pipeline == "copy-insertion" ? StageRow::kInnerStep
                                                                    : StageRow::kPass;
      row.number = n.number, row.pipeline = n.pipeline, row.pass = n.pass, row.next = n.next, row.file = file;
      row.changed = row.kind != StageRow::kPipelineStart;
      if (auto found = by_file.find(file); found != by_file.end()) row.microseconds = found->second->us;
      return row;
    };
    std::set<std::string> pipelines;
    for (const auto& [n, file] : f.stages) pipelines.insert(n.pipeline);
    size_t next = 0;
    for (const PassRun& run : runs) {
      if (!run.file.empty()) {
        for (; next < f.stages.size(); ++next) {
          r.rows.push_back(stage_row(f.stages[next].first, f.stages[next].second));
          if (f.stages[next].second == run.file) {
            ++next;
            break;
          }
        }
      } else if (!run.changed && run.pass != "pipeline-start" && !pipelines.contains(run.pass)) {
        StageRow row;
        row.pipeline = run.pipeline, row.pass = run.pass, row.microseconds = run.us;
        r.rows.push_back(row);
      }
    }
    for (; next < f.stages.size(); ++next) r.rows.push_back(stage_row(f.stages[next].first, f.stages[next].second));
    if (!f.after.empty()) {
      StageRow row;
      row.kind = StageRow::kResult, row.file = f.after;
      r.rows.push_back(row);
    } else {
      r.missing.push_back("after_optimizations.txt");
    }
    if (f.stages.empty()) r.missing.push_back("stages between passes (--xla_dump_hlo_pass_re=.*)");
    if (!f.before_graph.empty() && f.before == f.before_graph)
      r.missing.push_back("texts of the stages (--xla_dump_hlo_as_text): graphs can be looked at (view), not run");
    if (compare) count_changes(&r);
    out.push_back(std::move(r));
  }
  if (!out.empty()) out[0].problems.insert(out[0].problems.end(), problems.begin(), problems.end());
  return out;
}

}  // namespace hlo
