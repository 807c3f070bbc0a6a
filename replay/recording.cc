#include "replay/recording.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/print.h"
#include "parser/parser.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/progress.h"
#include "replay/terminal.h"

namespace hlo {
namespace fs = std::filesystem;

std::string StageRow::name() const {
  switch (kind) {
    case kInput:
      return "before_optimizations";
    case kResult:
      return "after_optimizations";
    default:
      return pipeline + ".after_" + pass;
  }
}

std::string Recording::text_file(size_t row) const {
  for (size_t i = std::min(row, rows.size() - 1) + 1; i-- > 0;)
    if (!rows[i].file.empty()) return rows[i].file;
  return {};
}

std::string recording_json(const Recording& r) {
  using nlohmann::ordered_json;
  ordered_json out;
  out["version"] = 1;
  out["source"] = r.source;
  out["module"] = r.module_name;
  out["module_number"] = r.module_number;
  out["pipeline"] = r.pipeline;
  static const std::map<int, const char*> kKinds = {{StageRow::kInput, "input"},
                                                    {StageRow::kPipelineStart, "pipeline-start"},
                                                    {StageRow::kPass, "pass"},
                                                    {StageRow::kInnerStep, "step"},
                                                    {StageRow::kResult, "result"}};
  ordered_json& rows = out["stages"] = ordered_json::array();
  for (const StageRow& row : r.rows) {
    ordered_json s;
    s["kind"] = kKinds.at(row.kind);
    s["name"] = row.name();
    if (row.number >= 0) s["number"] = row.number;
    if (!row.pipeline.empty()) s["pipeline"] = row.pipeline;
    if (!row.pass.empty()) s["pass"] = row.pass;
    if (!row.next.empty()) s["next"] = row.next;
    s["changed"] = row.changed;
    if (!row.implemented) s["implemented"] = false;
    if (row.disabled) s["disabled"] = true;
    if (row.microseconds >= 0) s["microseconds"] = row.microseconds;
    s["instructions_before"] = row.before;
    s["instructions_after"] = row.after;
    s["added"] = row.added, s["removed"] = row.removed, s["modified"] = row.modified;
    if (row.rewrites) s["rewrites"] = row.rewrites;
    if (!row.file.empty()) s["file"] = row.file;
    if (!row.notes.empty()) {
      ordered_json& notes = s["notes"] = ordered_json::array();
      for (const Note& n : row.notes) {
        ordered_json note{{"rule", n.rule}, {"instructions", n.names}};
        if (!n.text.empty()) note["text"] = n.text;
        notes.push_back(std::move(note));
      }
    }
    rows.push_back(std::move(s));
  }
  out["files"] = r.other_files;
  if (!r.missing.empty()) out["missing"] = r.missing;
  if (!r.problems.empty()) out["problems"] = r.problems;
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// --- comparison of stages by name ---

StageIndex::StageIndex(const Module& m) {
  const Universe& u = m.u();
  // Attribute sets name computations by id; their names make sets of different modules comparable.
  std::unordered_map<uint32_t, uint64_t> attr_hash;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      const Inst& inst = m[i];
      uint64_t h = hash_combine(static_cast<uint64_t>(inst.op), inst.shape.value);
      h = hash_combine(h, m.is_root(i));
      if (inst.op == Opcode::Constant || inst.op == Opcode::Parameter) h = hash_combine(h, inst.operand[0]);
      for (InstId o : m.operands(i)) h = hash_combine(h, m[o].name.value);
      if (inst.attrs.valid()) {
        auto [at, fresh] = attr_hash.try_emplace(inst.attrs.value, 0);
        if (fresh) {
          AttrSet set = u[inst.attrs];
          uint64_t a = 0;
          for (CompId callee : set.called) a = hash_combine(a, m.comp(callee).name.value);
          for (auto& [key, value] : set.list) {
            if (CompId* one = std::get_if<CompId>(&value)) *one = CompId();
            if (auto* many = std::get_if<std::vector<CompId>>(&value)) many->assign(many->size(), CompId());
          }
          at->second = hash_combine(a, hash_bytes(attr_key(set)));
        }
        h = hash_combine(h, at->second);
      }
      for (InstId p : m.control_preds(i)) h = hash_combine(h, m[p].name.value);
      content_.push_back({inst.name, h});
    }
  std::sort(content_.begin(), content_.end());
}

StageIndex::Difference StageIndex::compare(const StageIndex& a, const StageIndex& b) {
  Difference d;
  size_t i = 0, j = 0;
  while (i < a.content_.size() || j < b.content_.size()) {
    if (j == b.content_.size() || (i < a.content_.size() && a.content_[i].first < b.content_[j].first)) {
      d.removed.push_back(a.content_[i++].first);
    } else if (i == a.content_.size() || b.content_[j].first < a.content_[i].first) {
      d.added.push_back(b.content_[j++].first);
    } else {
      if (a.content_[i].second != b.content_[j].second) d.modified.push_back(a.content_[i].first);
      ++i, ++j;
    }
  }
  return d;
}

// --- opening folders ---

namespace {

// What it names is below its folder, or it is no recording; what is not there, or cannot be read, is told.
void check_names(Recording* r) {
  auto check = [r](const std::string& file) {
    if (std::string why = why_not_below(file); !why.empty())
      fail(FailureKind::kIo, "{}/recording.json names '{}': {}", r->folder, file, why);
    bool missing = false;
    std::string why = why_not_confined(r->folder, file, &missing);
    if (missing)
      r->missing.push_back(file);
    else if (!why.empty())
      r->problems.push_back(fmt::format("{}: {}", file, why));
  };
  for (const StageRow& row : r->rows)
    if (!row.file.empty()) check(row.file);
  for (const std::string& file : r->other_files) check(file);
}

// The regular files of a dump folder; those that lead elsewhere, or that nobody can read, into `problems`.
std::vector<std::string> files_of(const std::string& folder, std::vector<std::string>* problems) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
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

std::vector<Recording> open_ours(const std::string& folder) {
  nlohmann::json j;
  try {
    j = nlohmann::json::parse(read_confined(folder, "recording.json"));
    Recording r;
    r.folder = folder;
    if (j.at("version") != 1)
      fail(FailureKind::kUnsupported, "{}/recording.json has version {}, this program reads 1", folder,
           j.at("version").dump());
    // A stranger's words are shown on terminals.
    auto text = [](const nlohmann::json& v) { return printable(v.get<std::string>()); };
    auto text_of = [](const nlohmann::json& v, const char* key) { return printable(v.value(key, "")); };
    r.source = text(j.at("source")), r.module_name = text(j.at("module")), r.module_number = j.at("module_number"),
    r.pipeline = text(j.at("pipeline"));
    for (const auto& s : j.at("stages")) {
      StageRow row;
      std::string kind = s.at("kind");
      row.kind = kind == "input"            ? StageRow::kInput
                 : kind == "pipeline-start" ? StageRow::kPipelineStart
                 : kind == "step"           ? StageRow::kInnerStep
                 : kind == "result"         ? StageRow::kResult
                                            : StageRow::kPass;
      row.number = s.value("number", -1);
      row.pipeline = text_of(s, "pipeline"), row.pass = text_of(s, "pass"), row.next = text_of(s, "next");
      row.changed = s.at("changed"), row.implemented = s.value("implemented", true),
      row.disabled = s.value("disabled", false);
      row.microseconds = s.value("microseconds", int64_t{-1});
      row.before = s.at("instructions_before"), row.after = s.at("instructions_after");
      row.added = s.at("added"), row.removed = s.at("removed"), row.modified = s.at("modified");
      row.rewrites = s.value("rewrites", int64_t{0});
      row.file = s.value("file", "");
      if (s.contains("notes"))
        for (const auto& n : s["notes"]) {
          Note note;
          note.rule = text(n.at("rule")), note.text = text_of(n, "text");
          for (const auto& name : n.at("instructions")) note.names.push_back(text(name));
          row.notes.push_back(std::move(note));
        }
      r.rows.push_back(std::move(row));
    }
    for (const auto& f : j.at("files")) r.other_files.push_back(f);
    check_names(&r);
    return {r};
  } catch (const nlohmann::json::exception& e) {
    fail(FailureKind::kIo, "{}/recording.json is damaged: {}", folder, e.what());
  }
}

struct DumpName {
  int module = 0, number = -1;
  std::string name, pipeline, pass, next, rest;
  bool stage = false;
};

// module_0012.jit_f.[extra.]0007.simplification.after_algsimp.before_dce.txt; names may hold dots.
bool parse_name(const std::string& file, DumpName* out) {
  if (!file.starts_with("module_")) return false;
  size_t at = 7, end = at;
  while (end < file.size() && isdigit(static_cast<unsigned char>(file[end]))) ++end;
  if (end == at || end >= file.size() || file[end] != '.') return false;
  out->module = atoi(file.c_str() + at);
  std::string rest = file.substr(end + 1);
  size_t after = rest.find(".after_");
  // `.0007.pipeline` right in front of `.after_`.
  if (after != std::string::npos && rest.ends_with(".txt")) {
    size_t dot = rest.rfind('.', after - 1);
    if (dot != std::string::npos && dot >= 5) {
      size_t number = rest.rfind('.', dot - 1);
      std::string digits =
          number == std::string::npos ? rest.substr(0, dot) : rest.substr(number + 1, dot - number - 1);
      bool numeric = digits.size() == 4 && std::all_of(digits.begin(), digits.end(),
                                                       [](char c) { return isdigit(static_cast<unsigned char>(c)); });
      if (numeric && number != std::string::npos) {
        out->stage = true;
        out->name = rest.substr(0, number);
        out->number = atoi(digits.c_str());
        out->pipeline = rest.substr(dot + 1, after - dot - 1);
        std::string tail = rest.substr(after + 7, rest.size() - 4 - after - 7);
        size_t before = tail.find(".before_");
        out->pass = tail.substr(0, before);
        if (before != std::string::npos) out->next = tail.substr(before + 8);
        return true;
      }
    }
  }
  out->rest = rest;
  return true;
}

struct PassRun {
  std::string pipeline, pass, file;
  int64_t us = -1;
  bool changed = false;
};

// Blocks of XLA's module_NNNN.*.metadata.textproto.
std::vector<PassRun> read_metadata(const std::string& text) {
  std::vector<PassRun> out;
  size_t at = 0;
  auto field = [](const std::string& block, const std::string& key) -> std::string {
    size_t p = block.find(key + ": ");
    if (p == std::string::npos) return {};
    p += key.size() + 2;
    size_t e = block.find('\n', p);
    std::string v = block.substr(p, e - p);
    if (!v.empty() && v.front() == '"') v = v.substr(1, v.find('"', 1) - 1);
    return v;
  };
  while ((at = text.find("pass_metadata {", at)) != std::string::npos) {
    size_t next = text.find("pass_metadata {", at + 1);
    std::string block = text.substr(at, next == std::string::npos ? std::string::npos : next - at);
    PassRun r;
    r.pass = field(block, "pass_name"), r.pipeline = field(block, "pipeline_name");
    std::replace(r.pipeline.begin(), r.pipeline.end(), ' ', '_');
    std::string a = field(block, "start_timestamp_usec"), b = field(block, "end_timestamp_usec");
    if (!a.empty() && !b.empty()) r.us = atoll(b.c_str()) - atoll(a.c_str());
    r.changed = field(block, "module_changed") == "true";
    std::string file = field(block, "dump_filenames");
    if (!file.empty()) r.file = fs::path(file).filename().string();
    out.push_back(std::move(r));
    at += 1;
  }
  return out;
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
    // Which pass changed how much: neighbouring texts compared by name.
    auto universe = std::make_shared<Universe>();
    std::unique_ptr<StageIndex> last;
    size_t last_count = 0;
    bool elided = false;
    Progress progress("comparing the stages of " + folder);
    size_t seen = 0;
    for (StageRow& row : r.rows) {
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
      progress.at(seen++, r.rows.size(), row.file);
      row.before = row.after = last_count;
      if (row.file.empty() || row.file.ends_with(".dot") || !compare) continue;
      try {
        std::string text = read_confined(folder, row.file);
        elided |= text.find("constant({...})") != std::string::npos;
        ParseOptions parse;
        parse.file = folder + "/" + row.file;
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
        r.problems.push_back(row.file + ": " + what.substr(0, what.find('\n')));
      }
    }
    if (!f.before_graph.empty() && f.before == f.before_graph)
      r.missing.push_back("texts of the stages (--xla_dump_hlo_as_text): graphs can be looked at (view), not run");
    if (elided) r.missing.push_back("values of large constants (--xla_dump_large_constants=true)");
    out.push_back(std::move(r));
  }
  if (!out.empty()) out[0].problems.insert(out[0].problems.end(), problems.begin(), problems.end());
  return out;
}

// What TensorFlow wrote in 2018: hlo_graph_0.dot, hlo_graph_1.dot …, and on its console which is which:
// `computation cluster_0[…].v82 [CPU: after inline, before algsimp]: /tmp/hlo_graph_3.dot`. Graphs only, no texts.
std::vector<Recording> open_graphs(const std::string& folder) {
  std::map<int, std::string> graphs;
  std::map<std::string, std::pair<std::string, std::string>> said;  // file → module, what stands in the brackets
  std::vector<std::string> problems;
  for (const std::string& file : files_of(folder, &problems)) {
    if (file.starts_with("hlo_graph_") && file.ends_with(".dot")) {
      std::string number = file.substr(10, file.size() - 14);
      if (!number.empty() && number.size() < 8 && number.find_first_not_of("0123456789") == std::string::npos)
        graphs[atoi(number.c_str())] = file;
      continue;
    }
    if (!file.ends_with(".txt") && !file.ends_with(".log")) continue;
    std::string text = read_confined(folder, file);
    for (size_t at = text.find("computation "); at != std::string::npos; at = text.find("computation ", at + 1)) {
      size_t dot = text.find(".dot", at), slash = dot == std::string::npos ? dot : text.rfind("hlo_graph_", dot);
      if (slash == std::string::npos || slash < at || slash - at > 2000) continue;
      std::string what = printable(text.substr(at + 12, slash - at - 12));
      size_t close = what.rfind(']'), open = close == std::string::npos ? close : what.rfind('[', close);
      if (open == std::string::npos) continue;
      std::string label = what.substr(open + 1, close - open - 1);
      std::replace(label.begin(), label.end(), '\n', ' ');
      said[text.substr(slash, dot + 4 - slash)] = {what.substr(0, what.find_first_of(" [.\n")), label};
    }
  }
  if (graphs.empty()) return {};
  Recording r;
  r.folder = folder, r.source = "xla", r.module_name = "hlo_graph", r.pipeline = "graphs", r.problems = problems;
  size_t last = 0;
  for (const auto& [number, file] : graphs) {
    StageRow row;
    row.number = number, row.file = file, row.changed = true, row.pass = file.substr(0, file.size() - 4);
    row.pipeline = "graphs";
    if (auto found = said.find(file); found != said.end()) {
      r.module_name = found->second.first;
      // `CPU: after inline, before algsimp`
      const std::string& label = found->second.second;
      size_t after = label.find("after "), comma = label.find(',', after == std::string::npos ? 0 : after);
      size_t before = label.find("before ");
      if (after != std::string::npos)
        row.pass = label.substr(after + 6, comma == std::string::npos ? comma : comma - after - 6);
      else
        row.pass = label.find("pipeline start") != std::string::npos ? "pipeline-start" : label;
      if (before != std::string::npos) row.next = label.substr(before + 7);
    }
    // Nodes: statements with attributes that are no edges.
    std::string text = read_confined(folder, file);
    size_t nodes = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      size_t bracket = line.find('[');
      std::string_view head = line.substr(0, bracket == std::string_view::npos ? 0 : bracket);
      size_t first = head.find_first_not_of(" \t\"");
      bool keyword = first != std::string_view::npos &&
                     (head.substr(first).starts_with("node") || head.substr(first).starts_with("edge") ||
                      head.substr(first).starts_with("graph"));
      bool named = first != std::string_view::npos && isalnum(static_cast<unsigned char>(head[first]));
      if (named && head.find("->") == std::string_view::npos &&
          (!keyword || head.find_first_of("0123456789") != std::string_view::npos))
        ++nodes;
      at = end + 1;
    }
    row.before = number == graphs.begin()->first ? nodes : last;
    row.after = last = nodes;
    r.rows.push_back(std::move(row));
  }
  if (said.empty())
    r.missing.push_back("the console's log (TF_XLA_FLAGS=--xla_generate_hlo_graph=.*), which says what each graph is");
  r.missing.push_back("texts of the stages: graphs can be looked at (view), not run");
  return {r};
}

}  // namespace

std::vector<Recording> open_folder(const std::string& folder, bool compare) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) fail(FailureKind::kIo, "{} is not a folder", folder);
  Progress progress("reading folder " + folder);
  std::vector<Recording> out =
      fs::exists(folder + "/recording.json", error) ? open_ours(folder) : open_xla(folder, compare);
  if (out.empty()) out = open_graphs(folder);
  if (out.empty())
    fail(FailureKind::kIo,
         "{} holds no recording: neither recording.json nor files named module_NNNN.NAME….txt or hlo_graph_N.dot as "
         "XLA dumps them",
         folder);
  return out;
}

}  // namespace hlo
