// Elements on both sides of masks that positions decide: a diagonal, a triangle, a band, the first few rows.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "replay/judge/chosen/elements/elements.h"

namespace hlo {

// What of an expression's elements a search for such places may look at.
struct MaskSearch {
  std::function<bool(ExprId)> drawn;  // a leaf: nothing further down is read
  std::function<bool(ExprId)> fixed;  // computed from constants and positions alone
  uint64_t seed = 1;
  size_t most = 24;  // elements that are given
};

// Row-major elements of `e`, an array of `dims`, next to where comparisons that its elements depend on, one to one, of
// positions (iotas, and what is computed from these) change sides: those before, at and after that place, along each
// dimension. In no order; none where there is no such comparison. What costs too much for `elements` is left out.
std::vector<int64_t> mask_places(const std::vector<Expr>& all, ExprId e, const Dims& dims, const MaskSearch& search,
                                 ChosenElements& elements);

}  // namespace hlo
