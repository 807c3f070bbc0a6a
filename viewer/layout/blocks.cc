// What stands in one group, in one line: in a topological order in which neighbours lie together, any interval is
// convex. Repeated blocks are intervals in which what stands at one place comes again a period later; what is too much
// to be seen at once is cut where least flows across.
#include <algorithm>
#include <unordered_map>

#include "ir/base/hash.h"
#include "viewer/layout/folding_maker.h"

namespace hlo {
namespace {

constexpr size_t kSeenAtOnce = 90;  // children of a group
constexpr size_t kRun = 32;         // about so many become one where there are more
constexpr size_t kPeriodsTried = 8;
constexpr uint32_t kLeastBlock = 5;  // instructions of a repeated block
constexpr uint32_t kLeastTimes = 3;

// Post order from what nobody needs: what is made for one user stands before it.
std::vector<uint32_t> line_order(const ItemList& items) {
  size_t n = items.item.size();
  std::vector<uint32_t> out;
  out.reserve(n);
  std::vector<bool> needed(n, false), seen(n, false);
  for (uint32_t from : items.preds.list) needed[from] = true;
  struct Frame {
    uint32_t item, next;
  };
  std::vector<Frame> stack;
  for (bool sinks : {true, false})  // there is no cycle: sinks reach all; the rest is for what isn't so
    for (uint32_t k = 0; k < n; ++k) {
      if (seen[k] || needed[k] == sinks) continue;
      seen[k] = true;
      stack.push_back({k, 0});
      while (!stack.empty()) {
        Frame& top = stack.back();
        auto preds = items.preds[top.item];
        if (top.next < preds.size()) {
          uint32_t from = preds[top.next++];
          if (!seen[from]) seen[from] = true, stack.push_back({from, 0});
        } else {
          out.push_back(top.item);
          stack.pop_back();
        }
      }
    }
  return out;
}

struct Repeat {
  size_t begin = 0, end = 0, period = 0;  // period 0: of `times` alike groups and what stands between them
  uint32_t times = 0;
  double worth = 0;
};

struct Line {
  FoldingMaker& maker;
  const ItemList& items;
  std::vector<uint32_t> order;
  std::vector<uint64_t> token;
  std::vector<uint64_t> before;  // instructions in front of a place
  std::vector<uint32_t> live;    // values that cross into a place from in front of it

  Line(FoldingMaker& m, const ItemList& list) : maker(m), items(list), order(line_order(list)) {
    size_t n = order.size();
    std::vector<uint32_t> at(n), last(n);
    before.assign(n + 1, 0), live.assign(n + 1, 0);
    for (size_t k = 0; k < n; ++k) {
      at[order[k]] = static_cast<uint32_t>(k);
      token.push_back(items.token[order[k]]);
      before[k + 1] = before[k] + items.weight[order[k]];
    }
    for (size_t k = 0; k < n; ++k) last[k] = static_cast<uint32_t>(k);
    for (size_t k = 0; k < n; ++k)
      for (uint32_t from : items.preds[order[k]]) last[at[from]] = std::max(last[at[from]], static_cast<uint32_t>(k));
    std::vector<int32_t> change(n + 2, 0);
    for (size_t k = 0; k < n; ++k) ++change[k + 1], --change[last[k] + 1];
    int32_t now = 0;
    for (size_t k = 0; k <= n; ++k) live[k] = static_cast<uint32_t>(now += change[k]);
  }
  uint64_t weight(size_t begin, size_t end) const { return before[end] - before[begin]; }
  bool is_group(size_t at) const { return items.item[order[at]].group; }
  const FoldGroup& group(size_t at) const { return maker.groups[items.item[order[at]].value]; }
  bool is_scope(size_t at) const { return is_group(at) && group(at).kind == FoldGroup::Kind::kScope; }

