#include "ir/eval/attention_call.h"

#include <algorithm>
#include <cmath>

#include "ir/backend_config.h"

namespace hlo {

bool is_attention_call(std::string_view target) {
  return target == "__cudnn$fmhaSoftmax" || target == "__cudnn$fmhaScaleBiasSoftmax";
}

AttentionCall::AttentionCall(const Module& m, InstId call) {
  const Universe& u = m.u();
  biased = u.text(m.attrs(call).text(Attr::custom_call_target)) == "__cudnn$fmhaScaleBiasSoftmax";
  BackendConfig config = backend_config(u.text(m.attrs(call).text(Attr::backend_config)), "cudnn_fmha_backend_config");
  const std::string mask = word(config, "mask_type", "NO_MASK");
  scale_ = number(config, "fmha_scale", 1), causal_ = mask == "CAUSAL";
  auto product = [&](const char* name) {
    if (!config.contains(name)) {
      why = "attention without dimension numbers";
      return Product();
    }
    const BackendConfig& dims = config[name];
    return Product{list(dims, "lhs_batch_dimensions"), list(dims, "lhs_contracting_dimensions"),
                   list(dims, "rhs_batch_dimensions"), list(dims, "rhs_contracting_dimensions")};
  };
  scores = product("bmm1_dot_dimension_numbers"), weighted = product("bmm2_dot_dimension_numbers");
  if (config.contains("intermediate_tensor_shape") && config["intermediate_tensor_shape"].is_object())
    square = list(config["intermediate_tensor_shape"], "dimensions");
  if (square.size() != 4) why = "attention without the shape of its scores";
  if (!m.shape(call).is_tuple()) why = "attention whose result is no tuple";
  if (mask != "NO_MASK" && mask != "CAUSAL") why = fmt::format("attention with mask {}", mask);
  if (number(config, "dropout_rate", 0) != 0) why = "attention with dropout";
  if (number(config, "sliding_window_length", 0) != 0) why = "attention with a sliding window";
  if (m.operand_count(call) != (biased ? 4u : 3u))
    why = fmt::format("attention with {} operands", m.operand_count(call));
  else if (biased && m.shape(m.operand(call, 3)).rank() != 4)
    why = "attention with a bias of other than four dimensions";
}

int64_t AttentionCall::bias_element(int64_t row, int64_t column, const Dims& bias) const {
  const int64_t place[4] = {row / square[2] / square[1], row / square[2] % square[1], row % square[2], column};
  int64_t at = 0;
  for (size_t d = 0; d < 4; ++d) at = at * bias[d] + (bias[d] == 1 ? 0 : place[d]);
  return at;
}

double AttentionCall::softmax(int64_t row, std::vector<double>& line, const std::vector<double>& added) const {
  double most = -INFINITY, sum = 0;
  for (size_t k = 0; k < line.size(); ++k) {
    line[k] *= scale_;
    if (!added.empty()) line[k] += added[k];
    if (causal_ && static_cast<int64_t>(k) > row % square[2]) line[k] = -INFINITY;
    most = std::max(most, line[k]);
  }
  for (double& x : line) x = std::isinf(most) ? 0 : std::exp(x - most), sum += x;
  for (double& x : line) x = sum > 0 ? x / sum : 0;
  return most + std::log(sum);
}

}  // namespace hlo
