#include "replay/compare/match.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "ir/base/hash.h"
#include "ir/query/fingerprint.h"

namespace hlo {

bool Matching::same_value(InstId a, InstId b) const { return up_[0][a.value] == up_[1][b.value]; }

class Matcher {
 public:
  Matcher(const Module& a, const Module& b, Matching& out)
      : out_(out),
        side_{Side{a, Fingerprints(a, in_any_order()), {}, {}, {}, {}},
              Side{b, Fingerprints(b, in_any_order()), {}, {}, {}, {}}} {}

  void run() {
    prepare();
    if (!pair_up(side_[0].m.entry(), side_[1].m.entry())) return;
    for (size_t at = 0; at < out_.pairs_.size(); ++at)
      if (!out_.identical_[out_.pairs_[at].first.value]) inside(out_.pairs_[at].first, out_.pairs_[at].second);
    moves();
  }

  void run_by_id(std::span<const Heir> heirs) {
    prepare();
    const Module &a = side_[0].m, &b = side_[1].m;
    for (int s = 0; s < 2; ++s)
      for (CompId c : side_[s].m.computations()) hash(s, c, side_[s].m.post_order(c));
    std::vector<CompId> callers_first = a.computation_post_order();
    std::reverse(callers_first.begin(), callers_first.end());
    for (CompId c : callers_first) {
      if (c.value >= b.comp_slots() || !b.comp(c).alive) continue;
      out_.comp_to_[c.value] = out_.comp_from_[c.value] = c;
      out_.identical_[c.value] = side_[0].prints.computation(c) == side_[1].prints.computation(c);
      out_.pairs_.push_back({c, c});
    }
    for (CompId c : a.computations())
      for (InstId i : a.comp(c).order) {
        if (!a.alive(i) || !b.alive(i)) continue;
        if (b.parent(i) == c)
          out_.to_[i.value] = out_.from_[i.value] = i;
        else
          out_.moved_.push_back({i, i});
      }
    std::vector<bool> used(b.inst_slots());
    for (const Heir& h : heirs) {
      if (!a.alive(h.from) || !b.alive(h.to) || a.alive(h.to) || b.alive(h.from) || used[h.to.value]) continue;
      if (a.op(h.from) != b.op(h.to)) continue;
      used[h.to.value] = true;
      if (a.parent(h.from) != b.parent(h.to))
        out_.moved_.push_back({h.from, h.to});
      else if (free(h.from, h.to))
        out_.to_[h.from.value] = h.to, out_.from_[h.to.value] = h.from;
    }
  }

 private:
  static Fingerprints::Options in_any_order() {
    Fingerprints::Options options;
    options.any_order = true;
    return options;
  }

  void prepare() {
    const Module &a = side_[0].m, &b = side_[1].m;
    out_.to_.resize(a.inst_slots()), out_.from_.resize(b.inst_slots());
    out_.comp_to_.resize(a.comp_slots()), out_.comp_from_.resize(b.comp_slots());
    out_.identical_.assign(a.comp_slots(), false);
    for (int s = 0; s < 2; ++s) {
      Side& side = side_[s];
      side.exact.resize(side.m.inst_slots()), side.down.resize(side.m.inst_slots());
      side.place.resize(side.m.inst_slots());
      out_.up_[s].resize(side.m.inst_slots());
      side.known.assign(side.m.comp_slots(), false);
    }
  }

  struct Side {
    const Module& m;
    Fingerprints prints;
    std::vector<uint64_t> exact, down;
    std::vector<uint32_t> place;  // in post order
    std::vector<bool> known;      // computations whose instructions have hashes
  };

  bool pair_up(CompId x, CompId y) {
    if (out_.comp_to_[x.value].valid() || out_.comp_from_[y.value].valid()) return false;
    out_.comp_to_[x.value] = y, out_.comp_from_[y.value] = x;
    out_.identical_[x.value] = side_[0].prints.computation(x) == side_[1].prints.computation(y);
    out_.pairs_.push_back({x, y});
    if (out_.identical_[x.value]) pair_callees(x, y);
    return true;
  }

  // Of computations that are the same throughout: whatever they call is paired with its like, so that nothing else is.
  void pair_callees(CompId x, CompId y) {
    auto px = side_[0].m.post_order(x), py = side_[1].m.post_order(y);
    hash(0, x, px), hash(1, y, py);
    pair_groups(
        px, py, [&](int s, InstId i) { return hash_combine(out_.up_[s][i.value], side_[s].down[i.value]); }, false);
  }

  void pair_instructions(InstId x, InstId y) {
    out_.to_[x.value] = y, out_.from_[y.value] = x;
    const auto &cx = side_[0].m.called(x), &cy = side_[1].m.called(y);
    for (size_t k = 0; k < cx.size() && k < cy.size(); ++k) pair_up(cx[k], cy[k]);
    ++pairs_;
    same_names_ += side_[0].m[x].name == side_[1].m[y].name;
  }

  bool free(InstId x, InstId y) const { return !out_.to_[x.value].valid() && !out_.from_[y.value].valid(); }

