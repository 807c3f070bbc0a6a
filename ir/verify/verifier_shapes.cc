// Rules of operations whose results inference does not tell: scans, products of scaled and of ragged operands,
// exchanges of ragged rows, permutations in place, reshapes to sizes that operands give.
#include <algorithm>

#include "ir/base/checked.h"
#include "ir/inference/shape_inference.h"
#include "ir/verify/operation_rules.h"

namespace hlo {
namespace {

std::vector<ShapeId> parts_of(const Universe& u, ShapeId s) {
  return u[s].is_tuple() ? std::vector<ShapeId>(u[s].elements.begin(), u[s].elements.end()) : std::vector<ShapeId>{s};
}

}  // namespace

bool OperationRules::alike(ShapeId a, ShapeId b) const {
  const Shape &x = u_[a], &y = u_[b];
  return u_.compatible(a, b) ||
         (mixed_ && x.is_array() && y.is_array() && x.dims == y.dims && is_float(x.type) && is_float(y.type));
}

void OperationRules::scan() {
  const Dims& dims = a_.ints(Attr::dimensions);
  if (dims.size() != 1 || dims[0] < 0) return attribute("scans one dimension, not {{{}}}", fmt::join(dims, ","));
  const Computation& body = m_.comp(a_.comp(Attr::to_apply));
  std::vector<ShapeId> results = parts_of(u_, m_.shape_id(i_)), roots = parts_of(u_, m_.shape_id(body.root));
  size_t carries = static_cast<size_t>(std::max<int64_t>(a_.integer(Attr::num_carries), 0)),
         given = m_.operand_count(i_);
  if (given < carries || results.size() < carries)
    return attribute("has {} carries, {} operands and {} results", carries, given, results.size());
  if (given == carries && results.size() == carries) return attribute("has neither inputs nor outputs");
  if (given != body.params.size() || roots.size() != results.size())
    return error_("calls", fmt::format("has {} operands and {} results, its computation {} and {}", given,
                                       results.size(), body.params.size(), roots.size()));
  const auto d = static_cast<size_t>(dims[0]);
  size_t inputs = given - carries, outputs = results.size() - carries;
  int64_t size = -1;
  // What one step sees of a whole array; invalid where the array has no such dimension, or one of another size.
  auto step = [&](ShapeId whole, bool sliced) {
    if (!sliced) return whole;
    const Shape& s = u_[whole];
    if (!s.is_array() || d >= s.dims.size() || (size >= 0 && s.dims[d] != size)) return ShapeId();
    size = s.dims[d];
    Dims rest = s.dims;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(d));
    return u_.array(s.type, std::move(rest));
  };
  for (size_t k = 0; k < given; ++k) {
    ShapeId want = step(m_.shape_id(m_.operand(i_, k)), k < inputs);
    if (!want.valid()) return shape("scans dimension {} of {}, of {} elements", d, text(k), size);
    if (!alike(want, m_.shape_id(body.params[k])))
      return error_("calls",
                    fmt::format("passes {} of {} as {}", u_.shape_text_plain(want), text(k), text(body.params[k])));
  }
  for (size_t k = 0; k < carries; ++k)
    if (!alike(m_.shape_id(body.params[inputs + k]), roots[outputs + k]))
      return error_("calls", fmt::format("carries {} and returns {} for it", text(body.params[inputs + k]),
                                         u_.shape_text_plain(roots[outputs + k])));
  for (size_t k = 0; k < results.size(); ++k) {
    ShapeId want = step(results[k], k < outputs);
    if (!want.valid())
      return shape("scans dimension {} to {}, of {} elements", d, u_.shape_text_plain(results[k]), size);
    if (!alike(want, roots[k]))
      return error_("calls", fmt::format("gives {} for {} of its computation", u_.shape_text_plain(results[k]),
                                         u_.shape_text_plain(roots[k])));
  }
}

bool OperationRules::product_like(Opcode op) {
  Inferred dot = infer_shape(m_, op, m_.operands(i_).first(2), a_, true);
  if (!dot.error.empty()) return shape("{}", dot.error), false;
  if (dot.shape.valid() && (!out().is_array() || out().dims != u_[dot.shape].dims))
    return shape("gives {}, its operands give {}", text(i_), u_.shape_text_plain(dot.shape)), false;
  return true;
}

void OperationRules::scaled_dot() {
  for (size_t n = 0; n < 4; ++n)
    if (!in(n).is_array()) return shape("takes arrays, operand {} is a {}", n, text(n));
  for (size_t n = 0; n < 2; ++n) {
    const Shape &operand = in(n), &scale = in(n + 2);
    auto one = [](int64_t d) { return d == 1; };
    // bf16 scaled by bf16 ones has no scale.
    bool none = scale.type == operand.type && operand.type == ElementType::BF16 &&
                std::all_of(scale.dims.begin(), scale.dims.end(), one) &&
                !std::all_of(operand.dims.begin(), operand.dims.end(), one);
    if (none) continue;
    if (scale.rank() != operand.rank()) return shape("scales {} by {}", text(n), text(n + 2));
    if (a_.ints(n ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims).size() != 1)
      return attribute("contracts one dimension of what it scales");
    for (size_t d = 0; d < operand.dims.size(); ++d)
      if (scale.dims[d] < 1 ? operand.dims[d] != scale.dims[d] : operand.dims[d] % scale.dims[d] != 0)
        return shape("scales {} by {}, which does not divide it", text(n), text(n + 2));
  }
  if (in(2).is_scalar() && in(3).is_scalar()) return shape("has two scalars as scales");
  product_like(Opcode::Dot);
}

