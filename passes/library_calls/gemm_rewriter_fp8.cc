// Products of eight-bit floats: cuBLASLt takes the eight bits themselves, what they are scaled by, and scales the
// result.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "passes/layout/physical.h"
#include "passes/library_calls/gemm_rewriter.h"

namespace hlo {
namespace {

constexpr int64_t kMultiple = 16;       // of each dimension of a matrix of eight bits
constexpr size_t kLongestPath = 1'000;  // instructions looked at between eight bits and a product

bool is_eight_bits(const Shape& s) { return s.is_array() && is_float(s.type) && type_bits(s.type) == 8; }

}  // namespace

// From a value of eight bits down to `operand`, which comes last; empty where there is none.
std::vector<GemmRewriter::Step> GemmRewriter::path_to_eight_bits(InstId operand) const {
  struct Seen {
    InstId inst;
    size_t reader, by;  // the one that reads it, in this list, and as which operand
  };
  std::vector<Seen> list;
  std::vector<Seen> stack = {{operand, 0, 0}};
  std::unordered_set<InstId> known;
  while (!stack.empty() && list.size() < kLongestPath) {
    const Seen now = stack.back();
    stack.pop_back();
    if (!known.insert(now.inst).second) continue;
    const size_t place = list.size();
    list.push_back(now);
    if (is_eight_bits(m_.shape(now.inst))) {
      std::vector<Step> path = {{now.inst, 0}};
      for (size_t at = place; at != 0; at = list[at].reader) path.push_back({list[list[at].reader].inst, list[at].by});
      return path;
    }
    switch (m_.op(now.inst)) {
      case Opcode::Multiply:
        stack.push_back({m_.operand(now.inst, 1), place, 1}), stack.push_back({m_.operand(now.inst, 0), place, 0});
        break;
      case Opcode::Select:
        stack.push_back({m_.operand(now.inst, 2), place, 2}), stack.push_back({m_.operand(now.inst, 1), place, 1});
        break;
      case Opcode::Divide:
      case Opcode::DynamicSlice:
      case Opcode::Pad:
        stack.push_back({m_.operand(now.inst, 0), place, 0});
        break;
      default:
        if (m_.operand_count(now.inst) == 1) stack.push_back({m_.operand(now.inst, 0), place, 0});
    }
  }
  return {};
}

// The eight bits, the scalar that they are scaled by once they are wider, and what is done to them then.
std::optional<GemmRewriter::Side> GemmRewriter::eight_bit_side(InstId operand) const {
  const std::vector<Step> path = path_to_eight_bits(operand);
  if (path.empty()) return std::nullopt;
  Side side;
  side.input = path[0].inst;
  if (path.size() == 1) return side;
  if (m_.op(path[1].inst) != Opcode::Convert) return std::nullopt;
  size_t next = 2;
  if (path.size() > 2 && (m_.op(path[2].inst) == Opcode::Multiply || m_.op(path[2].inst) == Opcode::Divide)) {
    side.multiplied = m_.op(path[2].inst) == Opcode::Multiply;
    const InstId spread = m_.operand(path[2].inst, 1 - path[2].operand);
    if (m_.op(spread) != Opcode::Broadcast) return std::nullopt;
    side.scale = m_.operand(spread, 0);
    if (m_.shape(side.scale).rank() != 0) return std::nullopt;
    next = 3;
  }
  for (; next < path.size(); ++next) {
    const InstId i = path[next].inst;
    switch (m_.op(i)) {
      case Opcode::Bitcast:
        if (m_.shape(i).type != m_.shape(m_.operand(i, 0)).type) return std::nullopt;
        break;
      case Opcode::Select:
        if (!is_spread(m_.operand(i, path[next].operand == 2 ? 1 : 2), 0, false)) return std::nullopt;
        break;
      case Opcode::Broadcast:
      case Opcode::Copy:
      case Opcode::DynamicSlice:
      case Opcode::Pad:
      case Opcode::Reshape:
      case Opcode::Slice:
      case Opcode::Transpose:
        break;
      default:
        return std::nullopt;
    }
    side.moved.push_back(path[next]);
  }
  return side;
}

// The scale of one side as an f32; 1 where it has none.
InstId GemmRewriter::factor(InstId i, const Side& side, InstId* one) {
  if (!one->valid() && (!side.scale.valid() || !side.multiplied))
    *one = m_.add_derived(i, {.op = Opcode::Constant,
                              .shape = u_.scalar(ElementType::F32),
                              .payload = m_.scalar_literal(ElementType::F32, 1).value});
  if (!side.scale.valid()) return *one;
  InstId scale = side.scale;
  if (!side.multiplied) {
    InstId unit = *one;
    if (m_.shape(scale).type != ElementType::F32)
      unit = m_.add_derived(i, {.op = Opcode::Constant,
                                .shape = m_.shape_id(scale),
                                .payload = m_.scalar_literal(m_.shape(scale).type, 1).value});
    scale = make_derived(m_, i, Opcode::Divide, {unit, scale}, {}, m_.shape_id(scale));
  }
  if (m_.shape(scale).type != ElementType::F32)
    scale = make_derived(m_, i, Opcode::Convert, {scale}, {}, u_.scalar(ElementType::F32));
  return scale;
}

// What was done to the wider numbers, on the eight bits.
void GemmRewriter::move_steps(InstId i, Side* side) {
  const ElementType type = m_.shape(side->input).type;
  auto narrow = [&](InstId x) {
    return make_derived(m_, i, Opcode::Convert, {x}, {}, u_.with_type(m_.shape_id(x), type));
  };
  for (const Step& step : side->moved) {
    std::vector<InstId> operands(m_.operands(step.inst).begin(), m_.operands(step.inst).end());
    operands[step.operand] = side->input;
    if (m_.op(step.inst) == Opcode::Pad) operands[1] = narrow(operands[1]);
    if (m_.op(step.inst) == Opcode::Select) {
      const size_t other = step.operand == 2 ? 1 : 2;
      operands[other] = narrow(operands[other]);
    }
    const ShapeId shape = u_.with_type(m_.shape_id(step.inst), type);
    side->input = m_.clone_inst(step.inst, m_.parent(i), operands, shape);
  }
}

// Rows for columns, in the same layout.
InstId GemmRewriter::transpose_matrix(InstId x, int64_t sum, const Dims& batch) {
  const Shape s = m_.shape(x);
  int64_t kept = 0;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (d != sum && !contains(batch, d)) kept = d;
  Dims order(s.dims.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  auto transposed = [&](InstId of, Dims permutation) {
    Shape to = m_.shape(of);
    to.dims = in_order(to.dims, permutation);
    return make_derived(m_, x, Opcode::Transpose, {of}, dims_attr(u_, Opcode::Transpose, std::move(permutation)),
                        u_.shape(std::move(to)));
  };
  if (lies_by_default(s)) {
    std::swap(order[static_cast<size_t>(sum)], order[static_cast<size_t>(kept)]);
    return transposed(x, order);
  }
  const Dims places = inverse_permutation(major_to_minor(s));
  std::swap(order[static_cast<size_t>(places[static_cast<size_t>(sum)])],
            order[static_cast<size_t>(places[static_cast<size_t>(kept)])]);
  const InstId turned = transposed(bitcast_to(m_, x, as_it_lies(u_, m_.shape_id(x))), order);
  Shape to = s;
  to.dims = in_order(m_.shape(turned).dims, places);
  return bitcast_to(m_, turned, u_.shape(std::move(to)));
}

Dims GemmRewriter::padded(const Dims& dims, size_t batch) const {
  Dims out = dims;
  for (size_t d = batch; d < out.size(); ++d) out[d] = (out[d] + kMultiple - 1) / kMultiple * kMultiple;
  return out;
}

//   dot(multiply(convert(f8 A), broadcast(a)), …)      →      custom-call(A, B, a, b), "__cublas$lt$matmul$f8"
bool GemmRewriter::eight_bit_call(InstId i) {
  std::optional<Side> a = eight_bit_side(m_.operand(i, 0)), b = a ? eight_bit_side(m_.operand(i, 1)) : std::nullopt;
  const AttrSet attrs = m_.attrs(i);
  const Dims &batch = attrs.ints(Attr::lhs_batch_dims), &rhs_batch = attrs.ints(Attr::rhs_batch_dims);
  const int64_t lhs_sum = attrs.ints(Attr::lhs_contracting_dims)[0],
                rhs_sum = attrs.ints(Attr::rhs_contracting_dims)[0];
  const auto n = static_cast<int64_t>(batch.size());
  if (!a || !b || target_.major * 10 + target_.minor < 89) return false;
  // The wider numbers' product must be one that the library has, and that of the eight bits.
  if (!is_library_type(m_.shape(m_.operand(i, 0)).type, m_.shape(m_.operand(i, 1)).type, m_.shape(i).type,
                       algorithm(i)) ||
      !is_library_type(m_.shape(a->input).type, m_.shape(b->input).type, m_.shape(i).type, ""))
    return false;
  for (size_t side : {size_t{0}, size_t{1}})
    if (m_.shape(m_.operand(i, side)).rank() != n + 2) return false;
  auto in_front = [](const Dims& dims) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] != static_cast<int64_t>(d)) return false;
    return true;
  };
  if (!in_front(batch) || !in_front(rhs_batch)) return false;
  if (!spend("product of eight bits as a call", {i})) return true;
  InstId one;
  const InstId lhs_factor = factor(i, *a, &one), rhs_factor = factor(i, *b, &one);
  move_steps(i, &*a), move_steps(i, &*b);
  Json config = config_of_dot(i, true);
  Json& part = config["gemm_backend_config"];
  // Up to Hopper both sides have to lie along the sum.
  if (target_.major < 10) {
    auto turn = [&](Side& side, InstId operand, int64_t sum, const Dims& of, const char* key) {
      if (major_to_minor(m_.shape(operand)).back() == sum) return;
      side.input = transpose_matrix(side.input, sum, of);
      part["dot_dimension_numbers"][key] = Json::array({std::to_string(sum == n ? n + 1 : n)});
    };
    turn(*a, m_.operand(i, 0), lhs_sum, batch, "lhs_contracting_dimensions");
    turn(*b, m_.operand(i, 1), rhs_sum, rhs_batch, "rhs_contracting_dimensions");
  }
  const InstId lhs = pad_to(a->input, padded(m_.shape(a->input).dims, batch.size())),
               rhs = pad_to(b->input, padded(m_.shape(b->input).dims, batch.size()));
  Shape out = m_.shape(i);
  out.dims = padded(out.dims, batch.size());
  part["scale_mode"] = 1;
  const InstId call =
      custom_call(i, "__cublas$lt$matmul$f8", {lhs, rhs, lhs_factor, rhs_factor}, u_.shape(out), config);
  name(call);
  InstId now = call;
  if (out.dims != m_.shape(i).dims) {
    std::vector<SliceDim> slice;
    for (int64_t d : m_.shape(i).dims) slice.push_back({0, d, 1});
    now =
        make_derived(m_, i, Opcode::Slice, {call}, attrs_of(u_, Opcode::Slice, {{Attr::slice, slice}}), m_.shape_id(i));
  }
  replace(i, now);
  return true;
}

