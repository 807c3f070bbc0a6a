// Scalars that constants alone make: what constant folding (xla/hlo/transforms/simplifiers/hlo_constant_folding.cc)
// does.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/elements.h"
#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

std::optional<std::vector<char>> Expressions::scalar_of_constants(ExprId e) const {
  const Expr& x = all_[e];
  const Shape& shape = x.m->u()[x.shape];
  if (x.kind != Expr::kOperation || !shape.is_array() || shape.elements_count() != 1) return {};
  const bool constant = x.m->op(x.inst) == Opcode::Constant;
  if (!constant && (op_info(x.m->op(x.inst)).cls != OpClass::Elementwise || x.operands.empty())) return {};
  if (!std::all_of(x.operands.begin(), x.operands.end(), [&](ExprId o) { return folded_.contains(o); })) return {};
  bool drawn = false;
  ChosenElements::Options options;
  options.most_elements = 1 << 10;
  ChosenElements elements(
      all_, [&](ExprId, std::span<const int64_t>, char*) { drawn = true; }, options);
  const int64_t zero = 0;
  try {
    std::vector<char> out = elements.at(e, std::span<const int64_t>(&zero, 1));
    if (!drawn) return out;
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported) throw;
  }
  return {};
}

ExprId Expressions::folded(ExprId e) {
  if (folded_.contains(e)) return folded_.at(e);
  const std::optional<std::vector<char>> value = scalar_of_constants(e);
  if (!value) return e;
  const Expr& x = all_[e];
  const ElementType type = x.m->u()[x.shape].type;
  const uint64_t key =
      hash_combine(hash_bytes(std::string_view(value->data(), value->size())), static_cast<uint64_t>(type));
  const ExprId first = of_value_.try_emplace(key, e).first->second;
  folded_[e] = first;
  if (is_float(type)) reals_[first] = load_double(type, value->data());
  return first;
}

ExprId Expressions::rounded_from(ExprId constant, std::span<const ExprId> of) const {
  const auto value = reals_.find(constant);
  if (value == reals_.end() || value->second == 0) return kNoExpr;
  for (ExprId e : of) {
    const auto exact = reals_.find(e);
    if (exact == reals_.end() || exact->second == value->second) continue;
    for (const ElementType narrow : {ElementType::F32, ElementType::BF16, ElementType::F16}) {
      char bytes[8] = {};
      store_double(narrow, bytes, exact->second);
      if (load_double(narrow, bytes) == value->second) return e;
    }
  }
  return kNoExpr;
}

}  // namespace hlo
