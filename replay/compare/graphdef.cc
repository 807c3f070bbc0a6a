#include "replay/compare/graphdef.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/base/source.h"

namespace hlo {
namespace {

// Protobuf's text format, tolerant: what does not fit is passed over to the end of its line.
class Reader {
 public:
  Reader(const std::string& text, const std::string& file, GraphDef& out) : text_(text), file_(file), out_(out) {}

  void run() {
    while (skip_blanks(), at_ < text_.size()) {
      std::string key = word();
      if (key == "node" && opens()) {
        node();
      } else if (!key.empty() && opens()) {
        skip_block();
      } else {
        if (text_.compare(at_, 1, ":") == 0)
          ++at_, scalar();
        else
          problem("not of a GraphDef");
      }
    }
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (isspace(static_cast<unsigned char>(c)) || c == ',' || c == ';') {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  std::string word() {
    skip_blanks();
    size_t from = at_;
    while (at_ < text_.size() && (isalnum(static_cast<unsigned char>(text_[at_])) || strchr("_.-+/$", text_[at_])))
      ++at_;
    std::string out = text_.substr(from, at_ - from);
    skip_blanks();
    return out;
  }

  bool opens() {
    skip_blanks();
    size_t keep = at_;
    if (at_ < text_.size() && text_[at_] == ':') ++at_, skip_blanks();
    if (at_ < text_.size() && (text_[at_] == '{' || text_[at_] == '<')) {
      ++at_;
      return true;
    }
    at_ = keep;
    return false;
  }

  bool closes() {
    skip_blanks();
    if (at_ >= text_.size()) {
      problem("the text ends inside a block");
      return true;
    }
    if (text_[at_] != '}' && text_[at_] != '>') return false;
    ++at_;
    return true;
  }

  std::string scalar() {
    skip_blanks();
    if (at_ >= text_.size()) return {};
    if (text_[at_] != '"' && text_[at_] != '\'') return word();
    std::string out;
    while (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {  // strings in a row are one
      char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        out += text_[at_++];
      }
      if (at_ < text_.size() && text_[at_] == quote) {
        ++at_;
      } else {
        problem("a string without its end");
      }
      skip_blanks();
    }
    return out;
  }

  void problem(const std::string& what) {
    if (out_.problems.size() < 20)
      out_.problems.push_back(fmt::format("{}:{}: {}", file_, place_of(text_, std::min(at_, text_.size())).line, what));
    at_ = std::min(text_.find('\n', at_), text_.size());
  }

  void skip_block() {
    int depth = 1;
    while (at_ < text_.size() && depth > 0) {
      char c = text_[at_];
      if (c == '"' || c == '\'') {
        scalar();
        continue;
      }
      depth += (c == '{' || c == '<') - (c == '}' || c == '>');
      ++at_;
    }
    if (depth > 0) problem("the text ends inside a block");
  }

  // An attribute's value: its scalar, the name of its function, or how many entries its list has.
  std::string value() {
    std::string out;
    size_t entries = 0;
    bool list = false;
    while (!closes()) {
      if (at_ >= text_.size()) break;
      std::string key = word();
      if (key.empty()) {
        problem("a field's name is missing");
        continue;
      }
      if (opens()) {
        if (key == "func") {
          std::string inner = value_of_name();
          if (out.empty()) out = inner;
        } else if (key == "list") {
          list = true;
          while (!closes()) {
            if (at_ >= text_.size()) break;
            std::string k = word();
            if (k.empty()) {
              problem("a field's name is missing");
              continue;
            }
            ++entries;
            if (opens())
              skip_block();
            else if (at_ < text_.size() && text_[at_] == ':')
              ++at_, scalar();
          }
        } else {
          skip_block();
        }
      } else if (at_ < text_.size() && text_[at_] == ':') {
        ++at_;
        std::string v = scalar();
        if (out.empty()) out = v;
      } else {
        problem("a value is missing");
      }
    }
    return list ? std::to_string(entries) : out;
  }

  std::string value_of_name() {
    std::string out;
    while (!closes()) {
      if (at_ >= text_.size()) break;
      std::string key = word();
      if (opens()) {
        skip_block();
      } else if (at_ < text_.size() && text_[at_] == ':') {
        ++at_;
        std::string v = scalar();
        if (key == "name") out = v;
      } else {
        problem("a value is missing");
      }
    }
    return out;
  }

  void node() {
    GraphDefNode n;
    while (!closes()) {
      if (at_ >= text_.size()) break;
      std::string key = word();
      if (key == "attr" && opens()) {
        std::string name, v;
        while (!closes()) {
          if (at_ >= text_.size()) break;
          std::string k = word();
          if (k == "key" && at_ < text_.size() && text_[at_] == ':')
            ++at_, name = scalar();
          else if (k == "value" && opens())
            v = value();
          else if (opens())
            skip_block();
          else
            problem("an attribute has key and value");
        }
        if (!name.empty()) n.attrs[name] = v;
      } else if (key.empty()) {
        problem("a field's name is missing");
      } else if (opens()) {
        skip_block();
      } else if (at_ < text_.size() && text_[at_] == ':') {
        ++at_;
        std::string v = scalar();
        if (key == "name") n.name = v;
        if (key == "op") n.op = v;
        if (key == "device") n.device = v;
        if (key == "input") n.inputs.push_back(v);
      } else {
        problem("a value is missing");
      }
    }
    if (!n.name.empty()) out_.nodes.push_back(std::move(n));
  }

  const std::string &text_, &file_;
  GraphDef& out_;
  size_t at_ = 0;
};

struct Source {
  std::string node;
  int64_t output = 0;
};

Source source_of(const std::string& input) {
  size_t colon = input.rfind(':');
  if (colon == std::string::npos || input.find_first_not_of("0123456789", colon + 1) != std::string::npos ||
      colon + 1 == input.size())
    return {input, 0};
  return {input.substr(0, colon), atoll(input.c_str() + colon + 1)};
}

}  // namespace

const GraphDefNode* GraphDef::find(const std::string& name) const {
  auto at = std::find_if(nodes.begin(), nodes.end(), [&](const GraphDefNode& n) { return n.name == name; });
  return at == nodes.end() ? nullptr : &*at;
}

GraphDef parse_graphdef(const std::string& text, const std::string& file) {
  GraphDef out;
  Reader(text, file, out).run();
  if (out.nodes.empty())
    fail(FailureKind::kUsage, "{} holds no node: a GraphDef in text form has `node {{ name: \"…\" op: \"…\" }}`{}",
         file, out.problems.empty() ? "" : "; " + out.problems[0]);
  return out;
}

std::string cluster_of(const GraphDefNode& n) {
  auto attr = [&](const char* key) {
    auto at = n.attrs.find(key);
    return at == n.attrs.end() ? std::string() : at->second;
  };
  if (n.op == "XlaLaunch" || n.op == "_XlaLaunch" || n.op == "_XlaCompile" || n.op == "_XlaRun" ||
      n.op == "XlaLaunchV2") {
    std::string f = attr("function");
    return f.empty() ? n.name : f;
  }
  if (std::string c = attr("_XlaCluster"); !c.empty()) return c;
  if (attr("_XlaCompiledKernel") == "true") return n.op;  // the encapsulated call before it became a launch
  return {};
}

std::vector<ClusterEdge> cluster_edges(const GraphDef& graph) {
  std::unordered_map<std::string, const GraphDefNode*> named;
  for (const GraphDefNode& n : graph.nodes) named.emplace(n.name, &n);
  auto is_call = [](const GraphDefNode& n) { return !n.attrs.contains("_XlaCluster"); };
  // Through nodes that hand a tensor on, not for ever.
  auto origin = [&](const std::string& input) {
    Source s = source_of(input);
    for (int k = 0; k < 100; ++k) {
      auto at = named.find(s.node);
      if (at == named.end()) break;
      const GraphDefNode& n = *at->second;
      static const std::set<std::string> kThrough = {"Identity", "_Send",     "_Recv",     "StopGradient",
                                                     "Snapshot", "_HostSend", "_HostRecv", "PreventGradient"};
      if (!kThrough.contains(n.op) || n.inputs.empty() || !cluster_of(n).empty()) break;
      s = source_of(n.inputs[0]);
    }
    return s;
  };
  std::vector<ClusterEdge> out;
  std::set<std::tuple<std::string, std::string, int64_t, int64_t, std::string>> seen;
  for (const GraphDefNode& n : graph.nodes) {
    std::string to = cluster_of(n);
    if (to.empty()) continue;
    int64_t constants = 0;
    for (const char* key : {"Tconstants", "_XlaNumConstantArgs"})
      if (auto at = n.attrs.find(key); at != n.attrs.end()) constants = atoll(at->second.c_str());
    int64_t k = 0;
    for (const std::string& input : n.inputs) {
      if (input.starts_with('^')) continue;
      int64_t place = k++;
      Source s = origin(input);
      auto at = named.find(s.node);
      if (at == named.end()) continue;
      std::string from = cluster_of(*at->second);
      if (from.empty() || from == to) continue;
      ClusterEdge e{from, to, -1, -1, s.output ? fmt::format("{}:{}", s.node, s.output) : s.node};
      if (is_call(*at->second)) e.output = s.output;
      if (is_call(n) && place >= constants) e.input = place - constants;
      if (seen.insert({e.from, e.to, e.output, e.input, e.tensor}).second) out.push_back(e);
    }
  }
  return out;
}

std::string graphdef_dot(const GraphDef& graph) {
  auto quoted = [](const std::string& s) {
    std::string out = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  };
  auto label_of = [&](const GraphDefNode& n) {
    std::string name = quoted(n.name);
    name.pop_back();
    return name + "\\n" + quoted(n.op).substr(1);
  };
  std::string out =
      "digraph graphdef {\n  rankdir=TB; compound=true;\n  node [shape=box, style=\"rounded,filled\", "
      "fillcolor=white, fontsize=10];\n";
  std::map<std::string, std::vector<const GraphDefNode*>> clusters;
  for (const GraphDefNode& n : graph.nodes)
    clusters[n.attrs.contains("_XlaCluster") ? cluster_of(n) : ""].push_back(&n);
  auto draw = [&](const GraphDefNode& n) {
    bool call = !cluster_of(n).empty() && !n.attrs.contains("_XlaCluster");
    out += fmt::format("    {} [label={}{}];\n", quoted(n.name), label_of(n),
                       call ? ", fillcolor=\"#dbe9ff\", penwidth=2" : "");
  };
  int number = 0;
  for (const auto& [cluster, nodes] : clusters) {
    if (cluster.empty()) {
      for (const GraphDefNode* n : nodes) draw(*n);
      continue;
    }
    out += fmt::format("  subgraph cluster_{} {{\n    label={}; style=filled; fillcolor=\"#f1f6ff\";\n", number++,
                       quoted(cluster));
    for (const GraphDefNode* n : nodes) draw(*n);
    out += "  }\n";
  }
  std::set<std::string> names;
  for (const GraphDefNode& n : graph.nodes) names.insert(n.name);
  for (const GraphDefNode& n : graph.nodes)
    for (const std::string& input : n.inputs) {
      bool control = input.starts_with('^');
      Source s = source_of(control ? input.substr(1) : input);
      if (!names.contains(s.node)) continue;  // of a damaged file
      out += fmt::format("  {} -> {}{};\n", quoted(s.node), quoted(n.name),
                         control    ? " [style=dotted]"
                         : s.output ? fmt::format(" [label=\"{}\"]", s.output)
                                    : "");
    }
  return out + "}\n";
}

}  // namespace hlo
