#include "ir/eval/library/attention_call.h"

#include <algorithm>
#include <cmath>

namespace hlo {

bool is_attention_call(std::string_view target) {
  return target == "__cudnn$fmhaSoftmax" || target == "__cudnn$fmhaScaleBiasSoftmax";
}

AttentionCall::AttentionCall(const Module& m, InstId call) {
  using namespace attention_products;
  std::optional<AttentionForm> known = attention_form(m, call);
  if (!known) {
    why = "no attention";
    return;
  }
  form = std::move(*known), why = form.why;
  if (why.empty() && m.operand_count(call) != form.operands)
    why = fmt::format("attention with {} operands", m.operand_count(call));
  if (why.empty() && !m.shape(call).is_tuple()) why = "attention whose result is no tuple";
  if (!why.empty()) return;
  const BackendConfig config = attention_config(m, call);
  auto product = [&](const char* name) {
    if (!config.contains(name)) {
      why = "attention without dimension numbers";
      return Product();
    }
    const BackendConfig& dims = config[name];
    return Product{list(dims, "lhs_batch_dimensions"), list(dims, "lhs_contracting_dimensions"),
                   list(dims, "rhs_batch_dimensions"), list(dims, "rhs_contracting_dimensions")};
  };
  if (form.backward)
    scores = product(kScoresAgain), to_query = product(kToQuery), to_key = product(kToKey),
    to_value = product(kToValue);
  else
    scores = product(kScores), weighted = product(kWeighted);
  if (!why.empty()) return;
  const Shape &q = m.shape(m.operand(call, 0)), &k = m.shape(m.operand(call, 1));
  auto three = [](const Dims& batch, const Dims& sum) {
    if (batch.size() != 2 || sum.size() != 1) return false;
    const int64_t d[] = {batch[0], batch[1], sum[0]};
    return std::all_of(d, d + 3, [](int64_t n) { return n >= 0 && n < 4; }) && d[0] != d[1] && d[0] != d[2] &&
           d[1] != d[2];
  };
  if (q.rank() != 4 || k.rank() != 4 || !three(scores.lhs_batch, scores.lhs_sum) ||
      !three(scores.rhs_batch, scores.rhs_sum)) {
    why = "attention of other than four dimensions";
    return;
  }
  auto size = [](const Shape& s, int64_t d) { return s.dims[static_cast<size_t>(d)]; };
  auto rest = [&](const Shape& s, const Dims& batch, const Dims& sum) {
    for (int64_t d = 0; d < 4; ++d)
      if (d != batch[0] && d != batch[1] && d != sum[0]) return size(s, d);
    return int64_t{1};
  };
  square = {size(q, scores.lhs_batch[0]), size(q, scores.lhs_batch[1]), rest(q, scores.lhs_batch, scores.lhs_sum),
            rest(k, scores.rhs_batch, scores.rhs_sum)};
  const int64_t heads = size(k, scores.rhs_batch[1]);
  group = heads > 0 ? square[1] / heads : 1;
  q_token = square[1] * size(q, scores.lhs_sum[0]), kv_token = heads * size(k, scores.rhs_sum[0]);
}

int64_t AttentionCall::bias_element(int64_t row, int64_t column, const Dims& bias) const {
  const int64_t place[4] = {row / square[2] / square[1], row / square[2] % square[1], row % square[2], column};
  int64_t at = 0;
  for (size_t d = 0; d < 4; ++d) at = at * bias[d] + (bias[d] == 1 ? 0 : place[d]);
  return at;
}

AttentionMask::AttentionMask(const AttentionCall& call, const Integers& integers) : call_(call) {
  const int64_t batches = call.square[0], length = call.square[2], columns = call.square[3];
  rows_.resize(static_cast<size_t>(batches * length));
  if (call.form.packed()) {
    put_sequences(integers);
    return;
  }
  for (int64_t b = 0; b < batches; ++b) {
    int64_t seen = length, last = columns;
    if (call.form.q_lengths) {
      seen = std::clamp<int64_t>(integers.q_lengths[static_cast<size_t>(b)], 0, length);
      last = std::clamp<int64_t>(integers.kv_lengths[static_cast<size_t>(b)], 0, columns);
    }
    for (int64_t t = 0; t < length; ++t) {
      AttentionRow& row = rows_[static_cast<size_t>(b * length + t)];
      row = {0, t < seen ? last : 0, 0, t};
      narrow(row, t);
    }
  }
}

// Columns behind the diagonal, and those too far in front of it.
void AttentionMask::narrow(AttentionRow& row, int64_t diagonal) const {
  if (call_.form.causal) row.last = std::min(row.last, diagonal + 1);
  if (call_.form.window) row.first = std::max(row.first, diagonal - call_.form.window + 1);
  row.last = std::max(row.last, row.first);
}

// Sequence j has q_lengths[j] rows from q_offsets[j] on, over the whole batch, and sees kv_lengths[j] columns.
void AttentionMask::put_sequences(const Integers& n) {
  const int64_t batches = call_.square[0], length = call_.square[2], columns = call_.square[3];
  for (AttentionRow& row : rows_) row.sequence = -1;
  if (rows_.empty() || !columns) return;
  if (!call_.q_token || !call_.kv_token) {
    why = "sequences of no elements";
    return;
  }
  const auto count = static_cast<size_t>(batches * call_.form.segments);
  for (size_t j = 0; j < count; ++j) {
    const int64_t own = n.q_lengths[j], seen = std::max<int64_t>(n.kv_lengths[j], 0);
    if (own <= 0) continue;
    const int64_t from = n.q_offsets[j] / call_.q_token, first = n.kv_offsets[j] / call_.kv_token;
    const int64_t batch = from / length;
    if (n.q_offsets[j] % call_.q_token || n.kv_offsets[j] % call_.kv_token || n.q_offsets[j] < 0 ||
        n.kv_offsets[j] < 0 || own > length - from % length || batch >= batches)
      why = fmt::format("sequence {} begins or ends outside of a row of the batch", j);
    else if (seen && (first / columns != batch || seen > columns - first % columns))
      why = fmt::format("the columns of sequence {} are not those of its row of the batch", j);
    for (int64_t k = 0; k < own && why.empty(); ++k) {
      AttentionRow& row = rows_[static_cast<size_t>(from + k)];
      if (row.sequence >= 0) why = fmt::format("sequences {} and {} overlap", row.sequence, j);
      const int64_t begin = seen ? first % columns : 0;
      row = {begin, begin + seen, static_cast<int64_t>(j), k};
      narrow(row, begin + k);
    }
    if (!why.empty()) return;
  }
}

int64_t AttentionMask::statistic(int64_t row) const {
  if (!call_.form.packed()) return row;
  const AttentionRow& r = this->row(row);
  const int64_t head = row / call_.square[2] % call_.square[1];
  return r.sequence < 0 ? -1 : (r.sequence * call_.square[1] + head) * call_.square[2] + r.place;
}

double AttentionMask::softmax(int64_t row, std::vector<double>& line, const std::vector<double>& added) const {
  const AttentionRow& seen = this->row(row);
  double most = -INFINITY, sum = 0;
  for (size_t k = 0; k < line.size(); ++k) {
    line[k] *= call_.form.scale;
    if (!added.empty()) line[k] += added[k];
    if (static_cast<int64_t>(k) < seen.first || static_cast<int64_t>(k) >= seen.last) line[k] = -INFINITY;
    most = std::max(most, line[k]);
  }
  for (double& x : line) x = std::isinf(most) ? 0 : std::exp(x - most), sum += x;
  for (double& x : line) x = sum > 0 ? x / sum : 0;
  return most + std::log(sum);
}

}  // namespace hlo
