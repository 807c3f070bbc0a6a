// Custom-calls whose meaning is known: the GPU pipeline's library calls, and marks that change no value.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

#include "ir/backend_config.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/eval/library/attention_call.h"
#include "ir/eval/library/gemm_call.h"
#include "ir/eval/library/lapack_calls.h"
#include "ir/library/lapack.h"
#include "ir/library/library_calls.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

// Marks for the partitioner, the offloader and others: one value goes through.
constexpr std::string_view kMarks[] = {"Sharding",
                                       "SPMDFullToShardShape",
                                       "SPMDShardToFullShape",
                                       "LayoutConstraint",
                                       "MoveToHost",
                                       "MoveToDevice",
                                       "annotate_device_placement",
                                       "PinToDevice",
                                       "PinToDeviceSram",
                                       "xla.sdy.FuncResultSharding",
                                       "xla.sdy.Sharding",
                                       "xla.sdy.ShardingGroup",
                                       "xla.sdy.GlobalToLocalShape",
                                       "xla.sdy.LocalToGlobalShape",
                                       "inspect_sharding"};

// The same array for each of a batch.
Value repeated(Universe& u, const Value& v, const Dims& batch) {
  const Shape& s = u[v.shape];
  Dims dims = batch;
  int64_t times = 1;
  for (int64_t n : batch) times *= n;
  dims.insert(dims.end(), s.dims.begin(), s.dims.end());
  Value out;
  out.shape = u.array(s.type, dims);
  out.data = new_array(u, out.shape);
  const size_t bytes = v.data->size();
  for (int64_t k = 0; k < times && bytes; ++k)
    std::copy(v.data->begin(), v.data->end(),
              out.data->begin() + static_cast<ptrdiff_t>(static_cast<size_t>(k) * bytes));
  return out;
}

// Where one side is a single matrix for the batch of the other, it becomes a batch.
void spread_over_batch(Universe& u, GemmCall& call, std::vector<Value>& ops) {
  auto spread = [&](Value& one, const Value& many, const Dims& batch, Dims* to, Dims* sum) {
    Dims sizes;
    for (int64_t d : batch) {
      to->push_back(static_cast<int64_t>(sizes.size()));
      sizes.push_back(u[many.shape].dims[static_cast<size_t>(d)]);
    }
    for (int64_t& d : *sum) d += static_cast<int64_t>(batch.size());
    one = repeated(u, one, sizes);
  };
  if (call.lhs_batch.empty() && !call.rhs_batch.empty())
    spread(ops[0], ops[1], call.rhs_batch, &call.lhs_batch, &call.lhs_sum);
  if (call.rhs_batch.empty() && !call.lhs_batch.empty())
    spread(ops[1], ops[0], call.lhs_batch, &call.rhs_batch, &call.rhs_sum);
}

}  // namespace

bool is_mark(std::string_view target) {
  return std::find(std::begin(kMarks), std::end(kMarks), target) != std::end(kMarks);
}

