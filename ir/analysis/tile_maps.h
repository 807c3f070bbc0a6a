// Which elements of each value of a kernel one element of its result asks for, as far as XLA sees tiles in it
// (xla/codegen/tiling/symbolic_tile.cc, size_and_stride_expression.cc): a dimension of a value is a dimension of the
// result, one that is summed, a part of one (a quotient or remainder), or a sum of several. Of other sums, as of a
// quotient and what is summed, it makes no tile, whatever its size.
#pragma once
#include "ir/analysis/fusion_view.h"

namespace hlo {

// Of a kernel of one result; looks at Reshape, Bitcast, Broadcast, Transpose, Slice, Reduce; of all else operands lie
// as the result does.
bool has_tile_maps(const FusionView& view);

}  // namespace hlo