  void hash(int s, CompId c, const std::vector<InstId>& order) {
    Side& side = side_[s];
    if (side.known[c.value]) return;
    side.known[c.value] = true;
    auto& up = out_.up_[s];
    uint32_t place = 0;
    for (InstId i : order) {
      side.place[i.value] = place++;
      uint64_t h = side.exact[i.value] = side.prints.instruction(i);
      for (InstId o : side.m.operands(i)) h = hash_combine(h, up[o.value]);
      up[i.value] = h, side.down[i.value] = 0;
    }
    side.down[side.m.comp(c).root.value] = 1;
    for (size_t k = order.size(); k-- > 0;) {
      InstId i = order[k];
      uint64_t slot = 0, of = hash_combine(side.exact[i.value], mix64(side.down[i.value]));
      for (InstId o : side.m.operands(i)) side.down[o.value] += hash_combine(of, ++slot);
    }
  }

  // Pairs the instructions of both lists that have equal keys, in order, where equally many have them.
  template <class Key>
  void pair_groups(const std::vector<InstId>& xs, const std::vector<InstId>& ys, const Key& key, bool any_count) {
    std::unordered_map<uint64_t, std::pair<std::vector<InstId>, std::vector<InstId>>> groups;
    for (InstId x : xs)
      if (!out_.to_[x.value].valid()) groups[key(0, x)].first.push_back(x);
    for (InstId y : ys)
      if (!out_.from_[y.value].valid())
        if (auto g = groups.find(key(1, y)); g != groups.end()) g->second.second.push_back(y);
    for (InstId x : xs) {  // in the order of the module, not of the table
      if (out_.to_[x.value].valid()) continue;
      auto g = groups.find(key(0, x));
      if (g == groups.end()) continue;
      auto& [as, bs] = g->second;
      if (bs.empty() || (as.size() != bs.size() && !any_count)) continue;
      if (as.size() != bs.size() && trusted()) {  // those with their own names first
        for (InstId one : as)
          for (InstId two : bs)
            if (side_[0].m[one].name == side_[1].m[two].name && free(one, two)) pair_instructions(one, two);
      }
      size_t j = 0;
      for (InstId one : as) {
        if (out_.to_[one.value].valid()) continue;
        while (j < bs.size() && out_.from_[bs[j].value].valid()) ++j;
        if (j == bs.size()) break;
        pair_instructions(one, bs[j]);
      }
      groups.erase(g);
    }
  }

  bool trusted() const { return same_names_ * 2 >= pairs_; }

  // 0: all but operands, 1: opcode and dimensions, 2: opcode, 3: dimensions and operands.
  bool alike(InstId x, InstId y, int loose) const {
    const Module &a = side_[0].m, &b = side_[1].m;
    if (loose == 3) {
      auto ox = a.operands(x), oy = b.operands(y);
      if (ox.empty() || ox.size() != oy.size() || !a.called(x).empty() || !b.called(y).empty()) return false;
      for (size_t k = 0; k < ox.size(); ++k)
        if (out_.to_[ox[k].value] != oy[k]) return false;
      return a.u().shape_text_plain(a.shape_id(x)) == b.u().shape_text_plain(b.shape_id(y));
    }
    if (a.op(x) != b.op(y)) return false;
    if (loose == 0) return side_[0].exact[x.value] == side_[1].exact[y.value];
    if (a.op(x) == Opcode::Parameter && a.parameter_number(x) != b.parameter_number(y)) return false;
    return loose == 2 || a.u().shape_text_plain(a.shape_id(x)) == b.u().shape_text_plain(b.shape_id(y));
  }

  // From pairs to their operands and users, until nothing more is found.
  void spread(const std::vector<InstId>& xs, int loose) {
    const Module &a = side_[0].m, &b = side_[1].m;
    std::deque<InstId> work;
    for (InstId x : xs)
      if (out_.to_[x.value].valid()) work.push_back(x);
    while (!work.empty()) {
      InstId x = work.front(), y = out_.to_[x.value];
      work.pop_front();
      auto ox = a.operands(x), oy = b.operands(y);
      for (size_t k = 0; k < ox.size() && k < oy.size(); ++k)
        if (free(ox[k], oy[k]) && alike(ox[k], oy[k], loose)) pair_instructions(ox[k], oy[k]), work.push_back(ox[k]);
      // A user of its kind that only one of each side has. Values with very many users tell nothing.
      auto ux = a.users(x), uy = b.users(y);
      if (ux.size() > 64 || uy.size() > 64) continue;
      for (InstId one : ux) {
        if (out_.to_[one.value].valid()) continue;
        InstId found;
        size_t count = 0, rivals = 0;
        for (InstId two : uy)
          if (free(one, two) && alike(one, two, loose) && slot_of(a, one, x) == slot_of(b, two, y))
            found = two, ++count;
        if (count != 1) continue;
        for (InstId other : ux) rivals += free(other, found) && alike(other, found, loose);
        if (rivals == 1) pair_instructions(one, found), work.push_back(one);
      }
    }
  }

