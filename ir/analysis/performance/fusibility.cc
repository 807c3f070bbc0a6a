#include "ir/analysis/performance/fusibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "ir/analysis/fusion/reduction.h"

namespace hlo {
namespace {

constexpr int64_t kMostReductions = 8, kSmallReduction = 16;

size_t parts(const Universe& u, ShapeId shape) {
  size_t n = 1;
  for (ShapeId e : u[shape].elements) n += parts(u, e);
  return n;
}

bool is_scatter_kernel(const Module& m, InstId i) {
  if (m.op(i) == Opcode::Scatter) return true;
  return m.op(i) == Opcode::Fusion && m.u().text(m.attrs(i).text(Attr::kind)) == "kInput" &&
         m.op(m.comp(m.called(i)[0]).root) == Opcode::Scatter;
}

// The instruction itself, or those of the fusion's body, that the predicate holds for.
std::vector<InstId> inside(const Module& m, InstId i, const std::function<bool(InstId)>& wanted) {
  std::vector<InstId> out;
  if (m.op(i) != Opcode::Fusion) {
    if (wanted(i)) out.push_back(i);
    return out;
  }
  for (InstId b : m.comp(m.called(i)[0]).order)
    if (m.alive(b) && wanted(b)) out.push_back(b);
  return out;
}

bool moves_elements(const Module& m, InstId i) {
  const Opcode op = m.op(i);
  return op != Opcode::Fusion && op != Opcode::Bitcast && op != Opcode::Parameter && !is_elementwise(m, i);
}

InstId outer(const Module& m, InstId of, InstId operand) {
  return m.op(of) == Opcode::Fusion && m.op(operand) == Opcode::Parameter
             ? m.operand(of, static_cast<size_t>(m.parameter_number(operand)))
             : operand;
}

std::optional<int64_t> constant_value(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Constant || !is_integral(m.shape(i).type)) return std::nullopt;
  const Literal& l = m.literal(i);
  return l.elided || l.bytes.empty() ? std::nullopt : std::optional(load_int(m.shape(i).type, l.bytes.data()));
}

// Does anything but the update, and what works element by element, use what the parameter gives?
bool others_move_it(const Module& m, InstId parameter, InstId update) {
  std::vector<InstId> queue = {parameter};
  std::unordered_set<InstId> seen = {parameter};
  for (size_t k = 0; k < queue.size(); ++k) {
    const InstId i = queue[k];
    if (i != update && m.op(i) != Opcode::Parameter && !is_elementwise(m, i)) return true;
    for (InstId user : m.users(i))
      if (seen.insert(user).second) queue.push_back(user);
  }
  return false;
}

}  // namespace

bool is_fusible(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Domain:
    case Opcode::Parameter:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
      return false;
    case Opcode::Fusion:
    case Opcode::Map:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      return true;
    case Opcode::Rng:
      return m.user_count(i) <= 1;
    default:
      return !m.has_side_effect(i);
  }
}

bool is_priority_fusible(const Module& m, InstId i) {
  if (!is_fusible(m, i)) return false;
  // A body that computes nothing is none of XLA's: there is no root to clone into another.
  if (m.op(i) == Opcode::Fusion) {
    if (m.op(m.comp(m.called(i)[0]).root) == Opcode::Parameter) return false;
    return !is_custom_fusion(m, i) || is_triton_fusion(m, i) || is_elementwise(m, i);
  }
  if (is_elementwise(m, i) || is_plain_bitcast(m, i)) return true;
  switch (m.op(i)) {
    case Opcode::Copy:
    case Opcode::Iota:
    case Opcode::Constant:
    case Opcode::Reduce:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Gather:
    case Opcode::Pad:
    case Opcode::ReduceWindow:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Scatter:
    case Opcode::Slice:
    case Opcode::Transpose:
      return true;
    default:
      return false;
  }
}

bool overwrites_operand(const Module& m, InstId i) { return !InPlaceUpdates(m).of(i).empty(); }

