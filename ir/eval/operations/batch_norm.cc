// Batch normalization: inference, training and its gradient.
#include <cmath>

#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"

namespace hlo {

Value Evaluator::batch_norm(InstId inst, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  double epsilon = static_cast<float>(*a.get<double>(Attr::epsilon));
  size_t feature = static_cast<size_t>(a.integer(Attr::feature_index));
  const Shape& s = u_[ops[0].shape];
  int64_t n = s.elements_count(), features = s.dims[feature], inner = 1;
  for (size_t i = feature + 1; i < s.dims.size(); ++i) inner *= s.dims[i];
  auto f_of = [&](int64_t i) { return static_cast<size_t>(i / inner % features); };
  auto list = [&](const Value& v) {
    ElementType vt = u_[v.shape].type;
    std::vector<double> out(static_cast<size_t>(u_[v.shape].elements_count()));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = load_double(vt, v.bytes() + i * static_cast<size_t>(storage_bytes(vt)));
    return out;
  };
  auto put = [&](Value& v, const std::vector<double>& d) {
    ElementType vt = u_[v.shape].type;
    for (size_t i = 0; i < d.size(); ++i)
      store_double(vt, v.data->data() + i * static_cast<size_t>(storage_bytes(vt)), d[i]);
  };
  std::vector<double> x = list(ops[0]);
  double per = features ? static_cast<double>(n) / static_cast<double>(features) : 0;
  Value out = make(m_.shape_id(inst));
  if (m_.op(inst) == Opcode::BatchNormInference) {
    auto scale = list(ops[1]), offset = list(ops[2]), mean = list(ops[3]), var = list(ops[4]);
    for (int64_t i = 0; i < n; ++i) {
      size_t f = f_of(i), k = static_cast<size_t>(i);
      x[k] = (x[k] - mean[f]) / std::sqrt(var[f] + epsilon) * scale[f] + offset[f];
    }
    put(out, x);
    return out;
  }
  if (m_.op(inst) == Opcode::BatchNormTraining) {
    auto scale = list(ops[1]), offset = list(ops[2]);
    std::vector<double> mean(static_cast<size_t>(features)), var(static_cast<size_t>(features));
    for (int64_t i = 0; i < n; ++i) mean[f_of(i)] += x[static_cast<size_t>(i)] / per;
    for (int64_t i = 0; i < n; ++i) {
      double d = x[static_cast<size_t>(i)] - mean[f_of(i)];
      var[f_of(i)] += d * d / per;
    }
    for (int64_t i = 0; i < n; ++i) {
      size_t f = f_of(i), k = static_cast<size_t>(i);
      x[k] = (x[k] - mean[f]) / std::sqrt(var[f] + epsilon) * scale[f] + offset[f];
    }
    put(out.elements[0], x), put(out.elements[1], mean), put(out.elements[2], var);
    return out;
  }
  auto scale = list(ops[1]), mean = list(ops[2]), var = list(ops[3]), grad = list(ops[4]);
  std::vector<double> sum_g(static_cast<size_t>(features)), sum_gx(static_cast<size_t>(features)),
      grad_scale(static_cast<size_t>(features));
  for (int64_t i = 0; i < n; ++i) {
    size_t f = f_of(i), k = static_cast<size_t>(i);
    sum_g[f] += grad[k];
    sum_gx[f] += grad[k] * (x[k] - mean[f]);
  }
  for (size_t f = 0; f < grad_scale.size(); ++f) grad_scale[f] = sum_gx[f] / std::sqrt(var[f] + epsilon);
  for (int64_t i = 0; i < n; ++i) {
    size_t f = f_of(i), k = static_cast<size_t>(i);
    double v = var[f] + epsilon;
    x[k] = scale[f] / std::sqrt(v) * (grad[k] - sum_g[f] / per - (x[k] - mean[f]) * sum_gx[f] / (per * v));
  }
  put(out.elements[0], x), put(out.elements[1], grad_scale), put(out.elements[2], sum_g);
  return out;
}

}  // namespace hlo
