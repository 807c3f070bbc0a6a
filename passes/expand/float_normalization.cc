// float-normalization (xla/hlo/transforms/simplifiers/float_normalization.cc).
#include <algorithm>

#include "passes/expand/client.h"

namespace hlo {
namespace {

// The one narrow type of which XLA's GPU does nothing as it is, not even what moves elements.
constexpr ElementType kNothingSupported = ElementType::F8E4M3B11FNUZ;

// Does the GPU of today's pipeline (Hopper) do it in that type?
bool supported(Opcode op, ElementType low) {
  if (low == kNothingSupported) return false;
  switch (op) {
    case Opcode::Compare:
    case Opcode::Convert:
    case Opcode::Select:
    case Opcode::Copy:
    case Opcode::ReducePrecision:
    case Opcode::Xor:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::CountLeadingZeros:
      return true;
    case Opcode::Popcnt:
      // XLA 0.10.2 counts the bits of a negative s4 in s8, where its sign makes four more: not followed.
      return low == ElementType::S4;
    case Opcode::Abs:
    case Opcode::Negate:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Multiply:
    case Opcode::Exp:
    case Opcode::Log:
      return low == ElementType::BF16;
    default:
      return false;
  }
}

// What moves elements, or all of it by a function of its own: done in any type, but for kNothingSupported.
bool moves_elements(Opcode op) {
  switch (op) {
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Gather:
    case Opcode::Pad:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
    case Opcode::AllGather:
    case Opcode::AllToAll:
    case Opcode::CollectivePermute:
      return true;
    default:
      return false;
  }
}

bool has_functions(Opcode op, ElementType low) {
  switch (op) {
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Map:
      return true;
    case Opcode::Sort:
    case Opcode::Scatter:
    case Opcode::SelectAndScatter:
    case Opcode::AllReduce:
    case Opcode::ReduceScatter:
      return low == kNothingSupported;
    default:
      return false;
  }
}

// A product is done in bf16, added up in f32 if need be, but not of bf16 and f32 mixed.
// `fused`: in a fusion, which Triton makes a kernel of.
bool supported_product(const Module& m, InstId i, ElementType low, bool fused) {
  if (fused && (low == ElementType::F8E5M2 || low == ElementType::F8E4M3FN)) return true;
  if (low != ElementType::BF16) return false;
  auto of = [&](InstId x, ElementType t) { return m.shape(x).type == t; };
  InstId a = m.operand(i, 0), b = m.operand(i, 1);
  if (of(a, low) && of(b, low)) return true;
  return !of(a, ElementType::F32) && !of(b, ElementType::F32) && !of(i, ElementType::F32);
}

ElementType higher(ElementType low) {
  if (low == ElementType::S4) return ElementType::S8;
  if (low == ElementType::U4) return ElementType::U8;
  return low == ElementType::BF16 || low == ElementType::F8E8M0FNU ? ElementType::F32 : ElementType::F16;
}

bool stands_apart(Opcode op) {
  switch (op) {
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Constant:
    case Opcode::Domain:
    case Opcode::Parameter:
    case Opcode::Fusion:
    case Opcode::Convert:
    case Opcode::Call:
    case Opcode::CustomCall:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
      return true;
    default:
      return false;
  }
}

// The operands and the result of one instruction in another type, converts around it.
void in_type(Module& m, InstId i, ElementType low, ElementType high) {
  for (size_t k = 0; k < m.operand_count(i); ++k)
    if (m.shape(m.operand(i, k)).type == low) m.set_operand(i, k, make_convert(m, m.operand(i, k), high));
  if (m.shape(i).type != low) return;
  ShapeId before = m.shape_id(i);
  m.set_shape(i, m.u().with_type(before, high));
  InstId back = m.add(m.parent(i), {.op = Opcode::Convert, .shape = before, .operands = {i}});
  m.replace_all_uses(i, back);
}

// A reduction is done in a narrow type if all that its function does is.
bool supported_function(const Module& m, InstId i, ElementType low) {
  if (m.op(i) != Opcode::Reduce || low != ElementType::BF16) return false;
  std::vector<InstId> body = m.live_order(m.called(i)[0]);
  return std::all_of(body.begin(), body.end(),
                     [&](InstId o) { return m.op(o) == Opcode::Parameter || supported(m.op(o), low); });
}

// A function of a reduction, map or the like on values of the wider type: what it lacks there goes through the narrow
// one.
void widen_function(Module& m, InstId i, CompId function, ElementType low, ElementType high) {
  Universe& u = m.u();
  CompId copy = m.clone_computation(function, "clone");
  m.replace_called(i, function, copy);
  auto widened = [&](InstId x) { return make_convert(m, x, high); };
  InstId root = m.comp(copy).root;
  if (m.op(root) == Opcode::Tuple) {
    for (size_t k = 0; k < m.operand_count(root); ++k)
      if (m.shape(m.operand(root, k)).type == low) m.set_operand(root, k, widened(m.operand(root, k)));
    std::vector<ShapeId> shapes;
    for (InstId o : m.operands(root)) shapes.push_back(m.shape_id(o));
    m.set_shape(root, u.tuple(shapes));
  } else if (m.shape(root).type == low) {
    m.set_root(copy, widened(root));
  }
  for (InstId p : std::vector<InstId>(m.comp(copy).params)) {
    if (m.shape(p).type != low) continue;
    ShapeId narrow = m.shape_id(p);
    const std::vector<InstId> users = m.users_copy(p);
    m.set_shape(p, u.with_type(narrow, high));
    InstId back = m.add(copy, {.op = Opcode::Convert, .shape = narrow, .operands = {p}});
    for (InstId user : users) {
      if (m.op(user) == Opcode::Convert && m.shape(user).type == high) {
        m.replace(user, p);
        continue;
      }
      for (size_t k = 0; k < m.operand_count(user); ++k)
        if (m.operand(user, k) == p) m.set_operand(user, k, back);
    }
    if (m.dead(back)) m.remove(back);
  }
}

//   bf16 reduce(A, 0)      →      convert(f32 reduce(convert(A), convert(0)))
void call_in_type(Module& m, InstId i, ElementType low, ElementType high) {
  for (CompId function : std::vector<CompId>(m.called(i).begin(), m.called(i).end()))
    widen_function(m, i, function, low, high);
  if (!m.shape(i).is_tuple()) return in_type(m, i, low, high);
  Universe& u = m.u();
  for (size_t k = 0; k < m.operand_count(i); ++k)
    if (m.shape(m.operand(i, k)).type == low) m.set_operand(i, k, make_convert(m, m.operand(i, k), high));
  const std::vector<ShapeId> before = m.shape(i).elements;
  const std::vector<InstId> users = m.users_copy(i);
  const bool root = m.is_root(i);
  std::vector<ShapeId> after;
  for (ShapeId s : before) after.push_back(u[s].type == low ? u.with_type(s, high) : s);
  m.set_shape(i, u.tuple(after));
  std::vector<InstId> parts;
  for (size_t k = 0; k < before.size(); ++k) {
    InstId part = make_element(m, i, static_cast<int64_t>(k));
    parts.push_back(after[k] == before[k]
                        ? part
                        : m.add(m.parent(i), {.op = Opcode::Convert, .shape = before[k], .operands = {part}}));
  }
  InstId whole;
  auto tuple = [&] {
    if (!whole.valid()) whole = make(m, m.parent(i), Opcode::Tuple, parts);
    return whole;
  };
  for (InstId user : users) {
    if (m.op(user) == Opcode::GetTupleElement) {
      m.replace(user, parts[static_cast<size_t>(m.attrs(user).integer(Attr::index))]);
      continue;
    }
    for (size_t k = 0; k < m.operand_count(user); ++k)
      if (m.operand(user, k) == i) m.set_operand(user, k, tuple());
  }
  if (root) m.set_root(m.parent(i), tuple());
  for (InstId part : parts)
    if (m.dead(part)) m.remove_with_unused_operands(part, false);
}

}  // namespace

//   bf16 tanh(A)      →      bf16 convert(f32 tanh(f32 convert(A)))
bool run_float_normalization(Module& m, PassContext& ctx) {
  ElementType low = ElementType::BF16, high = ElementType::F32;
  const std::string &narrow = ctx.word("low"), &wide = ctx.word("high");
  const bool known = type_from_name(narrow, &low);
  if (!known || (low != ElementType::S4 && low != ElementType::U4 && (!is_float(low) || type_bits(low) > 16)))
    fail(FailureKind::kUsage, "low={} is no narrow type", narrow);
  high = higher(low);
  if (wide != "auto" && (!type_from_name(wide, &high) || !is_float(high)))
    fail(FailureKind::kUsage, "high={} is no float type", wide);
  // Mostly nothing has ever had that type: the pipeline asks for twelve of them.
  bool there = false;
  for (size_t k = 0; k < m.u().shape_count() && !there; ++k) there = m.u()[ShapeId(k)].type == low;
  if (!there) return false;
  bool changed = false, functions = false;
  // In front of layouts XLA looks at convolutions alone, and there at those of bf16 and f32 both.
  const bool convolutions = !ctx.flag("elementwise");
  const std::vector<bool> fused = m.fusion_computation_flags();
  auto candidate = [&](InstId i) {
    Opcode op = m.op(i);
    if (stands_apart(op) || m.has_side_effect(i) || m.has_control(i)) return false;
    if (convolutions || op == Opcode::Dot) return op == (convolutions ? Opcode::Convolution : Opcode::Dot);
    if (has_functions(op, low) || op == Opcode::Iota) return true;
    if (moves_elements(op)) return low == kNothingSupported && m.shape(i).is_array();
    return op_info(op).elementwise && m.shape(i).is_array() && m.called(i).empty();
  };
  for (CompId c : m.computation_post_order())
    for (InstId i : m.post_order(c)) {
      if (!candidate(i)) continue;
      const bool calls = has_functions(m.op(i), low), product = m.op(i) == Opcode::Dot || convolutions;
      auto of = [&](InstId o, ElementType t) { return m.shape(o).type == t; };
      bool low_in = std::any_of(m.operands(i).begin(), m.operands(i).end(), [&](InstId o) { return of(o, low); });
      if (!low_in && (calls || !of(i, low))) continue;
      if (convolutions) {
        bool high_in = std::any_of(m.operands(i).begin(), m.operands(i).end(), [&](InstId o) { return of(o, high); });
        if (low != ElementType::BF16 || (!high_in && !of(i, high))) continue;
      } else if (product ? supported_product(m, i, low, fused[c.value])
                 : calls ? supported_function(m, i, low)
                         : supported(m.op(i), low)) {
        continue;
      }
      if (!ctx.spend(m, calls ? "function in the wider type" : "in the wider type", {i})) return changed;
      calls ? call_in_type(m, i, low, high) : in_type(m, i, low, high);
      changed = true, functions |= calls;
    }
  if (functions) m.remove_uncalled_computations();
  return changed;
}

}  // namespace hlo
