// Where constraints come from that hold on every backend, and the two rounds over the computations.
#include <algorithm>

#include "passes/layout/propagation.h"

namespace hlo {

namespace {
constexpr int kRounds = 2;
constexpr int kGivenPriority = 3;  // of the entry's stated layouts
}  // namespace

LayoutPropagation::LayoutPropagation(const Module& m, int64_t capability)
    : m_(m), u_(m.u()), capability_(capability), points_(m), callers_(m.callers()) {
  buffers_.resize(points_.size());
  calls_.resize(m.comp_slots());
  first_operand_.resize(m.inst_slots());
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      first_operand_[i.value] = static_cast<uint32_t>(uses_.size());
      for (uint32_t n = 0; n < m.operand_count(i); ++n) uses_.push_back({i, n});
    }
  operands_.resize(uses_.size());
}

NodeOrders LayoutPropagation::orders_in(ShapeId shape) {
  NodeOrders out;
  for (ShapeId part : points_.nodes().shapes(shape))
    out.push_back(u_[part].is_array() ? orders_.id(u_[part].layout.minor_to_major) : Orders::kNone);
  return out;
}

void LayoutPropagation::run() {
  const CompId entry = m_.entry();
  Call& given = calls_[entry.value];
  for (ShapeId s : m_.config().entry_params) given.params.push_back(orders_in(s));
  given.result = orders_in(m_.config().entry_result);
  given.priority = kGivenPriority;
  given.params_set = given.result_set = true;
  for (priority_ = 0; priority_ < kRounds; ++priority_) {
    buffers_.assign(buffers_.size(), {});
    operands_.assign(operands_.size(), {});
    for (CompId c : m_.nonfusion_computations()) computation(c);
  }
}

void LayoutPropagation::computation(CompId c) {
  Call& call = calls_[c.value];
  if (call.params.empty() && call.result.empty()) {
    for (InstId p : m_.comp(c).params) call.params.push_back(orders_in(m_.shape_id(p)));
    call.result = orders_in(m_.shape_id(m_.comp(c).root));
  }
  instruction_demands(c);
  callee_demands(c);
  if (call.mismatch) {
    call.result = call.wanted;
    call.result_set = true;
    call.priority = priority_ + kRounds;
    push({Kind::kResult, c.value}, true, call.priority);
  } else if (c == m_.entry() || (priority_ > 0 && call.result_set)) {
    push({Kind::kResult, c.value}, true, call.priority);
  }
  add_gpu_demands(*this, c);
  custom_call_demands(c);
  propagate(c);
  // What nothing asks for lies as it does by default, one array after the other.
  auto [first, last] = points_.of(c);
  for (BufferId b = first; b < last; ++b) {
    const Shape& s = u_[points_[b].shape];
    if (!s.is_array() || buffers_[b].set) continue;
    set_buffer(
        b,
        m_.op(points_[b].inst) == Opcode::Constant ? orders_.id(s.layout.minor_to_major) : orders_.descending(s.rank()),
        false);
    propagate(c);
  }
  calculate_call(c);
}

void LayoutPropagation::instruction_demands(CompId c) {
  for (InstId i : m_.live_order(c)) {
    const Opcode op = m_.op(i);
    if (op == Opcode::Infeed) {
      set_instruction(i, orders_in(m_.shape_id(i)));
    } else if (op == Opcode::Outfeed) {
      if (const auto* s = m_.attrs(i).get<ShapeId>(Attr::outfeed_shape))
        if (m_.u().compatible(*s, m_.shape_id(m_.operand(i, 0)))) set_operand(i, 0, orders_in(*s));
    } else if (op == Opcode::Bitcast) {  // means something by its layouts alone
      set_instruction(i, orders_in(m_.shape_id(i)));
      set_operand(i, 0, orders_in(m_.shape_id(m_.operand(i, 0))));
    } else if (op == Opcode::Parameter) {
      const Call& call = calls_[c.value];
      const auto n = static_cast<size_t>(m_.parameter_number(i));
      if ((c == m_.entry() || (!call.mismatch && call.params_set)) && n < call.params.size())
        set_instruction(i, NodeOrders(call.params[n]));
    } else if (m_.attrs(i).flag(Attr::constrain_layout)) {
      set_instruction(i, orders_in(m_.shape_id(i)));
      for (size_t n = 0; n < m_.operand_count(i); ++n) {
        const Shape& s = m_.shape(i);
        ShapeId wanted = s.is_tuple() ? (n < s.elements.size() ? s.elements[n] : ShapeId()) : m_.shape_id(i);
        if (wanted.valid() && u_[wanted].rank() == m_.shape(m_.operand(i, n)).rank())
          set_operand(i, n, orders_in(wanted));
      }
    }
  }
}

