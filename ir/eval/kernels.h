// Inner loops of the evaluator on raw arrays.
#pragma once
#include <cstdint>

#include "ir/attribute.h"
#include "ir/module.h"
#include "ir/types/element_type.h"

namespace hlo {

Dims row_major_strides(const Dims& dims);
// out[Σ i·out_strides] = in[Σ i·in_strides] over all i in dims; strides in elements, `width` bytes each.
void copy_nd(const Dims& dims, const char* in, const Dims& in_strides, char* out, const Dims& out_strides, int width);

// One elementwise operation over n elements. `in` is the type of operands 0 (and 1), `out` of the result. Operand c is
// the third one of select and clamp. A scalar operand is given by step 0. False where the pair is not defined.
struct EwArgs {
  Opcode op;
  ElementType in, out;
  int64_t n;
  const char *a = nullptr, *b = nullptr, *c = nullptr;
  bool a_scalar = false, b_scalar = false, c_scalar = false;
  std::string_view direction, compare_type;  // compare
  int exponent_bits = 0, mantissa_bits = 0;  // reduce-precision
  char* result = nullptr;
};
bool elementwise_kernel(const EwArgs& args);
// A number whose order is that of values of that type: integers, floats in the total order (-NaN, -inf, …, -0, 0, …,
// inf, NaN; NaNs by their bits). u64 too. Not for complex numbers.
int64_t total_order_rank(ElementType type, const char* at);
void convert_kernel(ElementType from, ElementType to, int64_t n, const char* in, char* out);

// z[i] = alpha · x[i] · y[i] + beta · z[i] of row-major matrices of f32 or f64, m × k and k × n (`transpose`: of arrays
// k × m and n × k), on all cores; sums do not depend on how many there are.
struct BlasProduct {
  ElementType type = ElementType::F32;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_x = false, transpose_y = false;
  double alpha = 1, beta = 0;
};
void blas_product(const BlasProduct& p, const char* x, const char* y, char* z);

// A dot of row-major arrays, batch dimensions in front in the result. Large ones of floats by OpenBLAS unless `exact`,
// as they lie where it takes that. False, and nothing is done: of element types that have no products.
struct DotNumbers {
  const Dims &l_batch, &l_contract, &r_batch, &r_contract;
};
bool dot_arrays(const DotNumbers& d, bool exact, const Shape& ls, const char* l, const Shape& rs, const char* r,
                const Shape& os, char* out);

}  // namespace hlo
