// Rows of launches that a graph's kernels are, and what of the others each call launches.
#include <algorithm>
#include <map>
#include <tuple>

#include "replay/report/measured/launches.h"

namespace hlo {
namespace {

using CallKind = Launch::Kind;

// A row of launches that a row of nodes may be: places in the sequence, one a node.
struct Fit {
  size_t sequence = 0;
  std::vector<size_t> places;
  bool operator<(const Fit& o) const { return std::tie(sequence, places) < std::tie(o.sequence, o.places); }
  bool operator==(const Fit& o) const { return sequence == o.sequence && places == o.places; }
  bool overlaps(const Fit& o) const {
    return sequence == o.sequence && places.front() <= o.places.back() && o.places.front() <= places.back();
  }
};

// Compiled kernels in a row, and where the module has such a row.
struct GraphSegment {
  std::vector<size_t> nodes;  // places in LaunchGraph::nodes
  std::vector<Fit> fits;
};

// Whether a call launches these and nothing else.
bool launches_these(const Launch& call, const std::vector<KernelKind>& k, size_t from, size_t to) {
  const size_t n = to - from;
  auto count = [&](KernelKind kind) {
    return static_cast<size_t>(
        std::count(k.begin() + static_cast<ptrdiff_t>(from), k.begin() + static_cast<ptrdiff_t>(to), kind));
  };
  switch (call.kind) {
    case CallKind::kCopy:
      return n == 1 && k[from] == KernelKind::kCopy;
    case CallKind::kMemset:
      return n == 1 && k[from] == KernelKind::kMemset;
    case CallKind::kMessage:
      return n >= 1 && count(KernelKind::kMessage) == n;
    case CallKind::kProduct: {
      size_t at = from;
      while (at < to && k[at] == KernelKind::kMemset) ++at;
      return at < to && k[at] == KernelKind::kLibrary && count(KernelKind::kAfterwork) == to - at - 1;
    }
    case CallKind::kLibrary:
      return n >= 1 && count(KernelKind::kLibrary) >= 1 && k[to - 1] != KernelKind::kMemset &&
             k[from] != KernelKind::kAfterwork && count(KernelKind::kMessage) + count(KernelKind::kCompiled) == 0;
    case CallKind::kCall:
      return n >= 1 && count(KernelKind::kLibrary) + count(KernelKind::kCompiled) + count(KernelKind::kMessage) >= 1;
    default:
      return false;
  }
}

// Nodes in a row shared out among calls in a row, in all ways that there are.
struct Gap {
  std::vector<size_t> nodes;  // places in LaunchGraph::nodes
  std::vector<Launch> calls;
  bool open_front = false, open_back = false;  // the graph begins or ends here: calls may lie outside
};

class GapMatcher {
 public:
  GapMatcher(const Gap& gap, const std::vector<KernelKind>& kinds) : gap_(gap), kinds_(kinds) {}

  // Places in gap.calls that each node may be of; all empty where nothing fits.
  std::vector<std::vector<size_t>> run(bool copies_optional) {
    copies_optional_ = copies_optional;
    const size_t n = kinds_.size(), m = gap_.calls.size();
    auto table = [&] { return std::vector(m + 1, std::vector<char>(n + 1, 0)); };
    auto front = table(), back = table();
    front[0][0] = back[m][n] = 1;
    for (size_t c = 0; c < m; ++c)
      for (size_t at = 0; at <= n; ++at)
        for (size_t to = at; front[c][at] && to <= n; ++to)
          if (takes(c, at, to)) front[c + 1][to] = 1;
    for (size_t c = m; c-- > 0;)
      for (size_t at = 0; at <= n; ++at)
        for (size_t to = at; !back[c][at] && to <= n; ++to)
          if (back[c + 1][to] && takes(c, at, to)) back[c][at] = 1;
    std::vector<std::vector<size_t>> out(n);
    for (size_t c = 0; c < m; ++c)
      for (size_t at = 0; at < n; ++at)
        for (size_t to = at + 1; front[c][at] && to <= n; ++to)
          if (back[c + 1][to] && takes(c, at, to))
            for (size_t k = at; k < to; ++k)
              if (out[k].empty() || out[k].back() != c) out[k].push_back(c);
    return out;
  }

