// Instructions as calls of a device's libraries.
#pragma once
#include <optional>

#include "gpu_exec/driver/device.h"

namespace hlo {

// A library's product, and which operand of the instruction each of its arrays is; -1: none.
struct Product {
  MatrixProduct form;
  int left = 0, right = 1, matrix = -1, bias = -1, left_scale = -1, right_scale = -1, scale = -1;
};

// The product that an instruction is: a dot, or a library call.
std::optional<Product> product_of(const Module& m, InstId i);

// The convolution that an instruction is, by itself or as a call of cuDNN: its first two operands, then a bias and what
// is added besides.
std::optional<ConvolutionForm> convolution_of(const Module& m, InstId i);

// The library takes features last or features first, each array alike, where the filters of most programs lie
// otherwise:
//   c = convolution(x, w)
// becomes, where that makes it the library's,
//   x' = copy(x), w' = copy(w) in such layouts, c' = convolution(x', w'), c = copy(c')
// Calls of cuDNN likewise, as they stand in front of layout assignment. True where it changed the module.
bool lay_out_convolutions(Device& device, Module& m);

// A convolution of f32 or f64 whose epilogue the library has no engine for, where it has one for the convolution alone:
//   r = custom-call(x, w, bias, side), "__cudnn$convBiasActivationForward"
// becomes
//   c = custom-call(x, w), "__cudnn$convForward"; r = fusion(c, bias, side), the epilogue
// To be laid out afterwards. True where it changed the module.
bool split_convolutions(Device& device, Module& m);

}  // namespace hlo
