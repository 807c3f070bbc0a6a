// cuDNN's attention as XLA writes it (backend_configs.proto, jax/_src/cudnn/fused_attention_stablehlo.py):
//   forward   (q, k, v[, bias], lengths, offsets) → (out[, log of the sums], scratch)
//   backward  (q, k, v, log of the sums, dout[, bias], out, lengths, offsets) → (dq, dk, dv[, dbias], scratch)
// lengths: of the sequences of q and of k, where the mask is a padding one or several sequences lie in a row; offsets:
// where each of those begins, in elements of q and of k.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "ir/backend_config.h"
#include "ir/module.h"

namespace hlo {

// What the configuration and the target say, and which operand is what (0: there is none).
struct AttentionForm {
  bool backward = false, biased = false, causal = false, padded = false;
  double scale = 1;
  int64_t window = 0;    // columns that a row sees up to its own; 0: all
  int64_t segments = 1;  // sequences in a row of the batch, at most
  size_t bias = 0, q_lengths = 0, kv_lengths = 0, q_offsets = 0, kv_offsets = 0;
  size_t operands = 3;
  std::string why;  // it is not supported; empty where it is
  bool packed() const { return segments > 1; }
};
// None for other targets.
std::optional<AttentionForm> attention_form(const Module& m, InstId call);
// The configuration of such a call.
BackendConfig attention_config(const Module& m, InstId call);

// Names of the numbers of its products.
namespace attention_products {
inline constexpr const char *kScores = "bmm1_dot_dimension_numbers", *kWeighted = "bmm2_dot_dimension_numbers",
                            *kToKey = "bmm1_grad_gemm1_dot_dimension_numbers",
                            *kToQuery = "bmm1_grad_gemm2_dot_dimension_numbers",
                            *kToValue = "bmm2_grad_gemm1_dot_dimension_numbers",
                            *kScoresAgain = "bmm2_grad_gemm2_dot_dimension_numbers";
}  // namespace attention_products

}  // namespace hlo