  std::vector<Repeat> repeats(size_t begin, size_t end) const;
  void families(size_t begin, size_t end, std::vector<Repeat>* out) const;
  void periods(size_t begin, size_t end, std::vector<Repeat>* out) const;
  void runs_of_period(size_t begin, size_t end, size_t period, std::vector<Repeat>* out) const;
};

// Scopes alike by name or structure with little between them.
void Line::families(size_t begin, size_t end, std::vector<Repeat>* out) const {
  std::unordered_map<uint64_t, std::vector<size_t>> places;
  std::vector<uint64_t> in_order;
  for (size_t k = begin; k < end; ++k)
    if (is_scope(k)) {
      auto [at, fresh] = places.try_emplace(token[k]);
      if (fresh) in_order.push_back(token[k]);
      at->second.push_back(k);
    }
  for (uint64_t family : in_order) {
    const std::vector<size_t>& list = places[family];
    uint64_t sum = 0;
    for (size_t k : list) sum += weight(k, k + 1);
    double most = 0.3 * static_cast<double>(sum) / static_cast<double>(list.size()) + 6;
    for (size_t first = 0; first < list.size();) {
      size_t last = first;
      while (last + 1 < list.size() && static_cast<double>(weight(list[last] + 1, list[last + 1])) <= most) ++last;
      Repeat r{list[first], list[last] + 1, 0, static_cast<uint32_t>(last - first + 1), 0};
      r.worth = static_cast<double>(weight(r.begin, r.end)) * 1.1;
      if (r.times >= kLeastTimes && r.end - r.begin < end - begin) out->push_back(r);
      first = last + 1;
    }
  }
}

void Line::runs_of_period(size_t begin, size_t end, size_t period, std::vector<Repeat>* out) const {
  size_t tolerated = period / 8;
  for (size_t at = begin + period; at < end;) {
    if (token[at] != token[at - period]) {
      ++at;
      continue;
    }
    size_t last = at, wrong = 0, all_wrong = 0;
    for (size_t k = at + 1; k < end; ++k) {
      if (token[k] == token[k - period]) {
        last = k, wrong = 0;
      } else {
        ++wrong, ++all_wrong;
        if (wrong > tolerated || all_wrong > (k - at) / 12) break;
      }
    }
    size_t first = at - period, total = last + 1 - first;
    at = last + 1;
    size_t times = (total + tolerated) / period;
    if (times < kLeastTimes) continue;
    if (times * period > total) {
      first -= std::min(first - begin, times * period - total);
      if (first + times * period > end) --times;
    }
    // Where the blocks begin is free within what is over: where least crosses their borders.
    size_t over = total > times * period ? total - times * period : 0, best = 0;
    uint64_t least = UINT64_MAX;
    for (size_t shift = 0; shift <= over; ++shift) {
      uint64_t crossing = 0;
      for (size_t k = 0; k <= times; ++k) crossing += live[first + shift + k * period];
      if (crossing < least) least = crossing, best = shift;
    }
    first += best;
    Repeat r{first, first + times * period, period, static_cast<uint32_t>(times), 0};
    uint64_t inside = weight(r.begin, r.end);
    r.worth = static_cast<double>(inside) * (1 + 0.02 * static_cast<double>(std::min<size_t>(times, 40)));
    if (times >= kLeastTimes && inside >= uint64_t{kLeastBlock} * times && !(period == 1 && !is_group(first)))
      out->push_back(r);
  }
}

void Line::periods(size_t begin, size_t end, std::vector<Repeat>* out) const {
  std::unordered_map<uint64_t, size_t> seen;
  std::unordered_map<size_t, size_t> votes;
  for (size_t k = begin; k < end; ++k) {
    auto [at, fresh] = seen.try_emplace(token[k], k);
    if (!fresh) ++votes[k - at->second], at->second = k;
  }
  std::vector<std::pair<size_t, size_t>> best;  // votes times period: how much of the line says so
  for (auto [period, n] : votes)
    if (n >= 2) best.push_back({n * std::min<size_t>(period, 400), period});
  std::sort(best.begin(), best.end(),
            [](auto a, auto b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (best.size() > kPeriodsTried) best.resize(kPeriodsTried);
  for (auto [worth, period] : best) runs_of_period(begin, end, period, out);
}

std::vector<Repeat> Line::repeats(size_t begin, size_t end) const {
  std::vector<Repeat> found, out;
  families(begin, end, &found);
  if (end - begin >= 8) periods(begin, end, &found);
  std::stable_sort(found.begin(), found.end(), [](const Repeat& a, const Repeat& b) { return a.worth > b.worth; });
  if (found.size() > 4096) found.resize(4096);
  std::vector<bool> taken(end - begin, false);
  for (const Repeat& r : found) {
    bool free = true;
    for (size_t k = r.begin; k < r.end && free; ++k) free = !taken[k - begin];
    if (!free) continue;
    for (size_t k = r.begin; k < r.end; ++k) taken[k - begin] = true;
    out.push_back(r);
  }
  std::sort(out.begin(), out.end(), [](const Repeat& a, const Repeat& b) { return a.begin < b.begin; });
  return out;
}

// Children of a group with the places that they cover.
struct Piece {
  FoldItem item;
  size_t begin, end;
};

struct BlockMaker {
  FoldingMaker& maker;
  Line line;
  struct Work {
    uint32_t group;
    size_t begin, end;
    bool repeats;  // may hold some: the children of a repeat themselves don't
  };
  std::vector<Work> work;

  FoldItem leaf(size_t at, uint32_t group) {
    FoldItem item = line.items.item[line.order[at]];
    if (item.group) {
      FoldGroup& g = maker.groups[item.value];
      g.parent = group;
      if (g.kind == FoldGroup::Kind::kCall) maker.home[g.inst.value] = group;
    } else {
      maker.home[item.value] = group;
    }
    return item;
  }
  std::string place_of(size_t at) {
    FoldItem item = line.items.item[line.order[at]];
    return item.group ? maker.groups[item.value].key : fmt::format("i{}", item.value);
  }
  uint32_t add(FoldGroup::Kind kind, uint32_t parent, const char* what, size_t begin, size_t end) {
    FoldGroup g;
    g.kind = kind, g.parent = parent, g.comp = maker.groups[parent].comp;
    g.key = what + place_of(begin);
    if (g.key.size() > 300) g.key = what + fmt::format("{:016x}", hash_bytes(g.key));
    uint64_t ops = line.weight(begin, end);
    std::string scopes;
    size_t named = 0;
    for (size_t k = begin; k < end && named < 4; ++k)
      if (line.is_scope(k) && line.weight(k, k + 1) * 6 >= ops) scopes += (named++ ? ", " : "") + line.group(k).label;
    g.label = named && named < 4 ? scopes : fmt::format("block of {} ops", ops);
    for (size_t k = begin; k < end; ++k) g.alike += mix64(line.token[k]);
    return maker.add_group(std::move(g));
  }
  Piece repeat(uint32_t group, const Repeat& r) {
    uint32_t all = add(FoldGroup::Kind::kRepeat, group, "r", r.begin, r.end);
    maker.groups[all].times = r.times;
    size_t first = r.begin, last = r.end - 1;
    std::vector<uint32_t> blocks;
    if (r.period > 1) {
      std::vector<FoldItem> children;
      for (uint32_t k = 0; k < r.times; ++k) {
        size_t begin = r.begin + k * r.period;
        uint32_t block = add(FoldGroup::Kind::kBlock, all, "rb", begin, begin + r.period);
        children.push_back({block, true}), blocks.push_back(block);
        work.push_back({block, begin, begin + r.period, true});
      }
      maker.groups[all].children = std::move(children);
    } else {
      work.push_back({all, r.begin, r.end, false});
      while (r.period == 0 && first < last && !line.is_scope(first)) ++first;
      for (size_t k = r.begin; k < r.end; ++k)
        if (line.is_group(k) && line.token[k] == line.token[first])
          blocks.push_back(line.items.item[line.order[k]].value), last = k;
    }
    FoldGroup& g = maker.groups[all];
    g.alike = blocks.empty() ? 0 : maker.groups[blocks[0]].alike;
    for (uint32_t b : blocks)
      if (maker.groups[b].alike != g.alike) g.alike = 0;
    if (!blocks.empty()) {
      const std::string &a = maker.groups[blocks.front()].label, &b = maker.groups[blocks.back()].label;
      g.label = a == b ? a : a + " … " + b;
    }
    return {{all, true}, r.begin, r.end};
  }
  // Runs of about kRun pieces, cut where least flows across, until what is left can be seen at once.
  std::vector<Piece> cut(uint32_t group, std::vector<Piece> pieces) {
    while (pieces.size() > kSeenAtOnce) {
      std::vector<Piece> fewer;
      for (size_t at = 0; at < pieces.size();) {
        size_t end = std::min(pieces.size(), at + kRun), best = end;
        if (pieces.size() - at > kRun + kRun / 2)
          for (size_t k = end + kRun / 4, low = end - kRun / 4; k >= low && k < pieces.size(); --k)
            if (line.live[pieces[k].begin] < line.live[pieces[std::min(best, pieces.size() - 1)].begin]) best = k;
        if (pieces.size() - at <= kRun + kRun / 2) best = pieces.size();
        uint32_t block = add(FoldGroup::Kind::kBlock, group, "rc", pieces[at].begin, pieces[best - 1].end);
        put(block, pieces, at, best);
        fewer.push_back({{block, true}, pieces[at].begin, pieces[best - 1].end});
        at = best;
      }
      pieces = std::move(fewer);
    }
    return pieces;
  }
  void put(uint32_t group, const std::vector<Piece>& pieces, size_t begin, size_t end) {
    std::vector<FoldItem> children;
    for (size_t k = begin; k < end; ++k) {
      const Piece& p = pieces[k];
      if (p.item.group) maker.groups[p.item.value].parent = group;
      if (p.item.group && maker.groups[p.item.value].kind == FoldGroup::Kind::kCall)
        maker.home[maker.groups[p.item.value].inst.value] = group;
      if (!p.item.group) maker.home[p.item.value] = group;
      children.push_back(p.item);
    }
    std::vector<FoldItem>& to = maker.groups[group].children;
    to.insert(to.end(), children.begin(), children.end());
  }
  void run(uint32_t group) {
    work.push_back({group, 0, line.order.size(), true});
    while (!work.empty()) {
      Work w = work.back();
      work.pop_back();
      std::vector<Repeat> found;
      if (w.repeats) found = line.repeats(w.begin, w.end);
      std::vector<Piece> pieces;
      size_t next = 0;
      for (size_t k = w.begin; k < w.end;) {
        if (next < found.size() && found[next].begin == k) {
          pieces.push_back(repeat(w.group, found[next]));
          k = found[next++].end;
        } else {
          pieces.push_back({leaf(k, w.group), k, k + 1});
          ++k;
        }
      }
      std::vector<Piece> seen = cut(w.group, std::move(pieces));
      put(w.group, seen, 0, seen.size());
    }
  }
};

}  // namespace

void FoldingMaker::arrange(uint32_t group, const ItemList& items) {
  BlockMaker{*this, Line(*this, items), {}}.run(group);
}

}  // namespace hlo
