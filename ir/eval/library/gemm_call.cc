#include "ir/eval/library/gemm_call.h"

#include <algorithm>
#include <cmath>

#include "ir/backend_config.h"
#include "ir/types/literal.h"

namespace hlo {

bool is_gemm_call(std::string_view target) {
  return target == "__cublas$gemm" || target == "__cublas$lt$matmul" || target == "__cublas$lt$matmul$f8";
}

GemmCall::GemmCall(const Module& m, InstId call) {
  const Universe& u = m.u();
  const std::string_view target = u.text(m.attrs(call).text(Attr::custom_call_target));
  const bool lt = target != "__cublas$gemm", eight_bits = target.ends_with("$f8");
  BackendConfig config = backend_config(u.text(m.attrs(call).text(Attr::backend_config)), "gemm_backend_config");
  const Shape& out = m.shape(call);
  const ElementType type = out.is_tuple() ? u[out.elements[0]].type : out.type;
  sums = is_complex(type) || type == ElementType::F64 || !is_float(type) ? type : ElementType::F32;
  if (!config.contains("dot_dimension_numbers")) {
    why = "without dot_dimension_numbers";
    return;
  }
  const BackendConfig& dims = config["dot_dimension_numbers"];
  lhs_batch = list(dims, "lhs_batch_dimensions"), lhs_sum = list(dims, "lhs_contracting_dimensions");
  rhs_batch = list(dims, "rhs_batch_dimensions"), rhs_sum = list(dims, "rhs_contracting_dimensions");
  alpha_ = {number(config, "alpha_real", 1), number(config, "alpha_imag", 0)};
  beta_ = number(config, "beta", 0);
  const std::string epilogue = word(config, "epilogue", "DEFAULT");
  const size_t count = m.operand_count(call);
  size_t next = 2;
  if (beta_ != 0 && next < count) matrix = next++;
  // Scales of both sides; of the result where it has eight bits as well.
  for (int k = 0; eight_bits && k < 2 && next < count; ++k, ++next) scales.push_back(next);
  for (; next < count; ++next)
    if (m.shape(m.operand(call, next)).rank() == 0 && eight_bits)
      result_scales.push_back(next);
    else if (epilogue.find("BIAS") != std::string::npos && !bias)
      bias = next;
    else if (why.empty())
      why = fmt::format("operand {} of epilogue {}", next, epilogue);
  if (!lt && epilogue != "DEFAULT") why = fmt::format("epilogue {}", epilogue);
  aux = epilogue.ends_with("_AUX");
  gelu_ = epilogue.find("GELU") != std::string::npos;
  silu_ = epilogue.find("SILU") != std::string::npos;
  relu_ = !gelu_ && epilogue.find("RELU") != std::string::npos;
  largest = flag(config, "damax_output");
}

bool GemmCall::plain() const {
  return why.empty() && alpha_ == std::complex<double>(1) && !matrix && !bias && scales.empty() &&
         result_scales.empty() && !aux && !largest && !relu_ && !gelu_ && !silu_;
}

std::complex<double> GemmCall::number_at(ElementType type, const char* at) {
  if (is_complex(type)) return load_complex(type, at);
  return is_float(type) ? load_double(type, at) : static_cast<double>(load_int(type, at));
}

int64_t GemmCall::bias_index(int64_t i, const Shape& bias, const Shape& result) {
  const int64_t count = bias.elements_count(), row = result.dims.empty() ? 1 : result.dims.back();
  const int64_t k = bias.rank() == 1 ? i % row : i % count;
  return k < count ? k : -1;
}

std::complex<double> GemmCall::summed(std::complex<double> sum, double scale, std::complex<double> added,
                                      std::complex<double> biased) const {
  std::complex<double> v = sum * (alpha_ * scale);
  if (matrix) v += beta_ * added;
  if (bias) v += biased;
  return v;
}

double GemmCall::activated(double x) const {
  if (relu_) return std::isnan(x) ? x : std::max(x, 0.0);
  if (silu_) return x / (1 + std::exp(-x));
  return gelu_ ? 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) : x;
}

void GemmCall::store(ElementType type, char* to, std::complex<double> value, double result_scale) const {
  if (is_complex(type))
    store_complex(type, to, value);
  else if (is_float(type))
    store_double(type, to, activated(value.real()) * result_scale);
  else
    store_int(type, to, static_cast<int64_t>(activated(value.real())));
}

}  // namespace hlo
