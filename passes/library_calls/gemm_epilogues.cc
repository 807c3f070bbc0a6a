// What follows a product and cuBLASLt does with it: a factor, a matrix or a vector to add, relu and gelu.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/eval/evaluator.h"
#include "ir/sharding/aliasing.h"
#include "passes/layout/physical.h"
#include "passes/library_calls/gemm_rewriter.h"

namespace hlo {
namespace {

constexpr int64_t kLargestFoldedBias = int64_t{8} << 20;  // bytes
constexpr double kSqrtTwoByPi = 0.79788456080286541;

bool has_epilogues(ElementType t) {
  using enum ElementType;
  return t == F8E4M3FN || t == F8E5M2 || t == F16 || t == BF16 || t == F32 || t == F64;
}

double epsilon_of(ElementType t) {
  switch (t) {
    case ElementType::F16:
      return std::ldexp(1.0, -10);
    case ElementType::BF16:
      return std::ldexp(1.0, -7);
    case ElementType::F32:
      return std::numeric_limits<float>::epsilon();
    case ElementType::F64:
      return std::numeric_limits<double>::epsilon();
    default:
      return 0;
  }
}

}  // namespace

std::optional<GemmRewriter::Result> GemmRewriter::result_behind(InstId i, bool slices, bool bitcasts) const {
  Result r;
  if (bitcasts && m_.op(i) == Opcode::Bitcast && m_.user_count(i) == 1) r.bitcast = i, i = m_.operand(i, 0);
  if (slices && m_.op(i) == Opcode::Slice && m_.user_count(i) == 1) r.slice = i, i = m_.operand(i, 0);
  if (!is_gemm(i) || m_.user_count(i) != 1) return std::nullopt;
  r.call = i;
  return r;
}

InstId GemmRewriter::spread_scalar(InstId i) const {
  return is_broadcast_of_scalar_constant(m_, i) && !m_.literal(m_.operand(i, 0)).elided ? m_.operand(i, 0) : InstId();
}

bool GemmRewriter::is_spread(InstId i, double value, bool nearly) const {
  const InstId scalar = spread_scalar(i);
  if (!scalar.valid() || is_complex(m_.shape(scalar).type)) return false;
  const double is = load_double(m_.shape(scalar).type, m_.literal(scalar).bytes.data());
  if (!nearly) return is == value;
  return std::fabs(is - value) < std::fabs(is + value) * 128 * epsilon_of(m_.shape(scalar).type);
}

InstId GemmRewriter::like_result(const Result& r, InstId call) {
  InstId out = call;
  if (r.slice.valid()) out = m_.clone_inst(r.slice, m_.parent(r.slice), std::vector<InstId>{out});
  if (r.bitcast.valid()) out = m_.clone_inst(r.bitcast, m_.parent(r.bitcast), std::vector<InstId>{out});
  return out;
}

//   multiply(call, broadcast(3))      →      call, "alpha_real":3
// XLA does so behind a bias and an activation, too, where a factor is not the product's; we do not.
void GemmRewriter::scale(InstId i) {
  for (size_t side : {size_t{0}, size_t{1}}) {
    const InstId call = m_.operand(i, side), spread = m_.operand(i, 1 - side);
    if (!is_gemm(call) || m_.user_count(call) != 1 || m_.user_count(spread) != 1) continue;
    if (const InstId alpha = spread_scalar(spread); alpha.valid()) {
      GemmConfig config(m_, call);
      if (m_.shape(call).type == ElementType::S32 || !config.part()) return;
      if (config.number("beta") == 0 && config.epilogue() == "DEFAULT") {
        if (!spend("factor of a product", {i, call})) return;
        const ElementType type = m_.shape(alpha).type;
        const char* at = m_.literal(alpha).bytes.data();
        const std::complex<double> value =
            (is_complex(type) ? load_complex(type, at) : std::complex<double>(load_double(type, at))) *
            std::complex<double>(config.number("alpha_real"), config.number("alpha_imag"));
        put_number(*config.part(), "alpha_real", value.real());
        put_number(*config.part(), "alpha_imag", value.imag());
        set_config(call, config);
        replace(i, call);
        return;
      }
    }
  }
  for (size_t side : {size_t{0}, size_t{1}})
    if (scale_result(i, m_.operand(i, side), m_.operand(i, 1 - side))) return;
  gelu(i);
}

// Is the factor 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * (x * x)))), all of it read by one alone?
bool GemmRewriter::is_gelu(InstId x, InstId factor) const {
  // The other operand of `i` where one is a constant spread.
  auto beside = [&](InstId i, Opcode op, double constant, bool nearly) {
    if (!i.valid() || m_.op(i) != op || m_.user_count(i) != 1) return InstId();
    for (size_t side : {size_t{0}, size_t{1}})
      if (is_spread(m_.operand(i, side), constant, nearly)) return m_.operand(i, 1 - side);
    return InstId();
  };
  auto beside_x = [&](InstId i, Opcode op) {
    if (!i.valid() || m_.op(i) != op || m_.user_count(i) != 1) return InstId();
    for (size_t side : {size_t{0}, size_t{1}})
      if (m_.operand(i, side) == x) return m_.operand(i, 1 - side);
    return InstId();
  };
  const InstId tanh = beside(beside(factor, Opcode::Multiply, 0.5, false), Opcode::Add, 1, false);
  if (!tanh.valid() || m_.op(tanh) != Opcode::Tanh || m_.user_count(tanh) != 1) return false;
  const InstId sum = beside(m_.operand(tanh, 0), Opcode::Multiply, kSqrtTwoByPi, true);
  const InstId cube = beside(beside_x(sum, Opcode::Add), Opcode::Multiply, 0.044715, true);
  const InstId square = beside_x(cube, Opcode::Multiply);
  return square.valid() && m_.op(square) == Opcode::Multiply && m_.user_count(square) == 1 &&
         m_.operand(square, 0) == x && m_.operand(square, 1) == x;
}

//   multiply(call, 0.5 * (1 + tanh(…)))      →      call, "epilogue":"GELU"
void GemmRewriter::gelu(InstId i) {
  for (size_t side : {size_t{0}, size_t{1}}) {
    const InstId x = m_.operand(i, side);
    Result r;
    r.call = x;
    if (m_.op(x) == Opcode::Slice) r.slice = x, r.call = m_.operand(x, 0);
    if (m_.op(x) == Opcode::Bitcast) r.bitcast = x, r.call = m_.operand(x, 0);
    if (is_gemm(r.call) && is_gelu(x, m_.operand(i, 1 - side))) return fuse_gelu(i, r);
  }
}

void GemmRewriter::fuse_gelu(InstId i, const Result& r) {
  GemmConfig config(m_, r.call);
  const std::string epilogue = config.epilogue();
  if (!has_epilogues(m_.shape(r.call).type) || (epilogue != "DEFAULT" && epilogue != "BIAS")) return;
  // Four are gelu's own; whoever reads the product besides takes it as a second result.
  const bool through = r.last() != r.call;
  const bool others = through && m_.user_count(r.last()) > 4;
  const bool aux = others || m_.user_count(r.call) > (through ? 1 : 4) || m_.is_root(r.call) || m_.is_root(r.last());
  if (!spend("gelu of a product", {i, r.call})) return;
  (*config.part())["epilogue"] = std::string(epilogue == "BIAS" ? "BIAS_GELU" : "GELU") + (aux ? "_AUX" : "");
  const ShapeId shape = m_.shape_id(r.call);
  const std::vector<InstId> operands(m_.operands(r.call).begin(), m_.operands(r.call).end());
  InstId call = m_.clone_inst(r.call, m_.parent(r.call), operands, aux ? u_.tuple({shape, shape}) : shape);
  set_config(call, config);
  name(call);
  if (!aux) {
    replace(i, like_result(r, call));
    return;
  }
  auto element = [&](int64_t n) {
    const InstId e = make_element(m_, call, n);
    m_.inherit(r.call, e);
    return e;
  };
  const InstId before = element(1), result = like_result(r, element(0));
  if (others) replace(r.last(), like_result(r, before));
  // It is gone already where nobody but its part was read.
  if (m_.alive(r.call)) replace(r.call, before);
  replace(i, result);
}

//   maximum(call, broadcast(0))      →      call, "epilogue":"RELU"
void GemmRewriter::relu(InstId i) {
  for (size_t side : {size_t{0}, size_t{1}}) {
    if (!is_spread(m_.operand(i, 1 - side), 0, false)) continue;
    const InstId x = m_.operand(i, side);
    const bool slice = m_.op(x) == Opcode::Slice;
    const auto r = result_behind(x, slice, !slice);
    if (!r || !has_epilogues(m_.shape(r->call).type)) continue;
    GemmConfig config(m_, r->call);
    const std::string epilogue = config.epilogue();
    if (epilogue != "DEFAULT" && epilogue != "BIAS") return;
    if (!spend("relu of a product", {i, r->call})) return;
    (*config.part())["epilogue"] = epilogue == "BIAS" ? "BIAS_RELU" : "RELU";
    const std::vector<InstId> operands(m_.operands(r->call).begin(), m_.operands(r->call).end());
    const InstId call = m_.clone_inst(r->call, m_.parent(r->call), operands);
    set_config(call, config);
    name(call);
    replace(i, like_result(*r, call));
    return;
  }
}

// --- addends ---

void GemmRewriter::add(InstId i) {
  auto each_way = [&](auto&& f) {
    return f(m_.operand(i, 0), m_.operand(i, 1)) || f(m_.operand(i, 1), m_.operand(i, 0));
  };
  if (each_way([&](InstId x, InstId spread) {
        const auto r = m_.op(spread) == Opcode::Broadcast ? result_behind(x, true, true) : std::nullopt;
        return r && vector_bias(i, *r, spread);
      }))
    return;
  if (spent_) return;
  // add(bitcast(call), C)      →      bitcast(add(call, bitcast(C))), whether or not the sum is the call's then
  auto behind_bitcast = [&](InstId x, InstId bias) {
    const auto r = m_.op(x) == Opcode::Bitcast ? result_behind(x, false, true) : std::nullopt;
    if (!r || (m_.op(bias) == Opcode::Broadcast && m_.user_count(bias) != 1)) return false;
    if (m_.shape(bias).type != m_.shape(r->call).type || !spend("sum before a bitcast", {i, r->call})) return true;
    const InstId same = make(m_, m_.parent(i), Opcode::Bitcast, {bias}, {}, m_.shape_id(r->call));
    if (m_.op(bias) != Opcode::Broadcast) m_.set_meta(same, m_[bias].meta);
    const InstId sum = make(m_, m_.parent(i), Opcode::Add, {r->call, same}, {}, m_.shape_id(r->call));
    if (m_.op(bias) != Opcode::Broadcast) m_.set_meta(sum, m_[bias].meta);
    const InstId back = make(m_, m_.parent(i), Opcode::Bitcast, {sum}, {}, m_.shape_id(i));
    if (replace(i, back)) i = sum;
    return true;
  };
  each_way(behind_bitcast);
  if (spent_ || !m_.alive(i)) return;
  each_way([&](InstId x, InstId bias) {
    if (m_.op(bias) == Opcode::Broadcast || m_.shape(bias).is_tuple()) return false;
    if (m_.op(x) == Opcode::Convert && m_.user_count(x) == 1) {
      const auto r = result_behind(m_.operand(x, 0), false, false);
      const bool last = m_.user_count(i) == 0 || (m_.user_count(i) == 1 && m_.op(m_.users(i)[0]) == Opcode::Tuple &&
                                                  m_.user_count(m_.users(i)[0]) == 0);
      return r && last && gemm_target(m_, r->call) == GemmTarget::kLt &&
             is_library_type(m_.shape(m_.operand(r->call, 0)).type, m_.shape(m_.operand(r->call, 1)).type,
                             m_.shape(bias).type, "") &&
             matrix_bias(i, *r, bias);
    }
    const auto r = result_behind(x, true, true);
    return r && !(r->bitcast.valid() && !r->slice.valid()) && type_bits(m_.shape(bias).type) != 8 &&
           matrix_bias(i, *r, bias);
  });
}

// A value for each column of rows that lie one behind the other.
bool GemmRewriter::lies_along_columns(const Result& r, InstId broadcast) const {
  const Dims& to = m_.attrs(broadcast).ints(Attr::dimensions);
  const Shape &from = m_.shape(m_.operand(broadcast, 0)), &all = m_.shape(broadcast);
  const Shape& product = m_.shape(r.slice.valid() ? r.slice : r.call);
  return from.rank() == 1 && to.size() == 1 && to[0] == all.rank() - 1 && lies_by_default(all) &&
         lies_by_default(product) && from.dims[0] == product.dims.back();
}

//   add(call, broadcast(v))      →      call(…, v), "epilogue":"BIAS"
bool GemmRewriter::vector_bias(InstId i, const Result& r, InstId broadcast) {
  const bool f8 = gemm_target(m_, r.call) == GemmTarget::kLtF8;
  GemmConfig config(m_, r.call);
  if (!has_epilogues(m_.shape(r.call).type) || config.epilogue() != "DEFAULT" || !lies_along_columns(r, broadcast))
    return false;
  if (f8 && config.number("beta") != 0) return true;  // a matrix was added already, and both are too much
  InstId bias = m_.operand(broadcast, 0);
  const ElementType result = m_.shape(r.call).type;
  if (f8 && m_.shape(bias).type == ElementType::F32) {
    // No f32 is added to what eight bits make; what was of sixteen before is.
    if (m_.op(bias) != Opcode::Convert) return false;
    bias = m_.operand(bias, 0);
    const ElementType type = m_.shape(bias).type;
    const bool eight = result == ElementType::F8E4M3FN || result == ElementType::F8E5M2;
    if (!(type == ElementType::BF16 && (eight || result == ElementType::F32 || result == ElementType::BF16)) &&
        !(type == ElementType::F16 && (eight || result == ElementType::F16)))
      return false;
  }
  if (!spend("bias of a product", {i, r.call})) return true;
  if (f8 && r.bitcast.valid()) bias = pad_to(bias, padded(m_.shape(bias).dims, 0));
  std::vector<InstId> operands(m_.operands(r.call).begin(), m_.operands(r.call).end());
  operands.push_back(bias);
  (*config.part())["epilogue"] = "BIAS";
  const InstId call = m_.clone_inst(r.call, m_.parent(r.call), operands);
  set_config(call, config);
  name(call);
  replace(i, like_result(r, call));
  return true;
}

// The call may write its result there: nobody else reads it, and it is no parameter that the caller keeps.
bool GemmRewriter::may_overwrite(InstId bias) const {
  if (m_.user_count(bias) > 1) return false;
  if (m_.op(bias) != Opcode::Parameter) return true;
  if (m_.parent(bias) != m_.entry()) return false;
  const std::vector<AliasEntry> aliases = parse_aliases(m_.config().input_output_alias);
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](const AliasEntry& a) { return a.number == m_.parameter_number(bias) && a.index.empty(); });
}

