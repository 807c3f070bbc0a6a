// Reductions and products written in one way: what a plain one takes together, through reductions of reductions,
// elements that were moved, neutral padding, and products of two values that are summed.
#pragma once
#include <optional>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

// A reduction or a product as the sum that it is, and what the instruction makes of that: the sum's elements in the
// order of its own dimensions, repeated where they are alike.
struct SumForm {
  Expr expr;         // kSum, the largest steps first; kView: nothing is taken together, `order` is of its operand
  uint64_t key = 0;  // of Expressions::find_or_add
  Expr::View order;
  bool negated = false;  // it is the negative of that
};

// The one operation of a reducer whose order does not count. False of any other.
bool plain_operation(const Module& m, CompId reducer, Opcode* op);

// reduce(operand, initial) by a plain operation whose order does not count, from its neutral element; none where it is
// no such one, or where its elements lie in no order that steps can say.
std::optional<SumForm> reduction_form(Expressions& all, const Module& m, InstId reduce, ExprId operand, ExprId initial);
// A dot, or cuBLAS's product with nothing done to its sums; `leaf` 0 of what it gives.
std::optional<SumForm> product_form(Expressions& all, const Module& m, InstId product, ExprId left, ExprId right);

// Elements of a sum that read one part alone of a concatenation: the sum of that part, as if it had never been joined.
// `view`: what instruction `i` gives. None of all else.
std::optional<SumForm> part_form(Expressions& all, const Module& m, InstId i, ExprId view);

// Of two arrays multiplied element by element, as a product that sums nothing has it, too.
uint64_t multiplied_key(ElementType type, int64_t count, ExprId a, ExprId b);

// Elements of `of`, itself a view or not, in that order.
ExprId ordered(Expressions& all, ExprId of, const Expr::View& order, ShapeId shape);

// Has each device the same of both, as sums of what it has of whole arrays, and of what devices add up?
bool same_on_devices(Expressions& all, ExprId a, ExprId b);

// Of two sums by the same operation over as many terms each: the terms of each, as [results, terms]. None otherwise.
struct SumTerms {
  ExprId now, before;
  Dims dims;
};
std::optional<SumTerms> sum_terms(Expressions& all, Universe& u, ExprId now, ExprId before);

}  // namespace hlo
