// What each device has is the part of what the stage before has, by what both are made of: operations of parts, sums of
// parts, and what lands in a part of all that lands in the whole.
#include <algorithm>

#include "ir/base/hash.h"
#include "ir/eval/kernels.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/pair/pair.h"
#include "replay/judge/chosen/walk/scattered_parts.h"
#include "replay/judge/values/canonical.h"

namespace hlo {

// The part of `whole` that `part`, an array of as many elements, is of another one; of that shape.
ExprId ByElements::Pair::like_part(ExprId part, ExprId whole, ShapeId shape) {
  const Message message = s_.all[part].message;
  Expr e = s_.all[whole];
  e.kind = Expr::kMessage, e.shape = shape, e.operands = {whole}, e.view = {}, e.sum = nullptr, e.message = message;
  return s_.all.find_or_add(hash_combine(message->key(), whole), std::move(e));
}

// One operation, element by element, of the parts of what the whole one is made of.
bool ByElements::Pair::operation_of_parts(ExprId e, ExprId part) {
  const Expr x = s_.all[e], p = s_.all[part];
  if (p.kind != Expr::kMessage || p.message->kind != DeviceMessage::kPart) return false;
  const Expr y = s_.all[p.operands[0]];
  for (const Expr* side : {&x, &y})
    if (side->kind != Expr::kOperation || !op_info(side->m->op(side->inst)).elementwise) return false;
  if (x.operands.size() != y.operands.size() || x.operands.empty() ||
      Canonical(*x.m).elementwise(x.inst, {}, 0) != Canonical(*y.m).elementwise(y.inst, {}, 0))
    return false;
  const int64_t local = shape_of(e).elements_count(), whole = shape_of(p.operands[0]).elements_count();
  for (size_t k = 0; k < x.operands.size(); ++k) {
    const ExprId is = x.operands[k], was = y.operands[k];
    if (is == was && shape_of(is).elements_count() == 1) continue;
    if (shape_of(is).elements_count() != local || shape_of(was).elements_count() != whole ||
        shape_of(is).type != shape_of(was).type)
      return false;
    const ExprId own = like_part(part, was, s_.all[is].shape);
    if (is != own && !same_on_devices(s_.all, is, own)) return false;
  }
  return true;
}

// One of them that it is by what both are, no element looked at; kNoExpr: none.
ExprId ByElements::Pair::proven_part(ExprId e, const std::vector<ExprId>& with) {
  const Expr& x = s_.all[e];
  const bool sums = x.kind == Expr::kSum || (x.kind == Expr::kMessage && x.message->kind == DeviceMessage::kReduce);
  for (size_t k = 0; divided_ && k < with.size(); ++k)
    if ((sums && same_on_devices(s_.all, e, with[k])) || operation_of_parts(e, with[k])) return with[k];
  return kNoExpr;
}

// Both scatter the same updates, in one order, by the same computation. An index that leaves the whole array leaves
// each part of it, and where each device's are less by where its part begins, an update lands in the part where it
// lands in the whole, or is skipped: dimensions that are divided have windows of one element. The indices are compared
// at some of their elements, all else by form or by its own elements.
bool ByElements::Pair::scatter_of_parts(ExprId e, ExprId part) {
  const Expr x = s_.all[e], p = s_.all[part];
  if (p.kind != Expr::kMessage || p.message->kind != DeviceMessage::kPart) return false;
  const Expr y = s_.all[p.operands[0]];
  std::vector<Dims> starts;
  if (!scatters_alike(x, y, *p.message, &starts)) return false;
  const ExprId own = like_part(part, y.operands[0], x.m->shape_id(x.m->operand(x.inst, 0)));
  return is_same(x.operands[0], own) && is_same(x.operands[2], y.operands[2]) &&
         lowered(x.operands[1], y.operands[1], x, starts);
}

// On each device, is `is` less than `was` by where its part begins?
bool ByElements::Pair::lowered(ExprId is, ExprId was, const Expr& scatter, const std::vector<Dims>& starts) {
  ExprSet cut;
  if (!known_leaves(is, &cut)) return false;
  const Shape& shape = scatter.m->shape(scatter.m->operand(scatter.inst, 1));
  const Dims& map = scatter.m->attrs(scatter.inst).ints(Attr::scatter_dims_to_operand_dims);
  const auto vector = scatter.m->attrs(scatter.inst).integer(Attr::index_vector_dim);
  const int64_t count = shape.elements_count(), components = static_cast<int64_t>(map.size());
  const int64_t step = vector < shape.rank() ? row_major_strides(shape.dims)[static_cast<size_t>(vector)] : 0;
  std::vector<int64_t> at, less;
  for (size_t device = 0; device < starts.size(); ++device)
    for (int64_t i : sampled_indices(shape.dims, s_.options.samples, is))
      for (int64_t k = 0; k < components; ++k) {
        const int64_t own = step ? i / step % components : 0;
        at.push_back(static_cast<int64_t>(device) * count + i + (k - own) * step);
        less.push_back(starts[device][static_cast<size_t>(map[static_cast<size_t>(k)])]);
      }
  for (const Draw how : {Draw::kMixed, Draw::kPositive}) {
    ExprSet used;
    ChosenElements elements = evaluation(cut, how, &used);
    Sampled now, before;
    if (!sample(elements, is, at, &now) || !sample(elements, was, at, &before) || !now.sure || !before.sure)
      return false;
    for (size_t k = 0; k < at.size(); ++k)
      if (now.values[k] != before.values[k] - static_cast<double>(less[k])) return false;
  }
  of_ = count * static_cast<int64_t>(starts.size());
  seen_ = std::min<int64_t>(static_cast<int64_t>(at.size()), of_);
  return true;
}

}  // namespace hlo
