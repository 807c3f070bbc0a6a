// cuDNN's attention, forward, as XLA writes it (backend_configs.proto, jax/_src/cudnn/fused_attention_stablehlo.py):
// softmax(scale · q kᵀ [+ bias] [, causal]) v, (q, k, v[, bias]) → (out[, log of the sums], scratch).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace hlo {

bool is_attention_call(std::string_view target);

struct AttentionCall {
  AttentionCall(const Module& m, InstId call);

  std::string why;  // it cannot be evaluated; empty where it can
  struct Product {
    Dims lhs_batch, lhs_sum, rhs_batch, rhs_sum;
  };
  Product scores, weighted;  // q kᵀ; of what softmax makes of that with v
  Dims square;               // of the scores: [batch, heads, rows of q, rows of k]
  bool biased = false;       // operand 3

  // Rows are counted over the first three dimensions of `square`. Dimensions of one element serve all.
  int64_t bias_element(int64_t row, int64_t column, const Dims& bias) const;
  // Makes shares of a row of scores; `added`: the row's biases, empty where there are none. The log of the row's sum.
  double softmax(int64_t row, std::vector<double>& line, const std::vector<double>& added) const;

 private:
  double scale_ = 1;
  bool causal_ = false;
};

}  // namespace hlo