//   dot(f8 A, f8 B) that no call takes      →      dot(f16 convert(A), f16 convert(B))
void GemmRewriter::as_halves(InstId i) {
  if (!is_eight_bits(m_.shape(m_.operand(i, 0))) || !is_eight_bits(m_.shape(m_.operand(i, 1)))) return;
  if (!spend("product of eight bits in halves", {i})) return;
  const ElementType type = m_.shape(i).type == ElementType::BF16 ? ElementType::BF16 : ElementType::F16;
  std::vector<InstId> operands;
  for (size_t side : {size_t{0}, size_t{1}}) {
    const InstId x = m_.operand(i, side);
    operands.push_back(make_derived(m_, i, Opcode::Convert, {x}, {}, u_.with_type(m_.shape_id(x), type)));
  }
  if (!is_eight_bits(m_.shape(i))) {
    m_.set_operands(i, operands);
    return;
  }
  const InstId dot = m_.clone_inst(i, m_.parent(i), operands, u_.with_type(m_.shape_id(i), ElementType::F16));
  replace(i, make_derived(m_, i, Opcode::Convert, {dot}, {}, m_.shape_id(i)));
}

// --- the result ---

InstId GemmRewriter::as_factor(InstId scalar, bool inverse) {
  if (inverse) {
    const ElementType type = m_.shape(scalar).type;
    const InstId one = make_scalar(m_, m_.parent(scalar), type, 1);
    const InstId inverted = make(m_, m_.parent(scalar), Opcode::Divide, {one, scalar}, {}, m_.shape_id(scalar));
    m_.set_meta(inverted, m_[scalar].meta);
    scalar = inverted;
  }
  if (m_.shape(scalar).type == ElementType::F32) return scalar;
  const InstId wide = make_convert(m_, scalar, ElementType::F32);
  m_.set_meta(wide, m_[scalar].meta);
  return wide;
}