void OperationRules::ragged_dot() {
  for (size_t n = 0; n < 3; ++n)
    if (!in(n).is_array()) return shape("takes arrays, operand {} is a {}", n, text(n));
  const Dims &ragged = a_.ints(Attr::lhs_ragged_dims), &group = a_.ints(Attr::rhs_group_dims),
             &lb = a_.ints(Attr::lhs_batch_dims), &lc = a_.ints(Attr::lhs_contracting_dims),
             &rb = a_.ints(Attr::rhs_batch_dims), &rc = a_.ints(Attr::rhs_contracting_dims);
  if (ragged.size() != 1 || ragged[0] < 0 || ragged[0] >= in(0).rank())
    return attribute("has one ragged dimension of {}, not {{{}}}", text(size_t{0}), fmt::join(ragged, ","));
  if (in(2).rank() < 1) return shape("takes the sizes of groups, not {}", text(2));
  const int64_t groups = in(2).dims.back();
  bool batch = has(lb, ragged[0]), contracting = has(lc, ragged[0]);
  if (batch || contracting) {
    if (!group.empty())
      return attribute("has rhs_group_dims, but the ragged dimension is not one of the result's rows");
    if (batch) {
      product_like(Opcode::Dot);
      return;
    }
  } else {
    if (group.size() != 1 || group[0] < 0 || group[0] >= in(1).rank())
      return attribute("has one group dimension of {}, not {{{}}}", text(size_t{1}), fmt::join(group, ","));
    if (has(rb, group[0]) || has(rc, group[0])) return attribute("has group dimension {}, used otherwise", group[0]);
    if (in(1).dims[static_cast<size_t>(group[0])] != groups)
      return shape("has {} groups in {} and {} sizes of them", in(1).dims[static_cast<size_t>(group[0])],
                   text(size_t{1}), groups);
  }
  // The result of a product, with the groups in front where what is ragged was summed, without them else.
  Inferred dot = infer_shape(m_, Opcode::Dot, m_.operands(i_).first(2), a_, true);
  if (!dot.error.empty()) return shape("{}", dot.error);
  if (!dot.shape.valid()) return;
  Dims want = u_[dot.shape].dims;
  if (contracting) {
    want.insert(want.begin(), groups);
  } else {
    auto before = static_cast<size_t>(in(0).rank()) - lc.size();
    for (int64_t d = 0; d < group[0]; ++d) before += !has(rb, d) && !has(rc, d);
    want.erase(want.begin() + static_cast<std::ptrdiff_t>(before));
  }
  if (!out().is_array() || out().dims != want) shape("gives {}, not [{}]", text(i_), fmt::join(want, ","));
}

void OperationRules::ragged_all_to_all() {
  groups();
  if (m_.operand_count(i_) != 6)
    return error_("operands", fmt::format("takes 6 operands, has {}", m_.operand_count(i_)));
  for (size_t n = 2; n < 6; ++n) {
    if (in(n).rank() != 1 && in(n).rank() != 2)
      return shape("takes offsets and sizes of one or two dimensions, not {}", text(n));
    if (n > 2 && !u_.compatible(m_.shape_id(m_.operand(i_, n)), m_.shape_id(m_.operand(i_, 2))))
      return shape("takes offsets and sizes of one shape, not {} and {}", text(2), text(n));
  }
  result(m_.operand(i_, 1));
}

void OperationRules::dynamic_reshape() {
  if (!m_.operand_count(i_) || !out().is_array() || !in(0).is_array()) return shape("reshapes an array");
  if (!alike_types(out().type, type(0))) return shape("changes the element type");
  if (out().elements_count() != in(0).elements_count()) return shape("gives {} for {}", text(i_), text(size_t{0}));
  if (m_.operand_count(i_) != static_cast<size_t>(out().rank()) + 1)
    return error_("operands", fmt::format("takes {} sizes, has {}", out().rank(), m_.operand_count(i_) - 1));
  for (size_t n = 1; n < m_.operand_count(i_); ++n)
    if (type(n) != ElementType::S32) return shape("takes its sizes as s32, not {}", text(n));
}

// One index or several of them into a buffer.
bool OperationRules::offset_fits(const Shape& buffer, const Shape& offset) const {
  if (!offset.is_tuple()) return false;
  auto tuple = [&](ShapeId s) { return u_[s].is_tuple(); };
  auto array = [&](ShapeId s) { return u_[s].is_array(); };
  const auto& e = offset.elements;
  const auto rank = static_cast<size_t>(buffer.rank());
  if (std::all_of(e.begin(), e.end(), tuple))
    return std::all_of(e.begin(), e.end(), [&](ShapeId s) { return u_[s].elements.size() == rank; });
  return std::all_of(e.begin(), e.end(), array) && e.size() == rank;
}

