// Files that are no modules: kernels' texts compared, TensorFlow's graphs drawn and compared, folders of them.
#include <algorithm>
#include <dtl/dtl.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "dump/graph.h"
#include "parser/proto/proto_reader.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/other_files.h"
#include "replay/compare/graphdef.h"
#include "replay/os/files.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

// --- LLVM IR and PTX: line by line, whatever registers, labels and functions are called ---

struct CodeLine {
  std::string text, plain;         // as it stands; with every name replaced by its kind
  std::vector<std::string> names;  // in order
  bool begins_function = false;
};

bool word_char(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$'; }

// `%rd12` is a `%rd`, `%fusion.3` a `%`: PTX's registers have types.
std::string kind_of_name(const std::string& name, bool ptx) {
  if (!ptx) return name.substr(0, 1);
  size_t digits = name.find_last_not_of("0123456789");
  return name[0] == '%' ? name.substr(0, digits + 1) : "$";
}

CodeLine code_line(const std::string& line, bool ptx) {
  CodeLine out{line, {}, {}, line.starts_with("define ") || line.find(".entry ") != std::string::npos};
  for (size_t at = 0; at < line.size();) {
    char c = line[at];
    bool special = ptx && (line.substr(at, 5) == "%tid." || line.substr(at, 6) == "%ntid." ||
                           line.substr(at, 7) == "%ctaid." || line.substr(at, 8) == "%nctaid.");
    bool name = !special && (c == '%' || (ptx ? c == '$' : c == '@' || c == '!' || c == '#'));
    if (ptx && !name && (isalpha(static_cast<unsigned char>(c)) || c == '_') && (!at || !word_char(line[at - 1]))) {
      // A kernel's name, and its parameters', which begin with it.
      size_t stop = at;
      while (stop < line.size() && word_char(line[stop])) ++stop;
      name = (out.begins_function && std::string_view(line).substr(0, at).ends_with(".entry ")) ||
             std::string_view(line).substr(at, stop - at).find("_param_") != std::string_view::npos;
    }
    if (!name || (at && word_char(line[at - 1]))) {
      out.plain += c, ++at;
      continue;
    }
    size_t end = at + 1;
    if (end < line.size() && line[end] == '"') {
      end = std::min(line.find('"', end + 1), line.size() - 1) + 1;
    } else {
      while (end < line.size() && word_char(line[end])) ++end;
    }
    std::string n = line.substr(at, end - at);
    if (!ptx && c == '@' && n.starts_with("@llvm.")) {
      out.plain += n;  // an intrinsic's name is its meaning
    } else {
      out.plain += kind_of_name(n, ptx);
      out.names.push_back(std::move(n));
    }
    at = end;
  }
  return out;
}

std::vector<CodeLine> code_lines(const std::string& text, bool ptx) {
  std::vector<CodeLine> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (size_t remark = line.find(ptx ? "//" : ";"); remark != std::string::npos && line.find('"') > remark)
      line.erase(remark);
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.starts_with("source_filename")) continue;
    // Labels of LLVM's blocks have no sigil where they stand.
    if (!ptx && line.ends_with(":") && line.find_first_of(" \t") == std::string::npos) line.insert(0, 1, '%');
    if (ptx && line[0] == '$' && line.ends_with(":")) line.insert(0, 1, ' ');
    out.push_back(code_line(line, ptx));
  }
  return out;
}

// One name stands for one name, in either direction, within a function.
class Renaming {
 public:
  bool fits(const CodeLine& a, const CodeLine& b) {
    if (a.begins_function) to_.clear(), from_.clear();
    if (a.names.size() != b.names.size()) return false;
    for (size_t k = 0; k < a.names.size(); ++k) {
      auto [x, new_x] = to_.emplace(a.names[k], b.names[k]);
      auto [y, new_y] = from_.emplace(b.names[k], a.names[k]);
      if (x->second != b.names[k] || y->second != a.names[k]) return false;
    }
    return true;
  }

 private:
  std::map<std::string, std::string> to_, from_;
};