 private:
  bool takes(size_t call, size_t at, size_t to) const {
    if (at < to) return launches_these(gap_.calls[call], kinds_, at, to);
    return (gap_.open_front && at == 0) || (gap_.open_back && at == kinds_.size()) ||
           (copies_optional_ && gap_.calls[call].kind == CallKind::kCopy);
  }
  const Gap& gap_;
  const std::vector<KernelKind>& kinds_;
  bool copies_optional_ = false;
};

class GraphMatcher {
 public:
  GraphMatcher(const ModuleLaunches& launches, const LaunchGraph& graph, const std::unordered_set<InstId>& plain)
      : launches_(launches), graph_(graph), plain_(plain) {
    for (size_t k = 0; k < graph.nodes.size(); ++k)
      (launches.has(graph.nodes[k].kernel) ? named_ : others_).push_back(k);
    segments();
    keep_order();
  }

  std::vector<GraphSegment>& found() { return segments_; }
  const LaunchGraph& graph() const { return graph_; }

  // Of several rows those that have the calls for the other nodes.
  void leave_what_fits() {
    if (segments_.size() != 1 || segments_[0].fits.size() < 2) return;
    std::vector<Fit> left;
    for (const Fit& fit : segments_[0].fits) {
      auto seen = others_of(fit);
      if (std::all_of(seen.begin(), seen.end(), [](const auto& s) { return !s.second.insts.empty(); }))
        left.push_back(fit);
    }
    if (!left.empty()) segments_[0].fits = std::move(left);
  }

  std::vector<NodeMatch> matches() const {
    std::vector<NodeMatch> out(graph_.nodes.size());
    for (const GraphSegment& s : segments_)
      for (size_t k = 0; k < s.nodes.size(); ++k) {
        NodeMatch& match = out[s.nodes[k]];
        for (const Fit& fit : s.fits) put(&match, launches_.sequences()[fit.sequence][fit.places[k]].inst);
        if (s.fits.empty()) match.why = "the module launches no such kernels in that order";
      }
    for (size_t k : others_) out[k].why = "no call of that kind is left where it ran";
    if (segments_.size() != 1) return out;
    for (const Fit& fit : segments_[0].fits)
      for (const auto& [node, match] : others_of(fit))
        for (InstId i : match.insts) put(&out[node], i);
    return out;
  }

 private:
  static void put(NodeMatch* match, InstId inst) {
    if (std::find(match->insts.begin(), match->insts.end(), inst) == match->insts.end()) match->insts.push_back(inst);
  }

  // The longest row from the first node that is left, and so on: a graph with a loop inside has several.
  void segments() {
    for (size_t at = 0; at < named_.size();) {
      GraphSegment best;
      for (size_t s = 0; s < launches_.sequences().size(); ++s)
        for (size_t start = 0; start < launches_.sequences()[s].size(); ++start) {
          Fit fit{s, walk(s, start, at)};
          if (fit.places.empty() || fit.places.size() < best.nodes.size()) continue;
          if (fit.places.size() > best.nodes.size()) {
            best.fits.clear();
            best.nodes.assign(named_.begin() + static_cast<ptrdiff_t>(at),
                              named_.begin() + static_cast<ptrdiff_t>(at + fit.places.size()));
          }
          best.fits.push_back(std::move(fit));
        }
      if (best.nodes.empty()) best.nodes.push_back(named_[at]);
      prefer_graphs(&best.fits);
      at += best.nodes.size();
      segments_.push_back(std::move(best));
    }
  }

  // Rows of one sequence stand in it as the graph launches them, or the graph is of no such module.
  void keep_order() {
    std::map<size_t, size_t> ends;  // of sequences: how far they are launched
    for (GraphSegment& s : segments_) {
      std::vector<Fit> left;
      for (const Fit& fit : s.fits)
        if (!ends.contains(fit.sequence) || ends[fit.sequence] < fit.places.front()) left.push_back(fit);
      if (left.empty() && !s.fits.empty()) {
        for (GraphSegment& none : segments_) none.fits.clear();
        return;
      }
      s.fits = std::move(left);
      if (s.fits.size() == 1) ends[s.fits[0].sequence] = s.fits[0].places.back();
    }
  }

