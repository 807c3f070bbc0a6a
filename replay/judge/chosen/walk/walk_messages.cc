// Messages between devices, and what devices have of whole arrays, as a stage writes them.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "replay/judge/chosen/walk/expression_walk.h"
#include "replay/judge/chosen/walk/loop_reads.h"

namespace hlo {

// One array's message, as the instruction writes it.
ExprId ExpressionWalk::sent(InstId i, const Message& message, std::vector<ExprId> operands, ShapeId shape) {
  if (is_own(*message)) return operands[0];
  if (message->kind == DeviceMessage::kGather)
    if (const Expr& part = all_[operands[0]]; part.kind == Expr::kMessage) {
      const ExprId whole = part.operands.empty() ? kNoExpr : part.operands[0];
      if (whole != kNoExpr && all_.devices().of(whole) == DeviceClasses::kAll &&
          gathers_whole(*message, *part.message, m_.u()[all_[whole].shape].elements_count()))
        return whole;
    }
  Expr e;
  e.kind = Expr::kMessage, e.m = &m_, e.inst = i, e.shape = shape, e.message = message;
  Expr::View order;
  // What devices take together is so element by element: of a view it is that view of it.
  const Expr& x = all_[operands.empty() ? 0 : operands[0]];
  const bool viewed = message->kind == DeviceMessage::kReduce && x.kind == Expr::kView;
  if (viewed) {
    order = x.view, operands = {x.operands[0]};
    e.shape = m_.u().array(m_.u()[shape].type, m_.u()[all_[operands[0]].shape].dims);
  }
  uint64_t key = message->key();
  for (ExprId o : operands) key = hash_combine(key, o);
  e.operands = std::move(operands);
  const ExprId id = add(key, std::move(e), i, viewed ? &order : nullptr);
  return all_.same(viewed ? ordered(all_, id, order, shape) : id);
}

// One of its results.
ExprTree ExpressionWalk::message_result(InstId i, const std::vector<ExprTree>& operands, size_t k, ShapeId shape) {
  const Opcode op = m_.op(i);
  std::string why;
  auto refuse = [&] {
    fail(FailureKind::kUnsupported, "{}: {} cannot be compared at chosen elements: {}", m_.inst_name(i), op_text(op),
         why);
  };
  why = "operands that are no arrays, or dynamic ones";
  std::vector<ExprId> own;
  for (const ExprTree& t : operands) own.push_back(t.id);
  if (k >= own.size() || std::find(own.begin(), own.end(), kNoExpr) != own.end() || !m_.u()[shape].is_array() ||
      m_.u()[shape].is_dynamic())
    refuse();
  const ShapeId from = m_.shape_id(m_.operand(i, k));
  const bool arrays = op == Opcode::AllToAll && !m_.attrs(i).has(Attr::dimensions);
  const Message message = arrays ? exchanged_arrays(m_, i, k, shape, &why) : message_of(m_, i, k, from, shape, &why);
  if (!message) refuse();
  const bool scatters = op == Opcode::ReduceScatter;
  ExprTree t;
  t.shape = shape;
  t.id = sent(i, message, arrays ? own : std::vector<ExprId>{own[k]}, scatters ? from : shape);
  if (scatters) t.id = sent(i, scattered(*message), {t.id}, shape);
  return t;
}

ExprTree ExpressionWalk::message(InstId i, const std::vector<ExprTree>& operands) {
  const Opcode op = m_.op(i);
  ExprTree out;
  out.shape = m_.shape_id(i);
  if (op == Opcode::AllReduceDone) return operands[0];
  if (op == Opcode::AllGatherDone || op == Opcode::CollectivePermuteDone) {
    if (operands[0].elements.size() > 1) return operands[0].elements[1];
    fail(FailureKind::kUnsupported, "{}: what ends here begins nowhere", m_.inst_name(i));
  }
  if (op == Opcode::PartitionId || op == Opcode::ReplicaId) {
    out.id = sent(i, device_number(m_, op), {}, out.shape);
    return out;
  }
  const bool starts = op == Opcode::AllGatherStart || op == Opcode::CollectivePermuteStart;
  const ShapeId result = starts ? m_.shape(i).elements.at(1) : out.shape;
  ExprTree made;
  made.shape = result;
  const std::vector<ShapeId> results = m_.u()[result].elements;
  if (m_.u()[result].is_array()) made = message_result(i, operands, 0, result);
  for (size_t k = 0; k < results.size(); ++k) made.elements.push_back(message_result(i, operands, k, results[k]));
  if (!starts) return made;
  ExprTree given;
  given.shape = m_.shape(i).elements[0];
  given.elements = operands;
  out.elements = {operands.size() == 1 ? operands[0] : given, made};
  // The contexts that follow are no values.
  for (size_t k = 2; k < m_.shape(i).elements.size(); ++k)
    out.elements.push_back({kNoExpr, m_.shape(i).elements[k], {}});
  return out;
}

// A parameter whose array is another one than the first stage has is what each device has of that, where its sharding
// says so.
ExprId ExpressionWalk::parameter(InstId p, uint32_t leaf, ShapeId shape) {
  Expr e;
  e.kind = Expr::kParameter, e.leaf = leaf, e.m = &m_, e.inst = p, e.shape = shape;
  const ExprId own = all_.find_or_add(Canonical::operand_of(m_.u(), hash_combine(0xA46, leaf), shape), std::move(e));
  const ExprId whole = all_.first_parameter(leaf, own);
  if (whole == own || all_.devices().devices() == 1) return own;
  const std::optional<ShardTiling> tiling = parameter_tiling(m_, p, leaf);
  const ExprId part = tiling ? all_.part(whole, m_.u()[all_[whole].shape].dims, shape, *tiling) : kNoExpr;
  return part == kNoExpr ? own : part;
}

// Each of the state's arrays is the part of the whole one at first, and, where it is in some trip, behind that trip.
std::optional<ExprTree> ExpressionWalk::loop_of_parts(InstId i, const ExprTree& init, const LoopVisit& whole) {
  LoopState s;
  init.leaves(&s.begin);
  const size_t count = s.begin.size();
  if (count != whole.begin.size()) return {};
  s.constant.assign(count, false), s.like.assign(count, 0), s.devices.assign(count, 0),
      s.instead.assign(count, kNoExpr);
  std::vector<bool> same(count);
  std::vector<ExprId> results(count, kNoExpr);
  for (size_t k = 0; k < count; ++k) {
    const ExprId begin = whole_->part_of(i, k, whole.begin[k]), formal = whole_->part_of(i, k, whole.formal[k]);
    same[k] = begin != kNoExpr && formal != kNoExpr && (begin == s.begin[k] || whole_->is_same(s.begin[k], begin));
    if (!same[k]) return {};
    s.begin[k] = begin, s.instead[k] = formal;
    results[k] = whole_->part_of(i, k, whole.result[k]);
  }
  trip(i, init, &s);
  for (size_t k = 0; k < count; ++k) {
    const ExprId then = whole_->part_of(i, k, whole.then[k]);
    same[k] = then != kNoExpr && (then == s.then[k] || whole_->is_same(s.then[k], then));
  }
  if (s.goes_on.id != whole.goes_on) return {};
  const LoopReads reads(all_, whole.formal, whole.then, whole.goes_on);
  for (size_t leaf = 0; leaf < count; ++leaf)
    for (size_t k : reads.counted(leaf))
      if (!same[k] || results[leaf] == kNoExpr) return {};
  uint32_t next = 0;
  return tree(
      m_.shape_id(i), [&](uint32_t leaf, ShapeId) { return results[leaf]; }, &next);
}

}  // namespace hlo
