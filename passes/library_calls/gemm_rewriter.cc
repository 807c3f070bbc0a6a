#include "passes/library_calls/gemm_rewriter.h"

#include <algorithm>

#include "passes/passes.h"

namespace hlo {
namespace {

// Where both matrices together have fewer elements, XLA leaves the product to a kernel of its own.
constexpr int64_t kSmallestProduct = 100;
constexpr int64_t kMostBatches = 65535;  // of cuBLASLt
constexpr int64_t kWorkspace = int64_t{4} << 20, kWorkspaceOfHopper = int64_t{32} << 20;

nlohmann::ordered_json texts(const Dims& dims) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (int64_t d : dims) out.push_back(std::to_string(d));
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// `{high,highest}` as `["HIGH","HIGHEST"]`.
nlohmann::ordered_json precisions(std::string_view list) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  std::string word;
  for (char c : list) {
    if (c >= 'a' && c <= 'z') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(upper(word)), word.clear();
    }
  }
  if (out.empty()) out = {"DEFAULT", "DEFAULT"};
  return out;
}

}  // namespace

bool GemmRewriter::spend(std::string_view rule, std::initializer_list<InstId> insts) {
  if (spent_ || !ctx_.spend(m_, rule, insts)) {
    spent_ = true;
    return false;
  }
  return changed_ = true;
}

bool GemmRewriter::replace(InstId from, InstId to) { return m_.replace(from, to, {.relay_control = true}); }

void GemmRewriter::set_config(InstId call, const GemmConfig& config) {
  m_.set_attr(call, Attr::backend_config, u_.str(config.whole.dump()));
}

void GemmRewriter::name(InstId call) {
  if (gemm_target(m_, call) == GemmTarget::kLt) {
    m_.set_uniquified_name(call, "cublas-lt-matmul");
    return;
  }
  const bool batch = GemmConfig(m_, call).has_batch();
  m_.set_uniquified_name(call, batch ? "cublas-batch-gemm" : "cublas-gemm");
}

GemmRewriter::Json GemmRewriter::config_of_dot(InstId i, bool with_algorithm) const {
  const AttrSet& a = m_.attrs(i);
  const Dims &lhs_batch = a.ints(Attr::lhs_batch_dims), &rhs_batch = a.ints(Attr::rhs_batch_dims);
  const std::string_view frontend = u_.text(a.text(Attr::frontend_attributes));
  // Of a matrix behind a batch dimension at the first place; XLA counts so wherever that dimension is.
  auto stride = [&](size_t side) {
    const Dims& dims = m_.shape(m_.operand(i, side)).dims;
    const size_t from = lhs_batch.size();
    int64_t n = 1;
    for (size_t d = from; d < std::min(dims.size(), from + 2); ++d) n *= dims[d];
    return std::to_string(n);
  };
  Json part = {{"alpha_real", 1},
               {"beta", 0},
               {"dot_dimension_numbers",
                {{"lhs_contracting_dimensions", texts(a.ints(Attr::lhs_contracting_dims))},
                 {"rhs_contracting_dimensions", texts(a.ints(Attr::rhs_contracting_dims))},
                 {"lhs_batch_dimensions", texts(lhs_batch)},
                 {"rhs_batch_dimensions", texts(rhs_batch)}}},
               {"alpha_imag", 0},
               {"precision_config",
                {{"operand_precision", precisions(u_.text(a.text(Attr::operand_precision)))},
                 {"algorithm", with_algorithm && !algorithm(i).empty() ? "ALG_" + upper(algorithm(i)) : "ALG_UNSET"}}},
               {"epilogue", "DEFAULT"},
               {"lhs_stride", stride(0)},
               {"rhs_stride", stride(1)},
               {"grad_x", frontend.find("grad_x=\"true\"") != std::string_view::npos},
               {"grad_y", frontend.find("grad_y=\"true\"") != std::string_view::npos},
               {"damax_output", false},
               {"autotune_workspace_size", "0"},
               {"scale_mode", 0}};
  return {{"operation_queue_id", "0"},
          {"gemm_backend_config", std::move(part)},
          {"force_earliest_schedule", false},
          {"reification_cost", Json::array()},
          {"device_type", "DEVICE_TYPE_INVALID"}};
}

InstId GemmRewriter::custom_call(InstId like, std::string_view target, const std::vector<InstId>& operands,
                                 ShapeId shape, const Json& config) {
  const InstId call = make_derived(
      m_, like, Opcode::CustomCall, operands,
      attrs_of(u_, Opcode::CustomCall,
               {{Attr::custom_call_target, u_.str(target)}, {Attr::backend_config, u_.str(config.dump())}}),
      shape);
  return call;
}

InstId GemmRewriter::pad_to(InstId x, const Dims& dims) {
  Shape s = m_.shape(x);
  if (s.dims == dims) return x;
  std::vector<PaddingDim> padding(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) padding[d].high = dims[d] - s.dims[d];
  s.dims = dims;
  const InstId zero = m_.add_derived(
      x, {.op = Opcode::Constant, .shape = u_.scalar(s.type), .payload = m_.scalar_literal(s.type, 0).value});
  return make_derived(m_, x, Opcode::Pad, {x, zero}, attrs_of(u_, Opcode::Pad, {{Attr::padding, padding}}),
                      u_.shape(std::move(s)));
}

