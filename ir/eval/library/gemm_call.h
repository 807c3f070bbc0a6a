// cuBLAS's products as XLA writes them (xla/service/gpu/cublas_cudnn.h, backend_configs.proto): which of a call's
// operands is what, and what becomes of each sum of products.
#pragma once
#include <complex>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace hlo {

bool is_gemm_call(std::string_view target);

struct GemmCall {
  GemmCall(const Module& m, InstId call);

  std::string why;  // it cannot be evaluated; empty where it can
  // A side without batch dimensions serves all of the other's batch.
  Dims lhs_batch, lhs_sum, rhs_batch, rhs_sum;
  ElementType sums;                           // of the products
  size_t matrix = 0, bias = 0;                // operands that are added; 0: none
  std::vector<size_t> scales, result_scales;  // operands that are factors
  bool aux = false;                           // result 1 is what goes into the activation
  bool largest = false;                       // the last result is the largest magnitude

  // Is the result the products' sums and no more?
  bool plain() const;

  // An element of the result: alpha · scale · sum + beta · matrix + bias; then what is stored of that.
  std::complex<double> summed(std::complex<double> sum, double scale, std::complex<double> added,
                              std::complex<double> biased) const;
  double activated(double x) const;
  void store(ElementType type, char* to, std::complex<double> value, double result_scale) const;

  // Which element of the bias is added to element i of the result; -1: none, for a vector may be shorter than the rows,
  // which are padded then.
  static int64_t bias_index(int64_t i, const Shape& bias, const Shape& result);
  static std::complex<double> number_at(ElementType type, const char* at);

 private:
  std::complex<double> alpha_ = 1;
  double beta_ = 0;
  bool relu_ = false, gelu_ = false, silu_ = false;
};

}  // namespace hlo
