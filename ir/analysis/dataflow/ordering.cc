#include "ir/analysis/dataflow/ordering.h"

#include <algorithm>

namespace hlo {

Reachability::Reachability(const Module& m)
    : first_(m.inst_slots() + 1, 0),
      rank_(m.inst_slots(), 0),
      lowest_(m.inst_slots(), 0),
      level_(m.inst_slots(), 0),
      computation_(m.inst_slots(), 0),
      chain_(m.inst_slots(), 0),
      place_(m.inst_slots(), 0),
      bits_(m.comp_slots()),
      scheduled_(m.config().is_scheduled),
      seen_(m.inst_slots(), 0) {
  for (CompId c : m.nonfusion_computations()) {
    bits_[c.value].first_rank = static_cast<uint32_t>(order_.size() + 1);
    for (InstId i : scheduled_ ? m.live_order(c) : m.post_order(c)) {
      order_.push_back(i);
      rank_[i.value] = static_cast<uint32_t>(order_.size());
      computation_[i.value] = c.value;
      first_[i.value + 1] = static_cast<uint32_t>(m.operand_count(i) + m.control_preds(i).size());
    }
    bits_[c.value].count = static_cast<uint32_t>(order_.size() + 1) - bits_[c.value].first_rank;
  }
  for (size_t k = 1; k < first_.size(); ++k) first_[k] += first_[k - 1];
  before_.resize(first_.back());
  std::vector<bool> continued(m.inst_slots(), false);
  uint32_t chains = 0;
  for (InstId i : order_) {
    uint32_t at = first_[i.value], level = 0, lowest = rank_[i.value];
    InstId last;  // of a chain that goes on here
    auto add = [&](InstId p) {
      before_[at++] = p;
      level = std::max(level, level_[p.value] + 1);
      lowest = std::min(lowest, lowest_[p.value]);
      if (!last.valid() && !continued[p.value]) last = p;
    };
    for (InstId o : m.operands(i)) add(o);
    for (InstId p : m.control_preds(i)) add(p);
    level_[i.value] = level, lowest_[i.value] = lowest;
    chain_[i.value] = last.valid() ? chain_[last.value] : chains++;
    place_[i.value] = last.valid() ? place_[last.value] + 1 : 0;
    if (last.valid()) continued[last.value] = true;
  }
}

const Reachability::Bits* Reachability::bits_of(InstId i) const {
  Bits& bits = bits_[computation_[i.value]];
  if (bits.count > kFew) return nullptr;
  if (!bits.words.empty()) return &bits;
  const size_t width = (bits.count + 63) / 64;
  bits.words.assign(width * bits.count, 0);
  for (uint32_t k = 0; k < bits.count; ++k) {
    const InstId at = order_[bits.first_rank - 1 + k];
    uint64_t* row = bits.words.data() + k * width;
    for (uint32_t e = first_[at.value]; e < first_[at.value + 1]; ++e) {
      const uint32_t p = rank_[before_[e].value] - bits.first_rank;
      const uint64_t* other = bits.words.data() + p * width;
      for (size_t w = 0; w <= p / 64; ++w) row[w] |= other[w];
      row[p / 64] |= uint64_t{1} << (p % 64);
    }
  }
  return &bits;
}

bool Reachability::before(InstId a, InstId b) const {
  const uint32_t rank = rank_[a.value];
  if (scheduled_) return rank < rank_[b.value];
  if (a == b || level_[b.value] <= level_[a.value] || lowest_[b.value] > rank || rank > rank_[b.value]) return false;
  const Bits* bits = bits_of(b);
  if (!bits) return along_operands(a, b);
  const size_t width = (bits->count + 63) / 64;
  const uint32_t column = rank - bits->first_rank;
  return bits->words[(rank_[b.value] - bits->first_rank) * width + column / 64] >> (column % 64) & 1;
}

bool Reachability::along_operands(InstId a, InstId b) const {
  const uint32_t rank = rank_[a.value], level = level_[a.value];
  std::vector<InstId> stack{b};
  ++question_;
  while (!stack.empty()) {
    const InstId i = stack.back();
    stack.pop_back();
    if (chain_[i.value] == chain_[a.value] && place_[i.value] >= place_[a.value]) return true;
    for (uint32_t k = first_[i.value]; k < first_[i.value + 1]; ++k) {
      const InstId p = before_[k];
      if (p == a) return true;
      if (seen_[p.value] == question_ || level_[p.value] <= level || lowest_[p.value] > rank || rank > rank_[p.value])
        continue;
      seen_[p.value] = question_;
      stack.push_back(p);
    }
  }
  return false;
}

Ordering::Ordering(const Dataflow& flow, const AliasInfo& aliases)
    : m_(flow.module()),
      flow_(flow),
      aliases_(aliases),
      reachability_(m_),
      caller_(m_.comp_slots()),
      depth_(m_.comp_slots(), 0) {
  const std::vector<std::vector<InstId>> callers = m_.callers();
  std::vector<CompId> comps = m_.computation_post_order();
  for (CompId c : comps)
    if (callers[c.value].size() == 1) caller_[c.value] = callers[c.value][0];
  for (size_t k = comps.size(); k-- > 0;)
    for (InstId i : callers[comps[k].value])
      depth_[comps[k].value] = std::max(depth_[comps[k].value], depth_[m_.parent(i).value] + 1);
}

bool Ordering::nested_in(InstId i, CompId c) const {
  CompId at = m_.parent(i);
  while (at != c) {
    if (depth_[at.value] <= depth_[c.value] || !caller_[at.value].valid()) return false;
    at = m_.parent(caller_[at.value]);
  }
  return true;
}

// The instructions of one computation that run both, the nearest ones; invalid where there is no such computation.
std::pair<InstId, InstId> Ordering::ancestors(InstId a, InstId b) const {
  while (m_.parent(a) != m_.parent(b)) {
    InstId& lower = depth_[m_.parent(a).value] > depth_[m_.parent(b).value] ? a : b;
    InstId& other = &lower == &a ? b : a;
    const InstId up = caller_[m_.parent(lower).value], beside = caller_[m_.parent(other).value];
    if (up.valid()) {
      lower = up;
    } else if (depth_[m_.parent(lower).value] == depth_[m_.parent(other).value] && beside.valid()) {
      other = beside;
    } else {
      return {};
    }
  }
  return {a, b};
}

int Ordering::branch_of(InstId i, InstId conditional) const {
  const std::vector<CompId> branches = m_.called(conditional);
  for (size_t k = branches.size(); k-- > 0;)
    if (nested_in(i, branches[k])) return static_cast<int>(k);
  return -1;
}

Constraint Ordering::constraint(InstId a, InstId b) const {
  auto wraps = [&](InstId start, InstId inner) {
    const Opcode op = m_.op(start);
    return (op == Opcode::AsyncStart || op == Opcode::AsyncUpdate || op == Opcode::AsyncDone) &&
           !m_.called(start).empty() && m_.comp(m_.called(start)[0]).root == inner;
  };
  if (a == b || wraps(a, b) || wraps(b, a)) return Constraint::kSame;
  const auto [x, y] = ancestors(a, b);
  if (!x.valid()) return Constraint::kUnordered;
  if (x == y && m_.op(x) == Opcode::While) {
    const AttrSet& attrs = m_.attrs(x);
    if (nested_in(a, attrs.comp(Attr::condition)) && nested_in(b, attrs.comp(Attr::body)))
      return Constraint::kBeforeEnd;
  }
  if (x == y && m_.op(x) == Opcode::Conditional) {
    const int of_a = branch_of(a, x), of_b = branch_of(b, x);
    if (of_b < 0) return Constraint::kBeforeEnd;
    if (of_a < 0) return Constraint::kAfter;
    if (of_a < of_b) return Constraint::kExclusiveBefore;
    if (of_b < of_a) return Constraint::kExclusiveAfter;
  }
  if (reachability_.before(x, y)) return Constraint::kBeforeStart;
  if (reachability_.before(y, x)) return Constraint::kAfter;
  return Constraint::kUnordered;
}

bool Ordering::executes_before(InstId a, InstId b) const {
  const Constraint c = constraint(a, b);
  return c == Constraint::kBeforeStart || c == Constraint::kBeforeEnd || c == Constraint::kExclusiveBefore;
}

bool Ordering::phi_of_parameter(ValueId v) const { return flow_[v].phi && m_.op(flow_[v].inst) == Opcode::Parameter; }

bool Ordering::defined_before(ValueId a, ValueId b) const {
  const InstId x = flow_[a].inst, y = flow_[b].inst;
  auto argument = [&](InstId i) { return m_.op(i) == Opcode::Parameter && m_.parent(i) == m_.entry(); };
  if (argument(y)) return false;
  if (argument(x)) return true;
  // A phi of a loop's body or condition is there before all else in it, one of the loop behind all that is in it.
  if (phi_of_parameter(a) && !phi_of_parameter(b) && nested_in(y, m_.parent(x))) return true;
  if (phi_of_parameter(b) && nested_in(x, m_.parent(y))) return false;
  if (flow_[b].phi && m_.op(y) == Opcode::While)
    for (CompId c : m_.called(y))
      if (nested_in(x, c)) return true;
  if (flow_[b].phi && m_.op(y) == Opcode::Conditional && branch_of(x, y) >= 0) return true;
  return executes_before(x, y);
}

bool Ordering::uses_before_definition(std::span<const ValueUse> uses, ValueId value) const {
  Exclusive state;
  return std::all_of(uses.begin(), uses.end(),
                     [&](const ValueUse& use) { return use_before_definition(use, value, &state); });
}

bool Ordering::use_before_definition(const ValueUse& use, ValueId value, Exclusive* state) const {
  const InstId defined = flow_[value].inst;
  switch (constraint(use.inst, defined)) {
    case Constraint::kSame:
      if (use.inst == defined && aliases_.can_share(flow_, use, defined, flow_[value].node)) return true;
      break;
    case Constraint::kExclusiveAfter:
      // What is written in one branch reaches another one only around a loop, out of the conditional and into it again.
      if (!state->escaped) return state->used = true;
      break;
    case Constraint::kExclusiveBefore:
    case Constraint::kBeforeStart:
    case Constraint::kBeforeEnd:
      return true;
    case Constraint::kAfter:
    case Constraint::kUnordered:
      break;
  }
  return use_by_caller(use, value, state);
}

// What a loop or call takes is used before anything in it is written.
bool Ordering::use_by_caller(const ValueUse& use, ValueId value, Exclusive* state) const {
  const InstId defined = flow_[value].inst, by = use.inst;
  const Opcode op = m_.op(by);
  if (op == Opcode::While) {
    const AttrSet& a = m_.attrs(by);
    if (nested_in(defined, a.comp(Attr::body))) return true;
    // Of a condition only its state: what flows in lives until the body starts.
    if (nested_in(defined, a.comp(Attr::condition))) return defined == m_.comp(a.comp(Attr::condition)).params[0];
  }
  if (m_.op(defined) == Opcode::While)
    for (CompId c : m_.called(defined))
      if (nested_in(by, c)) return true;
  const bool async = op == Opcode::AsyncStart || op == Opcode::AsyncUpdate || op == Opcode::AsyncDone;
  if ((op == Opcode::Call || async) && !m_.called(by).empty() && nested_in(defined, m_.called(by)[0])) return true;
  if (op != Opcode::Conditional) return false;
  for (CompId c : m_.called(by)) {
    if (!nested_in(defined, c)) continue;
    const InstId given = m_.operand(by, use.operand);
    if (flow_[flow_.at(given)].inst != given) {
      for (const ValueUse& u : flow_.uses(value))
        if (m_.is_root(u.inst)) state->escaped = true;
    }
    if (!state->used) return true;
  }
  return defined == by;
}

}  // namespace hlo
