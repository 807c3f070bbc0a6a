#include "viewer/layout/layered.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "viewer/layout/layered_steps.h"

namespace hlo {
namespace {

constexpr float kRowGap = 26, kMostRowGap = 70, kBetween = 22, kBetweenWays = 9, kWayWidth = 2, kHollow = 90;
constexpr float kLeastWidth = 1300, kWideGroup = 240;

// The next layer at or behind one that has room, by chains of those that have none.
struct Rooms {
  std::vector<float> used;
  std::vector<uint32_t> next;
  float most;
  uint32_t find(uint32_t at) {
    while (next.size() <= at) next.push_back(static_cast<uint32_t>(next.size())), used.push_back(0);
    uint32_t end = at;
    while (next[end] != end) {
      end = next[end];
      while (next.size() <= end) next.push_back(static_cast<uint32_t>(next.size())), used.push_back(0);
    }
    while (next[at] != end) at = std::exchange(next[at], end);
    return end;
  }
  void take(uint32_t layer, float width) {
    find(layer);
    used[layer] += width + kBetween;
    if (used[layer] > most && next[layer] == layer) next[layer] = layer + 1;
  }
};

}  // namespace

void Layering::layers() {
  const std::vector<LevelNode>& nodes = level.nodes;
  size_t n = nodes.size();
  std::vector<std::vector<uint32_t>> in(n), out(n);
  for (const LevelEdge& e : level.edges) in[e.to].push_back(e.from), out[e.from].push_back(e.to);
  double area = 0;
  float widest = 0;
  bool tops = false;
  for (const LevelNode& v : nodes) {
    area += (v.w + kBetween) * (v.h + kRowGap);
    widest = std::max(widest, v.w);
    tops |= v.pin == LevelNode::Pin::kTop;
  }
  Rooms rooms{{}, {}, std::max({kLeastWidth, widest * 1.2f, static_cast<float>(std::sqrt(area) * 1.3)})};
  layer.assign(n, 0);
  int32_t last = 0;
  for (size_t k = 0; k < n; ++k) {
    if (nodes[k].pin != LevelNode::Pin::kNone) continue;
    int32_t least = tops ? 1 : 0;
    for (uint32_t from : in[k]) least = std::max(least, layer[from] + 1);
    bool stays = nodes[k].wanted_layer >= 0;
    least = std::max(least, nodes[k].wanted_layer);
    layer[k] = stays ? least : static_cast<int32_t>(rooms.find(static_cast<uint32_t>(least)));
    rooms.take(static_cast<uint32_t>(layer[k]), nodes[k].w);
    last = std::max(last, layer[k]);
  }
  // Down towards its users goes what has more of them than it needs itself.
  for (size_t k = n; k-- > 0;) {
    if (nodes[k].pin != LevelNode::Pin::kNone || nodes[k].wanted_layer >= 0 || out[k].empty() ||
        out[k].size() < in[k].size())
      continue;
    int32_t low = INT32_MAX;
    for (uint32_t to : out[k])
      if (nodes[to].pin == LevelNode::Pin::kNone) low = std::min(low, layer[to] - 1);
    if (low == INT32_MAX || low <= layer[k]) continue;
    while (low > layer[k] && rooms.used[static_cast<size_t>(low)] + nodes[k].w > rooms.most * 1.2f) --low;
    rooms.used[static_cast<size_t>(layer[k])] -= nodes[k].w + kBetween;
    rooms.used[static_cast<size_t>(low)] += nodes[k].w + kBetween;
    layer[k] = low;
  }
  for (size_t k = 0; k < n; ++k)
    if (nodes[k].pin == LevelNode::Pin::kBottom) layer[k] = last + 1;
  squeeze();
}

// Layers in which nothing stands go away.
void Layering::squeeze() {
  int32_t last = 0;
  for (int32_t l : layer) last = std::max(last, l);
  std::vector<int32_t> number(static_cast<size_t>(last) + 1, 0);
  for (int32_t l : layer) number[static_cast<size_t>(l)] = 1;
  int32_t next = 0;
  for (int32_t& there : number) there = there ? next++ : 0;
  for (int32_t& l : layer) l = number[static_cast<size_t>(l)];
  rows = static_cast<size_t>(next);
}

// Edges over several layers pass through ways; those of one value share them.
void Layering::ways() {
  std::vector<LevelEdge>& edges = level.edges;
  std::vector<uint32_t> order(edges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const LevelEdge &x = edges[a], &y = edges[b];
    if (x.from != y.from) return x.from < y.from;
    if (x.value != y.value) return x.value < y.value;
    return layer[x.to] < layer[y.to];
  });
  size_t most = 6 * (level.nodes.size() + edges.size()) + 2000;
  auto span = [&](const LevelEdge& e) { return layer[e.to] - layer[e.from]; };
  int32_t longest = static_cast<int32_t>(rows) + 1;
  for (;; longest /= 2) {
    size_t sum = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const LevelEdge& e = edges[order[k]];
      bool last = k + 1 == order.size() || edges[order[k + 1]].from != e.from || edges[order[k + 1]].value != e.value ||
                  span(edges[order[k + 1]]) > longest;
      if (last && span(e) <= longest) sum += static_cast<size_t>(std::max(0, span(e) - 1));
    }
    if (sum <= most || longest <= 1) break;
  }
  way_of.assign(edges.size(), 0);
  way_end.assign(edges.size(), 0);
  for (size_t k = 0; k < order.size(); ++k) {
    LevelEdge& e = edges[order[k]];
    if (span(e) > longest || span(e) < 1) {
      e.stub = true;
      continue;
    }
    bool more = k > 0 && edges[order[k - 1]].from == e.from && edges[order[k - 1]].value == e.value &&
                !edges[order[k - 1]].stub;
    uint32_t first = more ? way_of[order[k - 1]] : static_cast<uint32_t>(layer.size());
    uint32_t end = more ? way_end[order[k - 1]] : first;
    for (auto l = layer[e.from] + 1 + static_cast<int32_t>(end - first); l < layer[e.to]; ++l, ++end) {
      uint32_t before = end == first ? e.from : end - 1;
      layer.push_back(l);
      links.push_back(
          {before, end, before == e.from ? e.from_at : kWayWidth / 2, kWayWidth / 2, before == e.from ? 2.0f : 8.0f});
    }
    way_of[order[k]] = first, way_end[order[k]] = end;
    auto length = static_cast<uint32_t>(span(e) - 1);
    uint32_t before = length ? first + length - 1 : e.from;
    links.push_back({before, e.to, length ? kWayWidth / 2 : e.from_at, e.to_at, length ? 2.0f : 1.0f});
  }
  // Wide groups stand under each other by their middles: by where values leave and come in, they would form stairs.
  auto drawn_to = [&](uint32_t v, float where) {
    if (v >= level.nodes.size()) return kWayWidth / 2;
    float middle = level.nodes[v].w / 2;
    return where < 0 ? middle : level.nodes[v].w > kWideGroup ? middle + (where - middle) * 0.15f : where;
  };
  for (Link& l : links) l.from_at = drawn_to(l.from, l.from_at), l.to_at = drawn_to(l.to, l.to_at);
  up.start.assign(layer.size() + 1, 0), down.start.assign(layer.size() + 1, 0);
  for (const Link& l : links) ++up.start[l.to + 1], ++down.start[l.from + 1];
  for (size_t k = 0; k < layer.size(); ++k) up.start[k + 1] += up.start[k], down.start[k + 1] += down.start[k];
  up.list.resize(links.size()), down.list.resize(links.size());
  std::vector<uint32_t> at(up.start), there(down.start);
  for (uint32_t k = 0; k < links.size(); ++k) up.list[at[links[k].to]++] = k, down.list[there[links[k].from]++] = k;
}

