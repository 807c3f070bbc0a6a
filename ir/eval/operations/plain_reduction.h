// Reductions of f32 and f64 as the array lies in memory.
#pragma once
#include <cstdint>

#include "ir/module.h"
#include "ir/types/element_type.h"

namespace hlo {

// `outer` reductions of `inner` elements each, none of them 0: of rows that lie together, or of columns whose elements
// are `outer` apart.
struct PlainReduction {
  Opcode how;  // add, maximum or minimum
  ElementType type;
  bool rows;
  int64_t outer, inner;
};
// Sums of f32 are rounded once, those of f64 at each element, in order. `init`: one element.
void reduce_in_place(const PlainReduction& r, const char* init, const char* from, char* to);

}  // namespace hlo
