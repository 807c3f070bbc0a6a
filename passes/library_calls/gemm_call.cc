#include "passes/library_calls/gemm_call.h"

#include <algorithm>

namespace hlo {

bool is_library_product(const Module& m, InstId i, bool vectors) {
  if (m.op(i) != Opcode::Dot || m.operand_count(i) != 2) return false;
  const AttrSet& a = m.attrs(i);
  int matrices = 0;
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Shape& s = m.shape(m.operand(i, side));
    const Dims &batch = a.ints(side ? Attr::rhs_batch_dims : Attr::lhs_batch_dims),
               &sum = a.ints(side ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims);
    if (!s.is_array() || sum.size() != 1 || contains(batch, s.rank() - 1)) return false;
    int64_t kept = -1;
    for (int64_t d = 0; d < s.rank(); ++d) {
      if (contains(batch, d) || contains(sum, d)) continue;
      if (kept >= 0) return false;
      kept = d;
    }
    matrices += kept >= 0 && s.dims[static_cast<size_t>(kept)] != 1;
  }
  if (matrices == 0 || (matrices == 1 && !vectors)) return false;
  switch (m.shape(i).type) {
    case ElementType::F8E4M3FN:
    case ElementType::F8E5M2:
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::C64:
      return true;
    case ElementType::S32:
      return m.shape(m.operand(i, 0)).type == ElementType::S8 && m.shape(m.operand(i, 1)).type == ElementType::S8;
    case ElementType::F8E3M4:
    case ElementType::F8E4M3:
    case ElementType::F8E4M3FNUZ:
    case ElementType::F8E5M2FNUZ:
    case ElementType::C128:
      return matrices == 2;
    default:
      return false;
  }
}

GemmTarget gemm_target(const Module& m, InstId i) {
  if (m.op(i) != Opcode::CustomCall || m.operand_count(i) < 2) return GemmTarget::kNone;
  const std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
  if (target == "__cublas$lt$matmul") return GemmTarget::kLt;
  return target == "__cublas$lt$matmul$f8" ? GemmTarget::kLtF8 : GemmTarget::kNone;
}

bool is_library_type(ElementType lhs, ElementType rhs, ElementType result, std::string_view algorithm) {
  using enum ElementType;
  if (algorithm == "dot_f16_f16_f16") return lhs == F16 && rhs == F16 && result == F16;
  if (algorithm == "dot_tf32_tf32_f32" || algorithm == "dot_f32_f32_f32")
    return (lhs == F32 && rhs == F32 && result == F32) || (lhs == C64 && rhs == C64 && result == C64);
  if (algorithm == "dot_f64_f64_f64")
    return (lhs == F64 && rhs == F64 && result == F64) || (lhs == C128 && rhs == C128 && result == C128);
  if (!algorithm.empty() && algorithm != "dot_f16_f16_f32" && algorithm != "dot_bf16_bf16_f32" &&
      !algorithm.starts_with("dot_any_f8_any_f8_f32"))
    return false;
  if (lhs == F8E4M3FN || lhs == F8E5M2) {
    if ((rhs != F8E4M3FN && rhs != F8E5M2) || (lhs == F8E5M2 && rhs == F8E5M2)) return false;
    if (result == F8E5M2) return lhs == F8E5M2 || rhs == F8E5M2;
    return result == BF16 || result == F16 || result == F32 || result == F8E4M3FN;
  }
  if (lhs != rhs) return false;
  switch (lhs) {
    case S8:
      return result == S32 || result == F32;
    case F16:
    case BF16:
      return result == lhs || result == F32;
    case F32:
    case F64:
    case C64:
    case C128:
      return result == lhs;
    default:
      return false;
  }
}

GemmConfig::GemmConfig(const Module& m, InstId call)
    : whole(nlohmann::ordered_json::parse(m.u().text(m.attrs(call).text(Attr::backend_config)), nullptr, false)) {}

double GemmConfig::number(const char* key) {
  nlohmann::ordered_json* p = part();
  if (!p) return 0;
  auto at = p->find(key);
  return at != p->end() && at->is_number() ? at->get<double>() : 0;
}

bool GemmConfig::flag(const char* key) {
  nlohmann::ordered_json* p = part();
  if (!p) return false;
  auto at = p->find(key);
  return at != p->end() && at->is_boolean() && at->get<bool>();
}

bool GemmConfig::has_batch() {
  nlohmann::ordered_json* p = part();
  auto dims = p ? p->find("dot_dimension_numbers") : nlohmann::ordered_json::iterator();
  return p && dims != p->end() && !list(*dims, "lhs_batch_dimensions").empty();
}

std::string GemmConfig::epilogue() {
  nlohmann::ordered_json* p = part();
  if (!p) return "";
  auto at = p->find("epilogue");
  return at != p->end() && at->is_string() ? at->get<std::string>() : "DEFAULT";
}

}  // namespace hlo
