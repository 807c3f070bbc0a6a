// cuDNN's convolutions, layer norms and attention (xla/backends/gpu/transforms/cudnn_norm_rewriter.cc,
// backend_configs.proto, jax/_src/cudnn/fused_attention_stablehlo.py).
#include <algorithm>
#include <cmath>

#include "ir/backend_config.h"
#include "ir/base/parallel.h"
#include "ir/cudnn_epilogue.h"
#include "ir/eval/attention_call.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"

namespace hlo {
namespace {

std::vector<double> as_doubles(const Universe& u, const Value& v) {
  const Shape& s = u[v.shape];
  std::vector<double> out(static_cast<size_t>(s.elements_count()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_double(s.type, v.bytes() + i * static_cast<size_t>(storage_bytes(s.type)));
  return out;
}
void put_doubles(const Universe& u, Value& v, const std::vector<double>& list) {
  const Shape& s = u[v.shape];
  for (size_t i = 0; i < list.size(); ++i)
    store_double(s.type, v.data->data() + i * static_cast<size_t>(storage_bytes(s.type)), list[i]);
}

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

// softmax(scale · q kᵀ [+ bias] [, causal]) v, forward: (q, k, v[, bias]) → (out[, log of the sums], scratch).
Value Evaluator::library_attention(InstId inst, std::vector<Value>& ops) {
  const AttentionCall call(m_, inst);
  if (!call.why.empty()) refuse(inst, call.why);
  auto product = [&](const Value& l, const Value& r, const AttentionCall::Product& dims, const Dims& out) {
    return contract(inst, l, r, dims.lhs_batch, dims.lhs_sum, dims.rhs_batch, dims.rhs_sum,
                    u_.array(ElementType::F32, out));
  };
  Value scores = product(ops[0], ops[1], call.scores, call.square);
  const int64_t to = call.square[3], rows = call.square[0] * call.square[1] * call.square[2];
  auto* p = reinterpret_cast<float*>(scores.data->data());
  std::vector<double> bias, sums(static_cast<size_t>(rows)), line(static_cast<size_t>(to)), added;
  if (call.biased) bias = as_doubles(u_, ops[3]);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(p + r * to, to, line.begin());
    added.clear();
    for (int64_t k = 0; k < to && call.biased; ++k)
      added.push_back(bias[static_cast<size_t>(call.bias_element(r, k, u_[ops[3].shape].dims))]);
    sums[static_cast<size_t>(r)] = call.softmax(r, line, added);
    for (int64_t k = 0; k < to; ++k) p[r * to + k] = static_cast<float>(line[static_cast<size_t>(k)]);
  }
  Value out = make(m_.shape_id(inst));
  Value& result = out.elements[0];
  Value wide = product(scores, ops[2], call.weighted, u_[result.shape].dims);
  put_doubles(u_, result, as_doubles(u_, wide));
  if (out.elements.size() > 2) {
    if (u_[out.elements[1].shape].elements_count() != rows) refuse(inst, "statistics of another shape");
    put_doubles(u_, out.elements[1], sums);
  }
  return out;
}

// p = exp(scale · q kᵀ [+ bias] [, causal] − log of the sums), dp = dout vᵀ, ds = p (dp − sum over a row of dout ·
// out):
//   dv = pᵀ dout, dq = scale · ds k, dk = scale · dsᵀ q, dbias = ds, summed where the bias has one element
// of (q, k, v, log of the sums, dout[, bias], out), to (dq, dk, dv[, dbias], workspace).
Value Evaluator::library_attention_backward(InstId inst, bool biased, std::vector<Value>& ops) {
  BackendConfig config =
      backend_config(u_.text(m_.attrs(inst).text(Attr::backend_config)), "cudnn_fmha_backend_config");
  const bool causal = word(config, "mask_type", "NO_MASK") == "CAUSAL";
  const double scale = number(config, "fmha_scale", 1);
  auto product = [&](const Value& l, const Value& r, const char* name, const Dims& out) {
    const BackendConfig& dims = config[name];
    return contract(inst, l, r, list(dims, "lhs_batch_dimensions"), list(dims, "lhs_contracting_dimensions"),
                    list(dims, "rhs_batch_dimensions"), list(dims, "rhs_contracting_dimensions"),
                    u_.array(ElementType::F32, out));
  };
  constexpr const char* kScores = "bmm2_grad_gemm2_dot_dimension_numbers";
  const BackendConfig& numbers = config[kScores];
  auto free_of = [&](const Value& v, const char* batch, const char* contracted) {
    for (int64_t d = 0; d < u_[v.shape].rank(); ++d)
      if (!contains(list(numbers, batch), d) && !contains(list(numbers, contracted), d)) return d;
    return int64_t{0};
  };
  const Dims& q_dims = u_[ops[0].shape].dims;
  const Dims batch = list(numbers, "lhs_batch_dimensions");
  const int64_t row_dim = free_of(ops[0], "lhs_batch_dimensions", "lhs_contracting_dimensions"),
                column_dim = free_of(ops[1], "rhs_batch_dimensions", "rhs_contracting_dimensions");
  // [batch, heads, rows of q, rows of k]
  const Dims square{q_dims[static_cast<size_t>(batch[0])], q_dims[static_cast<size_t>(batch[1])],
                    q_dims[static_cast<size_t>(row_dim)], u_[ops[1].shape].dims[static_cast<size_t>(column_dim)]};
  Value probabilities = product(ops[0], ops[1], kScores, square), gradient = product(ops[4], ops[2], kScores, square);
  const std::vector<double> sums = as_doubles(u_, ops[3]), given = as_doubles(u_, ops[4]),
                            result = as_doubles(u_, ops.back()),
                            bias = biased ? as_doubles(u_, ops[5]) : std::vector<double>();
  const Dims bias_dims = biased ? u_[ops[5].shape].dims : Dims(4, 1);
  std::vector<double> dbias(bias.size());
  const Dims& out_dims = u_[ops[4].shape].dims;
  const Dims steps = row_major_strides(out_dims);
  const auto inner = static_cast<size_t>(list(numbers, "lhs_contracting_dimensions")[0]);
  auto* p = reinterpret_cast<float*>(probabilities.data->data());
  auto* ds = reinterpret_cast<float*>(gradient.data->data());
  const int64_t rows = square[0] * square[1] * square[2], to = square[3];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r % square[2], head = r / square[2] % square[1], one = r / square[2] / square[1];
    const int64_t at = one * steps[static_cast<size_t>(batch[0])] + head * steps[static_cast<size_t>(batch[1])] +
                       row * steps[static_cast<size_t>(row_dim)];
    double along = 0;
    for (int64_t k = 0; k < out_dims[inner]; ++k) {
      const auto place = static_cast<size_t>(at + k * steps[inner]);
      along += given[place] * result[place];
    }
    for (int64_t k = 0; k < to; ++k) {
      const int64_t place[4] = {one, head, row, k};
      size_t b = 0;  // dimensions of one element serve all
      for (size_t d = 0; d < 4; ++d)
        b = b * static_cast<size_t>(bias_dims[d]) + static_cast<size_t>(bias_dims[d] == 1 ? 0 : place[d]);
      float &chance = p[r * to + k], &slope = ds[r * to + k];
      const double score = static_cast<double>(chance) * scale + (biased ? bias[b] : 0);
      const double v = causal && k > row ? 0 : std::exp(score - sums[static_cast<size_t>(r)]);
      const double change = v * (static_cast<double>(slope) - along);
      if (biased) dbias[b] += change;
      chance = static_cast<float>(v), slope = static_cast<float>(change);
    }
  }
  Value out = make(m_.shape_id(inst));
  auto put = [&](size_t k, const Value& left, const Value& right, const char* name, double factor) {
    std::vector<double> made = as_doubles(u_, product(left, right, name, u_[out.elements[k].shape].dims));
    for (double& v : made) v *= factor;
    put_doubles(u_, out.elements[k], made);
  };
  put(0, gradient, ops[1], "bmm1_grad_gemm2_dot_dimension_numbers", scale);
  put(1, gradient, ops[0], "bmm1_grad_gemm1_dot_dimension_numbers", scale);
  put(2, probabilities, ops[4], "bmm2_grad_gemm1_dot_dimension_numbers", 1);
  if (out.elements.size() > 4) put_doubles(u_, out.elements[3], dbias);
  return out;
}

}  // namespace hlo