  // What is seen to run by itself is not in a graph, if another row would do.
  void prefer_graphs(std::vector<Fit>* fits) const {
    auto runs_plain = [&](const Fit& fit) {
      return std::any_of(fit.places.begin(), fit.places.end(),
                         [&](size_t p) { return plain_.contains(launches_.sequences()[fit.sequence][p].inst); });
    };
    if (!std::all_of(fits->begin(), fits->end(), runs_plain)) std::erase_if(*fits, runs_plain);
  }

  // Nodes from `at` on as launches from `start` on; calls and copies between are passed over.
  std::vector<size_t> walk(size_t s, size_t start, size_t at) const {
    const std::vector<Launch>& row = launches_.sequences()[s];
    std::vector<size_t> out;
    if (row[start].kind != CallKind::kKernel) return out;
    for (size_t p = start; p < row.size() && at < named_.size(); ++p) {
      if (row[p].kind == CallKind::kHolder) break;
      if (row[p].kind != CallKind::kKernel) continue;
      if (!launches_.runs(row[p], graph_.nodes[named_[at]].kernel)) {
        if (row[p].may_copy && p > start) continue;
        break;
      }
      out.push_back(p), ++at;
      while (row[p].repeats && at < named_.size() && launches_.runs(row[p], graph_.nodes[named_[at]].kernel))
        out.push_back(p), ++at;
    }
    return out;
  }

  // Calls and copies of a row between two of its places, as far as the graph may have them.
  std::vector<Launch> calls(size_t s, size_t after, size_t before) const {
    std::vector<Launch> out;
    const std::vector<Launch>& row = launches_.sequences()[s];
    for (size_t p = after; p < before; ++p) {
      out.push_back(row[p]);
      if (row[p].may_copy) out.back().kind = CallKind::kCopy;
    }
    return out;
  }

  Gap gap(const Fit& fit, size_t number) const {
    const std::vector<Launch>& row = launches_.sequences()[fit.sequence];
    auto ends = [&](size_t p) {
      return (row[p].kind == CallKind::kKernel && !row[p].may_copy) || row[p].kind == CallKind::kHolder ||
             plain_.contains(row[p].inst);
    };
    Gap out;
    if (number == 0) {
      size_t from = fit.places.front();
      while (from > 0 && !ends(from - 1)) --from;
      out.calls = calls(fit.sequence, from, fit.places.front()), out.open_front = true;
    } else if (number == fit.places.size()) {
      size_t to = fit.places.back() + 1;
      while (to < row.size() && !ends(to)) ++to;
      out.calls = calls(fit.sequence, fit.places.back() + 1, to), out.open_back = true;
    } else if (fit.places[number - 1] < fit.places[number]) {
      out.calls = calls(fit.sequence, fit.places[number - 1] + 1, fit.places[number]);
    }
    return out;
  }

  // One behind the other, as they were made: then what else ran is where its time says.
  bool in_a_row() const {
    for (size_t k = 1; k < named_.size(); ++k)
      if (graph_.nodes[named_[k]].begin < graph_.nodes[named_[k - 1]].begin) return false;
    return true;
  }

  std::vector<std::pair<size_t, NodeMatch>> others_of(const Fit& fit) const {
    std::vector<Gap> gaps;
    for (size_t k = 0; k <= fit.places.size(); ++k) gaps.push_back(gap(fit, k));
    const bool by_time = in_a_row();
    std::vector<size_t> order = others_;
    if (by_time)
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return graph_.nodes[a].begin < graph_.nodes[b].begin; });
    else
      merge(&gaps);
    for (size_t node : order) {
      auto behind = std::find_if(named_.begin(), named_.end(), [&](size_t n) {
        return by_time ? graph_.nodes[n].begin > graph_.nodes[node].begin : graph_.nodes[n].id > graph_.nodes[node].id;
      });
      gaps[by_time ? static_cast<size_t>(behind - named_.begin()) : 0].nodes.push_back(node);
    }
    std::vector<std::pair<size_t, NodeMatch>> out;
    for (const Gap& g : gaps) share_out(g, &out);
    return out;
  }

