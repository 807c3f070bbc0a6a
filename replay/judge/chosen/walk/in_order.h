// Element-wise operations written in one way, whatever the order of their dimensions: as the arrays that they read lie.
#pragma once
#include <optional>
#include <vector>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

// multiply(transpose(a), transpose(b)) is transpose(multiply(a, b)), and a negated broadcast is a broadcast.
struct ElementwiseForm {
  std::vector<ExprId> operands;  // scalars as they are
  Dims dims;                     // of its own elements: dimensions along which all operands repeat are left out
  Expr::View order;              // of these, as the instruction has them
};
// None where its elements are in that order already, and where the operation is not element by element.
std::optional<ElementwiseForm> elementwise_form(Expressions& all, const Module& m, InstId i,
                                                const std::vector<ExprId>& operands);

// Elements of what lies in that order, as they lie: the view of the instruction's result that it is. None where
// elements repeat.
std::optional<Expr::View> turned_back(const Expr::View& order);

}  // namespace hlo
