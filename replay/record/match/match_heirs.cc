// What ends, and what it lives on as.
#include <algorithm>

#include "replay/record/match/match_impl.h"

namespace hlo {

void StageMatcher::add(InstId from, InstId to, HeirKind kind) {
  auto& list = from_[to.value];
  for (auto& [x, k] : list)
    if (x == from) {
      k = std::min(k, kind);
      return;
    }
  list.emplace_back(from, kind);
  heirs_[from.value].push_back(to);
}

bool only_moves(Opcode op) {
  return op == Opcode::Copy || op == Opcode::Bitcast || op == Opcode::Convert || op == Opcode::Transpose ||
         op == Opcode::Reshape;
}

InstId StageMatcher::moved_before(InstId x) const {
  for (int k = 0; k < 8 && ended(x) && only_moves(a_.m.op(x)); ++k) x = a_.resolved(a_.m.operand(x, 0));
  return x;
}

InstId StageMatcher::moved_after(InstId y) const {
  for (int k = 0; k < 8 && fresh(y) && only_moves(b_.m.op(y)); ++k) y = b_.resolved(b_.m.operand(y, 0));
  return y;
}

// Two that read the same by place: what stood in each place before, and what stands there now.
void StageMatcher::compare_slots(InstId x, InstId y) {
  const Module &a = a_.m, &b = b_.m;
  auto ox = a.operands(x), oy = b.operands(y);
  if (ox.size() != oy.size() || ox.size() > 4096) return;
  const bool one_kind = a.op(x) == b.op(y);
  for (size_t k = 0; k < ox.size(); ++k) {
    InstId p = ox[k], q = oy[k];
    if (to_[p.value] == q) continue;
    InstId rp = a_.resolved(p), rq = b_.resolved(q);
    // A fusion taken apart: what its root was stands there first of all, then the fusion.
    const bool apart = rp != p && rq == q && a.op(p) == Opcode::Fusion && ended(p) && fresh(q);
    if (apart && from_[q.value].empty()) {
      relate(rp, q, !one_kind);
      if (!from_[q.value].empty()) add(p, q, HeirKind::kReplaced);
    }
    relate(p, q, !one_kind);
    if (rp != p || rq != q) relate(rp, rq, !one_kind);
    InstId mp = moved_before(rp), mq = moved_after(rq);
    if ((mp != rp || mq != rq) && ended(mp) && fresh(mq)) relate(mp, mq, true);
  }
}

// In one place stood x, and now y.
void StageMatcher::relate(InstId x, InstId y, bool of_one_kind) {
  const Module &a = a_.m, &b = b_.m;
  if (to_[x.value] == y) return;
  if (a_.opaque(x) && a.op(x) == Opcode::Parameter) return;
  if (b_.opaque(y) && b.op(y) == Opcode::Parameter) return;
  if (of_one_kind && a.op(x) != b.op(y)) return;
  bool ends = ended(x), begins = fresh(y);
  if ((!ends && !begins) || (!gone(x) && !begins)) return;  // one reads another now, and both go on
  if (begins && !from_[y.value].empty()) return;
  bool value = value_a_[x.value] == value_b_[y.value];
  if (!ends) {
    // Another of its kind stands there now, or something was put between: that derives from what it reads.
    if (a.op(x) == b.op(y) && same_plain_shape(x, y)) add(x, y, value ? HeirKind::kCloned : HeirKind::kDerived);
    return;
  }
  if (!begins && !heirs_[x.value].empty()) return;
  // Read by another operation than before, or another constant: made of it, but not the same value.
  const bool other = of_one_kind || a.op(x) == Opcode::Constant;
  add(x, y, other && !value ? HeirKind::kDerived : HeirKind::kReplaced);
  if (begins && a.operand_count(x) == b.operand_count(y)) work_.emplace_back(x, y);
}

void StageMatcher::work_off() {
  while (!work_.empty()) {
    auto [x, y] = work_.back();
    work_.pop_back();
    if (a_.m.op(x) == b_.m.op(y) || op_info(a_.m.op(x)).cls == op_info(b_.m.op(y)).cls) compare_slots(x, y);
  }
}

void StageMatcher::along_slots() {
  const Module &a = a_.m, &b = b_.m;
  for (InstId y : order_b_) {
    if (fresh(y)) continue;
    InstId x = out_.same[y.value];
    compare_slots(x, y);
    // Of more than one operand it reads another: what it reads now was made for it as much as for what it read.
    auto ox = a.operands(x), oy = b.operands(y);
    if (ox.size() != oy.size() || ox.size() > 4 || op_info(a.op(x)).cls != OpClass::Elementwise) continue;
    size_t others = 0;
    for (size_t k = 0; k < ox.size(); ++k) others += to_[ox[k].value] != oy[k];
    for (size_t k = 0; k < ox.size() && others > 1; ++k)
      if (fresh(oy[k]) && a.op(ox[k]) != b.op(oy[k])) add(x, oy[k], HeirKind::kDerived);
  }
  std::reverse(work_.begin(), work_.end());
  work_off();
  // Roots are read from outside.
  for (CompId c : b.computations()) {
    CompId partner = out_.same_computation[c.value];
    if (!partner.valid()) continue;
    InstId p = a.comp(partner).root, q = b.comp(c).root;
    relate(p, q);
    InstId rp = a_.resolved(p), rq = b_.resolved(q);
    if (rp != p || rq != q) relate(rp, rq);
    work_off();
  }
}

// An iota in a layout that no iota of that value had: the same one laid out anew, or another one transposed with its
// layout, as a layout normalization does. What reads it in which place decides; invalid where that does not.
InstId StageMatcher::read_alike(InstId y) {
  const Module &a = a_.m, &b = b_.m;
  auto physical = [](const Module& m, InstId i) {
    uint64_t h = static_cast<uint64_t>(m.shape(i).type);
    for (int64_t d : m.shape(i).layout.minor_to_major)
      h = hash_combine(h, static_cast<uint64_t>(m.shape(i).dims[static_cast<size_t>(d)]));
    return h;
  };
  if (iotas_.empty())
    for (InstId x : order_a_)
      if (a.op(x) == Opcode::Iota && ended(x)) iotas_[physical(a, x)].push_back(x);
  auto at = iotas_.find(physical(b, y));
  if (at == iotas_.end() || at->second.size() > 64) return {};
  InstId best;
  size_t most = 0, next = 0;
  auto uy = b.users(y);
  for (InstId x : at->second) {
    size_t alike = 0;
    auto ux = a.users(x);
    for (size_t n = 0; n < uy.size() && n < 16; ++n)
      for (size_t k = 0; k < ux.size() && k < 16; ++k) {
        if (!ended(ux[k]) || a_.exact(ux[k]) != b_.exact(uy[n])) continue;
        auto ox = a.operands(ux[k]), oy = b.operands(uy[n]);
        for (size_t o = 0; o < ox.size() && o < oy.size(); ++o) alike += ox[o] == x && oy[o] == y;
      }
    if (alike > most)
      next = most, most = alike, best = x;
    else
      next = std::max(next, alike);
  }
  return most > next ? best : InstId();
}

// Several compute the same, and no reader told which it is.
void StageMatcher::of_the_ambiguous() {
  for (auto& [y, candidates] : ambiguous_) {
    if (!from_[y.value].empty()) continue;
    InstId x;
    if (b_.m.op(y) == Opcode::Iota && std::all_of(candidates.begin(), candidates.end(), [&, of = y](InstId c) {
          return a_.m.shape_id(c) != b_.m.shape_id(of);
        }))
      x = read_alike(y);
    if (!x.valid()) x = best_of(y, candidates);
    add(x, y, HeirKind::kCloned);
    work_.emplace_back(x, y);
    work_off();
  }
}

// What reads the same as one that ended, and is as large, where both are the only such.
void StageMatcher::of_operands() {
  const Module &a = a_.m, &b = b_.m;
  std::unordered_map<uint64_t, std::pair<std::vector<InstId>, std::vector<InstId>>> groups;
  std::vector<uint64_t> keys;
  for (InstId y : order_b_) {
    if (!fresh(y) || !from_[y.value].empty() || b_.opaque(y) || b.operand_count(y) == 0) continue;
    uint64_t h = hash_bytes(b.u().shape_text_plain(b.shape_id(y)));
    for (InstId o : b.operands(y)) h = hash_combine(h, value_b_[b_.resolved(o).value]);
    auto [at, first] = groups.try_emplace(h);
    if (first) keys.push_back(h);
    at->second.second.push_back(y);
  }
  if (keys.empty()) return;
  for (InstId x : order_a_) {
    if (!ended(x) || !heirs_[x.value].empty() || a_.opaque(x) || a.operand_count(x) == 0) continue;
    uint64_t h = hash_bytes(a.u().shape_text_plain(a.shape_id(x)));
    for (InstId o : a.operands(x)) h = hash_combine(h, value_a_[a_.resolved(o).value]);
    if (auto at = groups.find(h); at != groups.end()) at->second.first.push_back(x);
  }
  for (uint64_t h : keys) {
    auto& [xs, ys] = groups[h];
    if (xs.size() == 1 && ys.size() == 1) add(xs[0], ys[0], HeirKind::kReplaced);
  }
}

// A fusion or call that is new stands for what its root copies.
void StageMatcher::of_fusions() {
  const Module& b = b_.m;
  for (InstId y : order_b_) {
    if (!fresh(y) || !b_.opaque(y) || b.op(y) == Opcode::Parameter || !from_[y.value].empty()) continue;
    InstId root = b.comp(b.called(y)[0]).root;
    std::vector<InstId> parts{root};
    if (b.op(root) == Opcode::Tuple) parts.assign(b.operands(root).begin(), b.operands(root).end());
    for (InstId part : parts) {
      InstId r = b_.resolved(part);
      if (b.parent(r) != b.parent(root)) continue;
      auto origins = from_[r.value];
      for (auto [x, kind] : origins) add(x, y, parts.size() == 1 && gone(x) ? HeirKind::kReplaced : HeirKind::kDerived);
    }
  }
  // What a kernel is there for may stand deeper in it.
  for (InstId y : order_b_) {
    if (!fresh(y) || b.op(y) != Opcode::Fusion || b.called(y).empty()) continue;
    // A root that only moves: the fusion is what it moves as well.
    InstId root = b.comp(b.called(y)[0]).root, moved = root;
    for (int k = 0; k < 8 && only_moves(b.op(moved)); ++k) moved = b.operand(moved, 0);
    if (moved != root && fresh(moved) && b.op(moved) != Opcode::Parameter) {
      auto origins = from_[moved.value];
      for (auto [x, kind] : origins)
        if (ended(x)) add(x, y, HeirKind::kDerived);
    }
    for (InstId i : b.comp(b.called(y)[0]).order) {
      Opcode op = b.op(i);
      if (!fresh(i) ||
          (op != Opcode::Dot && op != Opcode::Convolution && op != Opcode::Scatter && op != Opcode::Reduce))
        continue;
      auto origins = from_[i.value];
      for (auto [x, kind] : origins) add(x, y, HeirKind::kDerived);
    }
  }
}

// A fusion made of all that another one was made of is its copy.
void StageMatcher::of_copied_fusions() {
  const Module &a = a_.m, &b = b_.m;
  for (InstId y : order_b_) {
    if (!fresh(y) || b.op(y) != Opcode::Fusion || b.called(y).empty()) continue;
    InstId named = by_stem(y);
    if (named.valid()) {
      add(named, y, HeirKind::kCloned);
      continue;
    }
    auto origins = from_[b.comp(b.called(y)[0]).root.value];
    for (auto [x, kind] : origins) {
      if (kind != HeirKind::kCloned || !a.is_root(x)) continue;
      InstId of = a_.sole_caller(a.parent(x));
      if (of.valid() && a.op(of) == Opcode::Fusion && b_.content(b.called(y)[0]) == a_.content(a.called(of)[0]))
        add(of, y, ended(of) ? HeirKind::kReplaced : HeirKind::kCloned);
    }
  }
}

// What is new and stands in nobody's place: part of what stands in one, or made of what it moves.
void StageMatcher::of_regions() {
  const Module &a = a_.m, &b = b_.m;
  std::vector<InstId> moving;
  for (size_t n = order_b_.size(); n-- > 0;) {
    InstId y = order_b_[n];
    if (!fresh(y) || !from_[y.value].empty() || b_.opaque(y)) continue;
    if (b.op(y) == Opcode::Parameter || b.op(y) == Opcode::Constant) continue;
    // Whose replacement is it part of?
    std::vector<InstId> owners;
    for (InstId u : b.users(y)) {
      if (!fresh(u)) continue;
      for (auto [x, kind] : from_[u.value])
        if ((ended(x) || kind == HeirKind::kDerived) && std::find(owners.begin(), owners.end(), x) == owners.end())
          owners.push_back(x);
    }
    if (owners.empty() || owners.size() > 16) continue;
    // One of its kind that ended among what the owner was made of.
    std::vector<InstId> region = owners;
    InstId kin;
    size_t kins = 0;
    for (size_t at = 0; at < region.size() && region.size() < 64; ++at) {
      InstId x = region[at];
      if (a.op(x) == b.op(y) && heirs_[x.value].empty()) kin = x, ++kins;
      for (InstId o : a.operands(x))
        if (ended(o) && std::find(region.begin(), region.end(), o) == region.end()) region.push_back(o);
    }
    bool merged = false;  // several of its kind became one
    for (InstId x : owners)
      if (a.op(x) == b.op(y)) add(x, y, HeirKind::kDerived), merged = true;
    if (merged) continue;
    if (kins == 1) {
      add(kin, y, HeirKind::kDerived);
    } else if (kins == 0 && (owners.size() == 1 || only_moves(b.op(y)) || b.op(y) == Opcode::Slice)) {
      for (InstId x : owners) add(x, y, HeirKind::kDerived);
    }
    moving.push_back(y);
  }
  // What moves a value is made of that value, too.
  for (size_t n = moving.size(); n-- > 0;) {
    InstId y = moving[n];
    if (!only_moves(b.op(y)) || b.op(y) == Opcode::Convert) continue;
    InstId o = b_.resolved(b.operand(y, 0));
    if (!fresh(o)) {
      if (b.op(o) != Opcode::Parameter) add(out_.same[o.value], y, HeirKind::kDerived);
    } else if (only_moves(b.op(o))) {
      auto origins = from_[o.value];
      for (auto [x, kind] : origins) add(x, y, HeirKind::kDerived);
    }
  }
}

// One of its kind that ended, or that nobody reads now, next to what it reads or is read by.
InstId StageMatcher::neighbour(InstId y) {
  const Module &a = a_.m, &b = b_.m;
  InstId found;
  bool several = false;
  const bool spread = b.op(y) == Opcode::Broadcast;  // of one value, of which there are many
  auto consider = [&](InstId x) {
    if (a.op(x) != b.op(y) || !ended(x) || !heirs_[x.value].empty() || x == found) return;
    if (spread && value_a_[a_.resolved(a.operand(x, 0)).value] != value_b_[b_.resolved(b.operand(y, 0)).value]) return;
    several |= found.valid();
    found = x;
  };
  auto around = [&](InstId x, bool users, int depth, auto&& self) -> void {
    for (InstId o : a.operands(x)) {
      InstId r = a_.resolved(o);
      consider(r);
      if (depth > 0 && ended(r)) self(r, false, depth - 1, self);
    }
    auto list = a.users(x);
    for (size_t k = 0; users && k < list.size() && k < 16; ++k) {
      consider(list[k]);
      if (depth > 0 && ended(list[k])) self(list[k], true, depth - 1, self);
    }
  };
  for (int depth = 0; depth < 3 && !found.valid(); ++depth) {
    auto of = [&](InstId z, bool users) {
      if (!fresh(z)) {
        around(out_.same[z.value], users, depth, around);
      } else {
        for (auto [x, kind] : from_[z.value]) around(x, users, depth, around);
      }
    };
    for (InstId o : b.operands(y)) of(b_.resolved(o), true);
    auto readers = b.users(y);
    for (size_t k = 0; k < readers.size() && k < 16; ++k) of(readers[k], false);
  }
  return several ? InstId() : found;
}

void StageMatcher::of_neighbours() {
  const Module& b = b_.m;
  for (InstId y : order_b_) {
    if (!fresh(y) || !from_[y.value].empty() || b_.opaque(y)) continue;
    if (b.op(y) == Opcode::Parameter || b.op(y) == Opcode::Constant || b.op(y) == Opcode::Tuple ||
        b.op(y) == Opcode::GetTupleElement)
      continue;
    if (InstId x = neighbour(y); x.valid()) {
      add(x, y, HeirKind::kDerived);
      continue;
    }
    // A part of what it is read by: a reduction in two steps.
    InstId whole;
    bool others = false;
    for (InstId u : b.users(y)) {
      others |= b.op(u) != b.op(y) || fresh(u) || whole.valid();
      whole = u;
    }
    if (whole.valid() && !others) add(out_.same[whole.value], y, HeirKind::kDerived);
  }
}

// What moves values derives from what it moves.
void StageMatcher::of_movements() {
  const Module& b = b_.m;
  for (InstId y : order_b_) {
    if (!fresh(y) || !from_[y.value].empty() || b_.opaque(y)) continue;
    switch (b.op(y)) {
      case Opcode::Copy:
      case Opcode::Bitcast:
      case Opcode::Convert:
      case Opcode::Transpose:
      case Opcode::Reshape:
      case Opcode::Pad:
      case Opcode::Slice:
      case Opcode::CopyStart:
      case Opcode::CopyDone: {
        InstId o = b_.resolved(b.operand(y, 0));
        if (!fresh(o)) {
          add(out_.same[o.value], y, HeirKind::kDerived);
        } else {
          auto origins = from_[o.value];
          for (auto [x, kind] : origins) add(x, y, HeirKind::kDerived);
        }
        break;
      }
      default:
        break;
    }
  }
}

// What ended without an heir lives on in what its readers became, or was dead.
void StageMatcher::of_the_gone() {
  const Module& a = a_.m;
  for (size_t n = order_a_.size(); n-- > 0;) {
    InstId x = order_a_[n];
    if (!gone(x) || !heirs_[x.value].empty() || (a_.opaque(x) && a.op(x) == Opcode::Parameter)) continue;
    std::vector<InstId> heirs;
    bool reader = a.is_root(x), living = false;
    for (InstId u : a.users(x)) {
      reader = true;
      living |= !gone(u);
      if (gone(u))
        for (InstId z : heirs_[u.value])
          if (std::find(heirs.begin(), heirs.end(), z) == heirs.end()) heirs.push_back(z);
    }
    if (heirs.size() > 8) heirs.clear(), living = true;
    for (InstId z : heirs) add(x, z, HeirKind::kDerived);
    out_.undecided[x.value] = heirs.empty() && (living || a.is_root(x)) && reader;
  }
}

void StageMatcher::finish() {
  for (size_t to = 0; to < from_.size(); ++to)
    for (auto [x, kind] : from_[to]) out_.heirs.push_back(Heir{x, InstId(to), kind});
  std::sort(out_.heirs.begin(), out_.heirs.end(),
            [](const Heir& p, const Heir& q) { return p.from != q.from ? p.from < q.from : p.to < q.to; });
}

}  // namespace hlo
