// What stays itself from one stage to the next.
#include <algorithm>

#include "replay/record/match/match_impl.h"

namespace hlo {

bool StageMatcher::same_plain_shape(InstId x, InstId y) const {
  ShapeId s = a_.m.shape_id(x), t = b_.m.shape_id(y);
  return s == t || a_.m.u().shape_text_plain(s) == b_.m.u().shape_text_plain(t);
}

bool StageMatcher::pair_computations(CompId x, CompId y) {
  if (comp_to_[x.value].valid() || out_.same_computation[y.value].valid()) return false;
  comp_to_[x.value] = y, out_.same_computation[y.value] = x;
  return true;
}

void StageMatcher::pair(InstId x, InstId y) { to_[x.value] = y, out_.same[y.value] = x; }
void StageMatcher::unpair(InstId x, InstId y) { to_[x.value] = InstId(), out_.same[y.value] = InstId(); }

void StageMatcher::by_name() {
  const Module &a = a_.m, &b = b_.m;
  // XLA's numbers of computations stay what they are.
  if (options_.before && options_.after) {
    std::unordered_map<int64_t, CompId> numbered;
    for (CompId c : a.computations())
      if (int64_t id = options_.before->computation[c.value]; id >= 0) numbered.emplace(id, c);
    for (CompId c : b.computations())
      if (auto found = numbered.find(options_.after->computation[c.value]); found != numbered.end())
        pair_computations(found->second, c);
  }
  if (!options_.use_names) return;
  std::unordered_map<StrId, CompId> computations;
  for (CompId c : a.computations()) computations.emplace(a.comp(c).name, c);
  for (CompId c : b.computations())
    if (auto found = computations.find(b.comp(c).name); found != computations.end())
      pair_computations(found->second, c);
  named_.assign(a.u().string_count(), InstId());
  for (CompId c : a.computations())
    for (InstId i : a.comp(c).order)
      if (a.alive(i)) named_[a[i].name.value] = i;
  for (CompId c : b.computations()) {
    CompId partner = out_.same_computation[c.value];
    if (!partner.valid()) continue;
    for (InstId y : b.comp(c).order) {
      if (!b.alive(y)) continue;
      InstId x = named_[b[y].name.value];
      if (x.valid() && a.parent(x) == partner && a.op(x) == b.op(y) && gone(x)) pair(x, y);
    }
  }
  doubt_names();
}

// A name that another instruction has now: neither its operands nor its users, nor what it is, agree.
void StageMatcher::doubt_names() {
  const Module &a = a_.m, &b = b_.m;
  std::vector<std::pair<InstId, InstId>> wrong;
  for (CompId c : b.computations())
    for (InstId y : b.comp(c).order) {
      if (!b.alive(y) || fresh(y)) continue;
      InstId x = out_.same[y.value];
      if (a.op(x) == Opcode::Constant) {
        if (a[x].operand[0] != b[y].operand[0] && a_.exact(x) != b_.exact(y)) wrong.emplace_back(x, y);
        continue;
      }
      if (a.op(x) == Opcode::Parameter) {
        if (!same_plain_shape(x, y)) wrong.emplace_back(x, y);
        continue;
      }
      auto ox = a.operands(x), oy = b.operands(y);
      size_t agree = 0, differ = 0;
      for (size_t k = 0; k < ox.size() && k < oy.size(); ++k) {
        InstId moved = to_[ox[k].value];
        if (moved == oy[k]) ++agree;
        // Its old operand stands there, and another one is read.
        else if (moved.valid() && !fresh(oy[k]))
          ++differ;
      }
      if (agree > 0 || (differ == 0 && same_plain_shape(x, y))) continue;
      bool used_alike = false;
      auto ux = a.users(x);
      for (size_t k = 0; k < ux.size() && k < 16 && !used_alike; ++k) {
        InstId user = to_[ux[k].value];
        if (!user.valid()) continue;
        auto list = b.operands(user);
        used_alike = std::find(list.begin(), list.end(), y) != list.end();
      }
      const auto &cx = a.called(x), &cy = b.called(y);
      used_alike |= !cx.empty() && cx.size() == cy.size() && comp_to_[cx[0].value] == cy[0];
      if (!used_alike && (a_.exact(x) != b_.exact(y) || differ > 0)) wrong.emplace_back(x, y);
    }
  for (auto [x, y] : wrong) unpair(x, y);
}

// Who reads it, as far as the readers are known, else what they are.
uint64_t StageMatcher::use_hash(bool second, InstId i) {
  StageSide& side = second ? b_ : a_;
  auto users = side.m.users(i);
  uint64_t sum = side.m.is_root(i) ? 0x9E3779B97F4A7C15ull : 0;
  for (size_t n = 0; n < users.size() && n < 64; ++n) {
    InstId u = users[n];
    InstId anchor = second ? u : to_[u.value];
    uint64_t h = second ? (fresh(u) ? side.exact(u) : mix64(anchor.value + 1))
                        : (anchor.valid() ? mix64(anchor.value + 1) : side.exact(u));
    auto list = side.m.operands(u);
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k] == i) sum += hash_combine(h, k + 1);
  }
  return sum;
}

// Instructions of both stages that compute the same from the same.
struct StageMatcher::Group {
  std::vector<InstId> xs, ys;
};

