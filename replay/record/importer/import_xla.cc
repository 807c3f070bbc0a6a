#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/record/files/dump_names.h"
#include "replay/record/recording/import.h"

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
  const bool texts = std::any_of(r->rows.begin(), r->rows.end(),
                                 [](const StageRow& row) { return !row.file.empty() && !row.file.ends_with(".dot"); });
  if (r->source != "xla" || !texts) return;  // graphs are counted when they are listed
  try {
    const Lineage& lineage = r->lineage();
    if (!lineage.module(0)->elided_constants().empty())
      r->missing.push_back("values of large constants (--xla_dump_large_constants=true)");
  } catch (const Failure& e) {
    if (e.kind() != FailureKind::kIo) throw;
    r->problems.emplace_back(e.what());
  }
}

namespace {

// The files of one module.
struct ModuleFiles {
  int number = 0;
  std::string name;
  std::vector<std::pair<DumpName, std::string>> stages;
  std::string before, after, partitioned, configured, metadata;
  std::string before_graph, after_graph;  // where texts were not asked for
  std::vector<std::string> others;
  std::vector<std::string> problems;

  void add(const DumpName& n, const std::string& file) {
    if (n.stage) {
      stages.emplace_back(n, file);
    } else if (file.ends_with(".before_optimizations.txt")) {
      before = file;
    } else if (file.ends_with(".after_spmd_partitioner.txt")) {
      partitioned = file;
    } else if (file.ends_with(".before_config_assignment.txt")) {
      configured = file;
    } else if (file.ends_with("after_optimizations.txt")) {
      after = file;
      others.push_back(file);
    } else if (file.ends_with(".before_optimizations.dot")) {
      before_graph = file;
      others.push_back(file);
    } else if (file.ends_with("after_optimizations.dot")) {
      after_graph = file;
      others.push_back(file);
    } else if (file.ends_with(".metadata.textproto")) {
      metadata = file;
    } else {
      others.push_back(file);
    }
  }
};

using NamedFiles = std::vector<std::pair<DumpName, std::string>>;

// Files of one number, told apart by the module's name. A file whose name does not tell goes to the longest that fits.
std::vector<std::pair<std::string, NamedFiles>> by_module_name(const NamedFiles& files) {
  std::set<std::string> names;
  for (const auto& [n, file] : files)
    if (!n.name.empty()) names.insert(n.name);
  std::map<std::string, NamedFiles> out;
  for (const auto& [n, file] : files) {
    std::string best = n.name;
    if (best.empty())
      for (const std::string& name : names)
        if (n.rest.starts_with(name + ".") && name.size() >= best.size()) best = name;
    if (best.empty() && !names.empty()) best = *names.begin();
    out[best].emplace_back(n, file);
  }
  return {out.begin(), out.end()};
}

// Files of one module, told apart by time where two runs wrote them: where numbers begin again, another run began.
std::vector<NamedFiles> by_run(NamedFiles files) {
  std::stable_sort(files.begin(), files.end(),
                   [](const auto& x, const auto& y) { return x.first.time < y.first.time; });
  std::vector<NamedFiles> out(1);
  int last = -1;
  bool ended = false;  // the module before optimizations was seen after stages
  for (auto& entry : files) {
    const DumpName& n = entry.first;
    bool begins = n.time >= 0 && (entry.second.find(".before_optimizations.") != std::string::npos ? last >= 0
                                  : n.stage                                                        ? n.number < last
                                                                                                   : false);
    if (begins && !ended) {
      out.emplace_back();
      last = -1;
    }
    ended = begins && !n.stage;  // its graph or proto follows
    if (n.stage) last = n.number;
    out.back().push_back(std::move(entry));
  }
  return out;
}

// Two texts of one number cannot be of one run.
void check_numbers(ModuleFiles& f) {
  for (size_t k = 1; k < f.stages.size(); ++k) {
    const auto& [n, file] = f.stages[k];
    const auto& [m, other] = f.stages[k - 1];
    if (n.number == m.number)
      f.problems.push_back(
          fmt::format("{}: stage {:04} is also {}: files of two runs in one folder?", file, n.number, other));
  }
}

StageRow stage_row(const DumpName& n, const std::string& file, const std::map<std::string, const PassRun*>& by_file) {
  StageRow row;
  row.kind = n.pass == "pipeline-start"                         ? StageRow::kPipelineStart
             : n.next.empty() && n.pipeline == "copy-insertion" ? StageRow::kInnerStep
                                                                : StageRow::kPass;
  row.number = n.number, row.pipeline = n.pipeline, row.pass = n.pass, row.next = n.next, row.file = file;
  row.changed = row.kind != StageRow::kPipelineStart;
  if (auto found = by_file.find(file); found != by_file.end()) row.microseconds = found->second->us;
  return row;
}

// Every pass that ran, in order, where the metadata tells; else those with files.
void add_passes(const ModuleFiles& f, const std::vector<PassRun>& runs, std::vector<StageRow>* rows) {
  std::map<std::string, const PassRun*> by_file;
  for (const PassRun& run : runs)
    if (!run.file.empty()) by_file[run.file] = &run;
  std::set<std::string> pipelines;
  for (const auto& [n, file] : f.stages) pipelines.insert(n.pipeline);
  size_t next = 0;
  for (const PassRun& run : runs) {
    if (!run.file.empty()) {
      while (next < f.stages.size()) {
        const auto& stage = f.stages[next++];
        rows->push_back(stage_row(stage.first, stage.second, by_file));
        if (stage.second == run.file) break;
      }
    } else if (!run.changed && run.pass != "pipeline-start" && !pipelines.contains(run.pass)) {
      StageRow row;
      row.pipeline = run.pipeline, row.pass = run.pass, row.microseconds = run.us;
      rows->push_back(row);
    }
  }
  for (; next < f.stages.size(); ++next)
    rows->push_back(stage_row(f.stages[next].first, f.stages[next].second, by_file));
}

// after_spmd_partitioner is written when the pipelines up to host-compute have run, before_config_assignment in front
// of the autotuner (xla/service/gpu/gpu_compiler.cc).
void add_checkpoints(const ModuleFiles& f, std::vector<StageRow>* rows) {
  auto insert = [&](const std::string& file, const char* pass, const char* next, auto&& behind) {
    if (file.empty()) return;
    StageRow row;
    row.pass = pass, row.next = next, row.file = file, row.changed = f.stages.empty();
    auto at = std::find_if(rows->begin(), rows->end(),
                           [&](const StageRow& r) { return r.kind != StageRow::kInput && behind(r); });
    rows->insert(at, std::move(row));
  };
  insert(f.partitioned, "spmd_partitioner", "", [](const StageRow& r) {
    return r.pipeline.find("spmd") == std::string::npos && r.pipeline != "annotate-host-compute" &&
           r.pipeline != "sharding-removal" && r.pipeline != "host-compute" && !r.pipeline.starts_with("shardy");
  });
  insert(f.configured, "", "config_assignment", [](const StageRow& r) {
    return r.pipeline.find("autotun") != std::string::npos || r.pipeline == "propagate-call-metadata" ||
           r.pipeline == "pre-scheduling-copy-insertion" || r.pipeline == "copy-insertion";
  });
}

Recording recording_of(const std::string& folder, ModuleFiles f) {
  Recording r;
  r.folder = folder, r.source = "xla", r.module_name = f.name, r.module_number = f.number, r.pipeline = "as dumped";
  std::sort(f.others.begin(), f.others.end());
  r.other_files = f.others, r.metadata = f.metadata;
  std::stable_sort(f.stages.begin(), f.stages.end(),
                   [](const auto& a, const auto& b) { return a.first.number < b.first.number; });
  check_numbers(f);
  r.problems = f.problems;
  if (!f.before.empty()) {
    StageRow row;
    row.kind = StageRow::kInput, row.file = f.before;
    r.rows.push_back(row);
  } else {
    r.missing.push_back("before_optimizations.txt");
  }
  std::vector<PassRun> runs;
  if (!f.metadata.empty())
    runs = read_metadata(read_confined(folder, f.metadata));
  else
    r.missing.push_back("metadata.textproto (--xla_dump_module_metadata=true): passes that changed nothing, and times");
  add_passes(f, runs, &r.rows);
  add_checkpoints(f, &r.rows);
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
  return r;
}

}  // namespace

