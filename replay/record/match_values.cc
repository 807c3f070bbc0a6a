// Copies, found by what they compute: value numbers over both stages, through fusions, calls and tuples.
#include <algorithm>

#include "replay/record/match_impl.h"

namespace hlo {

void StageMatcher::number_before() {
  const Module& a = a_.m;
  value_a_.assign(a.inst_slots(), 0);
  numbers_.reserve(order_a_.size());
  for (InstId i : order_a_) {
    InstId r = a_.resolved(i);
    if (r != i) {
      value_a_[i.value] = value_a_[r.value];
      continue;
    }
    if (a.op(i) == Opcode::Parameter || a.has_side_effect(i)) {
      value_a_[i.value] = ++next_value_;
      holders_.resize(next_value_ + 1);
      holders_[next_value_].push_back(i);
      continue;
    }
    uint64_t h = a_.exact(i);
    for (InstId o : a.operands(i)) h = hash_combine(h, value_a_[a_.resolved(o).value]);
    auto [at, first] = numbers_.try_emplace(h, next_value_ + 1);
    if (first) ++next_value_, holders_.resize(next_value_ + 1);
    value_a_[i.value] = at->second;
    holders_[at->second].push_back(i);
  }
}

// The instruction of before whose name it has, with a number behind.
InstId StageMatcher::by_stem(InstId y) const {
  if (!options_.use_names) return {};
  const Module& b = b_.m;
  std::string_view name = b.inst_name(y);
  auto find = [&](std::string_view text) {
    StrId id = b.u().find_str(text);
    InstId x = id.valid() && id.value < named_.size() ? named_[id.value] : InstId();
    return x.valid() && a_.m.op(x) == b.op(y) && same_plain_shape(x, y) ? x : InstId();
  };
  if (InstId x = find(name); x.valid()) return x;
  for (int step = 0; step < 4; ++step) {
    name = name_stem(name);
    if (name.empty()) return {};
    if (InstId x = find(name); x.valid()) return x;
  }
  return {};
}

void StageMatcher::find_clones() {
  const Module& b = b_.m;
  value_b_.assign(b.inst_slots(), 0);
  for (InstId i : order_b_) {
    InstId r = b_.resolved(i);
    if (!fresh(i) && r == i) {
      value_b_[i.value] = value_a_[out_.same[i.value].value];
      continue;
    }
    if (r != i) {
      value_b_[i.value] = value_b_[r.value];
      continue;
    }
    if (b.op(i) == Opcode::Parameter) {
      value_b_[i.value] = ++next_value_;
      continue;
    }
    InstId named = by_stem(i);
    uint64_t h = b_.exact(i);
    for (InstId o : b.operands(i)) h = hash_combine(h, value_b_[b_.resolved(o).value]);
    auto at = numbers_.find(h);
    const std::vector<InstId>* holders = nullptr;
    if (at != numbers_.end() && at->second < holders_.size()) holders = &holders_[at->second];
    if (holders && !holders->empty()) {
      value_b_[i.value] = at->second;
      std::vector<InstId> from;
      if (named.valid() && std::find(holders->begin(), holders->end(), named) != holders->end()) {
        from = {named};
      } else {
        for (InstId x : *holders)
          if (gone(x)) from.push_back(x);
        if (from.empty()) from = *holders;
        if (from.size() > 1) from = {best_of(i, from)};
      }
      for (InstId x : from)
        if (x.valid()) {
          add(x, i, HeirKind::kCloned);
          work_.emplace_back(x, i);
        }
      continue;
    }
    if (named.valid()) {
      add(named, i, HeirKind::kCloned);
      work_.emplace_back(named, i);
    }
    if (at == numbers_.end()) {
      at = numbers_.emplace(h, ++next_value_).first;
    }
    value_b_[i.value] = at->second;
  }
}

// Of several that compute the same: the one whose readers the copy's readers are. Invalid where that does not decide.
InstId StageMatcher::best_of(InstId y, const std::vector<InstId>& candidates) {
  // Parents first: what stands in the same computation; then one without an heir; then the first.
  for (InstId x : candidates)
    if (out_.same_computation[b_.m.parent(y).value] == a_.m.parent(x) && heirs_[x.value].empty()) return x;
  for (InstId x : candidates)
    if (heirs_[x.value].empty()) return x;
  return candidates[0];
}

}  // namespace hlo
