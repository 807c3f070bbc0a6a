#include "ir/analysis/dataflow/alias_info.h"

#include <algorithm>
#include <unordered_set>

#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/backend_config.h"
#include "ir/base/stack_guard.h"
#include "ir/sharding/aliasing.h"

namespace hlo {
namespace {

// What an array in a fusion's body is under another name, through tuples and bitcasts. An index that is left over
// belongs to a result of several arrays.
std::pair<InstId, Dims> behind(const Module& m, InstId i, Dims index) {
  while (m.op(i) == Opcode::Tuple && !index.empty()) {
    i = m.operand(i, static_cast<size_t>(index[0]));
    index.erase(index.begin());
  }
  while (m.op(i) == Opcode::GetTupleElement) {
    index.insert(index.begin(), m.attrs(i).integer(Attr::index));
    i = m.operand(i, 0);
  }
  while (index.empty() && (m.op(i) == Opcode::Bitcast || m.op(i) == Opcode::Reshape)) i = m.operand(i, 0);
  return {i, index};
}

bool elementwise_on(const Module& m, InstId i, size_t operand) {
  return is_elementwise(m, i) || (m.op(i) == Opcode::DynamicUpdateSlice && operand == 0);
}

size_t first_slot(const Module& m, InstId user, InstId operand) {
  auto ops = m.operands(user);
  return static_cast<size_t>(std::find(ops.begin(), ops.end(), operand) - ops.begin());
}
size_t slot_count(const Module& m, InstId user, InstId operand) {
  auto ops = m.operands(user);
  return static_cast<size_t>(std::count(ops.begin(), ops.end(), operand));
}

// How far an update reads and writes the array where a slice reads it: both the same places, or one element each.
bool same_slice(const Module& m, InstId slice, InstId update) {
  if (m.operand(update, 0) != m.operand(slice, 0) || m.shape_id(slice) != m.shape_id(m.operand(update, 1)))
    return false;
  if (m.shape(slice).is_effective_scalar()) return true;
  for (size_t n = 1; n < m.operand_count(slice); ++n)
    if (m.operand(slice, n) != m.operand(update, n + 1)) return false;
  return true;
}

// The opcodes that pairs() knows.
bool may_update(Opcode op) {
  switch (op) {
    case Opcode::DynamicUpdateSlice:
    case Opcode::SetDimensionSize:
    case Opcode::Scatter:
    case Opcode::AllReduceStart:
    case Opcode::RaggedAllToAll:
    case Opcode::Fusion:
    case Opcode::CustomCall:
    case Opcode::AsyncStart:
      return true;
    default:
      return false;
  }
}

}  // namespace

const std::vector<InPlacePair>& InPlaceUpdates::of(InstId i) const {
  // Asked of every instruction, and of most opcodes known beforehand.
  static const std::vector<InPlacePair> kNothing;
  if (!may_update(m_.op(i))) return kNothing;
  auto at = known_.find(i);
  if (at == known_.end()) at = known_.emplace(i, pairs(i)).first;
  return at->second;
}

void InPlaceUpdates::aliasing_pairs(InstId i, std::vector<InPlacePair>* out) const {
  for (const AliasEntry& e : parse_aliases(m_.u().text(m_.attrs(i).text(Attr::output_to_operand_aliasing)))) {
    if (e.number < 0 || static_cast<size_t>(e.number) >= m_.operand_count(i)) continue;
    const ShapeId from = m_.shape_id(m_.operand(i, static_cast<size_t>(e.number)));
    const uint32_t node = nodes_.at(from, e.index), result = nodes_.at(m_.shape_id(i), e.output);
    if (node < nodes_.count(from) && result < nodes_.count(m_.shape_id(i)))
      out->push_back({static_cast<uint32_t>(e.number), node, result, i});
  }
}

//   fusion(x, …), calls={ ROOT dynamic-update-slice(bitcast(x), …) }: x is where the result lies.
void InPlaceUpdates::fusion_pairs(InstId fusion, std::vector<InPlacePair>* out) const {
  check_stack("fusions are nested");
  const ShapeId shape = m_.shape_id(fusion);
  for (const Dims& leaf : leaf_indices(m_.u(), shape)) {
    const auto [source, rest] = behind(m_, m_.comp(m_.called(fusion)[0]).root, leaf);
    if (m_.op(source) == Opcode::Parameter) continue;
    const uint32_t node = nodes_.at(m_.shape_id(source), rest);
    for (const InPlacePair& pair : of(source)) {
      if (pair.result_node != node || pair.operand_node != 0) continue;
      auto [from, from_index] = behind(m_, m_.operand(source, pair.operand), {});
      if (m_.op(from) == Opcode::Fusion) {
        const uint32_t made = nodes_.at(m_.shape_id(from), from_index);
        for (const InPlacePair& inner : of(from)) {
          if (inner.result_node != made || inner.operand_node != 0) continue;
          std::tie(from, from_index) = behind(m_, m_.operand(from, inner.operand), {});
          break;
        }
      }
      if (m_.op(from) != Opcode::Parameter) continue;
      out->push_back({static_cast<uint32_t>(m_.parameter_number(from)), nodes_.at(m_.shape_id(from), from_index),
                      nodes_.at(shape, leaf), source});
    }
  }
}

std::vector<InPlacePair> InPlaceUpdates::pairs(InstId i) const {
  std::vector<InPlacePair> out;
  auto each = [&](size_t count) {
    for (uint32_t n = 0; n < count; ++n) out.push_back({n, 0, count == 1 ? 0 : nodes_.child(m_.shape_id(i), n), i});
  };
  switch (m_.op(i)) {
    case Opcode::DynamicUpdateSlice:
    case Opcode::SetDimensionSize:
      each(1);
      break;
    case Opcode::Scatter:
      each((m_.operand_count(i) - 1) / 2);
      break;
    case Opcode::AllReduceStart:
      each(m_.operand_count(i));
      break;
    case Opcode::RaggedAllToAll:
      out.push_back({1, 0, 0, i});
      break;
    case Opcode::Fusion:
      if (!fusions_) break;
      fusion_pairs(i, &out);
      aliasing_pairs(i, &out);
      break;
    case Opcode::CustomCall:
    case Opcode::AsyncStart:
      aliasing_pairs(i, &out);
      break;
    default:
      break;
  }
  return out;
}

// Which of a fusion's results, or of a call's, the node is.
size_t AliasInfo::output_of(InstId i, uint32_t node) const {
  const Shape& s = m_.shape(i);
  if (!s.is_tuple()) return 0;
  size_t k = 0;
  while (k + 1 < s.elements.size() && nodes_.child(m_.shape_id(i), k + 1) <= node) ++k;
  return k;
}

// Does the kernel read the operand in the order in which it writes that result, and no other way?
bool AliasInfo::fusion_can_share(InstId fusion, InstId operand, uint32_t node) const {
  const ShapeId to = nodes_.shapes(m_.shape_id(fusion))[node], from = m_.shape_id(operand);
  if (to != from) {
    const Shape &a = m_.shape(operand), &b = m_.u()[to];
    if (!a.is_array() || !b.is_array() || a.elements_count() != b.elements_count() ||
        element_bits(a.type) != element_bits(b.type))
      return false;
  }
  const FusionView view(m_, fusion);
  const FusionAnalysis kernel = analyze_fusion(view, target_);
  InstId hero;  // a reduction is done before anything else is written
  for (size_t k = 0; kernel.kind == EmitterKind::kReduction && k < kernel.roots.size() && !hero.valid(); ++k)
    if (is_reduction_hero(m_, kernel.roots[k], kernel.heroes[k], target_)) hero = kernel.heroes[k];
  const InstId root = m_.comp(m_.called(fusion)[0]).root;
  const bool several = m_.op(root) == Opcode::Tuple;
  const InstId output = several ? m_.operand(root, output_of(fusion, node)) : root;
  const InstId made = m_.op(output) == Opcode::Bitcast ? m_.operand(output, 0) : output;
  bool found = false;
  std::vector<InstId> queue{m_.comp(m_.called(fusion)[0]).params[first_slot(m_, fusion, operand)]};
  std::unordered_set<InstId> seen(queue.begin(), queue.end());
  for (size_t k = 0; k < queue.size(); ++k) {
    const InstId i = queue[k];
    found |= i == output;
    if (i == hero) continue;
    for (InstId user : m_.users(i)) {
      if (seen.insert(user).second) queue.push_back(user);
      const Opcode op = m_.op(user);
      const size_t slot = first_slot(m_, user, i);
      if (user == made && (op == Opcode::Scatter || op == Opcode::Sort)) {
        const size_t own = op == Opcode::Sort ? m_.operand_count(user) : (m_.operand_count(user) - 1) / 2;
        if (slot < own && slot_count(m_, user, i) == 1) continue;
      }
      const bool update = m_.op(made) == Opcode::DynamicUpdateSlice;
      if (update && op == Opcode::DynamicSlice && same_slice(m_, user, made)) continue;
      if (op == Opcode::Bitcast || op == Opcode::Tuple || user == hero) continue;
      if (elementwise_on(m_, user, slot) && op != Opcode::Copy) continue;
      if (user == made && update && slot == 1) continue;
      return false;
    }
  }
  if (!several) return found;
  // Where it reaches other results as well, all must go through their elements in one order.
  const std::vector<InstId> results(m_.operands(root).begin(), m_.operands(root).end());
  auto reached = [&](InstId r) { return seen.contains(r); };
  if (std::none_of(results.begin(), results.end(), [&](InstId r) { return r != output && reached(r); })) return found;
  if (!is_elementwise(m_, made)) return false;
  for (InstId r : results) {
    if (!reached(r)) continue;
    const Opcode by = m_.op(fusion_hero(view, r));
    if (by == Opcode::Transpose || by == Opcode::Copy) return false;
  }
  return found;
}

bool AliasInfo::can_share(const Dataflow& flow, const ValueUse& use, InstId user, uint32_t node) const {
  const InstId operand = m_.operand(user, use.operand);
  const ShapeId from = nodes_.shapes(m_.shape_id(operand))[use.node];
  const bool equal = from == nodes_.shapes(m_.shape_id(user))[node];
  const Opcode op = m_.op(user);
  if (m_.op(operand) == Opcode::Constant) return false;
  if (equal && !in_place(user).empty()) {
    const auto& uses = flow.uses(flow.at(operand, use.node));
    for (const InPlacePair& pair : in_place(user))
      if (pair.result_node == node &&
          std::find(uses.begin(), uses.end(), ValueUse{user, pair.operand, pair.operand_node}) != uses.end())
        return true;
  }
  if (op == Opcode::Fusion) return fusions_ && use.node == 0 && fusion_can_share(user, operand, node);
  if (op == Opcode::AllReduce || op == Opcode::CollectiveBroadcast)
    return m_.operand_count(user) == 1 || (node != 0 && m_.operand(user, output_of(user, node)) == operand);
  if (op == Opcode::CustomCall) {
    const std::string_view target = m_.u().text(m_.attrs(user).text(Attr::custom_call_target));
    if (target != "__cublas$lt$matmul" || m_.operand_count(user) < 3) return false;
    const BackendConfig config =
        backend_config(m_.u().text(m_.attrs(user).text(Attr::backend_config)), "gemm_backend_config");
    return number(config, "beta", 0) != 0 && operand == m_.operand(user, 2) && slot_count(m_, user, operand) == 1 &&
           node != 0 && output_of(user, node) == 0;
  }
  return equal && plain_can_share(flow, use, user, node);
}

// Of operations that have no rule of the back end.
bool AliasInfo::plain_can_share(const Dataflow& flow, const ValueUse& use, InstId user, uint32_t node) const {
  const InstId operand = m_.operand(user, use.operand);
  auto alone_at = [&](size_t slot) {
    return slot_count(m_, user, operand) == 1 && first_slot(m_, user, operand) == slot;
  };
  switch (m_.op(user)) {
    case Opcode::While:
    case Opcode::Conditional:
      return true;
    case Opcode::DynamicUpdateSlice:
    case Opcode::Scatter:
    case Opcode::SetDimensionSize:
      return alone_at(0);
    case Opcode::TriangularSolve:
      return alone_at(1);
    case Opcode::Sort:
      if (m_.user_count(operand) != 1) return false;
      return m_.operand_count(user) == 1 || alone_at(output_of(user, node));
    case Opcode::Call: {
      const auto& uses = flow.uses(flow.at(operand, use.node));
      const InstId root = m_.comp(m_.called(user)[0]).root;
      bool by_call = false, by_root = false;
      for (const ValueUse& u : uses) {
        by_call |= u.inst == user;
        by_root |= u.inst == root && elementwise_on(m_, root, u.operand);
      }
      return uses.size() == 2 && by_call && by_root;
    }
    default:
      return elementwise_on(m_, user, first_slot(m_, user, operand));
  }
}

}  // namespace hlo
