// Products that a library's call makes, by its configuration.
#pragma once
#include <optional>

#include "ir/module.h"

namespace hlo {

// Operations of cuDNN's attention: of each pair of rows that the mask lets through a product for the scores and one for
// the result; backward the scores again and four products for the gradients. Nothing where the mask leaves out what the
// shapes do not tell.
std::optional<double> attention_flops(const Module& m, InstId i, bool backward);

}  // namespace hlo