// Is it small, of types that kernels of XLA's own multiply as well?
bool GemmRewriter::too_small(InstId i) const {
  switch (m_.shape(i).type) {
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32:
      break;
    default:
      return false;
  }
  const std::string_view by = algorithm(i);
  if (!by.empty() && by != "dot_f16_f16_f16" && by != "dot_f32_f32_f32" && by != "dot_bf16_bf16_bf16") return false;
  const AttrSet& a = m_.attrs(i);
  int64_t elements = 0;
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Dims& dims = m_.shape(m_.operand(i, side)).dims;
    int64_t n = 1;
    for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
      if (!contains(a.ints(side ? Attr::rhs_batch_dims : Attr::lhs_batch_dims), d))
        n = std::min(kSmallestProduct, n * std::min(dims[static_cast<size_t>(d)], kSmallestProduct));
    elements += n;
  }
  return elements < kSmallestProduct;
}

//   dot(A, B)      →      custom-call(A, B), custom_call_target="__cublas$lt$matmul"
void GemmRewriter::dot(InstId i) {
  if (!is_library_product(m_, i, true) || too_small(i)) return;
  for (InstId x : {m_.operand(i, 0), m_.operand(i, 1), i})
    if (m_.shape(x).is_dynamic() || m_.shape(x).has_zero()) return;
  if (eight_bits_) {
    if (!eight_bit_call(i)) as_halves(i);
    return;
  }
  const AttrSet& a = m_.attrs(i);
  const bool halves = algorithm(i) == "dot_bf16_bf16_f32";
  const ElementType lhs = m_.shape(m_.operand(i, 0)).type, rhs = m_.shape(m_.operand(i, 1)).type;
  int64_t batches = 1;
  for (int64_t d : a.ints(Attr::lhs_batch_dims)) batches *= m_.shape(m_.operand(i, 0)).dims[static_cast<size_t>(d)];
  if (!is_library_type(lhs, rhs, m_.shape(i).type, halves ? "" : algorithm(i)) || batches > kMostBatches) {
    ctx_.note(m_, "no call of cuBLASLt", {i}, "it has no such types, or too many matrices");
    return;
  }
  if (!spend("product as a call", {i})) return;
  std::vector<InstId> operands{m_.operand(i, 0), m_.operand(i, 1)};
  if (halves)
    for (InstId& o : operands)
      o = make_derived(m_, o, Opcode::Convert, {o}, {}, u_.with_type(m_.shape_id(o), ElementType::BF16));
  replace(i, custom_call(i, "__cublas$lt$matmul", operands, m_.shape_id(i), config_of_dot(i, !halves)));
}

//   f32[M,N] custom-call(A, B)      →      get-tuple-element((f32[M,N], s8[33554432]) custom-call(A, B))
void GemmRewriter::workspace(InstId i) {
  if (gemm_target(m_, i) == GemmTarget::kNone) return;
  GemmConfig config(m_, i);
  if (!config.part()) return;
  const Shape& shape = m_.shape(i);
  const size_t results = 1 + (config.epilogue().ends_with("_AUX") ? 1 : 0) + (config.flag("damax_output") ? 1 : 0);
  if (shape.is_tuple() ? shape.elements.size() != results : results != 1) return;
  const std::vector<InstId> users = m_.users_copy(i);
  if (shape.is_tuple() && (m_.is_root(i) || !std::all_of(users.begin(), users.end(), [&](InstId u) {
                             return m_.op(u) == Opcode::GetTupleElement;
                           })))
    return;
  if (!spend("memory to work in", {i})) return;
  std::vector<ShapeId> parts = shape.is_tuple() ? shape.elements : std::vector<ShapeId>{m_.shape_id(i)};
  parts.push_back(u_.array(ElementType::S8, {target_.major >= 9 ? kWorkspaceOfHopper : kWorkspace}));
  const bool tuple = shape.is_tuple();
  const std::vector<InstId> operands(m_.operands(i).begin(), m_.operands(i).end());
  const InstId call = m_.clone_inst(i, m_.parent(i), operands, u_.tuple(parts));
  if (m_.attrs(call).has(Attr::output_to_operand_aliasing))
    m_.set_attr(call, Attr::output_to_operand_aliasing, u_.str("{{0}: (2, {})}"));
  auto element = [&](int64_t n) {
    const InstId e = make_element(m_, call, n);
    m_.inherit(i, e);
    return e;
  };
  if (!tuple) {
    replace(i, element(0));
    return;
  }
  for (InstId user : users) replace(user, element(m_.attrs(user).integer(Attr::index)));
}

void GemmRewriter::visit(InstId i) {
  switch (m_.op(i)) {
    case Opcode::Dot:
      return dot(i);
    case Opcode::Multiply:
      return scale(i);
    case Opcode::Divide:
      scale_result(i, m_.operand(i, 0), m_.operand(i, 1));
      return;
    case Opcode::Add:
      return add(i);
    case Opcode::Maximum:
      return relu(i);
    case Opcode::Convert:
      return convert_result(i);
    default:
      return;
  }
}

bool GemmRewriter::run(CompId comp) {
  visit_computation(m_, comp, [&](InstId i) {
    if (!spent_) visit(i);
  });
  visit_computation(m_, comp, [&](InstId i) {
    if (!spent_) workspace(i);
  });
  return changed_;
}

bool run_cublas_gemm_rewriter(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  const std::string& types = ctx.word("types");
  bool changed = false;
  for (bool eight_bits : {true, false}) {
    if (types == (eight_bits ? "others" : "f8")) continue;
    for (CompId c : fusible_computations(m)) changed |= GemmRewriter(m, ctx, target, eight_bits).run(c);
  }
  return changed;
}

}  // namespace hlo