std::string Fusibility::refuse_scatter(InstId producer, InstId consumer) const {
  if (is_scatter_kernel(m_, producer)) return "do not fuse into the output of scatter";
  if (!is_scatter_kernel(m_, consumer)) return "";
  InstId target = m_.operand(consumer, 0);
  if (m_.op(consumer) == Opcode::Fusion) {
    const InstId into = m_.operand(m_.comp(m_.called(consumer)[0]).root, 0);
    if (m_.op(into) != Opcode::Parameter) return "";
    target = outer(m_, consumer, into);
  }
  if (target == producer) return "do not fuse into the in-place operand of scatter";
  auto ops = m_.operands(producer);
  if (std::find(ops.begin(), ops.end(), target) != ops.end()) return "Producer uses the in-place operand of a scatter";
  return "";
}

void Fusibility::add_to_budget(InstId i, Budget* b) const {
  if (m_.op(i) == Opcode::Reduce) {
    const int64_t out = m_.shape(i).is_array() ? m_.shape(i).elements_count() : 0;
    if (out > 0 && m_.shape(m_.operand(i, 0)).elements_count() / out >= kSmallReduction) b->reduces = true;
    if (!is_kernel_reduction(m_, i, target_)) return;
    ++b->reductions;
    int64_t bytes = 0;
    for (size_t n = 0; n < m_.operand_count(i) / 2; ++n)
      bytes += (element_bits(m_.shape(m_.operand(i, n)).type) + 7) / 8;
    // One element a warp, or a cache of 32 rows with the widest vectors.
    b->shared_bytes += reduction_shape(m_, i).row ? 32 * bytes : 32 * (4 * 32 + 1) * bytes;
  } else if (auto t = tiled_transpose(m_, i)) {
    b->shared_bytes += t->shared_bytes;
  }
}

const Fusibility::Budget& Fusibility::budget(InstId i) {
  if (auto at = budgets_.find(i); at != budgets_.end()) return at->second;
  Budget b;
  for (InstId n : inside(m_, i, [](InstId) { return true; })) add_to_budget(n, &b);
  return budgets_[i] = b;
}

std::string Fusibility::refuse_budget(InstId a, InstId b, bool into) {
  const Budget &p = budget(b), &c = budget(a);
  if (p.shared_bytes + c.shared_bytes > target_.shared_memory_per_block)
    return fmt::format("shared memory usage would be over the budget of {}B", target_.shared_memory_per_block);
  if (p.reductions + c.reductions > kMostReductions)
    return fmt::format("over {} unnested reductions in fusion", kMostReductions);
  return refuse_parameters(a, b, into);
}

std::string Fusibility::refuse_parameters(InstId a, InstId b, bool into) const {
  const size_t outputs = parts(m_.u(), m_.shape_id(b)) + parts(m_.u(), m_.shape_id(a));
  if (m_.operand_count(b) + m_.operand_count(a) + outputs <= kMostOperandsAndOutputs + 1) return "";
  std::unordered_set<InstId> operands(m_.operands(a).begin(), m_.operands(a).end());
  operands.insert(m_.operands(b).begin(), m_.operands(b).end());
  operands.erase(b), operands.erase(a);
  if ((into && operands.size() <= m_.operand_count(a)) || operands.size() + outputs <= kMostOperandsAndOutputs)
    return "";
  return "Number of operands and output buffers is larger than allowed budget per fusion";
}

