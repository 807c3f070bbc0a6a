// Products of ragged groups of rows, and of arrays whose blocks have scales.
#include <algorithm>
#include <cstring>

#include "ir/backend_config.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/library/library_calls.h"
#include "ir/types/literal.h"

namespace hlo {

Value Evaluator::ragged_dot(InstId inst, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  return ragged_product(
      inst, ops,
      {a.ints(Attr::lhs_batch_dims), a.ints(Attr::lhs_contracting_dims), a.ints(Attr::rhs_batch_dims),
       a.ints(Attr::rhs_contracting_dims), a.ints(Attr::lhs_ragged_dims), a.ints(Attr::rhs_group_dims)},
      m_.shape_id(inst));
}

// Groups of rows of one side each have a matrix (or a slice of the sum) of their own; `ops[2]` counts the rows.
Value Evaluator::ragged_product(InstId inst, const std::vector<Value>& ops, const RaggedNumbers& numbers,
                                ShapeId out_id) {
  const auto& [lb, lc, rb, rc, ragged, group] = numbers;
  auto has = [](const Dims& d, int64_t v) { return std::find(d.begin(), d.end(), v) != d.end(); };
  if (ragged.size() != 1) refuse(inst, "other than one ragged dimension");
  if (has(lb, ragged[0])) return contract(inst, ops[0], ops[1], lb, lc, rb, rc, out_id);  // groups of whole batches
  const Shape sizes = u_[ops[2].shape];
  if (sizes.rank() != 1) refuse(inst, "group sizes that differ by batch");
  bool contracting = has(lc, ragged[0]);
  auto size_of = [&](int64_t g) { return load_int(sizes.type, ops[2].bytes() + g * storage_bytes(sizes.type)); };
  auto part = [&](const Value& v, int64_t d, int64_t start, int64_t size, bool drop) {
    Shape s = u_[v.shape];
    Dims strides = row_major_strides(s.dims), dims = s.dims;
    dims[static_cast<size_t>(d)] = size;
    Dims kept = dims;
    if (drop) kept.erase(kept.begin() + d);
    Value out = make(u_.array(s.type, kept));
    int width = storage_bytes(s.type);
    copy_nd(dims, v.bytes() + start * strides[static_cast<size_t>(d)] * width, strides, out.data->data(),
            row_major_strides(dims), width);
    return out;
  };
  auto without = [](Dims d, int64_t removed) {
    for (int64_t& v : d) v -= v > removed;
    return d;
  };
  Value out = make(out_id);
  const Shape os = u_[out_id];
  Dims out_strides = row_major_strides(os.dims);
  int64_t rows = u_[ops[0].shape].dims[static_cast<size_t>(ragged[0])], start = 0;
  // Where the ragged dimension of the left side lies in the result: behind the batch, in order of what is not summed.
  int64_t place = static_cast<int64_t>(lb.size());
  for (int64_t d = 0; d < ragged[0]; ++d) place += !has(lb, d) && !has(lc, d);
  for (int64_t g = 0; g < sizes.elements_count(); ++g) {
    int64_t size = std::clamp<int64_t>(size_of(g), 0, rows - start);
    Value l = part(ops[0], ragged[0], start, size, false);
    Value result;
    if (contracting) {
      // A slice of the sum for every group; the result has a dimension of groups in front.
      size_t which = static_cast<size_t>(std::find(lc.begin(), lc.end(), ragged[0]) - lc.begin());
      Value r = part(ops[1], rc[which], start, size, false);
      result = contract(inst, l, r, lb, lc, rb, rc, u_.array(os.type, Dims(os.dims.begin() + 1, os.dims.end())));
      if (!result.data->empty())
        std::memcpy(out.data->data() + static_cast<size_t>(g) * result.data->size(), result.bytes(),
                    result.data->size());
    } else {
      if (group.size() != 1) refuse(inst, "other than one group dimension");
      Value r = part(ops[1], group[0], g, 1, true);
      Dims dims = os.dims;
      dims[static_cast<size_t>(place)] = size;
      result = contract(inst, l, r, lb, lc, without(rb, group[0]), without(rc, group[0]), u_.array(os.type, dims));
      int width = storage_bytes(os.type);
      copy_nd(dims, result.bytes(), row_major_strides(dims),
              out.data->data() + start * out_strides[static_cast<size_t>(place)] * width, out_strides, width);
    }
    start += size;
  }
  return out;
}

Value Evaluator::scaled_dot(InstId inst, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  return scaled_product(inst, ops, a.ints(Attr::lhs_batch_dims), a.ints(Attr::lhs_contracting_dims),
                        a.ints(Attr::rhs_batch_dims), a.ints(Attr::rhs_contracting_dims), m_.shape_id(inst));
}

Value Evaluator::scaled_product(InstId inst, const std::vector<Value>& ops, const Dims& l_batch, const Dims& l_contract,
                                const Dims& r_batch, const Dims& r_contract, ShapeId out_id) {
  // Each side's blocks have a scale: a dimension of n elements has n / blocks of them under each.
  auto scaled = [&](const Value& v, const Value& scale) {
    const Shape s = u_[v.shape], t = u_[scale.shape];
    if (t.rank() != s.rank()) return v;  // one for all is 1
    Value out = make(u_.array(ElementType::F32, s.dims));
    Dims strides = row_major_strides(t.dims), index(s.dims.size(), 0);
    auto* to = reinterpret_cast<float*>(out.data->data());
    for (int64_t i = 0; i < s.elements_count(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = s.dims.size(); d-- > 0; rest /= s.dims[d])
        if (t.dims[d]) at += rest % s.dims[d] / std::max<int64_t>(s.dims[d] / t.dims[d], 1) * strides[d];
      to[i] = static_cast<float>(load_double(s.type, v.bytes() + i * storage_bytes(s.type))) *
              static_cast<float>(load_double(t.type, scale.bytes() + at * storage_bytes(t.type)));
    }
    return out;
  };
  return contract(inst, scaled(ops[0], ops[2]), scaled(ops[1], ops[3]), l_batch, l_contract, r_batch, r_contract,
                  out_id);
}

// cuBLASLt's product of groups of rows: (lhs, rhs, sizes of the groups) → (result, scratch).
Value Evaluator::library_grouped_gemm(InstId inst, std::vector<Value>& ops) {
  const BackendConfig config = grouped_gemm_config(m_, inst);
  const BackendConfig& numbers = config["dot_dimension_numbers"];
  Value out = make(m_.shape_id(inst));
  const bool tuple = u_[out.shape].is_tuple();
  Value result = ragged_product(inst, ops,
                                {list(numbers, "lhs_batch_dimensions"), list(numbers, "lhs_contracting_dimensions"),
                                 list(numbers, "rhs_batch_dimensions"), list(numbers, "rhs_contracting_dimensions"),
                                 list(config, "lhs_ragged_dimensions"), list(config, "rhs_group_dimensions")},
                                tuple ? out.elements[0].shape : out.shape);
  if (!tuple) return result;
  out.elements[0] = std::move(result);
  return out;
}

// cuBLASLt's product of arrays whose blocks have scales: (lhs, rhs, lhs's scales, rhs's) → (result, scratch).
Value Evaluator::library_scaled_gemm(InstId inst, std::vector<Value>& ops) {
  const BackendConfig config =
      backend_config(u_.text(m_.attrs(inst).text(Attr::backend_config)), "gemm_backend_config");
  const BackendConfig& numbers = config["dot_dimension_numbers"];
  Value out = make(m_.shape_id(inst));
  const bool tuple = u_[out.shape].is_tuple();
  Value result = scaled_product(inst, ops, list(numbers, "lhs_batch_dimensions"),
                                list(numbers, "lhs_contracting_dimensions"), list(numbers, "rhs_batch_dimensions"),
                                list(numbers, "rhs_contracting_dimensions"), tuple ? out.elements[0].shape : out.shape);
  if (!tuple) return result;
  out.elements[0] = std::move(result);
  return out;
}

}  // namespace hlo
