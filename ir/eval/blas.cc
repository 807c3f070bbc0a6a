#include "ir/eval/blas.h"

#include <cstdlib>

#include <cblas.h>
#include <dlfcn.h>

namespace hlo {
namespace {

struct Blas {
  void* library = nullptr;
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
};
const Blas& blas() {
  static const Blas loaded = [] {
    Blas b;
    ::setenv("OPENBLAS_NUM_THREADS", "1", 0);  // the cores are ours to share out
#if defined(__x86_64__)
    // A processor newer than the library is taken for one of 2004, whose kernels take three times as long: what counts
    // is what it can do.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      ::setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      ::setenv("OPENBLAS_CORETYPE", "HASWELL", 0);
#endif
    b.library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (b.library) {
      b.sgemm = reinterpret_cast<decltype(b.sgemm)>(::dlsym(b.library, "cblas_sgemm"));
      b.dgemm = reinterpret_cast<decltype(b.dgemm)>(::dlsym(b.library, "cblas_dgemm"));
      if (!b.sgemm || !b.dgemm) b = {};
    }
    return b;
  }();
  return loaded;
}

template <class F, class T>
void call(F gemm, int64_t m, int64_t n, int64_t k, T alpha, MatrixView<T> x, MatrixView<T> y, T beta, T* z,
          int64_t stride) {
  gemm(CblasRowMajor, x.transposed ? CblasTrans : CblasNoTrans, y.transposed ? CblasTrans : CblasNoTrans,
       static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, x.at, static_cast<int>(x.stride), y.at,
       static_cast<int>(y.stride), beta, z, static_cast<int>(stride));
}

}  // namespace

bool has_blas() { return blas().sgemm != nullptr; }
void* blas_symbol(const char* name) { return has_blas() ? ::dlsym(blas().library, name) : nullptr; }

void library_gemm(int64_t m, int64_t n, int64_t k, float alpha, MatrixView<float> x, MatrixView<float> y, float beta,
                  float* z, int64_t stride) {
  call(blas().sgemm, m, n, k, alpha, x, y, beta, z, stride);
}
void library_gemm(int64_t m, int64_t n, int64_t k, double alpha, MatrixView<double> x, MatrixView<double> y,
                  double beta, double* z, int64_t stride) {
  call(blas().dgemm, m, n, k, alpha, x, y, beta, z, stride);
}

}  // namespace hlo
