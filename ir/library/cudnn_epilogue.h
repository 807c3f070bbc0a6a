// What cuDNN's convolution calls do behind their convolution.
#pragma once
#include <string>

#include "ir/backend_config.h"
#include "ir/library/cudnn.h"

namespace hlo {

// conv · scale + side · side_scale + bias, in this order, and the activation of that.
struct CudnnEpilogue {
  bool fused = false;  // may have a bias (operand 2, one number a feature) and a side input (operand 3)
  double scale = 1, side_scale = 0, leak = 0;
  std::string activation = "kNone";
  bool plain() const { return !fused && scale == 1 && activation == "kNone"; }
};

inline CudnnEpilogue cudnn_epilogue(const Module& m, InstId call) {
  const AttrSet& a = m.attrs(call);
  BackendConfig config = backend_config(m.u().text(a.text(Attr::backend_config)), "cudnn_conv_backend_config");
  CudnnEpilogue out;
  out.fused = m.u().text(a.text(Attr::custom_call_target)) == "__cudnn$convBiasActivationForward";
  out.scale = number(config, "conv_result_scale", 1), out.side_scale = number(config, "side_input_scale", 0);
  out.leak = number(config, "leakyrelu_alpha", 0), out.activation = word(config, "activation_mode", "kNone");
  return out;
}

}  // namespace hlo
