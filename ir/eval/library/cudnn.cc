// cuDNN's convolutions and layer norms (xla/backends/gpu/transforms/cudnn_norm_rewriter.cc,
// backend_configs.proto).
#include <algorithm>
#include <cmath>

#include "ir/backend_config.h"
#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/eval/value_doubles.h"
#include "ir/library/cudnn_epilogue.h"

namespace hlo {
namespace {

using Activation = double (*)(double x, double leak);

// Null: not known.
Activation activation_named(const std::string& mode) {
  if (mode == "kNone") return [](double x, double) { return x; };
  if (mode == "kRelu") return [](double x, double) { return std::isnan(x) ? x : std::max(x, 0.0); };
  if (mode == "kRelu6") return [](double x, double) { return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0); };
  if (mode == "kElu") return [](double x, double) { return x > 0 ? x : std::expm1(x); };
  if (mode == "kLeakyRelu") return [](double x, double leak) { return x > 0 ? x : leak * x; };
  if (mode == "kSigmoid") return [](double x, double) { return 1 / (1 + std::exp(-x)); };
  if (mode == "kTanh") return [](double x, double) { return std::tanh(x); };
  return nullptr;
}

}  // namespace

Value Evaluator::library_convolution(InstId inst, std::string_view kind, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  if (!is_cudnn_convolution_of_fitting_ranks(m_, inst)) refuse(inst, "dim_labels or a window of other ranks");
  Value out;
  out.shape = m_.shape_id(inst);
  const std::vector<ShapeId>& parts = u_[out.shape].elements;
  Value result;
  if (kind == "BackwardInput")
    result = convolution_backward_input(a, ops[0], ops[1], parts[0]);
  else if (kind == "BackwardFilter")
    result = convolution_backward_filter(a, ops[0], ops[1], parts[0]);
  else
    result = convolution(a, ops[0], ops[1], parts[0]);
  if (!cudnn_epilogue(m_, inst).plain()) {
    std::vector<Value> given{std::move(result)};
    for (size_t k = 2; k < ops.size(); ++k) given.push_back(ops[k]);
    result = run_epilogue(inst, std::move(given));
  }
  out.elements.push_back(std::move(result));
  for (size_t k = 1; k < parts.size(); ++k) out.elements.push_back(make(parts[k]));
  return out;
}

Value Evaluator::run_convolution(InstId call, std::vector<Value> operands) {
  check_target(call);
  if (!is_cudnn_convolution_of_fitting_ranks(m_, call)) refuse(call, "dim_labels or a window of other ranks");
  return convolution(m_.attrs(call), operands[0], operands[1], m_.shape(call).elements[0]);
}

Value Evaluator::run_epilogue(InstId call, std::vector<Value> operands) {
  const CudnnEpilogue e = cudnn_epilogue(m_, call);
  const Shape& s = u_[operands[0].shape];
  if (!is_float(s.type)) refuse(call, "an epilogue on integers");
  const Activation activation = activation_named(e.activation);
  if (!activation) refuse(call, fmt::format("activation {}", e.activation));
  const Value* bias = e.fused && operands.size() > 1 ? &operands[1] : nullptr;
  const Value* side = e.fused && operands.size() > 2 ? &operands[2] : nullptr;
  const auto feature = static_cast<size_t>(m_.attrs(call).get<DimLabels>(Attr::dim_labels)->output_feature);
  const int64_t inner = row_major_strides(s.dims)[feature], features = s.dims[feature];
  const std::vector<double> by_feature = bias ? as_doubles(u_, *bias) : std::vector<double>();
  // In place where nobody else has it.
  Value result = operands[0].data.use_count() > 1 ? unset(operands[0].shape) : operands[0];
  const char* in = operands[0].bytes();
  char* out = result.data->data();
  constexpr int64_t kBlock = 1 << 12;
  parallel_ranges(s.elements_count(), kBlock, [&](int64_t from, int64_t end) {
    double v[kBlock], other[kBlock];
    const int64_t count = end - from, at = from * storage_bytes(s.type);
    convert_kernel(s.type, ElementType::F64, count, in + at, reinterpret_cast<char*>(v));
    for (int64_t k = 0; k < count; ++k) v[k] *= e.scale;
    if (side) {
      const ElementType t = u_[side->shape].type;
      convert_kernel(t, ElementType::F64, count, side->bytes() + from * storage_bytes(t),
                     reinterpret_cast<char*>(other));
      for (int64_t k = 0; k < count; ++k) v[k] += other[k] * e.side_scale;
    }
    if (bias) {
      int64_t f = from / inner % features, left = inner - from % inner;
      for (int64_t k = 0; k < count; ++k) {
        v[k] += by_feature[static_cast<size_t>(f)];
        if (--left == 0) left = inner, f = f + 1 == features ? 0 : f + 1;
      }
    }
    if (e.activation != "kNone")
      for (int64_t k = 0; k < count; ++k) v[k] = activation(v[k], e.leak);
    convert_kernel(ElementType::F64, s.type, count, reinterpret_cast<const char*>(v), out + at);
  });
  return result;
}

