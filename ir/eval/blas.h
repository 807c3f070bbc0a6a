// Products by OpenBLAS, loaded when the first large one wants it: its start takes memory and threads that parsing and
// printing have no use for (and does not end where memory is limited).
#pragma once
#include <cstdint>

namespace hlo {

// Is there such a library?
bool has_blas();

// A function of that library by its name in Fortran (`dgesdd_`); null where there is none. Debian's has all of LAPACK.
void* blas_symbol(const char* name);

// One matrix as the library takes it: rows of `stride` elements, or columns of them.
template <class T>
struct MatrixView {
  const T* at;
  int64_t stride;
  bool transposed = false;
  const T* from(int64_t row, int64_t column) const {
    return at + (transposed ? column * stride + row : row * stride + column);
  }
};

// z[m,n] = alpha · x[m,k] · y[k,n] + beta · z, rows of z `stride` elements each. To be called where has_blas(); all
// counts below 2^31.
void library_gemm(int64_t m, int64_t n, int64_t k, float alpha, MatrixView<float> x, MatrixView<float> y, float beta,
                  float* z, int64_t stride);
void library_gemm(int64_t m, int64_t n, int64_t k, double alpha, MatrixView<double> x, MatrixView<double> y,
                  double beta, double* z, int64_t stride);

}  // namespace hlo
