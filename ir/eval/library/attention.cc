// cuDNN's attention, forward and backward (ir/library/attention.h).
#include <algorithm>
#include <cmath>

#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/eval/library/attention_call.h"
#include "ir/eval/value_doubles.h"

namespace hlo {
namespace {

// Each of that dimension's parts `times` times, one behind the other: heads of k and v that serve several of q.
Value each_repeated(Universe& u, const Value& v, int64_t dim, int64_t times) {
  if (times == 1) return v;
  const Shape s = u[v.shape];
  const auto d = static_cast<size_t>(dim);
  Dims dims = s.dims;
  dims[d] *= times;
  Value out;
  out.shape = u.array(s.type, dims);
  out.data = new_array(u, out.shape);
  int64_t outer = 1, bytes = storage_bytes(s.type);
  for (size_t k = 0; k < d; ++k) outer *= s.dims[k];
  for (size_t k = d + 1; k < s.dims.size(); ++k) bytes *= s.dims[k];
  const char* from = v.bytes();
  char* to = out.data->data();
  for (int64_t k = 0; k < outer * s.dims[d]; ++k, from += bytes)
    for (int64_t n = 0; n < times; ++n) to = std::copy_n(from, bytes, to);
  return out;
}

// [batch, heads · times, …] to [batch, heads, …], sums of what one head served.
std::vector<double> sums_of_groups(const std::vector<double>& all, int64_t batch_heads, int64_t times) {
  if (times == 1) return all;
  const size_t inner = batch_heads ? all.size() / static_cast<size_t>(batch_heads * times) : 0;
  std::vector<double> out(static_cast<size_t>(batch_heads) * inner);
  for (size_t h = 0; h < static_cast<size_t>(batch_heads); ++h)
    for (size_t n = 0; n < static_cast<size_t>(times); ++n)
      for (size_t k = 0; k < inner; ++k) out[h * inner + k] += all[(h * static_cast<size_t>(times) + n) * inner + k];
  return out;
}

AttentionMask::Integers integers_of(const Universe& u, const AttentionForm& f, const std::vector<Value>& ops) {
  auto values = [&](size_t operand) {
    std::vector<int64_t> out;
    if (!operand) return out;
    const Shape& s = u[ops[operand].shape];
    for (int64_t k = 0; k < s.elements_count(); ++k)
      out.push_back(load_int(s.type, ops[operand].bytes() + k * storage_bytes(s.type)));
    return out;
  };
  return {values(f.q_lengths), values(f.kv_lengths), values(f.q_offsets), values(f.kv_offsets)};
}

}  // namespace

Value Evaluator::library_attention(InstId inst, std::vector<Value>& ops) {
  const AttentionCall call(m_, inst);
  if (!call.why.empty()) refuse(inst, call.why);
  const AttentionMask mask(call, integers_of(u_, call.form, ops));
  if (!mask.why.empty()) refuse(inst, mask.why);
  auto product = [&](const Value& l, const Value& r, const AttentionCall::Product& p, Dims out) {
    return contract(inst, l, r, p.lhs_batch, p.lhs_sum, p.rhs_batch, p.rhs_sum,
                    u_.array(ElementType::F32, std::move(out)));
  };
  Value scores =
      product(ops[0], each_repeated(u_, ops[1], call.scores.rhs_batch[1], call.group), call.scores, call.square);
  const int64_t to = call.square[3], rows = call.rows();
  auto* p = reinterpret_cast<float*>(scores.data->data());
  Value out = make(m_.shape_id(inst));
  const bool told = out.elements.size() > 2;
  std::vector<double> bias, line(static_cast<size_t>(to)), added,
      sums(told ? static_cast<size_t>(u_[out.elements[1].shape].elements_count()) : 0, -INFINITY);
  if (call.form.bias) bias = as_doubles(u_, ops[call.form.bias]);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(p + r * to, to, line.begin());
    added.clear();
    for (int64_t k = 0; k < to && call.form.bias; ++k)
      added.push_back(bias[static_cast<size_t>(call.bias_element(r, k, u_[ops[call.form.bias].shape].dims))]);
    const double sum = mask.softmax(r, line, added);
    if (const int64_t at = mask.statistic(r); told && at >= 0) sums[static_cast<size_t>(at)] = sum;
    for (int64_t k = 0; k < to; ++k) p[r * to + k] = static_cast<float>(line[static_cast<size_t>(k)]);
  }
  Value& result = out.elements[0];
  Value wide = product(scores, each_repeated(u_, ops[2], call.weighted.rhs_batch[1], call.group), call.weighted,
                       u_[result.shape].dims);
  put_doubles(u_, result, as_doubles(u_, wide));
  if (told) put_doubles(u_, out.elements[1], sums);
  return out;
}