// x [n, c…]: every row of it has mean 0 and variance 1 before scale and bias, which have one row.
//   LAYER_FWD_INFER  (x, scale, bias)               → (y, scratch)
//   LAYER_FWD_TRAIN  (x, scale, bias)               → (y, mean, 1/deviation, scratch)
//   LAYER_BWD        (x, scale, dy, mean, 1/dev.)   → (dx, dscale, dbias, scratch)
Value Evaluator::library_norm(InstId inst, std::vector<Value>& ops) {
  BackendConfig config =
      backend_config(u_.text(m_.attrs(inst).text(Attr::backend_config)), "cudnn_norm_backend_config");
  std::string kind = word(config, "kind", "LAYER_FWD_INFER");
  bool infer = kind == "LAYER_FWD_INFER", train = kind == "LAYER_FWD_TRAIN", backward = kind == "LAYER_BWD";
  Value out = make(m_.shape_id(inst));
  const Shape& s = u_[ops[0].shape];
  size_t n = static_cast<size_t>(s.elements_count()), per = static_cast<size_t>(u_[ops[1].shape].elements_count());
  if (!(infer || train || backward) || ops.size() != (backward ? 5u : 3u) || out.elements.size() != (infer ? 2u : 4u) ||
      !is_float(s.type) || per == 0 || n % per)
    refuse(inst, fmt::format("a layer norm of kind {} on {} operands", kind, ops.size()));
  size_t rows = n / per;
  std::vector<double> x = as_doubles(u_, ops[0]), scale = as_doubles(u_, ops[1]), third = as_doubles(u_, ops[2]);
  double width = static_cast<double>(per);
  if (!backward) {
    double epsilon = number(config, "epsilon", 0);
    std::vector<double> y(n), mean(rows, 0), factor(rows);
    for (size_t r = 0; r < rows; ++r) {
      double variance = 0;
      for (size_t k = 0; k < per; ++k) mean[r] += x[r * per + k] / width;
      for (size_t k = 0; k < per; ++k) variance += std::pow(x[r * per + k] - mean[r], 2) / width;
      factor[r] = 1 / std::sqrt(variance + epsilon);
      for (size_t k = 0; k < per; ++k) y[r * per + k] = (x[r * per + k] - mean[r]) * factor[r] * scale[k] + third[k];
    }
    put_doubles(u_, out.elements[0], y);
    if (train) put_doubles(u_, out.elements[1], mean), put_doubles(u_, out.elements[2], factor);
    return out;
  }
  std::vector<double> mean = as_doubles(u_, ops[3]), factor = as_doubles(u_, ops[4]), dx(n), dscale(per, 0),
                      dbias(per, 0);
  if (mean.size() != rows || factor.size() != rows || third.size() != n) refuse(inst, "statistics of another shape");
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, along = 0;  // of the gradient, and of its part along the normalised row
    auto unit = [&](size_t k) { return (x[r * per + k] - mean[r]) * factor[r]; };
    for (size_t k = 0; k < per; ++k) {
      double g = third[r * per + k];
      sum += g * scale[k], along += g * scale[k] * unit(k);
      dscale[k] += g * unit(k), dbias[k] += g;
    }
    for (size_t k = 0; k < per; ++k)
      dx[r * per + k] = factor[r] * (third[r * per + k] * scale[k] - sum / width - unit(k) * along / width);
  }
  put_doubles(u_, out.elements[0], dx), put_doubles(u_, out.elements[1], dscale),
      put_doubles(u_, out.elements[2], dbias);
  return out;
}

}  // namespace hlo