int diff_code(const DiffArgs& a, const std::string& first, const std::string& second, bool ptx) {
  std::vector<CodeLine> x = code_lines(first, ptx), y = code_lines(second, ptx);
  std::vector<std::string> px, py;
  for (const CodeLine& l : x) px.push_back(l.plain);
  for (const CodeLine& l : y) py.push_back(l.plain);
  dtl::Diff<std::string> lines(px, py);
  lines.compose();
  Renaming renaming;
  Json list = Json::array();
  size_t i = 0, j = 0, only_first = 0, only_second = 0, other = 0;
  auto show = [&](char sign, const std::string& text) {
    list.push_back(std::string(1, sign) + text);
    if (a.json || list.size() > a.most) return;
    fmt::print("{}{}\n", sign, text);
  };
  for (const auto& [plain, info] : lines.getSes().getSequence()) {
    if (info.type == dtl::SES_DELETE) {
      ++only_first, show('-', x[i++].text);
    } else if (info.type == dtl::SES_ADD) {
      ++only_second, show('+', y[j++].text);
    } else {
      if (!renaming.fits(x[i], y[j])) ++other, show('-', x[i].text), show('+', y[j].text);
      ++i, ++j;
    }
  }
  bool same = list.empty();
  std::string last =
      same ? (first == second ? "same text" : "same but for names and remarks")
           : fmt::format("different: {} lines only in the first, {} only in the second, {} with other operands",
                         only_first, only_second, other);
  if (a.json)
    print_json({{"kind", ptx ? "ptx" : "llvm-ir"},
                {"same", same},
                {"same_text", first == second},
                {"text", list},
                {"verdict", last}});
  else if (list.size() > a.most)
    fmt::print("… and {} more lines (--most)\n", list.size() - a.most);
  if (!a.json) fmt::print("{}\n", last);
  return same ? kYes : kNo;
}

int diff_plain(const DiffArgs& a, const std::string& first, const std::string& second) {
  Json list = Json::array();
  size_t minus = 0, plus = 0;
  for (const TextDiffLine& l : diff_texts(first, second, 2)) {
    minus += l.sign == '-', plus += l.sign == '+';
    list.push_back(std::string(1, l.sign) + l.text);
    if (a.json || list.size() > a.most) continue;
    fmt::print("{}\n", l.sign == '@' ? "@@" : std::string(1, l.sign) + l.text);
  }
  bool same = first == second;
  std::string last =
      same ? "same text" : fmt::format("different: {} lines only in the first, {} only in the second", minus, plus);
  if (a.json)
    print_json({{"kind", "text"}, {"same", same}, {"same_text", same}, {"text", list}, {"verdict", last}});
  else if (list.size() > a.most)
    fmt::print("… and {} more lines (--most)\n", list.size() - a.most);
  if (!a.json) fmt::print("{}\n", last);
  return same ? kYes : kNo;
}

// --- TensorFlow's graphs ---

struct GraphChange {
  std::vector<std::string> removed, added;                    // node names
  std::vector<std::pair<std::string, std::string>> modified;  // name, what
  bool same() const { return removed.empty() && added.empty() && modified.empty(); }
};

std::string what_changed(const GraphDefNode& x, const GraphDefNode& y) {
  std::string out;
  auto say = [&](const std::string& s) { out += (out.empty() ? "" : "; ") + s; };
  if (x.op != y.op) say(fmt::format("op {} → {}", x.op, y.op));
  if (x.device != y.device) say(fmt::format("device \"{}\" → \"{}\"", x.device, y.device));
  if (x.inputs != y.inputs)
    say(fmt::format("inputs ({}) → ({})", fmt::join(x.inputs, ", "), fmt::join(y.inputs, ", ")));
  for (const auto& [key, value] : x.attrs) {
    auto at = y.attrs.find(key);
    if (at == y.attrs.end())
      say(fmt::format("{} gone", key));
    else if (at->second != value)
      say(fmt::format("{} {} → {}", key, value, at->second));
  }
  for (const auto& [key, value] : y.attrs)
    if (!x.attrs.contains(key)) say(fmt::format("{} = {}", key, value));
  return out;
}

