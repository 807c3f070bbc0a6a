// The rules by which a demand spreads to operands, users and siblings; where it begins: demands.cc, gpu_demands.cc.
#include "passes/layout/propagation.h"

#include <algorithm>

#include "ir/sharding/aliasing.h"

namespace hlo {

namespace {
constexpr int kMostUpdates = 2;  // of a buffer, by what is not mandatory

bool is_constrained_collective(const Module& m, InstId i) { return m.attrs(i).flag(Attr::constrain_layout); }

bool is_call_of(const Module& m, InstId i, std::string_view target) {
  return m.op(i) == Opcode::CustomCall && m.u().text(m.attrs(i).text(Attr::custom_call_target)) == target;
}

// Reshapes that only put in or take out dimensions of one element, or move one.
bool changes_ones_alone(const Shape& a, const Shape& b) {
  auto without = [](const Dims& dims) {
    Dims out;
    for (int64_t d : dims)
      if (d != 1) out.push_back(d);
    return out;
  };
  return without(a.dims) == without(b.dims);
}

size_t true_rank(const Shape& s) {
  return static_cast<size_t>(std::count_if(s.dims.begin(), s.dims.end(), [](int64_t d) { return d != 1; }));
}
}  // namespace

bool LayoutPropagation::keeps(InstId i) const {
  switch (m_.op(i)) {
    case Opcode::AddDependency:
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
    case Opcode::AllGatherDone:
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::AllReduceDone:
    case Opcode::AllToAll:
    case Opcode::Cholesky:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::Fft:
    case Opcode::OptBarrier:
    case Opcode::Pad:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter:
    case Opcode::Scan:
    case Opcode::Scatter:
    case Opcode::SetDimensionSize:
    case Opcode::Sort:
    case Opcode::TopK:
    case Opcode::TriangularSolve:
    case Opcode::While:
      return true;
    case Opcode::CustomCall:
      return is_call_of(m_, i, "__gpu$TopK");
    default:
      return keeps_layout(m_.op(i));
  }
}

bool LayoutPropagation::at_most_rank_1(ShapeId s) const { return points_.nodes().highest_rank(s) <= 1; }

bool LayoutPropagation::depth_first(InstId i) const {
  switch (m_.op(i)) {
    case Opcode::Gather:
    case Opcode::Scatter:
    case Opcode::Transpose:
      return true;
    case Opcode::Fusion:
      return u_.text(m_.attrs(i).text(Attr::kind)) == "kCustom";
    case Opcode::Reshape:
      return m_.shape(m_.operand(i, 0)).rank() == 1 || changes_ones_alone(m_.shape(m_.operand(i, 0)), m_.shape(i));
    default:
      return false;
  }
}

// --- demands and their list ---

bool LayoutPropagation::dfs(Ref r) const {
  if (r.kind == Kind::kResult) return true;
  return r.kind == Kind::kBuffer ? buffers_[r.index].dfs : operands_[r.index].dfs;
}

int LayoutPropagation::priority(Ref r) const {
  if (r.kind == Kind::kResult) return calls_[r.index].priority;
  return r.kind == Kind::kBuffer ? buffers_[r.index].priority : operands_[r.index].priority;
}

void LayoutPropagation::push(Ref r, bool first, int wanted) {
  auto at = added_.end();
  if (!first)  // among those that wait, behind all that are as urgent
    while (at != added_.begin() && wanted > priority(*std::prev(at))) --at;
  added_.insert(at, r);
}

const NodeOrders* LayoutPropagation::operand(InstId i, size_t n) const {
  const OperandDemand& d = operands_[first_operand_[i.value] + n];
  return d.set ? &d.orders : nullptr;
}

void LayoutPropagation::set_buffer(BufferId b, uint32_t order, bool mandatory, bool dfs, int priority) {
  BufferDemand& d = buffers_[b];
  const LogicalBuffer& buffer = points_[b];
  if (!d.set) {
    d = {true, mandatory, dfs, priority, 1, order};
  } else if (d.order == order) {
    const BufferDemand before = d;
    d.mandatory |= mandatory, d.dfs |= dfs, d.priority = std::max(d.priority, priority);
    if (d.mandatory == before.mandatory && d.dfs == before.dfs && d.priority == before.priority) return;
    if (u_[buffer.shape].rank() <= 1) return;
  } else {
    if (!mandatory && (d.updates > kMostUpdates || !m_.shape(buffer.inst).is_array() || priority <= d.priority)) return;
    d = {true, mandatory, dfs, priority, d.updates + 1, order};
    if (u_[buffer.shape].rank() <= 1) return;
  }
  push({Kind::kBuffer, b}, d.dfs, d.priority);
  const InstId i = buffer.inst;
  if (m_.op(i) != Opcode::CustomCall && m_.op(i) != Opcode::Fusion) return;
  for (const AliasEntry& e : parse_aliases(u_.text(m_.attrs(i).text(Attr::output_to_operand_aliasing))))
    if (e.index.empty() && e.number >= 0 && static_cast<size_t>(e.number) < m_.operand_count(i) &&
        points_.nodes().at(m_.shape_id(i), e.output) == buffer.node)
      set_array_operand(i, static_cast<size_t>(e.number), order, mandatory, dfs, priority);
}

void LayoutPropagation::set_operand(InstId i, size_t n, const NodeOrders& orders, bool mandatory, bool dfs,
                                    int priority) {
  const InstId o = m_.operand(i, n);
  if (m_.shape(o).is_array() && m_.shape(o).rank() == 0) return;
  const Opcode op = m_.op(i);
  // The pieces that are put in are small beside what they are put into.
  if (!mandatory && ((op == Opcode::DynamicUpdateSlice && n > 0 && priority > -2) ||
                     (op == Opcode::Reshape && m_.op(o) == Opcode::DynamicSlice)))
    dfs = false, --priority;
  const uint32_t at = first_operand_[i.value] + static_cast<uint32_t>(n);
  OperandDemand& d = operands_[at];
  if (d.set) {
    if (d.orders == orders || !mandatory || d.priority > priority) return;
  }
  d = {true, mandatory, dfs, priority, orders};
  push({Kind::kOperand, at}, dfs, priority);
}

void LayoutPropagation::set_array_operand(InstId i, size_t n, uint32_t order, bool mandatory, bool dfs, int priority) {
  const Shape& s = m_.shape(m_.operand(i, n));
  if (s.is_array() && static_cast<size_t>(s.rank()) == orders_[order].size())
    set_operand(i, n, {order}, mandatory, dfs, priority);
}

void LayoutPropagation::set_instruction(InstId i, const NodeOrders& orders, bool mandatory, bool dfs) {
  std::span<const BufferId> set = points_.of(i);
  for (size_t node = 0; node < orders.size() && node < set.size(); ++node)
    if (orders[node] != Orders::kNone) set_buffer(set[node], orders[node], mandatory, dfs);
  if (!m_.shape(i).is_array() || m_.op(i) == Opcode::While || m_.op(i) == Opcode::Conditional || !keeps(i)) return;
  for (size_t n = 0; n < m_.operand_count(i); ++n) set_array_operand(i, n, orders[0], mandatory, dfs, priority_);
}

void LayoutPropagation::propagate(CompId c) {
  std::deque<Ref> work;
  auto take = [&] {
    for (Ref r : added_)
      if (dfs(r))
        work.push_front(r);
      else
        work.push_back(r);
    added_.clear();
  };
  for (take(); !work.empty(); take()) {
    Ref r = work.front();
    work.pop_front();
    switch (r.kind) {
      case Kind::kBuffer:
        propagate_to_operands(r.index);
        propagate_to_uses(r.index);
        break;
      case Kind::kOperand:
        propagate_operand(uses_[r.index].first, uses_[r.index].second);
        break;
      case Kind::kResult:
        propagate_use_to_defs(calls_[r.index].result, m_.comp(c).root, priority_);
        break;
    }
  }
}

void LayoutPropagation::propagate_use_to_defs(const NodeOrders& orders, InstId i, int priority) {
  std::span<const BufferId> set = points_.of(i);
  for (size_t node = 0; node < orders.size() && node < set.size(); ++node) {
    const LogicalBuffer& b = points_[set[node]];
    if (orders[node] == Orders::kNone || !u_[b.shape].is_array()) continue;
    if (m_.op(b.inst) == Opcode::Reduce && m_.shape(b.inst).is_tuple()) continue;
    if (static_cast<size_t>(u_[b.shape].rank()) == orders_[orders[node]].size())
      set_buffer(set[node], orders[node], false, true, priority);
  }
}

// --- from a buffer ---

void LayoutPropagation::propagate_to_operands(BufferId b) {
  const LogicalBuffer& buffer = points_[b];
  const InstId i = buffer.inst;
  if (at_most_rank_1(m_.shape_id(i))) return;
  const uint32_t order = buffers_[b].order;
  if (m_.op(i) == Opcode::AllReduce) {
    size_t n = 0;
    while (m_.shape(i).is_tuple() && n + 1 < m_.operand_count(i) &&
           points_.nodes().child(m_.shape_id(i), n) != buffer.node)
      ++n;
    return set_array_operand(i, n, order, true, true, buffers_[b].priority);
  }
  for (size_t n = 0; n < m_.operand_count(i); ++n) {
    const InstId o = m_.operand(i, n);
    if (at_most_rank_1(m_.shape_id(o)) || !m_.shape(o).is_array()) continue;
    if (keeps(i)) {
      set_array_operand(i, n, order, true, true, priority_);
    } else if (m_.op(i) == Opcode::Broadcast) {
      set_array_operand(i, n,
                        orders_.id(order_of_kept(orders_[order],
                                                 flags_of(m_.attrs(i).ints(Attr::dimensions), orders_[order].size()))),
                        true, false, priority_);
    } else if (buffer.node == 0) {
      uint32_t wanted = operand_from_output(order, i, n);
      if (wanted != Orders::kNone) set_array_operand(i, n, wanted, false, depth_first(i), priority_);
    }
  }
}

void LayoutPropagation::propagate_to_uses(BufferId b) {
  const LogicalBuffer& buffer = points_[b];
  for (InstId alias : points_.arrays(b))
    for (InstId user : m_.users(alias))
      for (size_t n = 0; n < m_.operand_count(user); ++n)
        if (m_.operand(user, n) == alias && !points_.forwards(user, n))
          set_array_operand(user, n, buffers_[b].order, false, true, buffers_[b].priority);
  // From the end of a loop's body to its beginning.
  const CompId c = m_.parent(buffer.inst);
  const InstId root = m_.comp(c).root;
  if (callers_[c.value].size() != 1 || m_.op(callers_[c.value][0]) != Opcode::While) return;
  if (m_.op(root) != Opcode::Tuple || m_.comp(c).params.empty()) return;
  const InstId param = m_.comp(c).params[0];
  for (InstId user : m_.users(buffer.inst)) {
    if (user != root) continue;
    auto operands = m_.operands(root);
    auto k = static_cast<size_t>(std::find(operands.begin(), operands.end(), buffer.inst) - operands.begin());
    if (k >= m_.shape(param).elements.size()) continue;
    const uint32_t node = points_.nodes().child(m_.shape_id(param), k) + buffer.node;
    if (node < points_.of(param).size()) set_buffer(points_.of(param)[node], buffers_[b].order, false);
  }
}

// --- from an operand ---

void LayoutPropagation::propagate_operand(InstId i, size_t n) {
  const OperandDemand demand = operands_[first_operand_[i.value] + n];
  const InstId o = m_.operand(i, n);
  if (at_most_rank_1(m_.shape_id(o))) return;
  propagate_use_to_defs(demand.orders, o, demand.priority);
  if (!m_.shape(o).is_array() || is_constrained_collective(m_, i)) return;
  const uint32_t order = demand.orders[0];
  std::span<const BufferId> made = points_.of(i);
  const auto& parts = points_.nodes().shapes(m_.shape_id(i));
  if (m_.op(i) == Opcode::CustomCall) {
    for (const AliasEntry& e : parse_aliases(u_.text(m_.attrs(i).text(Attr::output_to_operand_aliasing)))) {
      if (e.number != static_cast<int64_t>(n)) continue;
      const uint32_t node = points_.nodes().at(m_.shape_id(i), e.output);
      if (node < made.size() && points_[made[node]].inst == i && u_[parts[node]].is_array())
        set_buffer(made[node], order, keeps(i), depth_first(i), demand.priority);
      break;
    }
  }
  if (m_.op(i) == Opcode::AllReduce) {
    const uint32_t node = m_.shape(i).is_tuple() ? points_.nodes().child(m_.shape_id(i), n) : 0;
    if (node < made.size()) set_buffer(made[node], order);
  }
  if (!keeps(i) && !m_.shape(i).is_array() && m_.op(i) != Opcode::Reduce) return;
  if (points_.forwards(i, n)) return;
  if (keeps(i) || m_.op(i) == Opcode::Reduce) return propagate_to_siblings(i, n, order, demand.priority);
  if (!m_.shape(i).is_array() || m_.shape(i).rank() <= 1 || points_[made[0]].inst != i) return;
  const uint32_t wanted = output_from_operand(order, i, n);
  if (wanted != Orders::kNone)
    set_buffer(made[0], wanted, m_.op(i) == Opcode::Transpose, depth_first(i), demand.priority);
}

void LayoutPropagation::propagate_to_siblings(InstId i, size_t n, uint32_t order, int priority) {
  const InstId o = m_.operand(i, n);
  const int rank = m_.shape(o).rank();
  if (m_.op(i) == Opcode::Concatenate) {  // the largest decides
    const auto d = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
    for (InstId other : m_.operands(i))
      if (m_.shape(other).dims[d] > m_.shape(o).dims[d]) return;
  }
  for (size_t k = 0; k < m_.operand_count(i); ++k)
    if (m_.operand(i, k) != o && rank > 1) set_array_operand(i, k, order, true, true, priority);
  std::span<const BufferId> made = points_.of(i);
  const auto& parts = points_.nodes().shapes(m_.shape_id(i));
  for (size_t node = 0; node < made.size(); ++node)
    if (u_[parts[node]].is_array() && u_[parts[node]].rank() == rank && points_[made[node]].inst == i)
      set_buffer(made[node], order, true, true, priority);
}

// --- what an operation makes of an order ---

// The order that an array came with, by which its dimensions of one element lie: of transposes that is seldom the
// default.
Dims LayoutPropagation::came_with(InstId i) const {
  const Shape& s = m_.shape(i);
  return s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major : default_minor_to_major(s.rank());
}

uint32_t LayoutPropagation::operand_from_output(uint32_t order, InstId i, size_t n) {
  const Shape &out = m_.shape(i), &in = m_.shape(m_.operand(i, n));
  const Dims& dims = m_.attrs(i).ints(Attr::dimensions);
  const Dims& lies = orders_[order];
  switch (m_.op(i)) {
    case Opcode::Reshape: {
      if (true_rank(out) == 1 && true_rank(in) == 1) return Orders::kNone;
      auto found = aligned_order(out.dims, lies, in.dims, came_with(m_.operand(i, n)));
      return found ? orders_.id(*found) : Orders::kNone;
    }
    case Opcode::Transpose: {
      Dims wanted;
      for (int64_t d : lies) wanted.push_back(dims[static_cast<size_t>(d)]);
      return orders_.id(wanted);
    }
    case Opcode::Reduce: {
      // Rows are worth it where they are long.
      int64_t reduced = 1;
      for (int64_t d : dims) reduced *= in.dims[static_cast<size_t>(d)];
      if (!out.is_array() || n > 0 || reduced < 32) return Orders::kNone;
      Dims wanted(dims.rbegin(), dims.rend()), kept;
      const std::vector<bool> gone = flags_of(dims, in.dims.size());
      for (size_t d = 0; d < gone.size(); ++d)
        if (!gone[d]) kept.push_back(static_cast<int64_t>(d));
      for (int64_t d : lies) wanted.push_back(kept[static_cast<size_t>(d)]);
      return orders_.id(wanted);
    }
    default:
      return Orders::kNone;
  }
}

uint32_t LayoutPropagation::output_from_operand(uint32_t order, InstId i, size_t n) {
  const Shape &out = m_.shape(i), &in = m_.shape(m_.operand(i, n));
  const Dims& dims = m_.attrs(i).ints(Attr::dimensions);
  if (m_.op(i) == Opcode::Reshape) {
    if (true_rank(out) == 1 && true_rank(in) == 1) return Orders::kNone;
    auto found = aligned_order(in.dims, orders_[order], out.dims, came_with(i));
    return found ? orders_.id(*found) : Orders::kNone;
  }
  if (m_.op(i) == Opcode::Transpose) {
    Dims place(dims.size()), wanted;
    for (size_t k = 0; k < dims.size(); ++k) place[static_cast<size_t>(dims[k])] = static_cast<int64_t>(k);
    for (int64_t d : orders_[order]) wanted.push_back(place[static_cast<size_t>(d)]);
    return orders_.id(wanted);
  }
  return Orders::kNone;
}

}  // namespace hlo
