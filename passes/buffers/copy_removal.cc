#include "passes/buffers/copy_removal.h"

#include <algorithm>

#include "ir/base/stack_guard.h"

namespace hlo {

CopyRemover::CopyRemover(const Dataflow& flow, const SharedBuffers& buffers, const Ordering& order)
    : m_(flow.module()), flow_(flow), order_(order), nodes_(flow.size()), head_(flow.size(), false) {
  number_instructions();
  for (ValueId b = 0; b < flow.size(); ++b)
    if (!buffers.values(b).empty()) list(buffers.values(b));
  for (CompId c : m_.nonfusion_computations())
    for (InstId i : m_.live_order(c))
      if (m_.op(i) == Opcode::Copy) copies_[i] = {flow.at(m_.operand(i, 0)), flow.at(i)};
}

void CopyRemover::number_instructions() {
  number_.assign(m_.inst_slots(), 0);
  uint32_t last = 0;
  for (CompId c : m_.nonfusion_computations())
    for (InstId i : m_.post_order(c)) number_[i.value] = last++;
}

bool CopyRemover::earlier(ValueId a, ValueId b) const {
  const bool smaller = number_[flow_[a].inst.value] < number_[flow_[b].inst.value];
  const auto [first, second] = smaller ? std::pair(a, b) : std::pair(b, a);
  if (order_.defined_before(first, second)) return smaller;
  if (order_.defined_before(second, first)) return !smaller;
  return smaller;
}

void CopyRemover::list(std::vector<ValueId> values) {
  // Not every two are ordered; merging, unlike other sorts, does not mind.
  std::stable_sort(values.begin(), values.end(), [&](ValueId a, ValueId b) { return a != b && earlier(a, b); });
  for (size_t k = 0; k < values.size(); ++k) {
    Node& n = nodes_[values[k]];
    n.uses = flow_.uses(values[k]);
    n.next = values[(k + 1) % values.size()];
    n.previous = values[(k + values.size() - 1) % values.size()];
  }
  head_[values[0]] = true;
}

// Is a's value read no more when b is written?
bool CopyRemover::ends_before(ValueId a, ValueId b) const {
  left_ -= kUseCost * (static_cast<int64_t>(nodes_[a].uses.size()) + 1);
  if (gave_up()) return false;
  if (nodes_[a].uses.empty()) return order_.defined_before(a, b);
  if (flow_.leaves(a, m_.parent(flow_[b].inst))) return false;
  return order_.uses_before_definition(nodes_[a].uses, b);
}

// The value `last` and those before it in its buffer, before `first` and those behind it.
bool CopyRemover::all_end_before(ValueId last, ValueId first) const {
  for (ValueId b = first; b != kNone; b = next(b))
    for (ValueId a = last; a != kNone; a = previous(a))
      if (!ends_before(a, b)) return false;
  return true;
}

bool CopyRemover::same_ring(const Copied& c) const {
  for (ValueId v = nodes_[c.to].next; v != c.to; v = nodes_[v].next, --left_)
    if (v == c.from) return true;
  return false;
}

//   scatter(x, copy(x), …): both are written at once.
bool CopyRemover::scatter_reads_twice(const Copied& c) const {
  const ValueId after = next(c.to);
  if (after == kNone) return false;
  const InstId by = flow_[after].inst;
  const InstId scatter = m_.op(by) == Opcode::Fusion ? m_.comp(m_.called(by)[0]).root : by;
  if (m_.op(scatter) != Opcode::Scatter || !m_.shape(scatter).is_tuple()) return false;
  const std::vector<ValueUse>& uses = nodes_[c.from].uses;
  return std::any_of(uses.begin(), uses.end(), [&](const ValueUse& u) { return u.inst == by; });
}

// A copy of s, value x of buffer {s0 … sn}, makes d, value y of {d0 … dm}. Without it both are one buffer, in which the
// lives of all values must follow one another:
//   d is the first:  s0 … s, d1 … dm, s(x+1) … sn
//   s is the last:   d0 … d(y-1), s0 … s, d(y+1) … dm
// In the middle of both nothing can go: such a copy moves an element of a loop's state to another place.
bool CopyRemover::try_remove(InstId copy) {
  auto at = copies_.find(copy);
  if (gave_up() || at == copies_.end() || m_.shape_id(copy) != m_.shape_id(m_.operand(copy, 0))) return false;
  const Copied c = at->second;
  if (nodes_[c.from].next == c.to) {
    // One buffer already.
  } else if (same_ring(c)) {
    return false;
  } else if (is_head(c.to)) {
    if (scatter_reads_twice(c)) return false;
    const ValueId last = nodes_[c.to].previous;
    if (!all_end_before(c.from, next(c.to)) || !all_end_before(last, next(c.from))) return false;
    splice(c.to, c.from);
  } else if (is_tail(c.from)) {
    const ValueId first = nodes_[c.from].next;
    if (!all_end_before(previous(c.to), first) || !all_end_before(c.from, next(c.to))) return false;
    splice(first, nodes_[c.to].previous);
  } else {
    return false;
  }
  remove(c.to);
  return true;
}

void CopyRemover::splice(ValueId head, ValueId after) {
  head_[head] = false;
  const ValueId tail = nodes_[head].previous, behind = nodes_[after].next;
  nodes_[tail].next = behind, nodes_[behind].previous = tail;
  nodes_[after].next = head, nodes_[head].previous = after;
}

// What read the copy reads what stands before it in the ring.
void CopyRemover::remove(ValueId copy) {
  const ValueId from = nodes_[copy].previous, behind = nodes_[copy].next;
  nodes_[from].next = behind, nodes_[behind].previous = from;
  const InstId by = flow_[copy].inst;
  std::vector<ValueUse>& uses = nodes_[from].uses;
  left_ -= static_cast<int64_t>(uses.size());
  uses.erase(std::find_if(uses.begin(), uses.end(), [&](const ValueUse& u) { return u.inst == by; }));
  for (const ValueUse& u : nodes_[copy].uses) {
    uses.push_back(u);
    if (auto reader = copies_.find(u.inst); reader != copies_.end() && u.node == 0) reader->second.from = from;
  }
  copies_.erase(by);
}

}  // namespace hlo