GraphChange graph_change(const GraphDef& a, const GraphDef& b) {
  std::map<std::string, const GraphDefNode*> in_a, in_b;
  for (const GraphDefNode& n : a.nodes) in_a.emplace(n.name, &n);
  for (const GraphDefNode& n : b.nodes) in_b.emplace(n.name, &n);
  GraphChange out;
  for (const auto& [name, n] : in_a)
    if (auto at = in_b.find(name); at == in_b.end())
      out.removed.push_back(fmt::format("{} ({})", name, n->op));
    else if (std::string what = what_changed(*n, *at->second); !what.empty())
      out.modified.emplace_back(name, what);
  for (const auto& [name, n] : in_b)
    if (!in_a.contains(name)) out.added.push_back(fmt::format("{} ({})", name, n->op));
  return out;
}

Json to_json(const GraphChange& c) {
  Json modified = Json::array();
  for (const auto& [name, what] : c.modified) modified.push_back({{"name", name}, {"what", what}});
  return {{"same", c.same()}, {"removed", c.removed}, {"added", c.added}, {"modified", modified}};
}

void show_graph_change(const GraphChange& c, size_t most, const char* indent) {
  size_t shown = 0, all = c.removed.size() + c.added.size() + c.modified.size();
  for (const std::string& n : c.removed)
    if (shown++ < most) fmt::print("{}- {}\n", indent, n);
  for (const std::string& n : c.added)
    if (shown++ < most) fmt::print("{}+ {}\n", indent, n);
  for (const auto& [name, what] : c.modified)
    if (shown++ < most) fmt::print("{}~ {}: {}\n", indent, name, what);
  if (all > most) fmt::print("{}… and {} more nodes\n", indent, all - most);
}

int diff_graphs(const DiffArgs& a, const std::string& first, const std::string& second) {
  GraphDef x = parse_graphdef(first, a.a), y = parse_graphdef(second, a.b);
  GraphChange c = graph_change(x, y);
  std::string last = c.same() ? "same nodes"
                              : fmt::format("different: {} nodes only in the first, {} only in the second, {} changed",
                                            c.removed.size(), c.added.size(), c.modified.size());
  if (a.json) {
    print_json(complete({{"kind", "graphdef"}}, complete(to_json(c), {{"verdict", last}})));
  } else {
    show_graph_change(c, a.most, "");
    fmt::print("{}\n", last);
  }
  return c.same() ? kYes : kNo;
}

// TensorFlow's passes in the order in which they write their graphs, as their files are called.
constexpr std::string_view kGraphPhases[] = {
    "original",
    "before_clone",
    "before_mark",
    "mark_for_compilation",
    "before_increase",
    "increase",
    "after_increase",
    "before_partially",
    "partially",
    "before_encapsulate",
    "encapsulate_subgraphs_before",
    "encapsulate_subgraphs_half",
    "encapsulate_subgraphs_after",
    "encapsulate",
    "before_build_xla",
    "build_xla",
    "after_build_xla",
};

// Where a file stands in the succession: its number in front, or the session's number behind, then the phase.
std::tuple<int64_t, int64_t, size_t, std::string> place_of_graph(const std::string& file) {
  std::string stem = file.substr(0, file.rfind('.'));
  size_t digits = stem.find_first_not_of("0123456789");
  int64_t front = digits && digits != std::string::npos && digits < 10 ? atoll(stem.c_str()) : -1;
  size_t tail = stem.find_last_not_of("0123456789");
  int64_t behind = 0;
  if (tail != std::string::npos && tail + 1 < stem.size() && stem.size() - tail < 10 &&
      (stem[tail] == '_' || stem[tail] == '-'))
    behind = atoll(stem.c_str() + tail + 1), stem.erase(tail);
  size_t phase = 0;
  for (size_t k = 0; k < std::size(kGraphPhases); ++k)
    if (stem.starts_with(kGraphPhases[k])) phase = k + 1;
  return {front, behind, phase ? phase : std::size(kGraphPhases) + 1, stem};
}

}  // namespace

