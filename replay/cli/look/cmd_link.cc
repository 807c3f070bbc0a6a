// link: the modules of one run as one graph, and as one module.
#include <algorithm>
#include <filesystem>
#include <map>

#include "dump/graph.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/compare/graphdef.h"
#include "replay/compare/link.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/run.h"
#include "viewer/pages.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

const char* const kByHand = "given by --edge";

std::vector<LinkModule> read_modules(const LinkArgs& a) {
  auto universe = std::make_shared<Universe>();
  std::vector<LinkModule> out;
  auto add = [&](const std::string& spec) {
    Loaded l;
    auto m = load_verified(spec, true, &l, {.universe = universe});
    std::string label = m->name().substr(0, m->name().find("__XlaCompiledKernel"));
    out.push_back({label, std::move(m), l.arguments, l.result});
  };
  for (const std::string& f : a.files) {
    if (!names_modules(f)) {
      Input in = read_input(f);
      size_t count = in.chosen ? 1 : read_parts(&in);
      for (size_t k = 0; k < count; ++k) add(count == 1 ? f : fmt::format("{}@{}", f, k + 1));
      continue;
    }
    const std::vector<Recording> all = select_modules(f);
    for (const Recording& r : all) {
      std::string file = r.rows.empty() ? "" : r.text_file(0);
      if (file.empty()) continue;
      try {
        add(confined_path(r.folder, file));
      } catch (const Failure& e) {
        // A module that cannot be read does not keep the others of a run from being linked.
        if (all.size() == 1 || interrupted()) throw;
        fmt::print(stderr, "warning: left out: {}\n", e.what());
      }
    }
  }
  // Labels must tell modules apart.
  std::map<std::string, size_t> count, seen;
  for (const LinkModule& m : out) ++count[m.label];
  for (LinkModule& m : out)
    if (count[m.label] > 1) m.label = fmt::format("{}#{}", m.label, ++seen[m.label]);
  return out;
}

// `A.o3=B.p5`.
LinkEdge wanted_edge(const std::string& text, const std::vector<LinkModule>& modules, const Links& links) {
  size_t eq = text.find('=');
  auto side = [&](const std::string& part, char kind, size_t* leaf) {
    size_t dot = part.rfind('.');
    if (dot == std::string::npos || dot + 2 >= part.size() || part[dot + 1] != kind ||
        part.find_first_not_of("0123456789", dot + 2) != std::string::npos)
      fail(FailureKind::kUsage, "--edge is written A.oI=B.pJ, not '{}'", text);
    std::string name = part.substr(0, dot);
    *leaf = static_cast<size_t>(atoll(part.c_str() + dot + 2));
    for (size_t k = 0; k < modules.size(); ++k)
      if (modules[k].label == name || std::to_string(k) == name) {
        const auto& leaves = kind == 'o' ? links.leaves[k].results : links.leaves[k].parameters;
        if (*leaf >= leaves.size())
          fail(FailureKind::kUsage, "{} has {} {}", name, leaves.size(), kind == 'o' ? "results" : "parameters");
        return k;
      }
    fail(FailureKind::kUsage, "no module is called '{}'", name);
  };
  if (eq == std::string::npos) fail(FailureKind::kUsage, "--edge is written A.oI=B.pJ, not '{}'", text);
  LinkEdge e;
  e.from = side(text.substr(0, eq), 'o', &e.result);
  e.to = side(text.substr(eq + 1), 'p', &e.parameter);
  e.confidence = 1, e.evidence = {kByHand};
  return e;
}

void draw(const LinkArgs& a, const std::string& dot, const std::string& title,
          const std::vector<std::vector<std::string>>& rows, const Json& json) {
  auto ends = [&](const char* e) { return a.out.ends_with(e); };
  if (ends(".dot")) {
    write_output_file(a.out, dot, a.force);
  } else if (ends(".svg") || ends(".png")) {
    write_output_file(a.out, render_dot(dot, a.out.substr(a.out.size() - 3)), a.force);
  } else if (ends(".html")) {
    write_output_file(a.out, link_page(title, render_dot(dot, "svg"), rows), a.force);
  } else if (ends(".json")) {
    write_output_file(a.out, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", a.force);
  } else {
    fail(FailureKind::kUsage, "{}: the ending decides the format: .dot, .svg, .png, .html, .json", a.out);
  }
}

int link_clusters(const LinkArgs& a, const GraphDef& graph) {
  if (a.graph.empty()) fail(FailureKind::kUsage, "link takes modules or folders, or --graph");
  std::vector<ClusterEdge> edges = cluster_edges(graph);
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const ClusterEdge& e : edges) {
    auto number = [](int64_t n) { return n < 0 ? std::string() : std::to_string(n); };
    list.push_back({{"from", e.from}, {"output", e.output}, {"to", e.to}, {"input", e.input}, {"tensor", e.tensor}});
    rows.push_back({e.from, number(e.output), e.to, number(e.input), "exact", e.tensor});
    if (!a.json) fmt::print("{} {} → {} {}   {}\n", e.from, number(e.output), e.to, number(e.input), e.tensor);
  }
  Json json{{"nodes", graph.nodes.size()}, {"cluster_edges", list}, {"problems", graph.problems}};
  if (a.json)
    print_json(complete_links(json));
  else
    fmt::print("{} nodes, {} edges between clusters\n", graph.nodes.size(), edges.size());
  if (!a.out.empty()) draw(a, graphdef_dot(graph), a.graph, rows, json);
  return kYes;
}