// p = exp(scale · q kᵀ [+ bias] − log of the sums) where the mask lets it be, dp = dout vᵀ,
// ds = p (dp − sum over a row of dout · out):
//   dv = pᵀ dout, dq = scale · ds k, dk = scale · dsᵀ q, dbias = ds, summed where the bias has one element
Value Evaluator::library_attention_backward(InstId inst, std::vector<Value>& ops) {
  const AttentionCall call(m_, inst);
  if (!call.why.empty()) refuse(inst, call.why);
  const AttentionForm& f = call.form;
  const AttentionMask mask(call, integers_of(u_, f, ops));
  if (!mask.why.empty()) refuse(inst, mask.why);
  auto product = [&](const Value& l, const Value& r, const AttentionCall::Product& p, Dims out) {
    return contract(inst, l, r, p.lhs_batch, p.lhs_sum, p.rhs_batch, p.rhs_sum,
                    u_.array(ElementType::F32, std::move(out)));
  };
  const Dims& square = call.square;
  const int64_t head_dim = call.scores.rhs_batch[1];
  const Value keys = each_repeated(u_, ops[1], head_dim, call.group),
              values = each_repeated(u_, ops[2], head_dim, call.group);
  Value probabilities = product(ops[0], keys, call.scores, square),
        gradient = product(ops[4], values, call.scores, square);
  const std::vector<double> sums = as_doubles(u_, ops[3]), given = as_doubles(u_, ops[4]),
                            result = as_doubles(u_, ops[f.biased ? 6 : 5]),
                            bias = f.bias ? as_doubles(u_, ops[f.bias]) : std::vector<double>();
  std::vector<double> dbias(bias.size());
  const Dims& out_dims = u_[ops[4].shape].dims;
  const Dims steps = row_major_strides(out_dims);
  const Dims& batch = call.scores.lhs_batch;
  const auto inner = static_cast<size_t>(call.scores.lhs_sum[0]);
  size_t row_dim = 0;
  for (int64_t d = 0; d < 4; ++d)
    if (!contains(batch, d) && static_cast<size_t>(d) != inner) row_dim = static_cast<size_t>(d);
  auto* p = reinterpret_cast<float*>(probabilities.data->data());
  auto* ds = reinterpret_cast<float*>(gradient.data->data());
  const int64_t rows = call.rows(), to = square[3];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / square[2] % square[1];
    const int64_t at = call.batch_of(r) * steps[static_cast<size_t>(batch[0])] +
                       head * steps[static_cast<size_t>(batch[1])] + call.place_of(r) * steps[row_dim];
    double along = 0;
    for (int64_t k = 0; k < out_dims[inner]; ++k) {
      const auto place = static_cast<size_t>(at + k * steps[inner]);
      along += given[place] * result[place];
    }
    const AttentionRow& seen = mask.row(r);
    const int64_t told = mask.statistic(r);
    for (int64_t k = 0; k < to; ++k) {
      float &chance = p[r * to + k], &slope = ds[r * to + k];
      if (told < 0 || k < seen.first || k >= seen.last) {
        chance = slope = 0;
        continue;
      }
      const size_t b = f.bias ? static_cast<size_t>(call.bias_element(r, k, u_[ops[f.bias].shape].dims)) : 0;
      const double score = static_cast<double>(chance) * f.scale + (f.bias ? bias[b] : 0);
      const double v = std::exp(score - sums[static_cast<size_t>(told)]);
      const double change = v * (static_cast<double>(slope) - along);
      if (f.bias) dbias[b] += change;
      chance = static_cast<float>(v), slope = static_cast<float>(change);
    }
  }
  Value out = make(m_.shape_id(inst));
  auto put = [&](size_t k, const Value& left, const Value& right, const AttentionCall::Product& numbers,
                 double factor) {
    const Dims& own = u_[out.elements[k].shape].dims;
    Dims dims = own;
    dims[1] = square[1];
    std::vector<double> made =
        sums_of_groups(as_doubles(u_, product(left, right, numbers, dims)), own[0] * own[1], k ? call.group : 1);
    for (double& v : made) v *= factor;
    put_doubles(u_, out.elements[k], made);
  };
  put(0, gradient, keys, call.to_query, f.scale);
  put(1, gradient, ops[0], call.to_key, f.scale);
  put(2, probabilities, ops[4], call.to_value, 1);
  if (out.elements.size() > 4) put_doubles(u_, out.elements[3], dbias);
  return out;
}

}  // namespace hlo