float Layering::width(uint32_t v) const { return v < level.nodes.size() ? level.nodes[v].w : kWayWidth; }

float Layering::apart(uint32_t left, uint32_t right) const {
  auto line = [&](uint32_t v) { return v >= level.nodes.size() || level.nodes[v].pin != LevelNode::Pin::kNone; };
  bool ways_only = line(left) && line(right);
  return width(left) + (ways_only ? kBetweenWays : kBetween);
}

// y of the rows, then routes.
void Layering::place_rows() {
  size_t n = level.nodes.size();
  std::vector<float> height(rows, 0), reach(rows, 0), wanted(rows, -1);
  for (uint32_t v = 0; v < n; ++v) {
    auto l = static_cast<size_t>(layer[v]);
    height[l] = std::max(height[l], level.nodes[v].h);
    if (level.nodes[v].wanted_layer >= 0)
      wanted[l] = wanted[l] < 0 ? level.nodes[v].wanted_y : std::min(wanted[l], level.nodes[v].wanted_y);
  }
  for (const Link& l : links)
    reach[static_cast<size_t>(layer[l.from])] =
        std::max(reach[static_cast<size_t>(layer[l.from])], std::abs(x[l.from] + l.from_at - x[l.to] - l.to_at));
  row_y.assign(rows + 1, 0);
  for (size_t l = 0; l < rows; ++l) {
    if (wanted[l] > row_y[l]) row_y[l] = std::min(wanted[l], row_y[l] + kHollow);
    bool port = height[l] == 0;
    float gap = (port ? kRowGap / 2 : kRowGap) + std::min(kMostRowGap - kRowGap, reach[l] / 14);
    row_y[l + 1] = row_y[l] + height[l] + (l + 1 == rows ? 0 : gap);
  }
  row_h = height;
  float left = 0, right = 0;
  for (uint32_t v = 0; v < layer.size(); ++v) {
    left = v ? std::min(left, x[v]) : x[v];
    right = v ? std::max(right, x[v] + width(v)) : x[v] + width(v);
  }
  for (float& place : x) place -= left;
  for (uint32_t v = 0; v < n; ++v) {
    LevelNode& node = level.nodes[v];
    node.x = x[v], node.layer = layer[v], node.y = row_y[static_cast<size_t>(layer[v])];
  }
  level.width = right - left;
  level.height = row_y[rows];
}

