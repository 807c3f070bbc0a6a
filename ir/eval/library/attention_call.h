// cuDNN's attention evaluated (ir/library/attention.h): softmax(scale · q kᵀ [+ bias], masked) v, and its gradients.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/library/attention.h"
#include "ir/module.h"

namespace hlo {

bool is_attention_call(std::string_view target);  // forward

struct AttentionCall {
  AttentionCall(const Module& m, InstId call);

  std::string why;  // it cannot be evaluated; empty where it can
  AttentionForm form;
  struct Product {
    Dims lhs_batch, lhs_sum, rhs_batch, rhs_sum;
  };
  Product scores, weighted;            // q kᵀ; of what softmax makes of that with v (forward)
  Product to_query, to_key, to_value;  // of scores' gradients with k and q, of their shares with dout (backward)
  Dims square;                         // of the scores: [batch, heads, rows of q, rows of k]
  int64_t group = 1;                   // heads of q that one of k and v serves
  int64_t q_token = 1, kv_token = 1;   // elements of a row of q, and of k, over all heads

  int64_t rows() const { return square[0] * square[1] * square[2]; }
  // Rows are counted over the first three dimensions of `square`. Dimensions of one element serve all.
  int64_t bias_element(int64_t row, int64_t column, const Dims& bias) const;
  // The row's batch and place in it.
  int64_t batch_of(int64_t row) const { return row / square[2] / square[1]; }
  int64_t place_of(int64_t row) const { return row % square[2]; }
};

// Which columns of scores a row sees.
struct AttentionRow {
  int64_t first = 0, last = 0;  // [first, last); none: its result is 0
  int64_t sequence = 0;         // of several in a row: its number of all, -1 where it is in none
  int64_t place = 0;            // in its sequence
};

// The rows' columns, by what stands in the operands of the lengths and offsets, in their order in AttentionForm; those
// that the form does not have are empty.
class AttentionMask {
 public:
  struct Integers {
    std::vector<int64_t> q_lengths, kv_lengths, q_offsets, kv_offsets;
  };
  AttentionMask(const AttentionCall& call, const Integers& integers);

  std::string why;  // these lengths and offsets are not supported
  const AttentionRow& row(int64_t row) const {
    return rows_[static_cast<size_t>(call_.batch_of(row) * call_.square[2] + call_.place_of(row))];
  }
  // The row's place among the logs of the sums; -1: it has none.
  int64_t statistic(int64_t row) const;
  // Makes shares of a row of scores; `added`: the row's biases, empty where there are none. The log of the row's sum,
  // -inf of a row without columns.
  double softmax(int64_t row, std::vector<double>& line, const std::vector<double>& added) const;

 private:
  void put_sequences(const Integers& integers);
  void narrow(AttentionRow& row, int64_t diagonal) const;

  const AttentionCall& call_;
  std::vector<AttentionRow> rows_;  // by batch and place
};

}  // namespace hlo
