#include "replay/report/measured/graph_spans.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace hlo {
namespace {

constexpr std::string_view kBuffer = "command_buffer";

// Of `command_buffer_16` 16; 0 where there is none.
int64_t buffer_number(std::string_view buffer) {
  const size_t from = buffer.find_last_not_of("0123456789") + 1;
  int64_t out = 0;
  for (char c : buffer.substr(from, 18)) out = out * 10 + (c - '0');
  return out;
}

// A graph of a device: its spans by begin, and in which launch and of which node each is.
struct SpansOfGraph {
  int64_t number = 0;
  std::vector<size_t> spans;  // places in the list that was given
  std::vector<int64_t> launch, node;
  std::string why;  // launches cannot be told apart
};

}  // namespace

bool of_graph(const Timeline& t, const Span& s) { return s.graph >= 0 || t.text(s.op).starts_with(kBuffer); }

std::vector<NodeMatch> match_spans(const Timeline& t, const std::vector<PlacedSpan>& spans,
                                   const ModuleLaunches& launches, const std::unordered_set<InstId>& plain) {
  auto span = [&](size_t k) -> const Span& { return t.tracks[spans[k].track].spans[spans[k].span]; };
  std::map<std::tuple<std::string, uint32_t, int64_t>, SpansOfGraph> all;
  for (size_t k = 0; k < spans.size(); ++k)
    all[{t.tracks[spans[k].track].group, span(k).op, span(k).graph}].spans.push_back(k);
  std::vector<LaunchGraph> graphs;
  for (auto& [key, g] : all) {
    g.number = buffer_number(t.text(std::get<1>(key)));
    std::stable_sort(g.spans.begin(), g.spans.end(), [&](size_t a, size_t b) { return span(a).begin < span(b).begin; });
    std::set<int64_t> seen;
    std::map<int64_t, int64_t> places;  // of launches: nodes so far
    int64_t launch = 0;
    for (size_t k : g.spans) {
      const Span& s = span(k);
      if (s.launch < 0 && s.node < 0) g.why = "its spans name neither the graph's launch nor its node";
      if (s.launch < 0 && !seen.insert(s.node).second) seen = {s.node}, ++launch;
      g.launch.push_back(s.launch < 0 ? launch : s.launch);
      g.node.push_back(s.node < 0 ? places[g.launch.back()]++ : s.node);
    }
    // The launch that shows most nodes stands for all: the first or last of a profile may be cut.
    std::map<int64_t, size_t> sizes;
    for (int64_t l : g.launch) ++sizes[l];
    const auto whole =
        std::max_element(sizes.begin(), sizes.end(), [](auto& a, auto& b) { return a.second < b.second; });
    LaunchGraph graph{g.number, {}};
    std::set<int64_t> known;
    for (size_t k = 0; k < g.spans.size(); ++k)
      if (g.launch[k] == whole->first && known.insert(g.node[k]).second)
        graph.nodes.push_back({g.node[k], span(g.spans[k]).begin, std::string(t.text(span(g.spans[k]).name))});
    std::stable_sort(graph.nodes.begin(), graph.nodes.end(),
                     [](const GraphNode& a, const GraphNode& b) { return a.id < b.id; });
    graphs.push_back(std::move(graph));
  }
  const std::vector<std::vector<NodeMatch>> matches = match_graphs(launches, graphs, plain);
  std::vector<NodeMatch> out(spans.size());
  size_t at = 0;
  for (auto& [key, g] : all) {
    const LaunchGraph& graph = graphs[at];
    const std::vector<NodeMatch>& match = matches[at++];
    for (size_t k = 0; k < g.spans.size(); ++k) {
      NodeMatch& to = out[g.spans[k]];
      const auto node = std::lower_bound(graph.nodes.begin(), graph.nodes.end(), g.node[k],
                                         [](const GraphNode& n, int64_t id) { return n.id < id; });
      if (!g.why.empty())
        to.why = g.why;
      else if (node == graph.nodes.end() || node->id != g.node[k] || node->kernel != t.text(span(g.spans[k]).name))
        to.why = "its launches of one graph differ";
      else
        to = match[static_cast<size_t>(node - graph.nodes.begin())];
    }
  }
  return out;
}

}  // namespace hlo