  // On streams beside each other only the order of making is left: one gap of all calls.
  static void merge(std::vector<Gap>* gaps) {
    Gap all;
    all.open_front = all.open_back = true;
    for (const Gap& g : *gaps) all.calls.insert(all.calls.end(), g.calls.begin(), g.calls.end());
    gaps->assign(1, all);
  }

  void share_out(const Gap& g, std::vector<std::pair<size_t, NodeMatch>>* out) const {
    if (g.nodes.empty()) return;
    std::vector<KernelKind> kinds;
    for (size_t n : g.nodes) kinds.push_back(kernel_kind(graph_.nodes[n].kernel));
    auto shares = GapMatcher(g, kinds).run(false);
    // A copy that goes nowhere is left out, and which are is the compiler's affair.
    if (shares[0].empty()) shares = GapMatcher(g, kinds).run(true);
    for (size_t k = 0; k < g.nodes.size(); ++k) {
      NodeMatch match;
      for (size_t c : shares[k]) put(&match, g.calls[c].inst);
      out->emplace_back(g.nodes[k], std::move(match));
    }
  }

  const ModuleLaunches& launches_;
  const LaunchGraph& graph_;
  const std::unordered_set<InstId>& plain_;
  std::vector<size_t> named_, others_;
  std::vector<GraphSegment> segments_;
};

// Rows that only one graph can have are no other graph's; as many graphs as rows have them in the order of their
// numbers.
void settle_among_graphs(std::vector<GraphMatcher>* all) {
  struct Claim {
    int64_t number;
    GraphSegment* segment;
  };
  std::vector<Claim> open;
  std::vector<std::pair<int64_t, Fit>> taken;
  for (GraphMatcher& g : *all)
    for (GraphSegment& s : g.found()) {
      if (s.fits.size() == 1) taken.emplace_back(g.graph().number, s.fits[0]);
      if (s.fits.size() > 1) open.push_back({g.graph().number, &s});
    }
  for (bool more = true; more;) {
    more = false;
    for (Claim& c : open) {
      if (c.segment->fits.size() < 2) continue;
      std::vector<Fit> left;
      for (const Fit& f : c.segment->fits)
        if (std::none_of(taken.begin(), taken.end(),
                         [&](const auto& t) { return t.first != c.number && t.second.overlaps(f); }))
          left.push_back(f);
      if (left.empty() || left.size() == c.segment->fits.size()) continue;
      c.segment->fits = std::move(left), more = true;
      if (c.segment->fits.size() == 1) taken.emplace_back(c.number, c.segment->fits[0]);
    }
  }
  std::map<std::vector<Fit>, std::map<int64_t, std::vector<GraphSegment*>>> alike;
  for (const Claim& c : open)
    if (c.segment->fits.size() > 1) alike[c.segment->fits][c.number].push_back(c.segment);
  for (auto& [fits, graphs] : alike) {
    bool apart = graphs.size() == fits.size();
    for (size_t k = 1; k < fits.size(); ++k)
      apart = apart && fits[k].sequence == fits[0].sequence && !fits[k].overlaps(fits[k - 1]);
    if (!apart) continue;
    size_t at = 0;
    for (auto& [number, segments] : graphs) {
      for (GraphSegment* s : segments) s->fits = {fits[at]};
      ++at;
    }
  }
}

}  // namespace

std::vector<std::vector<NodeMatch>> match_graphs(const ModuleLaunches& launches, const std::vector<LaunchGraph>& graphs,
                                                 const std::unordered_set<InstId>& plain) {
  std::vector<GraphMatcher> all;
  all.reserve(graphs.size());
  for (const LaunchGraph& g : graphs) all.emplace_back(launches, g, plain);
  for (GraphMatcher& g : all) g.leave_what_fits();
  settle_among_graphs(&all);
  std::vector<std::vector<NodeMatch>> out;
  for (const GraphMatcher& g : all) out.push_back(g.matches());
  return out;
}

}  // namespace hlo