bool OperationRules::permutes_in_place() {
  if (!a_.has(Attr::slice_sizes)) return false;
  if (m_.operand_count(i_) != 4) {
    error_("operands", fmt::format("works in place on 4 operands, has {}", m_.operand_count(i_)));
    return true;
  }
  for (size_t n = 0; n < 2; ++n) {
    const Shape &buffer = in(n), &offset = in(n + 2);
    if (in(0).is_tuple() != buffer.is_tuple()) return shape("works on {} and {}", text(0), text(1)), true;
    bool fits = buffer.is_tuple() ? offset.is_tuple() && offset.elements.size() == buffer.elements.size() &&
                                        buffer.elements.size() == in(0).elements.size()
                                  : offset_fits(buffer, offset);
    for (size_t k = 0; fits && buffer.is_tuple() && k < buffer.elements.size(); ++k)
      fits = offset_fits(u_[buffer.elements[k]], u_[offset.elements[k]]);
    if (!fits) return shape("has {} as an offset in {}", text(n + 2), text(n)), true;
  }
  return true;
}

size_t OperationRules::pairs_a_device() const {
  if (!a_.has(Attr::slice_sizes) || m_.operand_count(i_) != 4) return 1;
  const Shape& offset = in(2);
  if (!offset.is_tuple() || offset.elements.empty()) return 1;
  if (in(0).is_array()) return offset.elements.size();
  return std::max<size_t>(u_[offset.elements[0]].elements.size(), 1);
}

void OperationRules::conditional() {
  if (!m_.operand_count(i_)) return error_("operands", "takes what it chooses by");
  if (!in(0).is_scalar()) return shape("chooses by a scalar, not by {}", text(size_t{0}));
  if (type(0) == ElementType::Pred ? a_.called.size() != 2 : a_.called.empty())
    return error_("calls", fmt::format("has {} branches for {}", a_.called.size(), text(size_t{0})));
  if (type(0) != ElementType::Pred && type(0) != ElementType::S32)
    shape("chooses by a pred or an s32, not by {}", text(size_t{0}));
}

void OperationRules::custom_call() {
  if (u_.text(a_.text(Attr::custom_call_target)) == "GetRngSeed") {
    if (m_.operand_count(i_)) return error_("operands", fmt::format("takes none, has {}", m_.operand_count(i_)));
    if (!out().is_scalar() || out().type != ElementType::U64) return shape("gives a u64[], not {}", text(i_));
  }
  const auto* wanted = a_.get<std::vector<ShapeId>>(Attr::operand_layout_constraints);
  std::string_view target = u_.text(a_.text(Attr::custom_call_target));
  if (!wanted || target == "LayoutConstraint" || target == "control_dep") return;
  if (wanted->size() != m_.operand_count(i_))
    return attribute("has {} operand_layout_constraints for {} operands", wanted->size(), m_.operand_count(i_));
  for (size_t n = 0; n < wanted->size(); ++n)
    if (!u_.compatible((*wanted)[n], m_.shape_id(m_.operand(i_, n))))
      return attribute("constrains {} as {}", text(n), u_.shape_text_plain((*wanted)[n]));
}

// With one precision only, no operation but those that merely pass values on takes floats of several
// (CheckMixedPrecisionOperands).
void OperationRules::one_precision() {
  switch (m_.op(i_)) {
    case Opcode::AllGather:
    case Opcode::AllGatherDone:
    case Opcode::AllGatherStart:
    case Opcode::AllReduce:
    case Opcode::AllReduceDone:
    case Opcode::AllReduceStart:
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Bitcast:
    case Opcode::Call:
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteDone:
    case Opcode::CollectivePermuteStart:
    case Opcode::Conditional:
    case Opcode::Convolution:
    case Opcode::CopyDone:
    case Opcode::CopyStart:
    case Opcode::CustomCall:
    case Opcode::Domain:
    case Opcode::Dot:
    case Opcode::Fusion:
    case Opcode::GetTupleElement:
    case Opcode::Infeed:
    case Opcode::OptBarrier:
    case Opcode::Outfeed:
    case Opcode::RaggedDot:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::ReduceWindow:
    case Opcode::Rng:
    case Opcode::ScaledDot:
    case Opcode::Scan:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Sort:
    case Opcode::Tuple:
    case Opcode::While:
      return;
    default:
      break;
  }
  ElementType seen = ElementType::Pred;
  bool several = false;
  auto look = [&](auto&& self, ShapeId s) -> void {
    const Shape& at = u_[s];
    for (ShapeId e : at.elements) self(self, e);
    if (!at.is_array() || !is_float(at.type)) return;
    several |= seen != ElementType::Pred && seen != at.type;
    seen = at.type;
  };
  for (InstId o : m_.operands(i_)) look(look, m_.shape_id(o));
  if (several) shape("takes floats of several precisions; --allow-mixed-precision takes them");
}

}  // namespace hlo
