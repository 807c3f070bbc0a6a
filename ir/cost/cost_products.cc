#include "ir/cost/cost_products.h"

#include <algorithm>

#include "ir/backend_config.h"
#include "ir/cost/cost.h"
#include "ir/library/library_calls.h"

namespace hlo {

std::optional<double> attention_flops(const Module& m, InstId i, bool backward) {
  const BackendConfig config =
      backend_config(m.u().text(m.attrs(i).text(Attr::backend_config)), "cudnn_fmha_backend_config");
  if (!config.is_object() || !config.contains("intermediate_tensor_shape") ||
      !config["intermediate_tensor_shape"].is_object() || number(config, "sliding_window_length", 0) != 0 ||
      number(config, "max_seg_per_batch", 1) > 1)
    return std::nullopt;
  const std::string mask = word(config, "mask_type", "NO_MASK");
  const Dims scores = list(config["intermediate_tensor_shape"], "dimensions");
  const Shape& given = m.shape(i);
  const Shape* out = given.is_tuple() && !given.elements.empty() ? &m.u()[given.elements[0]] : &given;
  if ((mask != "NO_MASK" && mask != "CAUSAL") || scores.size() != 4 || m.operand_count(i) < 3) return std::nullopt;
  const Shape& q = m.shape(m.operand(i, 0));
  for (int64_t d : scores)
    if (d <= 0) return std::nullopt;
  if (!q.is_array() || !m.shape(m.operand(i, 1)).is_array() || !out->is_array()) return std::nullopt;
  const auto heads = static_cast<double>(scores[0]) * static_cast<double>(scores[1]),
             from = static_cast<double>(scores[2]), to = static_cast<double>(scores[3]);
  // Row r sees r + 1 others.
  const double seen = std::min(from, to),
               pairs = mask == "CAUSAL" ? seen * (seen + 1) / 2 + (from - seen) * to : from * to;
  const double depth = static_cast<double>(q.elements_count()) / (heads * from),
               result = backward ? depth : static_cast<double>(out->elements_count()) / (heads * from);
  return 2 * heads * pairs * (backward ? 5 * depth : depth + result);
}

double ragged_flops(const Shape& l, const Shape& out, const Shape* sizes, const Dims& contracted, const Dims& ragged) {
  double depth = 1;
  for (int64_t d : contracted)
    if (d >= 0 && d < l.rank()) depth *= static_cast<double>(l.dims[static_cast<size_t>(d)]);
  // The result has a dimension of groups, and each of them sums a slice.
  if (ragged.size() == 1 && contains(contracted, ragged[0]) && sizes && sizes->is_array() && sizes->rank() > 0)
    depth /= static_cast<double>(std::max<int64_t>(sizes->dims.back(), 1));
  return 2 * static_cast<double>(out.elements_count()) * depth;
}

std::optional<double> grouped_product_flops(const Module& m, InstId call) {
  const BackendConfig config = grouped_gemm_config(m, call);
  auto numbers = config.find("dot_dimension_numbers");
  const Shape& whole = m.shape(call);
  const Shape& out = whole.is_tuple() && !whole.elements.empty() ? m.u()[whole.elements[0]] : whole;
  if (numbers == config.end() || !numbers->is_object() || !out.is_array() || m.operand_count(call) < 3 ||
      !m.shape(m.operand(call, 0)).is_array())
    return std::nullopt;
  return ragged_flops(m.shape(m.operand(call, 0)), out, &m.shape(m.operand(call, 2)),
                      list(*numbers, "lhs_contracting_dimensions"), list(config, "lhs_ragged_dimensions"));
}

ProductForm product_form(ElementType l, ElementType r, std::string_view precision, std::string_view algorithm) {
  std::string words(algorithm);
  for (char& c : words) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  if (size_t at = words.find("dot_"); at != std::string::npos && words.find("unset") == std::string::npos) {
    const std::string_view how = std::string_view(words).substr(at);
    ProductForm out;
    out.times = how.find("_x3") != how.npos ? 3 : how.find("_x6") != how.npos ? 6 : how.find("_x9") != how.npos ? 9 : 1;
    auto begins = [&](std::string_view name) { return how.starts_with(name); };
    out.precision = begins("dot_tf32")                         ? Arithmetic::kTF32
                    : begins("dot_bf16")                       ? Arithmetic::kBF16
                    : begins("dot_f16")                        ? Arithmetic::kF16
                    : begins("dot_f64")                        ? Arithmetic::kF64
                    : begins("dot_any_f8") || begins("dot_f8") ? Arithmetic::kF8
                                                               : Arithmetic::kF32;
    return out;
  }
  // The wider one: the other is widened first.
  const ElementType t = type_bits(r) > type_bits(l) ? r : l;
  switch (t) {
    case ElementType::F64:
    case ElementType::C128:
      return {Arithmetic::kF64, 1};
    case ElementType::BF16:
      return {Arithmetic::kBF16, 1};
    case ElementType::F16:
      return {Arithmetic::kF16, 1};
    case ElementType::F32:
    case ElementType::C64: {
      // XLA lets cuBLAS and cuDNN round to TF32 at default and at high (stream_executor/cuda/cuda_blas_lt.cc).
      const bool highest = precision.find("highest") != precision.npos || precision.find("HIGHEST") != precision.npos;
      return {highest ? Arithmetic::kF32 : Arithmetic::kTF32, 1};
    }
    default:
      break;
  }
  const bool real = type_name(t).starts_with("f");
  if (type_bits(t) == 8 && real) return {Arithmetic::kF8, 1};
  if (type_bits(t) < 8 && real) return {Arithmetic::kF4, 1};
  if (type_bits(t) <= 8) return {Arithmetic::kS8, 1};
  return {Arithmetic::kF32, 1};  // whole numbers, by the vectors' units, which are no faster than in f32
}

ProductForm product_form(const Module& m, InstId product) {
  const AttrSet& a = m.attrs(product);
  std::string_view precision = m.u().text(a.text(Attr::operand_precision));
  std::string_view algorithm = m.u().text(a.text(Attr::algorithm));
  if (m.op(product) == Opcode::CustomCall) {
    precision = algorithm = m.u().text(a.text(Attr::backend_config));
    const size_t at = algorithm.find("ALG_DOT_");
    algorithm = at == std::string_view::npos ? std::string_view() : algorithm.substr(at, 40);
    algorithm = algorithm.substr(0, algorithm.find('"'));
  }
  return product_form(m.shape(m.operand(product, 0)).type, m.shape(m.operand(product, 1)).type, precision, algorithm);
}

}  // namespace hlo
