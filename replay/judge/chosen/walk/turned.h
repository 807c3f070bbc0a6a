// Operations that move parts of arrays, written in one order of dimensions: in that in which what they move lies.
#pragma once
#include <optional>
#include <vector>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

// pad(transpose(a)) is transpose(pad(a)), with its numbers in another order.
struct TurnedForm {
  const Module* m = nullptr;  // of `inst`: a module of the expressions' own
  InstId inst;
  std::vector<ExprId> operands;
  Expr::View order;  // of its elements, as the instruction that it was made from has them
};
// Of a pad, a concatenation, a dynamic slice or its update, and of an iota. None where it is in that order already.
std::optional<TurnedForm> turned_form(Expressions& all, const Module& m, InstId i, const std::vector<ExprId>& operands);

}  // namespace hlo
