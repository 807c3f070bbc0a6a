// Products of a matrix with few vectors, which read the matrix once and are done: sums of rows or columns, not a
// library's.
#pragma once
#include "ir/module.h"

namespace hlo {

// %d = f32[m,n] dot(f32[m,k] a, f32[k,n] x), n up to 4, as a fusion that multiplies and reduces once a vector, in f32
// where elements have 16 bits. True where there was one.
bool reduce_vector_products(Module& m);

}  // namespace hlo