Value Evaluator::library_gemm(InstId inst, std::vector<Value>& ops) {
  GemmCall call(m_, inst);
  if (!call.why.empty()) refuse(inst, call.why);
  ShapeId out_id = m_.shape_id(inst);
  const Shape result_shape = u_[u_[out_id].is_tuple() ? u_[out_id].elements[0] : out_id];
  const ElementType type = result_shape.type, sums = call.sums;
  spread_over_batch(u_, call, ops);
  Value product = contract(inst, ops[0], ops[1], call.lhs_batch, call.lhs_sum, call.rhs_batch, call.rhs_sum,
                           u_.array(sums, result_shape.dims));
  auto scalars = [&](const std::vector<size_t>& list) {
    double factor = 1;
    for (size_t k : list) factor *= load_double(u_[ops[k].shape].type, ops[k].bytes());
    return factor;
  };
  const double scale = scalars(call.scales), result_scale = scalars(call.result_scales);
  const Value *matrix = call.matrix ? &ops[call.matrix] : nullptr, *bias = call.bias ? &ops[call.bias] : nullptr;
  Value out = make(out_id);
  Value* result = u_[out_id].is_tuple() ? &out.elements[0] : &out;
  Value* extra = call.aux && u_[out_id].is_tuple() && out.elements.size() > 1 ? &out.elements[1] : nullptr;
  int64_t n = result_shape.elements_count();
  int width = storage_bytes(type), sum_width = storage_bytes(sums);
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::complex<double> added = 0, biased = 0;
    if (matrix) {
      ElementType t = u_[matrix->shape].type;
      added = GemmCall::number_at(t, matrix->bytes() + i * storage_bytes(t));
    }
    if (bias) {
      ElementType t = u_[bias->shape].type;
      const int64_t k = GemmCall::bias_index(i, u_[bias->shape], result_shape);
      if (k >= 0) biased = GemmCall::number_at(t, bias->bytes() + k * storage_bytes(t));
    }
    const std::complex<double> v =
        call.summed(GemmCall::number_at(sums, product.bytes() + i * sum_width), scale, added, biased);
    if (extra) {
      ElementType t = u_[extra->shape].type;
      store_double(t, extra->data->data() + i * storage_bytes(t), v.real());
    }
    const double x = call.activated(v.real());
    largest = std::isnan(x) || std::isnan(largest) ? NAN : std::max(largest, std::fabs(x));
    call.store(type, result->data->data() + i * width, v, result_scale);
  }
  const size_t place = call.aux ? 2 : 1;
  if (call.largest && out.elements.size() > place)
    store_double(u_[out.elements[place].shape].type, out.elements[place].data->data(), largest);
  return out;
}

void Evaluator::check_target(InstId inst) {
  std::string_view target = u_.text(m_.attrs(inst).text(Attr::custom_call_target));
  if (!is_library_target(target) && !is_mark(target)) refuse(inst, fmt::format("custom-call target \"{}\"", target));
  if (std::string why = library_call_error(m_, inst); !why.empty()) refuse(inst, fmt::format("{}: {}", target, why));
  if (lapack_call(target) && !has_lapack())
    refuse(inst, fmt::format("{} is LAPACK's, and libopenblas.so.0 is not here", target));
}

Value Evaluator::library_topk(InstId inst, const Value& in) {
  const ShapeId out_id = m_.shape_id(inst);
  // The comparator tells the direction; without one the largest come first.
  bool largest = true;
  if (!m_.called(inst).empty()) {
    InstId root = m_.comp(m_.called(inst)[0]).root;
    largest = m_.op(root) != Opcode::Compare || u_.text(m_.attrs(root).text(Attr::direction)) != "LT";
  }
  std::string_view config = u_.text(m_.attrs(inst).text(Attr::backend_config));
  if (config.find("largest") != std::string_view::npos && config.find("false") != std::string_view::npos)
    largest = false;
  return topk(inst, in, u_[u_[out_id].elements[0]].dims.back(), largest);
}

Value Evaluator::library_cholesky(InstId inst, const Value& in) {
  const ShapeId out_id = m_.shape_id(inst);
  BackendConfig config = backend_config(u_.text(m_.attrs(inst).text(Attr::backend_config)), "cholesky_options");
  Value out = make(out_id);
  (u_[out_id].is_tuple() ? out.elements[0] : out) =
      cholesky_factor(in, flag(config, "lower"), u_[out_id].is_tuple() ? u_[out_id].elements[0] : out_id);
  return out;
}

Value Evaluator::library_triangular_solve(InstId inst, const std::vector<Value>& ops) {
  const ShapeId out_id = m_.shape_id(inst);
  const BackendConfig config =
      backend_config(u_.text(m_.attrs(inst).text(Attr::backend_config)), "triangular_solve_options");
  const std::string transposed = word(config, "transpose_a", "NO_TRANSPOSE");
  Value out = make(out_id);
  out.elements[0] =
      triangular_solve({flag(config, "left_side"), flag(config, "lower"), flag(config, "unit_diagonal"), transposed},
                       ops[0], ops[1], u_[out_id].elements[0]);
  return out;
}