bool diff_other_files(const DiffArgs& a, int* code) {
  std::error_code error;
  if (!fs::is_regular_file(a.a, error) || !fs::is_regular_file(a.b, error)) return false;
  auto unpacked = [](const std::string& file) {
    std::string text = read_file(file);
    return text.starts_with("\x1f\x8b") ? gunzip(text, file) : text;
  };
  std::string first = unpacked(a.a), second = unpacked(a.b);
  FileKind x = file_kind(a.a, first), y = file_kind(a.b, second);
  if (x == FileKind::kUnknown && y == FileKind::kUnknown) return false;
  if (x != y) {
    auto words = [](FileKind k) { return k == FileKind::kUnknown ? std::string_view("HLO") : kind_in_words(k); };
    fail(FailureKind::kUsage, "{} is {}, {} is {}: two of a kind can be compared", a.a, words(x), a.b, words(y));
  }
  if (a.run || !a.html.empty())
    fail(FailureKind::kUsage, "--run and --html are for modules; these are {}", kind_in_words(x));
  if (x == FileKind::kLlvmIr || x == FileKind::kPtx)
    *code = diff_code(a, first, second, x == FileKind::kPtx);
  else if (x == FileKind::kGraphDef)
    *code = diff_graphs(a, first, second);
  else if (x == FileKind::kTrace || x == FileKind::kTable)
    fail(FailureKind::kUsage, "these are traces: hlo-replay diff --profile {} {}", a.a, a.b);
  else if (x == FileKind::kArrays)
    fail(FailureKind::kUsage, "these are arrays: hlo-replay compare {} {}", a.a, a.b);
  else if (is_text_kind(x))
    *code = diff_plain(a, first, second);
  else
    fail(FailureKind::kUnsupported, "{} and {} are {}: they are not compared", a.a, a.b, kind_in_words(x));
  return true;
}

bool convert_graph(const std::string& in, const std::string& out) {
  bool dot = out.ends_with(".dot"), drawn = out.ends_with(".svg") || out.ends_with(".png");
  std::error_code error;
  if (!fs::is_regular_file(in, error)) return false;
  std::string text = read_file(in);
  FileKind kind = file_kind(in, text);
  if (kind != FileKind::kGraphDef && kind != FileKind::kDot) return false;
  if (!dot && !drawn)
    fail(FailureKind::kUsage, "{} is {}: it becomes .dot, .svg or .png, not {}", in, kind_in_words(kind), out);
  if (kind == FileKind::kGraphDef) {
    GraphDef graph = parse_graphdef(text, in);
    for (const std::string& p : graph.problems) fmt::print(stderr, "warning: {}\n", p);
    text = graphdef_dot(graph);
  }
  write_file(out, dot ? text : render_dot(text, out.ends_with(".svg") ? "svg" : "png"));
  return true;
}

bool open_graph_folder(const std::string& folder, bool json) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string file = entry.path().filename().string();
    if (!entry.is_regular_file() || !file.ends_with(".pbtxt")) continue;
    if (file_kind(file, read_file(folder + "/" + file)) == FileKind::kGraphDef) files.push_back(file);
  }
  if (files.empty()) return false;
  std::sort(files.begin(), files.end(),
            [](const std::string& x, const std::string& y) { return place_of_graph(x) < place_of_graph(y); });
  Json list = Json::array();
  GraphDef last;
  for (size_t k = 0; k < files.size(); ++k) {
    std::string path = folder + "/" + files[k];
    GraphDef graph = parse_graphdef(read_file(path), path);
    Json row{{"file", files[k]}, {"nodes", graph.nodes.size()}};
    GraphChange c = k ? graph_change(last, graph) : GraphChange();
    row.update(to_json(c));  // the first of them against itself: nothing
    if (!json) {
      fmt::print("{}: {} nodes{}\n", files[k], graph.nodes.size(),
                 !k         ? ""
                 : c.same() ? ", the same as before"
                            : fmt::format(", {} new, {} gone, {} changed", c.added.size(), c.removed.size(),
                                          c.modified.size()));
      show_graph_change(c, 8, "    ");
    }
    list.push_back(std::move(row));
    last = std::move(graph);
  }
  if (json)
    print_json({{"folder", folder},
                {"look_first", Json::array()},
                {"modules", Json::array()},
                {"graphs", list},
                {"entries", Json::array()}});
  else
    fmt::print("next: hlo-replay convert {}/{} graph.png\n", folder, files.back());
  if (!json && files.size() > 1)
    fmt::print("      hlo-replay diff {}/{} {}/{}\n", folder, files.front(), folder, files.back());
  return true;
}

}  // namespace hlo