//   multiply(call(A, B, 1, b), broadcast(d))      →      call(A, B, d, b)
bool GemmRewriter::scale_result(InstId i, InstId call, InstId spread) {
  if (!is_gemm(call) || gemm_target(m_, call) != GemmTarget::kLtF8 || m_.user_count(call) != 1 ||
      m_.op(spread) != Opcode::Broadcast || m_.user_count(spread) != 1)
    return false;
  const InstId scale = m_.operand(spread, 0);
  if (m_.shape(scale).rank() != 0 || m_.operand_count(call) < 4 || !is_all(m_, m_.operand(call, 2), 1)) return true;
  GemmConfig config(m_, call);
  const std::string epilogue = config.epilogue();
  if ((epilogue != "DEFAULT" && epilogue != "RELU") || config.number("beta") != 0) return true;
  if (epilogue == "RELU") return true;  // a factor below zero would have to come behind it
  if (!spend("factor of a product of eight bits", {i, call})) return true;
  m_.set_operand(call, 2, as_factor(scale, m_.op(i) == Opcode::Divide));
  replace(i, call);
  return true;
}

// The largest of the result's absolute values, where that is the only other thing asked of it.
InstId GemmRewriter::largest_of(InstId call) {
  GemmConfig config(m_, call);
  InstId found;
  for (InstId user : m_.users(call)) {
    InstId reduce = user;
    if (m_.op(user) == Opcode::Abs) {
      if (m_.user_count(user) != 1) continue;
      reduce = m_.users(user)[0];
    } else if (!config.epilogue().ends_with("RELU")) {
      continue;
    }
    if (m_.op(reduce) != Opcode::Reduce || m_.operand_count(reduce) != 2 || m_.shape(reduce).rank() != 0) continue;
    const InstId from = m_.operand(reduce, 1);
    if (!is_scalar_constant(m_, from) || m_.literal(from).elided ||
        !(load_double(m_.shape(from).type, m_.literal(from).bytes.data()) <= 0))
      continue;
    const CompId c = m_.called(reduce)[0];
    const InstId root = m_.comp(c).root;
    if (m_.op(root) == Opcode::Maximum && m_.op(m_.operand(root, 0)) == Opcode::Parameter &&
        m_.op(m_.operand(root, 1)) == Opcode::Parameter)
      found = reduce;
  }
  return found;
}