Json modules_json(const std::vector<LinkModule>& modules, const Links& links) {
  const Universe& u = modules[0].module->u();
  Json list = Json::array();
  for (size_t k = 0; k < modules.size(); ++k) {
    Json params = Json::array(), results = Json::array();
    for (size_t j = 0; j < links.leaves[k].parameters.size(); ++j)
      params.push_back({{"shape", u.shape_text_plain(links.leaves[k].parameters[j].shape)},
                        {"name", links.leaves[k].parameters[j].name},
                        {"role", links.leaves[k].roles[j]}});
    for (const LinkLeaf& r : links.leaves[k].results)
      results.push_back({{"shape", u.shape_text_plain(r.shape)}, {"name", r.name}});
    list.push_back({{"name", modules[k].label}, {"parameters", params}, {"results", results}});
  }
  return list;
}

// Rows are those of a page.
Json edges_json(const LinkArgs& a, const std::vector<LinkModule>& modules, const Links& links,
                std::vector<std::vector<std::string>>* rows) {
  const Universe& u = modules[0].module->u();
  Json edges = Json::array();
  for (const LinkEdge& e : links.edges) {
    if (e.confidence < a.least) continue;
    edges.push_back({{"from", modules[e.from].label},
                     {"result", e.result},
                     {"to", modules[e.to].label},
                     {"parameter", e.parameter},
                     {"confidence", e.confidence},
                     {"ambiguous", e.ambiguous},
                     {"loop", e.loop},
                     {"evidence", e.evidence}});
    rows->push_back({modules[e.from].label,
                     fmt::format("o{} {}", e.result, leaf_text(links.leaves[e.from].results[e.result], u)),
                     modules[e.to].label,
                     fmt::format("p{} {}", e.parameter, leaf_text(links.leaves[e.to].parameters[e.parameter], u)),
                     fmt::format("{:.0f} %{}{}", 100 * e.confidence, e.ambiguous ? ", ambiguous" : "",
                                 e.loop ? ", from step to step" : ""),
                     fmt::format("{}", fmt::join(e.evidence, "; "))});
  }
  return edges;
}

// Writes one module that runs all; a line about it.
std::string emit_joined(const LinkArgs& a, const std::vector<LinkModule>& modules, const Links& links, Json& json) {
  std::vector<LinkEdge> chosen;
  for (const LinkEdge& e : links.edges) {
    bool by_hand = std::find(e.evidence.begin(), e.evidence.end(), kByHand) != e.evidence.end();
    if (e.loop || (e.from >= e.to && !by_hand)) continue;
    auto earlier = std::find_if(chosen.begin(), chosen.end(),
                                [&](const LinkEdge& c) { return c.to == e.to && c.parameter == e.parameter; });
    if (e.confidence > 0.5 && earlier == chosen.end()) chosen.push_back(e);
  }
  auto m = stitched(modules, links, chosen, "linked");
  std::vector<VerifyError> errors = verify_module(*m, 1);
  if (!errors.empty()) fail(FailureKind::kInternal, "the joined module does not verify: {}", errors[0].message);
  write_output_file(a.emit, lossless_text(*m), a.force);
  json["emitted"] = {{"file", a.emit}, {"links", chosen.size()}, {"parameters", m->comp(m->entry()).params.size()}};
  return fmt::format("{}: {} links, {} parameters left", a.emit, chosen.size(), m->comp(m->entry()).params.size());
}

