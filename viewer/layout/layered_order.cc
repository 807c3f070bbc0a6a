// Order within layers, and places along them.
#include <algorithm>
#include <cmath>

#include "viewer/layout/layered_steps.h"

namespace hlo {

// Preorder of a walk along the links: what belongs together starts together. What was there before stays in its order.
void Layering::first_order() {
  size_t n = layer.size();
  row.assign(rows, {});
  std::vector<bool> seen(n, false);
  std::vector<uint32_t> stack;
  for (uint32_t start = 0; start < n; ++start) {
    if (seen[start] || up.start[start] != up.start[start + 1]) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      uint32_t v = stack.back();
      stack.pop_back();
      if (seen[v]) continue;
      seen[v] = true;
      row[static_cast<size_t>(layer[v])].push_back(v);
      for (uint32_t k = down.start[v + 1]; k-- > down.start[v];) stack.push_back(links[down.list[k]].to);
    }
  }
  at.assign(n, 0);
  for (auto& r : row)
    for (uint32_t k = 0; k < r.size(); ++k) at[r[k]] = k;
}

bool Layering::sweep(bool downwards) {
  bool moved = false;
  std::vector<std::pair<float, uint32_t>> wish;
  for (size_t step = 1; step < rows; ++step) {
    size_t r = downwards ? step : rows - 1 - step;
    wish.clear();
    for (uint32_t v : row[r]) {
      const Lists& lists = downwards ? up : down;
      float sum = 0, all = 0;
      for (uint32_t k = lists.start[v]; k < lists.start[v + 1]; ++k) {
        const Link& l = links[lists.list[k]];
        uint32_t u = downwards ? l.from : l.to;
        float inside = (downwards ? l.from_at : l.to_at) / std::max(1.0f, width(u)) - 0.5f;
        float size = static_cast<float>(row[static_cast<size_t>(layer[u])].size());
        sum += (static_cast<float>(at[u]) + 0.5f + inside * 0.9f) / size, all += 1;
      }
      float own = (static_cast<float>(at[v]) + 0.5f) / static_cast<float>(row[r].size());
      wish.push_back({all > 0 ? sum / all : own, v});
    }
    std::stable_sort(wish.begin(), wish.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (uint32_t k = 0; k < wish.size(); ++k) {
      uint32_t v = wish[k].second;
      moved |= at[v] != k;
      row[r][k] = v, at[v] = k;
    }
  }
  return moved;
}

// Pairs of links that cross, by counting inversions row by row.
uint64_t Layering::crossings() const {
  uint64_t sum = 0;
  std::vector<uint32_t> tree;
  for (size_t r = 0; r + 1 < rows; ++r) {
    size_t n = row[r + 1].size();
    tree.assign(n + 1, 0);
    uint64_t so_far = 0;
    std::vector<uint32_t> ends;
    for (uint32_t v : row[r]) {
      ends.clear();
      for (uint32_t k = down.start[v]; k < down.start[v + 1]; ++k) ends.push_back(at[links[down.list[k]].to]);
      std::sort(ends.begin(), ends.end());
      for (uint32_t end : ends) {
        uint64_t left = 0;
        for (size_t k = end + 1; k > 0; k &= k - 1) left += tree[k];
        sum += so_far - left;
      }
      for (uint32_t end : ends) {
        ++so_far;
        for (size_t k = end + 1; k <= n; k += k & (~k + 1)) ++tree[k];
      }
    }
  }
  return sum;
}

void Layering::order() {
  first_order();
  bool kept = false;
  for (const LevelNode& v : level.nodes) kept |= v.wanted_layer >= 0;
  size_t size = layer.size() + links.size();
  int rounds = size < 2000 ? 12 : size < 20000 ? 6 : 3;
  constexpr int kInVain = 3;  // sweeps in turn that made nothing better: more of them hardly do
  auto best = row;
  uint64_t least = crossings();
  for (int k = 0, in_vain = 0; k < rounds && least > 0 && in_vain < kInVain; ++k) {
    bool moved = sweep(k % 2 == 0);
    uint64_t now = crossings();
    ++in_vain;
    if (now < least) least = now, best = row, in_vain = 0;
    if (!moved && k > 1) break;
  }
  row = std::move(best);
  for (auto& r : row)
    for (uint32_t k = 0; k < r.size(); ++k) at[r[k]] = k;
  if (!kept) return;
  // Those that were there before keep the order that they had: in the places that they take now.
  for (auto& r : row) {
    std::vector<uint32_t> old;
    for (uint32_t v : r)
      if (v < level.nodes.size() && level.nodes[v].wanted_layer >= 0) old.push_back(v);
    std::stable_sort(old.begin(), old.end(),
                     [&](uint32_t a, uint32_t b) { return level.nodes[a].wanted_x < level.nodes[b].wanted_x; });
    size_t next = 0;
    for (uint32_t& v : r)
      if (v < level.nodes.size() && level.nodes[v].wanted_layer >= 0) v = old[next++];
    for (uint32_t k = 0; k < r.size(); ++k) at[r[k]] = k;
  }
}

// The places nearest to the wishes, in the row's order and far enough apart: neighbours that would overlap become one
// block at the weighted mean of what they wish (isotonic regression).
void Layering::settle(size_t r, const std::vector<float>& wish, const std::vector<float>& weight) {
  const std::vector<uint32_t>& list = row[r];
  blocks.clear();
  shift.assign(list.size(), 0);
  for (size_t k = 1; k < list.size(); ++k) shift[k] = shift[k - 1] + apart(list[k - 1], list[k]);
  for (size_t k = 0; k < list.size(); ++k) {
    blocks.push_back({(wish[k] - shift[k]) * weight[k], weight[k], k});
    while (blocks.size() > 1) {
      Block &last = blocks.back(), &before = blocks[blocks.size() - 2];
      if (before.sum / before.weight <= last.sum / last.weight) break;
      before.sum += last.sum, before.weight += last.weight;
      blocks.pop_back();
    }
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    size_t end = b + 1 < blocks.size() ? blocks[b + 1].begin : list.size();
    for (size_t k = blocks[b].begin; k < end; ++k) {
      x[list[k]] = static_cast<float>(blocks[b].sum / blocks[b].weight + shift[k]);
    }
  }
}

void Layering::places() {
  x.assign(layer.size(), 0);
  for (auto& r : row) {
    float next = 0;
    for (size_t k = 0; k < r.size(); ++k) {
      if (k) next += apart(r[k - 1], r[k]);
      x[r[k]] = next;
    }
    float middle = r.empty() ? 0 : (next + width(r.back())) / 2;
    for (uint32_t v : r) x[v] -= middle;
  }
  size_t n = level.nodes.size();
  std::vector<float> wish, weight;
  std::vector<std::pair<float, float>> ends;
  enum { kUp = 1, kDown = 2 };
  auto settle_row = [&](size_t r, int sides) {
    wish.clear(), weight.clear();
    for (uint32_t v : row[r]) {
      ends.clear();
      float all = 0;
      auto look = [&](const Lists& lists, bool upwards) {
        for (uint32_t k = lists.start[v]; k < lists.start[v + 1]; ++k) {
          const Link& l = links[lists.list[k]];
          float there = upwards ? x[l.from] + l.from_at - l.to_at : x[l.to] + l.to_at - l.from_at;
          ends.push_back({there, l.weight}), all += l.weight;
        }
      };
      if (sides & kUp) look(up, true);
      if (sides & kDown) look(down, false);
      if (v < n && level.nodes[v].wanted_layer >= 0) {
        wish.push_back(level.nodes[v].wanted_x), weight.push_back(40);
        continue;
      }
      if (ends.empty()) {
        wish.push_back(x[v]), weight.push_back(0.2f);
        continue;
      }
      // The median: most of its links are straight then.
      std::sort(ends.begin(), ends.end());
      float half = 0, low = ends.back().first, high = ends.back().first;
      for (size_t k = 0; k < ends.size(); ++k) {
        half += ends[k].second;
        if (half * 2 < all) continue;
        low = ends[k].first, high = half * 2 == all && k + 1 < ends.size() ? ends[k + 1].first : low;
        break;
      }
      wish.push_back((low + high) / 2), weight.push_back(all);
    }
    settle(r, wish, weight);
  };
  constexpr float kStill = 0.25f;
  int rounds = layer.size() < 4000 ? 6 : 3;
  std::vector<float> then;
  for (int k = 0; k < rounds; ++k) {
    then = x;
    for (size_t r = 0; r < rows; ++r) settle_row(r, kUp);
    for (size_t r = rows; r-- > 0;) settle_row(r, kDown);
    float moved = 0;
    for (size_t v = 0; v < x.size(); ++v) moved = std::max(moved, std::abs(x[v] - then[v]));
    if (moved < kStill) break;
  }
  for (int k = 0; k < 2; ++k) {
    for (size_t r = 0; r < rows; ++r) settle_row(r, kUp | kDown);
    for (size_t r = rows; r-- > 0;) settle_row(r, kUp | kDown);
  }
}

}  // namespace hlo