//   convert(clamp(-448, divide(call, broadcast(d)), 448))      →      f8 call(…, 1 / d)
void GemmRewriter::convert_result(InstId i) {
  const ElementType type = m_.shape(i).type;
  const InstId clamp = m_.operand(i, 0);
  if (m_.op(clamp) != Opcode::Clamp || m_.user_count(clamp) != 1 ||
      (type != ElementType::F8E4M3FN && type != ElementType::F8E5M2))
    return;
  const double most = type == ElementType::F8E4M3FN ? 448 : 57344;
  if (!is_spread(m_.operand(clamp, 0), -most, false) || !is_spread(m_.operand(clamp, 2), most, false)) return;
  InstId call = m_.operand(clamp, 1), scale;
  const bool divided = m_.op(call) == Opcode::Divide, multiplied = m_.op(call) == Opcode::Multiply;
  if (divided || multiplied) {
    const InstId by = call;
    for (size_t side : {size_t{0}, size_t{1}}) {
      if (divided && side == 1) break;
      if (!is_gemm(m_.operand(by, side)) || m_.op(m_.operand(by, 1 - side)) != Opcode::Broadcast) continue;
      call = m_.operand(by, side), scale = m_.operand(m_.operand(by, 1 - side), 0);
      break;
    }
    if (!scale.valid() || m_.shape(scale).rank() != 0) return;
  }
  if (!is_gemm(call) || gemm_target(m_, call) != GemmTarget::kLtF8 || m_.user_count(call) > 2) return;
  const InstId largest = m_.user_count(call) == 2 ? largest_of(call) : InstId();
  if (m_.user_count(call) == 2 && !largest.valid()) return;
  GemmConfig config(m_, call);
  if (!config.part()) return;
  const bool beta = config.number("beta") != 0;
  const ElementType added = beta ? m_.shape(m_.operand(call, 2)).type : ElementType::F16;
  if (added != ElementType::BF16 && added != ElementType::F16) return;
  if (!spend("result of eight bits", {i, call})) return;
  InstId factor_of_result = scale.valid()
                                ? as_factor(scale, divided)
                                : m_.add_derived(i, {.op = Opcode::Constant,
                                                     .shape = u_.scalar(ElementType::F32),
                                                     .payload = m_.scalar_literal(ElementType::F32, 1).value});
  std::vector<InstId> operands(m_.operands(call).begin(), m_.operands(call).end());
  operands.push_back(factor_of_result);
  const ShapeId number = u_.scalar(ElementType::F32);
  const ShapeId shape = largest.valid() ? u_.tuple({m_.shape_id(i), number}) : m_.shape_id(i);
  const InstId now = m_.clone_inst(call, m_.parent(i), operands, shape, "clone");
  m_.erase_attr(now, Attr::output_to_operand_aliasing);
  if (!largest.valid()) {
    replace(i, now);
    return;
  }
  (*config.part())["damax_output"] = true;
  set_config(now, config);
  const InstId result = make_element(m_, now, 0), greatest = make_element(m_, now, 1);
  m_.inherit(i, result), m_.inherit(i, greatest);
  const InstId same = make_derived(m_, i, Opcode::Convert, {greatest}, {}, m_.shape_id(largest));
  replace(largest, same);
  replace(i, result);
}

}  // namespace hlo