void LayoutPropagation::callee_demands(CompId c) {
  for (InstId i : m_.live_order(c)) {
    if (m_.op(i) == Opcode::While) while_demands(i);
    if (m_.op(i) == Opcode::Conditional) conditional_demands(i);
    if (m_.op(i) != Opcode::Call) continue;
    const Call& call = calls_[m_.called(i)[0].value];
    set_instruction(i, NodeOrders(call.result));
    for (size_t n = 0; n < m_.operand_count(i) && n < call.params.size(); ++n) set_operand(i, n, call.params[n]);
  }
}

// A loop's state lies as its body leaves it.
void LayoutPropagation::while_demands(InstId i) {
  Call& body = calls_[m_.attrs(i).comp(Attr::body).value];
  Call& condition = calls_[m_.attrs(i).comp(Attr::condition).value];
  for (Call* call : {&body, &condition}) {
    if (call->params.size() != 1 || call->params[0] == body.result) continue;
    call->params[0] = body.result;
    call->priority = priority_ + kRounds;
    call->params_set = call->result_set = true;
  }
  const NodeOrders state = body.result;
  set_operand(i, 0, state);
  set_instruction(i, state);
}

// All branches give what the largest gives.
void LayoutPropagation::conditional_demands(InstId i) {
  const std::vector<CompId>& branches = m_.called(i);
  size_t largest = 0, most = 0;
  for (size_t k = 0; k < branches.size() && k + 1 < m_.operand_count(i); ++k) {
    const Shape& taken = m_.shape(m_.operand(i, k + 1));
    if (m_.size(branches[k]) > most && !(taken.is_tuple() && taken.elements.empty()))
      largest = k, most = m_.size(branches[k]);
  }
  const Call best = calls_[branches[largest].value];
  for (size_t k = 0; k < branches.size() && k + 1 < m_.operand_count(i); ++k) {
    Call& call = calls_[branches[k].value];
    if (call.result != best.result) {
      if (!call.mismatch) call.mismatch = true, call.wanted = best.result;
    } else if (call.params.size() == 1) {
      set_operand(i, k + 1, call.params[0]);
    }
  }
  if (best.params.size() == 1) set_operand(i, largest + 1, best.params[0]);
  set_instruction(i, best.result);
}

void LayoutPropagation::custom_call_demands(CompId c) {
  for (InstId i : m_.post_order(c)) {
    const auto* wanted = m_.attrs(i).get<std::vector<ShapeId>>(Attr::operand_layout_constraints);
    if (m_.op(i) != Opcode::CustomCall || !wanted) continue;
    set_instruction(i, orders_in(m_.shape_id(i)));
    for (size_t n = 0; n < m_.operand_count(i) && n < wanted->size(); ++n) {
      const InstId o = m_.operand(i, n);
      if (!m_.u().compatible((*wanted)[n], m_.shape_id(o))) continue;
      if (!points_.forwards(i, n)) set_operand(i, n, orders_in((*wanted)[n]));
      if (m_.op(o) == Opcode::Copy) set_operand(o, 0, orders_in((*wanted)[n]));
    }
  }
}

// The orders that an instruction's parts have by now; false where one has none.
bool LayoutPropagation::infer(InstId i, NodeOrders* out) const {
  std::span<const BufferId> set = points_.of(i);
  out->assign(set.size(), Orders::kNone);
  for (size_t node = 0; node < set.size(); ++node)
    if (u_[points_[set[node]].shape].is_array()) (*out)[node] = buffers_[set[node]].order;
  return !set.empty();
}

void LayoutPropagation::calculate_call(CompId c) {
  Call& call = calls_[c.value];
  if (priority_ != 0 && !call.mismatch) return;
  if (call.priority >= priority_ + kRounds && !call.mismatch) return;
  if (!call.mismatch) infer(m_.comp(c).root, &call.result);
  for (size_t n = 0; n < m_.comp(c).params.size() && n < call.params.size(); ++n)
    infer(m_.comp(c).params[n], &call.params[n]);
  call.priority = priority_ + kRounds;
  call.params_set = call.result_set = true;
}

}  // namespace hlo