  static size_t slot_of(const Module& m, InstId user, InstId operand) {
    auto list = m.operands(user);
    return static_cast<size_t>(std::find(list.begin(), list.end(), operand) - list.begin());
  }

  void inside(CompId x, CompId y) {
    const Module &a = side_[0].m, &b = side_[1].m;
    std::vector<InstId> xs = a.post_order(x), ys = b.post_order(y);
    hash(0, x, xs), hash(1, y, ys);
    auto both = [&](int s, InstId i) { return hash_combine(out_.up_[s][i.value], side_[s].down[i.value]); };
    pair_groups(xs, ys, both, false);
    pair_groups(
        xs, ys, [&](int s, InstId i) { return out_.up_[s][i.value]; }, true);
    const auto &px = a.comp(x).params, &py = b.comp(y).params;
    for (size_t k = 0; k < px.size() && k < py.size(); ++k)
      if (free(px[k], py[k])) pair_instructions(px[k], py[k]);
    InstId rx = a.comp(x).root, ry = b.comp(y).root;
    if (free(rx, ry) && a.op(rx) == b.op(ry)) pair_instructions(rx, ry);
    pair_groups(
        xs, ys, [&](int s, InstId i) { return hash_combine(side_[s].exact[i.value], side_[s].down[i.value]); }, false);
    // What reads and is read alike first: two releases give one name to fusions that have nothing in common.
    spread(xs, 0);
    for (int loose = 0; loose < 3; ++loose)
      if (trusted()) by_name(xs, ys, loose);
    for (int loose = 0; loose < 4; ++loose) spread(xs, loose);
  }

  void by_name(const std::vector<InstId>& xs, const std::vector<InstId>& ys, int loose) {
    const Module &a = side_[0].m, &b = side_[1].m;
    std::unordered_map<StrId, InstId> named;
    for (InstId two : ys)
      if (!out_.from_[two.value].valid()) named[b[two].name] = two;
    for (InstId one : xs) {
      if (out_.to_[one.value].valid()) continue;
      auto found = named.find(a[one].name);
      if (found != named.end() && free(one, found->second) && alike(one, found->second, loose))
        pair_instructions(one, found->second);
    }
  }

  // What has no partner in its place, but one elsewhere.
  void moves() {
    std::vector<InstId> xs, ys;
    for (int s = 0; s < 2; ++s)
      for (CompId c : side_[s].m.computations()) {
        CompId partner = s == 0 ? out_.comp_to_[c.value] : out_.comp_from_[c.value];
        if (partner.valid() && out_.identical_[s == 0 ? c.value : partner.value]) continue;
        auto order = side_[s].m.post_order(c);
        hash(s, c, order);
        for (InstId i : order) {
          bool alone = !(s == 0 ? out_.to_ : out_.from_)[i.value].valid();
          if (alone && side_[s].m.op(i) != Opcode::Parameter) (s == 0 ? xs : ys).push_back(i);
        }
      }
    const Module &a = side_[0].m, &b = side_[1].m;
    std::vector<bool> used(b.inst_slots(), false), gone(a.inst_slots(), false);
    auto take = [&](InstId x, InstId y) {
      out_.moved_.push_back({x, y});
      used[y.value] = gone[x.value] = true;
    };
    if (trusted()) {
      std::unordered_map<StrId, InstId> named;
      for (InstId y : ys) named.emplace(b[y].name, y);
      for (InstId x : xs) {
        auto found = named.find(a[x].name);
        if (found != named.end() && !used[found->second.value] && alike(x, found->second, 1)) take(x, found->second);
      }
    }
    // Else by content, each in its order: layouts may differ inside fusions.
    std::unordered_map<uint64_t, std::deque<InstId>> content;
    auto key = [&](const Module& m, InstId i, bool exact, int s) {
      if (exact) return side_[s].exact[i.value];
      const Metadata& d = m.u()[m[i].meta];
      return hash_combine(hash_combine(static_cast<uint64_t>(m.op(i)), d.op_name),
                          hash_bytes(m.u().shape_text_plain(m.shape_id(i))));
    };
    for (bool exact : {true, false}) {
      content.clear();
      for (InstId y : ys)
        if (!used[y.value]) content[key(b, y, exact, 1)].push_back(y);
      for (InstId x : xs) {
        if (gone[x.value]) continue;
        auto found = content.find(key(a, x, exact, 0));
        if (found == content.end() || found->second.empty()) continue;
        take(x, found->second.front());
        found->second.pop_front();
      }
    }
    out_.names_agree_ = trusted();
  }

  Matching& out_;
  Side side_[2];
  size_t pairs_ = 0, same_names_ = 0;
};

Matching::Matching(const Module& a, const Module& b) { Matcher(a, b, *this).run(); }
Matching::Matching(const Module& a, const Module& b, std::span<const Heir> heirs) {
  Matcher(a, b, *this).run_by_id(heirs);
}

}  // namespace hlo