// oneDNN's.
Value Evaluator::library_layer_norm(InstId inst, const std::vector<Value>& ops) {
  const ShapeId out_id = m_.shape_id(inst);
  const Shape& s = u_[out_id];
  BackendConfig config = backend_config(u_.text(m_.attrs(inst).text(Attr::backend_config)), "onednn_layer_norm_config");
  if (word(config, "rescale", "") != "SCALE_AND_SHIFT" || s.dims.empty() || !is_float(s.type))
    refuse(inst, "a layer norm of this configuration");
  // The number's bits travel as an integer.
  float epsilon = std::bit_cast<float>(static_cast<int32_t>(number(config, "epsilon_typecast", 0)));
  Value out = make(out_id);
  int64_t n = s.dims.back();
  auto get = [&](const Value& v, int64_t i) {
    ElementType t = u_[v.shape].type;
    return load_double(t, v.bytes() + i * storage_bytes(t));
  };
  for (int64_t row = 0; n && row < s.elements_count() / n; ++row) {
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < n; ++k) mean += get(ops[0], row * n + k) / static_cast<double>(n);
    for (int64_t k = 0; k < n; ++k) variance += std::pow(get(ops[0], row * n + k) - mean, 2) / static_cast<double>(n);
    for (int64_t k = 0; k < n; ++k)
      store_double(s.type, out.data->data() + (row * n + k) * storage_bytes(s.type),
                   (get(ops[0], row * n + k) - mean) / std::sqrt(variance + epsilon) * get(ops[1], k) + get(ops[2], k));
  }
  return out;
}

Value Evaluator::custom_call(InstId inst, std::vector<Value>& ops) {
  check_target(inst);
  const AttrSet& a = m_.attrs(inst);
  std::string_view target = u_.text(a.text(Attr::custom_call_target));
  ShapeId out_id = m_.shape_id(inst);
  constexpr std::string_view kConv = "__cudnn$conv";
  if (target.starts_with(kConv) && u_[out_id].is_tuple() && ops.size() >= 2) {
    std::string_view kind = target.substr(kConv.size());
    if (kind == "Forward" || kind == "BackwardInput" || kind == "BackwardFilter" || kind == "BiasActivationForward")
      return library_convolution(inst, kind, ops);
  }
  if (target == "__cudnn$norm" && ops.size() >= 3 && u_[out_id].is_tuple()) return library_norm(inst, ops);
  if (is_attention_call(target)) return library_attention(inst, ops);
  if (attention_form(m_, inst)) return library_attention_backward(inst, ops);
  if (target.starts_with("__cub$DeviceRadixSort") || target.starts_with("xla.gpu.ext.cub_sort_"))
    return library_sort(inst, ops);
  if (target.starts_with("xla.gpu.ext.cub_scan")) return library_scan(inst, ops);
  if (is_gemm_call(target) && ops.size() >= 2) return library_gemm(inst, ops);
  if (target == "__cublas$lt$groupedMatmul") return library_grouped_gemm(inst, ops);
  if (target == "__cublas$lt$matmul$mx") return library_scaled_gemm(inst, ops);
  if ((target == "TopK" || target == "__gpu$TopK") && ops.size() == 1 && u_[out_id].is_tuple()) {
    return library_topk(inst, ops[0]);
  }
  if ((target == "__cusolver$cholesky" || target == "cusolver$cholesky") && ops.size() == 1) {
    return library_cholesky(inst, ops[0]);
  }
  if (target == "__cublas$triangularSolve" && ops.size() == 2 && u_[out_id].is_tuple()) {
    return library_triangular_solve(inst, ops);
  }
  if (Value out; matrix_call(inst, ops, &out)) return out;
  // Nothing is printed, nothing comes back.
  if (target == "AllocateBuffer" || target.ends_with("_callback")) return make(out_id);
  if (target.find("_threefry2x32") != std::string_view::npos) return threefry_pairs(inst, ops);
  if (target == "GetRngSeed") {
    Value out = make(out_id);
    store_int(u_[out_id].type, out.data->data(), static_cast<int64_t>(options_.rng_seed));
    return out;
  }
  if (target == "__onednn$layernorm" && ops.size() == 3) {
    return library_layer_norm(inst, ops);
  }
  if (is_mark(target) && ops.size() == 1 && u_.compatible(ops[0].shape, out_id)) {
    Value out = ops[0];
    out.shape = out_id;
    return out;
  }
  refuse(inst, fmt::format("custom-call target \"{}\" with these operands", target));
}

}  // namespace hlo
