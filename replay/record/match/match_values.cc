// Copies, found by what they compute: value numbers over both stages, through fusions, calls and tuples.
#include <algorithm>

#include "replay/record/match/match_impl.h"

namespace hlo {

void StageMatcher::number_before() {
  const Module& a = a_.m;
  if (options_.use_names)
    for (InstId i : order_a_)
      if (std::string_view stem = name_stem(a.inst_name(i)); !stem.empty())
        if (StrId id = a.u().find_str(stem); id.valid()) {
          auto [at, first] = siblings_.try_emplace(hash_combine(id.value, static_cast<uint64_t>(a.op(i))), i);
          if (!first) at->second = InstId();
        }
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
    if (uint64_t key = carried_key(a_, i, value_a_, carried_, i)) {
      auto [at, first] = numbers_.try_emplace(key, next_value_ + 1);
      if (first) ++next_value_, holders_.resize(next_value_ + 1);
      value_a_[i.value] = at->second;
      holders_[at->second].push_back(i);
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

// What an element of a loop's parameter is known by: the loop and what the element begins as. Where several begin
// alike, by their rank among these. 0: it is no such element.
uint64_t StageMatcher::carried_key(const StageSide& side, InstId element, const std::vector<uint32_t>& values,
                                   std::unordered_map<InstId, std::vector<uint64_t>>& known, InstId of_before) {
  const Module& m = side.m;
  if (m.op(element) != Opcode::GetTupleElement) return 0;
  InstId parameter = m.operand(element, 0);
  if (m.op(parameter) != Opcode::Parameter) return 0;
  InstId loop = side.loop_of(m.parent(parameter));
  if (!loop.valid()) return 0;
  if (!of_before.valid())
    of_before = loop_before(loop);
  else
    of_before = loop;
  if (!of_before.valid()) return 0;
  auto [at, first] = known.try_emplace(loop);
  if (first) {
    InstId init = side.resolved(m.operand(loop, 0));
    if (m.op(init) == Opcode::Tuple) {
      std::unordered_map<uint32_t, uint64_t> ranks;
      for (InstId o : m.operands(init)) {
        uint32_t v = values[side.resolved(o).value];
        at->second.push_back(hash_combine(hash_combine(0xC0FFEE, v), ++ranks[v]));
      }
    }
  }
  auto index = static_cast<size_t>(m.attrs(element).integer(Attr::index));
  if (index >= at->second.size()) return 0;
  bool body = m.called(loop)[0] == m.parent(parameter);
  return hash_combine(hash_combine(at->second[index], of_before.value), body ? 2 : 1);
}

// The loop that a new one was made of: the one that begins with most of the same values.
InstId StageMatcher::loop_before(InstId loop) {
  if (!fresh(loop)) return out_.same[loop.value];
  auto [at, first] = loops_.try_emplace(loop);
  if (!first) return at->second;
  auto begins = [](const StageSide& side, InstId of, const std::vector<uint32_t>& values) {
    std::vector<uint32_t> out;
    InstId init = side.resolved(side.m.operand(of, 0));
    if (side.m.op(init) == Opcode::Tuple)
      for (InstId o : side.m.operands(init)) out.push_back(values[side.resolved(o).value]);
    std::sort(out.begin(), out.end());
    return out;
  };
  std::vector<uint32_t> mine = begins(b_, loop, value_b_), common;
  size_t best = 0;
  InstId found;
  for (InstId x : order_a_) {
    if (a_.m.op(x) != Opcode::While || !gone(x)) continue;
    std::vector<uint32_t> other = begins(a_, x, value_a_);
    common.clear();
    std::set_intersection(mine.begin(), mine.end(), other.begin(), other.end(), std::back_inserter(common));
    bool taken = false;
    for (const auto& [y, of] : loops_) taken |= of == x;
    if (!taken && common.size() > best) best = common.size(), found = x;
  }
  return loops_[loop] = found;
}

// Computations that are new and the same throughout as one of before: copies.
void StageMatcher::clones_of_computations() {
  const Module &a = a_.m, &b = b_.m;
  std::unordered_map<uint64_t, std::vector<CompId>> known;
  bool prepared = false;
  for (CompId c : b.computations()) {
    if (out_.same_computation[c.value].valid()) continue;
    if (!prepared)
      for (CompId x : a.computations()) known[a_.content(x)].push_back(x);
    prepared = true;
    auto at = known.find(b_.content(c));
    if (at == known.end()) continue;
    CompId of = at->second[0];
    if (options_.use_names) {
      std::string_view stem = name_stem(b.comp_name(c));
      for (CompId x : at->second)
        if (a.comp_name(x) == stem) of = x;
    }
    std::vector<InstId> xs = a.post_order(of), ys = b.post_order(c);
    for (size_t k = 0; k < xs.size() && k < ys.size(); ++k)
      if (fresh(ys[k]) && from_[ys[k].value].empty() && a.op(xs[k]) == b.op(ys[k]))
        add(xs[k], ys[k], HeirKind::kCloned);
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
    // `add.7.2` is a copy of what is called `add.7.0` by now.
    StrId id = b.u().find_str(name);
    auto sibling =
        id.valid() ? siblings_.find(hash_combine(id.value, static_cast<uint64_t>(b.op(y)))) : siblings_.end();
    if (sibling != siblings_.end() && sibling->second.valid() && same_plain_shape(sibling->second, y))
      return sibling->second;
  }
  return {};
}

// A body's tuple that stands in its parameter's place: most of its elements are the parameter's own, in their places.
// One that is not, but is made of the parameter's in that place, is what the body reads as that element now: a counter
// told by another one, say.
void StageMatcher::find_rewritten_elements() {
  const Module& b = b_.m;
  auto element_of = [&](InstId i, InstId parameter, size_t k) {
    return b.op(i) == Opcode::GetTupleElement && b.operand(i, 0) == parameter &&
           static_cast<size_t>(b.attrs(i).integer(Attr::index)) == k;
  };
  for (CompId c : b.computations()) {
    if (b.comp(c).params.size() != 1 || !b_.loop_of(c).valid()) continue;
    InstId parameter = b.comp(c).params[0];
    for (InstId t : b.comp(c).order) {
      if (!b.alive(t) || !fresh(t) || b.op(t) != Opcode::Tuple || b.is_root(t) ||
          b.shape_id(t) != b.shape_id(parameter))
        continue;
      auto list = b.operands(t);
      std::vector<std::pair<InstId, InstId>> others;
      for (size_t k = 0; k < list.size(); ++k) {
        if (element_of(list[k], parameter, k)) continue;
        InstId own;
        if (b.operand_count(list[k]) <= 4)
          for (InstId o : b.operands(list[k]))
            if (element_of(o, parameter, k)) own = o;
        if (fresh(list[k])) others.emplace_back(list[k], own);
      }
      if (others.size() * 2 > list.size()) continue;
      for (const auto& [i, own] : others)
        if (own.valid()) rewritten_.emplace(i, own);
    }
  }
}

// What the body reads as that element now has the element's value number: what reads it is what read the element.
bool StageMatcher::as_rewritten_element(InstId i) {
  auto element = rewritten_.find(i);
  if (element == rewritten_.end()) return false;
  uint64_t key = carried_key(b_, element->second, value_b_, carried_after_, InstId());
  auto known = numbers_.find(key);
  if (key == 0 || known == numbers_.end() || known->second >= holders_.size() || holders_[known->second].empty())
    return false;
  value_b_[i.value] = known->second;
  for (InstId x : holders_[known->second]) add(x, i, HeirKind::kDerived);
  return true;
}

void StageMatcher::find_clones() {
  const Module& b = b_.m;
  find_rewritten_elements();
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
    uint64_t h = carried_key(b_, i, value_b_, carried_after_, InstId());
    if (h == 0) {
      h = b_.exact(i);
      for (InstId o : b.operands(i)) h = hash_combine(h, value_b_[b_.resolved(o).value]);
    }
    auto at = numbers_.find(h);
    if (at == numbers_.end() && as_rewritten_element(i)) continue;
    const std::vector<InstId>* holders = nullptr;
    if (at != numbers_.end() && at->second < holders_.size()) holders = &holders_[at->second];
    if (holders && !holders->empty()) {
      value_b_[i.value] = at->second;
      std::vector<InstId> from;
      if (named.valid() && std::find(holders->begin(), holders->end(), named) != holders->end()) {
        from = {named};
      } else {
        for (InstId x : *holders)
          if (ended(x)) from.push_back(x);
        if (from.empty()) from = *holders;
        // Layouts do not count here; where they differ, it may be another one transposed.
        if (from.size() > 1 || a_.m.shape_id(from[0]) != b.shape_id(i)) {  // who reads it decides
          ambiguous_.emplace_back(i, std::move(from));
          continue;
        }
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
      value_b_[i.value] = value_a_[named.value];  // what reads it is a copy of what reads that
      continue;
    }
    if (at == numbers_.end()) at = numbers_.emplace(h, ++next_value_).first;
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