void print_modules(const std::vector<LinkModule>& modules, const Links& links) {
  for (size_t k = 0; k < modules.size(); ++k) {
    std::map<std::string, size_t> roles;
    for (const std::string& r : links.leaves[k].roles) ++roles[r];
    std::vector<std::string> words;
    for (const auto& [role, n] : roles) words.push_back(fmt::format("{} {}", n, role));
    fmt::print("{:>3} {}: parameters {}; {} results\n", k, modules[k].label,
               words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", ")), links.leaves[k].results.size());
  }
}

// Links that lie side by side make one line.
void print_links(const LinkArgs& a, const std::vector<LinkModule>& modules, const Links& links,
                 const std::string& emitted) {
  const Universe& u = modules[0].module->u();
  size_t sure = 0, ambiguous = 0;
  std::vector<LinkEdge> shown;
  for (const LinkEdge& e : links.edges)
    if (e.confidence >= a.least) shown.push_back(e);
  std::stable_sort(shown.begin(), shown.end(), [](const LinkEdge& x, const LinkEdge& y) {
    return std::tuple(x.confidence <= 0.5, x.to, x.from, x.parameter) <
           std::tuple(y.confidence <= 0.5, y.to, y.from, y.parameter);
  });
  for (size_t k = 0; k < shown.size();) {
    const LinkEdge& e = shown[k];
    size_t end = k + 1;
    double worst = e.confidence;
    while (end < shown.size() && e.confidence > 0.5 && shown[end].confidence > 0.5 && shown[end].from == e.from &&
           shown[end].to == e.to && shown[end].result == e.result + (end - k) &&
           shown[end].parameter == e.parameter + (end - k))
      worst = std::min(worst, shown[end++].confidence);
    size_t n = end - k;
    sure += e.confidence > 0.5 ? n : 0, ambiguous += e.ambiguous;
    std::string what = n == 1
                           ? fmt::format("{} o{} → {} p{}   {}", modules[e.from].label, e.result, modules[e.to].label,
                                         e.parameter, leaf_text(links.leaves[e.to].parameters[e.parameter], u))
                           : fmt::format("{} o{}…o{} → {} p{}…p{}   {} values", modules[e.from].label, e.result,
                                         e.result + n - 1, modules[e.to].label, e.parameter, e.parameter + n - 1, n);
    fmt::print("{:>4.0f} %{}{}  {}{}\n", 100 * worst, e.ambiguous ? " ambiguous" : "",
               e.loop ? " from step to step" : "", what,
               e.evidence.empty() ? "" : fmt::format("   ({})", fmt::join(e.evidence, "; ")));
    k = end;
  }
  for (const std::string& n : links.notes) fmt::print("note: {}\n", n);
  if (!emitted.empty()) fmt::print("{}\n", emitted);
  fmt::print("{} modules, {} links, {} possible, of these {} ambiguous\n", modules.size(), sure, shown.size() - sure,
             ambiguous);
}

}  // namespace

int cmd_link(const LinkArgs& a) {
  std::vector<std::string> inputs = a.files;
  inputs.push_back(a.graph);
  for (const std::string& file : {a.out, a.emit}) check_output_file(file, a.force, inputs);
  GraphDef graph;
  if (!a.graph.empty()) {
    graph = parse_graphdef(read_file(a.graph), a.graph);
    for (const std::string& p : graph.problems) fmt::print(stderr, "warning: {}\n", p);
  }
  if (a.files.empty()) return link_clusters(a, graph);
  std::vector<LinkModule> modules = read_modules(a);
  if (modules.size() < 2) fail(FailureKind::kUsage, "link takes two modules or more; there is {}", modules.size());
  Links links = link_modules(modules, a.graph.empty() ? nullptr : &graph);
  std::vector<LinkEdge> said;
  for (const std::string& text : a.edges) said.push_back(wanted_edge(text, modules, links));
  // What a user says stands in the place of what was found for that parameter.
  for (const LinkEdge& s : said)
    std::erase_if(links.edges,
                  [&](const LinkEdge& e) { return !e.loop && e.to == s.to && e.parameter == s.parameter; });
  links.edges.insert(links.edges.end(), said.begin(), said.end());
  Json json;
  json["modules"] = modules_json(modules, links);
  std::vector<std::vector<std::string>> rows;
  json["edges"] = edges_json(a, modules, links, &rows);
  json["notes"] = links.notes;
  std::string emitted;
  if (!a.emit.empty()) emitted = emit_joined(a, modules, links, json);
  if (!a.out.empty()) draw(a, link_dot(modules, links, a.least), "modules of one run", rows, json);
  if (a.json) {
    print_json(complete_links(json));
    return kYes;
  }
  print_modules(modules, links);
  print_links(a, modules, links, emitted);
  return kYes;
}

}  // namespace hlo