// Those that one key tells apart, and no other of the group has.
template <class KeyX, class KeyY>
bool StageMatcher::pair_by_key(const Group& g, const KeyX& key_x, const KeyY& key_y) {
  bool found = false;
  std::unordered_map<uint64_t, std::pair<InstId, size_t>> xs, ys;
  for (InstId x : g.xs)
    if (gone(x)) {
      auto& entry = xs[key_x(x)];
      entry.first = x, ++entry.second;
    }
  for (InstId y : g.ys)
    if (fresh(y)) {
      auto& entry = ys[key_y(y)];
      entry.first = y, ++entry.second;
    }
  for (InstId y : g.ys) {
    if (!fresh(y)) continue;
    uint64_t key = key_y(y);
    auto at = xs.find(key);
    if (key == 0 || at == xs.end() || at->second.second != 1 || ys[key].second != 1) continue;
    pair(at->second.first, y), found = true;
  }
  return found;
}

// By name, then by their readers, then in order where equally many are left.
bool StageMatcher::pair_group(const Group& g) {
  const Module &a = a_.m, &b = b_.m;
  bool found = false;
  if (g.xs.size() == 1 && g.ys.size() == 1) {
    pair(g.xs[0], g.ys[0]), found = true;
    return true;
  }
  if (options_.use_names)
    found |= pair_by_key(
        g, [&](InstId x) { return uint64_t{a[x].name.value} + 1; },
        [&](InstId y) {
          StrId stem = b.u().find_str(name_stem(b.inst_name(y)));
          return stem.valid() ? uint64_t{stem.value} + 1 : 0;
        });
  found |= pair_by_key(
      g, [&](InstId x) { return use_hash(false, x) | 1; }, [&](InstId y) { return use_hash(true, y) | 1; });
  std::vector<InstId> xs, ys;
  for (InstId x : g.xs)
    if (gone(x)) xs.push_back(x);
  for (InstId y : g.ys)
    if (fresh(y)) ys.push_back(y);
  if (xs.size() == ys.size())
    for (size_t k = 0; k < xs.size(); ++k) pair(xs[k], ys[k]), found = true;
  return found;
}

// `seen`: the keys of the groups in order.
std::unordered_map<uint64_t, StageMatcher::Group> StageMatcher::groups_of(CompId x, CompId y,
                                                                          std::vector<uint64_t>* seen) {
  std::unordered_map<uint64_t, Group> groups;
  std::unordered_map<InstId, uint64_t> up;
  auto hash = [&](InstId i, bool second) {
    InstId anchor = second ? (fresh(i) ? InstId() : i) : to_[i.value];
    if (anchor.valid()) return mix64(anchor.value + 1);
    return up.at(i);
  };
  auto list = [&](StageSide& side, CompId of, bool second) {
    up.clear();
    for (InstId i : side.m.post_order(of)) {
      if (second ? !fresh(i) : !gone(i)) continue;
      uint64_t h = side.exact(i);
      for (InstId o : side.m.operands(i)) h = hash_combine(h, hash(o, second));
      up[i] = h;
      if (side.m.op(i) == Opcode::Parameter) continue;
      // In a square one, a layout says as much as the dimension: those of both stages in one layout, or none.
      if (side.m.op(i) == Opcode::Iota) h = hash_combine(h, side.m.shape_id(i).value);
      if (!second) {
        auto [at, first] = groups.try_emplace(h);
        if (first) seen->push_back(h);
        at->second.xs.push_back(i);
      } else if (auto at = groups.find(h); at != groups.end()) {
        at->second.ys.push_back(i);
      }
    }
  };
  list(a_, x, false), list(b_, y, true);
  return groups;
}

bool StageMatcher::pair_bodies() {
  const Module &a = a_.m, &b = b_.m;
  bool found = false;
  for (CompId c : b.computations())
    for (InstId y : b.comp(c).order) {
      if (!b.alive(y) || fresh(y) || !b[y].attrs.valid()) continue;
      const auto &cx = a.called(out_.same[y.value]), &cy = b.called(y);
      for (size_t k = 0; k < cx.size() && cx.size() == cy.size(); ++k) found |= pair_computations(cx[k], cy[k]);
    }
  return found;
}

bool StageMatcher::pair_alike(CompId c) {
  const Module &a = a_.m, &b = b_.m;
  bool found = false;
  CompId partner = out_.same_computation[c.value];
  if (!partner.valid()) return false;
  bool any = false, other = false;
  for (InstId y : b.comp(c).order) any |= b.alive(y) && fresh(y);
  if (!any) return false;
  for (InstId x : a.comp(partner).order) other |= a.alive(x) && gone(x);
  if (!other) return false;
  // Parameters first: by number, where the shapes agree and both lists are as long.
  const auto &px = a.comp(partner).params, &py = b.comp(c).params;
  if (px.size() == py.size())
    for (size_t k = 0; k < px.size(); ++k)
      if (gone(px[k]) && fresh(py[k]) && same_plain_shape(px[k], py[k])) pair(px[k], py[k]), found = true;
  std::vector<uint64_t> seen;
  std::unordered_map<uint64_t, Group> groups = groups_of(partner, c, &seen);
  for (uint64_t h : seen)
    if (!groups[h].ys.empty()) found |= pair_group(groups[h]);
  return found;
}

// Those without a partner in computations that have one: what computes the same from the same.
void StageMatcher::by_structure() {
  for (int round = 0; round < 4; ++round) {
    bool found = pair_bodies();
    for (CompId c : b_.m.computations()) found |= pair_alike(c);
    if (!found) break;
  }
}

}  // namespace hlo