std::vector<Recording> open_xla(const std::string& folder) {
  std::map<int, NamedFiles> numbers;
  std::vector<std::string> problems;
  for (const std::string& file : files_of(folder, &problems)) {
    DumpName n;
    if (parse_name(file, &n)) numbers[n.module].emplace_back(std::move(n), file);
  }
  std::vector<Recording> out;
  for (const auto& [number, files] : numbers) {
    size_t first = out.size();
    std::string names;
    for (auto& [name, own] : by_module_name(files))
      for (NamedFiles& run : by_run(own)) {
        ModuleFiles f;
        f.number = number, f.name = name;
        for (const auto& [n, file] : run) f.add(n, file);
        if (f.stages.empty() && f.before.empty() && f.after.empty()) {
          if (f.before_graph.empty() && f.after_graph.empty()) continue;
          f.before = f.before_graph, f.after = f.after_graph;
        }
        if (f.name.empty()) {  // nothing but a result: up to the target's name
          const std::string& rest = f.after.empty() ? f.before : f.after;
          DumpName n;
          if (parse_name(rest, &n)) f.name = n.rest.substr(0, n.rest.find('.'));
        }
        names += (names.empty() ? "" : ", ") + f.name;
        out.push_back(recording_of(folder, std::move(f)));
      }
    if (out.size() - first < 2) continue;
    for (size_t k = first; k < out.size(); ++k)
      out[k].problems.push_back(fmt::format("module_{:04} is there {} times ({}): files of several runs in one folder",
                                            number, out.size() - first, names));
  }
  if (!out.empty()) out[0].problems.insert(out[0].problems.end(), problems.begin(), problems.end());
  return out;
}

}  // namespace hlo
