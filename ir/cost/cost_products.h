// Products that a library's call makes, by its configuration.
#pragma once
#include <optional>

#include "ir/module.h"

namespace hlo {

// Operations of cuDNN's attention: of each pair of rows that the mask lets through a product for the scores and one for
// the result; backward the scores again and four products for the gradients. Nothing where the mask leaves out what the
// shapes do not tell.
std::optional<double> attention_flops(const Module& m, InstId i, bool backward);

// Of a dot, or of one of groups of rows, or of slices of its sum, each of one group: l's elements that are summed for
// each of the result's. `sizes`: of the groups; null: there are none.
double ragged_flops(const Shape& l, const Shape& out, const Shape* sizes, const Dims& contracted, const Dims& ragged);
// Of cuBLASLt's call of one; nothing where its configuration does not tell.
std::optional<double> grouped_product_flops(const Module& m, InstId call);

}  // namespace hlo