void Layering::routes() {
  auto put = [](std::vector<float>* p, float px, float py) {
    size_t k = p->size();
    if (k >= 2 && std::abs((*p)[k - 2] - px) < 0.01f && std::abs((*p)[k - 1] - py) < 0.01f) return;
    if (k >= 4 && std::abs((*p)[k - 2] - px) < 0.01f && std::abs((*p)[k - 4] - px) < 0.01f) {
      (*p)[k - 1] = py;
      return;
    }
    p->push_back(px), p->push_back(py);
  };
  for (size_t k = 0; k < level.edges.size(); ++k) {
    LevelEdge& e = level.edges[k];
    const LevelNode &a = level.nodes[e.from], &b = level.nodes[e.to];
    float from = a.x + (e.from_at < 0 ? a.w / 2 : e.from_at), to = b.x + (e.to_at < 0 ? b.w / 2 : e.to_at);
    if (e.stub) {
      e.points = {to, std::max(0.0f, b.y - 14), to, b.y};
      continue;
    }
    auto row = static_cast<size_t>(a.layer);
    put(&e.points, from, a.y + a.h);
    put(&e.points, from, row_y[row] + row_h[row]);
    for (int32_t l = a.layer + 1; l < b.layer; ++l) {
      float way = x[way_of[k] + static_cast<uint32_t>(l - a.layer - 1)] + kWayWidth / 2;
      put(&e.points, way, row_y[static_cast<size_t>(l)]);
      put(&e.points, way, row_y[static_cast<size_t>(l)] + row_h[static_cast<size_t>(l)]);
    }
    put(&e.points, to, b.y);
  }
}

// What touches one side of a box is dealt out along it, in the order of the other ends.
void Layering::touches() {
  for (bool below : {true, false}) {
    std::vector<std::vector<uint32_t>> at(level.nodes.size());
    for (uint32_t k = 0; k < level.edges.size(); ++k) {
      const LevelEdge& e = level.edges[k];
      if (e.stub || (below ? e.from_at : e.to_at) >= 0) continue;
      at[below ? e.from : e.to].push_back(k);
    }
    for (uint32_t v = 0; v < at.size(); ++v) {
      if (at[v].size() < 2 || level.nodes[v].pin != LevelNode::Pin::kNone) continue;
      auto other = [&](uint32_t k) {
        const LevelEdge& e = level.edges[k];
        int32_t steps = layer[e.to] - layer[e.from];
        if (steps > 1) {
          uint32_t way = below ? way_of[k] : way_of[k] + static_cast<uint32_t>(steps) - 2;
          return x[way];
        }
        uint32_t u = below ? e.to : e.from;
        float where = below ? e.to_at : e.from_at;
        return x[u] + (where < 0 ? width(u) / 2 : where);
      };
      std::stable_sort(at[v].begin(), at[v].end(), [&](uint32_t a, uint32_t b) { return other(a) < other(b); });
      std::vector<float> places;
      for (uint32_t k : at[v])
        if (places.empty() || other(k) > places.back() + 0.5f) places.push_back(other(k));
      float step = std::min(14.0f, width(v) * 0.7f / static_cast<float>(places.size()));
      for (uint32_t k : at[v]) {
        auto index =
            static_cast<float>(std::lower_bound(places.begin(), places.end(), other(k) - 0.5f) - places.begin());
        float where = width(v) / 2 + (index - static_cast<float>(places.size() - 1) / 2) * step;
        (below ? level.edges[k].from_at : level.edges[k].to_at) = std::clamp(where, 1.0f, std::max(1.0f, width(v) - 1));
      }
    }
  }
}

void lay_out_level(Level* level) {
  if (level->nodes.empty()) return;
  Layering l(*level);
  l.layers();
  l.ways();
  l.order();
  l.places();
  l.touches();
  l.place_rows();
  l.routes();
}

}  // namespace hlo