std::string Fusibility::refuse_update(InstId producer, InstId consumer, InstId moved) const {
  const std::vector<InstId> updates =
      inside(m_, consumer, [&](InstId i) { return m_.op(i) == Opcode::DynamicUpdateSlice; });
  if (updates.empty()) return "";
  if (updates.size() > 1) return "multiple dus ops, bailing.";
  const InstId dus = updates[0];
  const size_t rank = m_.shape(dus).dims.size();
  const bool fixed = m_.op(moved) == Opcode::Slice;
  if (!fixed && m_.op(moved) != Opcode::DynamicSlice) return "unrecognized inplace update non-elementwise output pair";
  if (m_.shape_id(moved) != m_.shape_id(m_.operand(dus, 1)))
    return fixed ? "Slice op has a different shape than the update shape of the dus op, bailing."
                 : "Dynamic slice op has a different shape than the update shape of the dus op, bailing.";
  for (size_t k = 0; k < rank; ++k) {
    const InstId to = outer(m_, consumer, m_.operand(dus, 2 + k));
    const auto at = constant_value(m_, to);
    if (fixed) {
      const auto* slices = m_.attrs(moved).get<std::vector<SliceDim>>(Attr::slice);
      if (!slices || !at || *at != (*slices)[k].start || (*slices)[k].stride != 1)
        return "DUS and slice index mismatch";
      continue;
    }
    const InstId from = outer(m_, producer, m_.operand(moved, 1 + k));
    const auto source = constant_value(m_, from);
    if (source != at || (!source && from != to)) return "DUS and DS index mismatch";
  }
  if (m_.op(consumer) == Opcode::Fusion)
    for (size_t n = 0; n < m_.operand_count(consumer); ++n)
      if (m_.operand(consumer, n) == producer && others_move_it(m_, m_.comp(m_.called(consumer)[0]).params[n], dus))
        return fixed ? "Fusing slice into DUS will also fuse another non-elementwise op with shared operand as DUS."
                     : "Fusing DS into DUS will also fuse another non-elementwise op with shared operand as DUS.";
  return "";
}

std::string Fusibility::refuse_in_place(InstId producer, InstId consumer) const {
  for (const InPlacePair& pair : updates_.of(consumer)) {
    const size_t number = pair.operand;
    const InstId target = m_.operand(consumer, number);
    for (size_t n = 0; n < m_.operand_count(consumer); ++n)
      if (n != number && m_.operand(consumer, n) == target)
        return "The consumer is an in-place operation that has an additional operand that has the same value as the "
               "in-place buffer";
    auto ops = m_.operands(producer);
    if (target != producer && std::find(ops.begin(), ops.end(), target) == ops.end()) continue;
    const std::vector<InstId> moving = inside(m_, producer, [&](InstId i) { return moves_elements(m_, i); });
    if (moving.size() > 1) return "Producer fusion has multiple non-elementwise ops, bailing.";
    if (moving.size() == 1) return refuse_update(producer, consumer, moving[0]);
    if (m_.op(consumer) != Opcode::Fusion) return "";
    size_t at = 0;
    while (at < m_.operand_count(consumer) && m_.operand(consumer, at) != producer) ++at;
    std::vector<InstId> queue = {m_.comp(m_.called(consumer)[0]).params[at]};
    std::unordered_set<InstId> seen(queue.begin(), queue.end());
    for (size_t k = 0; k < queue.size(); ++k) {
      if (queue[k] != pair.by && moves_elements(m_, queue[k]))
        return "Non-elementwise ops in consumer lead to inplace conflict after fusion.";
      for (InstId user : m_.users(queue[k]))
        if (seen.insert(user).second) queue.push_back(user);
    }
    return "";
  }
  return "";
}

std::string Fusibility::refuse(InstId producer, InstId consumer) {
  if (m_.is_root(producer)) return "not fusing into the output of the root instruction";
  if (!is_priority_fusible(m_, producer)) return "the producer is not fusible";
  if (!is_priority_fusible(m_, consumer)) return "the consumer is not fusible";
  if (is_plain_bitcast(m_, consumer)) return "not fusing into a single bitcast as consumer";
  if (std::string why = refuse_scatter(producer, consumer); !why.empty()) return why;
  if (budget(producer).reduces && budget(consumer).reduces)
    return "both the producer and the consumer contain a reduce";
  if (budget(producer).reductions > 0 &&
      analyze_fusion(FusionView(m_, producer), target_).kind == EmitterKind::kReduction &&
      analyze_fusion(FusionView(m_, producer, consumer), target_).kind == EmitterKind::kLoop)
    return "fusion into output of a reduce fusion would create a loop fusion";
  if (std::string why = refuse_budget(consumer, producer, true); !why.empty()) return why;
  if (costs_.merged_too_large(producer, consumer)) return "the fusion would result in an overly large code duplication";
  return refuse_in_place(producer, consumer);
}

}  // namespace hlo
