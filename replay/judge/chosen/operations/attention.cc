// cuDNN's attention: rows of scores, made where an element of the result needs them.
#include <algorithm>
#include <numeric>

#include "ir/eval/library/attention_call.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/products.h"

namespace hlo {
namespace {

struct AttentionPlan {
  AttentionCall call;
  std::vector<int64_t> rows;       // of scores that are needed
  std::vector<size_t> row_of;      // by element, a place in `rows`
  ProductPlan scores;              // all of these rows
  std::vector<int64_t> column_of;  // by element, a line of v; empty where the rows' sums are asked for
  ElementList columns, biases;
};

std::vector<double> doubles(ElementType type, const std::vector<char>& bytes) {
  std::vector<double> out(bytes.size() / static_cast<size_t>(storage_bytes(type)));
  convert_kernel(type, ElementType::F64, static_cast<int64_t>(out.size()), bytes.data(),
                 reinterpret_cast<char*>(out.data()));
  return out;
}

void attend(const ElementOperation& o, const AttentionPlan& p, ElementSource& source, char* out) {
  const std::vector<char> bytes = summed(o, p.scores, source);
  const std::vector<double> scores = doubles(p.scores.sums, bytes);
  auto integers = [&](size_t operand) {
    std::vector<int64_t> list;
    if (operand)
      for (int64_t k = 0; k < o.in[operand]->elements_count(); ++k) list.push_back(source.integer(o, operand, k));
    return list;
  };
  const AttentionForm& f = p.call.form;
  const AttentionMask mask(
      p.call, {integers(f.q_lengths), integers(f.kv_lengths), integers(f.q_offsets), integers(f.kv_offsets)});
  if (!mask.why.empty()) fail(FailureKind::kUnsupported, "{}: {}", o.m.inst_name(o.x.inst), mask.why);
  std::vector<double> biases, values, logs;
  if (p.biases) biases = doubles(o.in[f.bias]->type, source.read(o, f.bias, *p.biases));
  if (p.columns) values = doubles(o.in[2]->type, source.read(o, 2, *p.columns));
  const auto to = static_cast<size_t>(p.call.square[3]);
  std::vector<std::vector<double>> shares;
  for (size_t r = 0; r < p.rows.size(); ++r) {
    auto part = [&](const std::vector<double>& all) {
      if (all.empty()) return std::vector<double>();
      const auto first = all.begin() + static_cast<ptrdiff_t>(r * to);
      return std::vector<double>(first, first + static_cast<ptrdiff_t>(to));
    };
    shares.push_back(part(scores));
    logs.push_back(mask.softmax(p.rows[r], shares.back(), part(biases)));
  }
  for (size_t k = 0; k < p.row_of.size(); ++k, out += storage_bytes(o.out->type)) {
    double v = logs[p.row_of[k]];
    if (p.columns) {
      const double* column = values.data() + static_cast<size_t>(p.column_of[k]) * to;
      v = 0;
      for (size_t j = 0; j < to; ++j) v += shares[p.row_of[k]][j] * column[j];
    }
    store_double(o.out->type, out, v);
  }
}

}  // namespace

ElementPlan plan_attention(const ElementOperation& o, const Elements& at, ElementSource& source) {
  auto p = std::make_shared<AttentionPlan>(AttentionPlan{AttentionCall(o.m, o.x.inst), {}, {}, {}, {}, {}, {}});
  const AttentionCall& call = p->call;
  if (!call.why.empty()) return no_plan(call.why);
  if (call.form.packed() && o.x.leaf) return no_plan("the logs of several sequences' sums");
  const bool statistics = o.x.leaf == 1 && o.m.shape(o.x.inst).elements.size() > 2;
  const Dims& square = call.square;
  const int64_t rows = square[0] * square[1] * square[2], to = square[3];
  if (call.weighted.lhs_sum != Dims{3} || call.weighted.lhs_batch != Dims{0, 1} || (o.x.leaf && !statistics) ||
      (statistics && o.out->elements_count() != rows))
    return no_plan("attention of an unusual order");
  const Shape& v = *o.in[2];
  const CountedDims batch(v, call.weighted.rhs_batch), sum(v, call.weighted.rhs_sum),
      own(v, other_dims(v, call.weighted.rhs_batch, call.weighted.rhs_sum));
  std::unordered_map<int64_t, size_t> place;
  ElementLines columns(to, source);
  for (int64_t i : *at) {
    const int64_t row = statistics ? i : i / own.size, column = i % own.size, part = row / square[2];
    const auto [known, fresh] = place.try_emplace(row, p->rows.size());
    if (fresh) p->rows.push_back(row);
    p->row_of.push_back(known->second);
    if (statistics) continue;
    p->column_of.push_back(columns.line(part / call.group * own.size + column, [&](std::vector<int64_t>& list) {
      for (int64_t k = 0; k < to; ++k)
        list.push_back(batch.place(part / call.group) + own.place(column) + sum.place(k));
    }));
  }
  source.afford((Checked(to) * static_cast<int64_t>(p->rows.size())).capped());
  std::vector<int64_t> scores, biases;
  for (int64_t row : p->rows)
    for (int64_t k = 0; k < to; ++k) {
      scores.push_back(row * to + k);
      if (call.form.bias) biases.push_back(call.bias_element(row, k, o.in[call.form.bias]->dims));
    }
  p->scores = dot_products(o, {call.scores.lhs_batch, call.scores.lhs_sum, call.scores.rhs_batch, call.scores.rhs_sum},
                           scores, source, call.group);
  ElementPlan plan;
  plan.needs = {{0, p->scores.left_lines}, {1, p->scores.right_lines}};
  if (!statistics) p->columns = columns.take(), plan.needs.push_back({2, p->columns});
  if (call.form.bias) p->biases = element_list(std::move(biases)), plan.needs.push_back({call.form.bias, p->biases});
  const AttentionForm& f = call.form;
  for (size_t operand : {f.q_lengths, f.kv_lengths, f.q_offsets, f.kv_offsets}) {
    if (!operand) continue;
    std::vector<int64_t> all(static_cast<size_t>(o.in[operand]->elements_count()));
    std::iota(all.begin(), all.end(), 0);
    plan.needs.push_back({operand, element_list(std::move(all))});
  }
  plan.values = [&o, &source, p](char* out) { attend(o, *p, source, out); };
  return plan;
}

}  // namespace hlo