// What is spread from a constant, as a constant: it would be made in memory for the call.
InstId GemmRewriter::folded_bias(InstId bias) {
  InstId spread = bias;
  if (m_.op(bias) == Opcode::Reshape || m_.op(bias) == Opcode::Transpose || m_.op(bias) == Opcode::Bitcast)
    spread = m_.operand(bias, 0);
  if (!is_broadcast_of_constant(m_, spread) || m_.literal(m_.operand(spread, 0)).elided ||
      m_.shape(m_.operand(spread, 0)).is_effective_scalar() || u_.byte_size(m_.shape_id(bias)) > kLargestFoldedBias)
    return bias;
  Evaluator evaluator(m_);
  Value value = evaluator.run_instruction(spread, {evaluator.run_instruction(m_.operand(spread, 0), {})});
  if (spread != bias) value = evaluator.run_instruction(bias, {std::move(value)});
  value.shape = m_.shape_id(bias);
  const LitId literal = u_.literal(literal_of_value(u_, value));
  return m_.add(m_.parent(bias), {.op = Opcode::Constant, .shape = m_.shape_id(bias), .payload = literal.value});
}

//   add(call, C)      →      call(…, C), "beta":1
bool GemmRewriter::matrix_bias(InstId i, const Result& r, InstId bias) {
  GemmConfig config(m_, r.call);
  if (m_.shape(r.call).type == ElementType::S32 || !config.part()) return true;
  if (r.slice.valid())
    for (const SliceDim& d : *m_.attrs(r.slice).get<std::vector<SliceDim>>(Attr::slice))
      if (d.start != 0 || d.stride != 1) return true;
  const std::string epilogue = config.epilogue();
  if (config.number("beta") != 0 || (epilogue != "DEFAULT" && epilogue != "BIAS")) return true;
  if (!spend("matrix added to a product", {i, r.call})) return true;
  const bool in_place = may_overwrite(bias);
  const ElementType type = m_.shape(bias).type;
  put_number(*config.part(), "beta", 1);
  InstId addend = folded_bias(bias);
  if (r.bitcast.valid()) addend = make_derived(m_, i, Opcode::Bitcast, {addend}, {}, m_.shape_id(r.slice));
  addend = pad_to(addend, m_.shape(r.call).dims);
  std::vector<InstId> operands(m_.operands(r.call).begin(), m_.operands(r.call).end());
  operands.insert(operands.begin() + 2, addend);
  const InstId call = m_.clone_inst(r.call, m_.parent(r.call), operands, u_.with_type(m_.shape_id(r.call), type));
  set_config(call, config);
  if (in_place) m_.set_attr(call, Attr::output_to_operand_aliasing, u_.str("{{}: (2, {})}"));
  name(call);
  replace(i, like_result(r, call));
  return true;
}

}  // namespace hlo
