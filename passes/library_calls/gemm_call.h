// Products of matrices that cuBLASLt takes, and its calls as XLA writes them (xla/service/gpu/cublas_cudnn.h,
// xla/service/gpu/matmul_utils.cc, xla/service/gpu/ir_emission_utils.cc).
#pragma once
#include <nlohmann/json.hpp>

#include "ir/backend_config.h"
#include "ir/module.h"

namespace hlo {

// Is it a dot of batch dimensions (not the last one), one dimension to sum and at most one kept on each
// side, of a type that cuBLAS knows? `vectors`: one of the sides may be a vector, as where it is kept with one element.
bool is_library_product(const Module& m, InstId i, bool vectors);

// `__cublas$lt$matmul`, and the same of arrays of eight-bit floats, `__cublas$lt$matmul$f8`.
enum class GemmTarget { kNone, kLt, kLtF8 };
GemmTarget gemm_target(const Module& m, InstId i);

// The types of a product's sides and of its result that cuBLASLt multiplies, by that algorithm (`dot_tf32_tf32_f32`;
// empty: any).
bool is_library_type(ElementType lhs, ElementType rhs, ElementType result, std::string_view algorithm);

// A call's backend_config; `part` is its gemm_backend_config, null where it has none.
struct GemmConfig {
  GemmConfig() = default;
  GemmConfig(const Module& m, InstId call);
  nlohmann::ordered_json whole;
  nlohmann::ordered_json* part() {
    auto at = whole.is_object() ? whole.find("gemm_backend_config") : whole.end();
    return whole.is_object() && at != whole.end() && at->is_object() ? &*at : nullptr;
  }
  double number(const char* key);
  bool flag(const char* key);
  std::string epilogue();
  bool has_batch();
};

}  // namespace hlo
