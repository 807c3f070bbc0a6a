// Passes that change element types or degenerate dimensions around an operation: bitcast_dtypes_expander,
// float-normalization, element_type_converter, convolution_4d_expander, convolution-pred-expander,
// permutation_sort_simplifier, sub-byte-size-setter and stochastic_convert_decomposer (xla/hlo/transforms/expanders/…,
// xla/service/float_normalization.cc, hlo_element_type_converter.cc, sub_byte_normalization.cc,
// stochastic_convert_decomposer.cc).
#include <algorithm>
#include <cmath>
#include <map>

#include "passes/expand/client.h"

namespace hlo {
namespace {

ElementType unsigned_of(int bits) {
  switch (bits) {
    case 4:
      return ElementType::U4;
    case 8:
      return ElementType::U8;
    case 16:
      return ElementType::U16;
    case 32:
      return ElementType::U32;
    default:
      return ElementType::U64;
  }
}

//   u8[4,4] bitcast-convert(f32[4] A)      →      bytes cut out by shifts and masks, the lowest first
InstId narrowed(Client& b, InstId a, ShapeId to) {
  const ElementType in = b.type(a), out = b.u[to].type;
  const Dims dims = b.u[to].dims, from = b.dims(a), lead = Client::upto(from.size());
  const int bits = type_bits(out);
  const ElementType word = unsigned_of(type_bits(in));
  Dims one = from;
  one.push_back(1);
  // The builder's broadcast to a size of one, which does nothing.
  InstId x = b.reshape(b.broadcast(b.reshape(a, one), one, Client::upto(one.size())), from);
  x = b.bitcast(b.broadcast(x, dims, lead), word);
  InstId by =
      b.op(Opcode::Multiply, {b.filled(word, bits, dims), b.iota(word, dims, static_cast<int64_t>(dims.size()) - 1)});
  x = b.op(Opcode::ShiftRightLogical, {x, by});
  x = b.op(Opcode::And, {x, b.filled(word, static_cast<int64_t>((uint64_t{1} << bits) - 1), dims)});
  return b.bitcast(b.convert(x, unsigned_of(bits)), out);
}

//   f32[4] bitcast-convert(u8[4,4] A)      →      bytes put in their place by shifts, a reduction by or
InstId widened(Client& b, InstId a, ShapeId to) {
  const Dims dims = b.dims(a);
  const int bits = type_bits(b.type(a));
  const ElementType out = b.u[to].type, word = unsigned_of(type_bits(out));
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  InstId x = b.convert(b.bitcast(a, unsigned_of(bits)), word);
  InstId by = b.op(Opcode::Multiply, {b.filled(word, bits, dims), b.iota(word, dims, last)});
  x = b.op(Opcode::ShiftLeft, {x, by});
  return b.bitcast(b.reduce(x, b.number(word, int64_t{0}), {last}, Opcode::Or), out);
}

// --- float-normalization ---

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

bool run_bitcast_dtypes_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  std::map<std::pair<ShapeId, ShapeId>, CompId> known;
  for (InstId i : all_of_opcode(m, Opcode::BitcastConvert)) {
    InstId a = m.operand(i, 0);
    ElementType from = m.shape(a).type, to = m.shape(i).type;
    int in = type_bits(from), out = type_bits(to);
    if (in == out || std::min(in, out) < 4 || std::max(in, out) > 64 || is_complex(from) || is_complex(to)) continue;
    if (!ctx.spend(m, in > out ? "words into parts" : "parts into words", {i})) return changed;
    // A function of its own, put in the place of the operation; it stays, called by nobody, as XLA leaves it.
    CompId& made = known[{m.shape_id(a), m.shape_id(i)}];
    if (!made.valid()) {
      Client b(m, m.add_computation(
                      fmt::format("xla.bitcast_convert_{}_2_{}", named(m, m.shape_id(a)), named(m, m.shape_id(i)))));
      made = b.comp;
      InstId x = m.parameter(b.comp, 0, m.shape_id(a), "a");
      InstId root = in > out ? narrowed(b, x, m.shape_id(i)) : widened(b, x, m.shape_id(i));
      m.set_shape(root, m.shape_id(i));  // its layout too: a bitcast may read it
      m.set_root(b.comp, root);
    }
    changed |= inline_computation(m, i, made, std::vector<InstId>{a}, false);
  }
  return changed;
}

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

//   operation on bf16      →      convert(operation on f32(convert(A)))
// The 2019 GPU pipeline knew bf16 only in memory.
bool run_element_type_converter(Module& m, PassContext& ctx) {
  ElementType from = ElementType::BF16, to = ElementType::F32;
  auto option = [&](const char* key, ElementType* type) {
    if (!type_from_name(ctx.word(key), type)) fail(FailureKind::kUsage, "{}={} is no element type", key, ctx.word(key));
  };
  option("eliminate", &from), option("replace", &to);
  auto has_function = [](Opcode op) {
    switch (op) {
      case Opcode::AllReduce:
      case Opcode::ReduceScatter:
      case Opcode::Map:
      case Opcode::Reduce:
      case Opcode::ReduceWindow:
      case Opcode::Scatter:
      case Opcode::SelectAndScatter:
      case Opcode::Sort:
        return true;
      default:
        return false;
    }
  };
  bool changed = false;
  for (CompId c : m.computation_post_order())
    for (InstId i : m.post_order(c)) {
      Opcode op = m.op(i);
      if (op == Opcode::Parameter || op == Opcode::Constant || op == Opcode::Tuple || op == Opcode::Convert ||
          op == Opcode::BitcastConvert || op == Opcode::GetTupleElement || op == Opcode::Infeed ||
          op == Opcode::Outfeed || op == Opcode::CustomCall || op == Opcode::While || op == Opcode::Call ||
          op == Opcode::Fusion || op == Opcode::Conditional || has_function(op) || m.has_control(i) ||
          m.has_side_effect(i))
        continue;
      bool operand =
          std::any_of(m.operands(i).begin(), m.operands(i).end(), [&](InstId o) { return m.shape(o).type == from; });
      if (!operand && !(m.operand_count(i) == 0 && m.shape(i).type == from)) continue;
      if (!ctx.spend(m, "in the wider type", {i})) return changed;
      std::vector<InstId> ops;
      for (InstId o : std::vector<InstId>(m.operands(i).begin(), m.operands(i).end()))
        ops.push_back(m.shape(o).type == from ? make_convert(m, o, to) : o);
      auto wide_shape = [&](ShapeId s) { return m.u()[s].type == from ? m.u().with_type(s, to) : s; };
      ShapeId shape = m.shape_id(i), wide = shape;
      if (m.u()[shape].is_tuple()) {
        std::vector<ShapeId> parts;
        for (ShapeId s : m.u()[shape].elements) parts.push_back(wide_shape(s));
        wide = m.u().tuple(parts);
      } else {
        wide = wide_shape(shape);
      }
      InstId fresh = m.clone_inst(i, c, ops, wide);
      InstId back = fresh;
      if (m.u()[shape].is_tuple()) {
        std::vector<InstId> parts;
        for (size_t k = 0; k < m.shape(i).elements.size(); ++k) {
          InstId part = make_element(m, fresh, static_cast<int64_t>(k));
          parts.push_back(make_convert(m, part, m.u()[m.shape(i).elements[k]].type));
        }
        back = make(m, c, Opcode::Tuple, parts, {}, shape);
      } else if (wide != shape) {
        back = make(m, c, Opcode::Convert, {fresh}, {}, shape);
      }
      changed |= m.replace(i, back);
    }
  return changed;
}

//   convolution over [8,1,8] with a window of [3,1,3]      →      reshape(convolution over [8,8])
bool run_convolution_4d_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Convolution)) {
    const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
    Window w;
    if (const Window* given = m.attrs(i).get<Window>(Attr::window)) w = *given;
    if (d.input_spatial.size() != 4 || w.dims.size() != d.input_spatial.size()) continue;
    InstId lhs = m.operand(i, 0), rhs = m.operand(i, 1);
    const Dims in = m.shape(lhs).dims, kernel = m.shape(rhs).dims, out = m.shape(i).dims;
    // Spatial dimensions in which nothing happens.
    std::vector<size_t> gone;
    for (size_t s = 0; s < w.dims.size(); ++s) {
      const WindowDim& e = w.dims[s];
      if (in[static_cast<size_t>(d.input_spatial[s])] == 1 && kernel[static_cast<size_t>(d.kernel_spatial[s])] == 1 &&
          !e.pad_low && !e.pad_high && out[static_cast<size_t>(d.output_spatial[s])] == 1)
        gone.push_back(s);
    }
    if (gone.empty()) continue;
    if (!ctx.spend(m, "spatial dimensions of one dropped", {i})) return changed;
    auto dropped = [&](size_t s) { return std::find(gone.begin(), gone.end(), s) != gone.end(); };
    auto side = [&](const Dims& dims, const Dims& spatial, std::vector<int64_t>* to) {
      Dims kept;
      to->assign(dims.size(), -1);
      for (size_t k = 0; k < dims.size(); ++k) {
        auto s =
            static_cast<size_t>(std::find(spatial.begin(), spatial.end(), static_cast<int64_t>(k)) - spatial.begin());
        if (s < spatial.size() && dropped(s)) continue;
        (*to)[k] = static_cast<int64_t>(kept.size());
        kept.push_back(dims[k]);
      }
      return kept;
    };
    std::vector<int64_t> ti, tk, to;
    Dims ni = side(in, d.input_spatial, &ti), nk = side(kernel, d.kernel_spatial, &tk),
         no = side(out, d.output_spatial, &to);
    DimLabels labels = d;
    auto moved = [](const std::vector<int64_t>& map, int64_t k) { return map[static_cast<size_t>(k)]; };
    labels.input_batch = moved(ti, d.input_batch), labels.input_feature = moved(ti, d.input_feature);
    labels.kernel_input = moved(tk, d.kernel_input), labels.kernel_output = moved(tk, d.kernel_output);
    labels.output_batch = moved(to, d.output_batch), labels.output_feature = moved(to, d.output_feature);
    labels.input_spatial.clear(), labels.kernel_spatial.clear(), labels.output_spatial.clear();
    Window window;
    for (size_t s = 0; s < w.dims.size(); ++s) {
      if (dropped(s)) continue;
      labels.input_spatial.push_back(moved(ti, d.input_spatial[s]));
      labels.kernel_spatial.push_back(moved(tk, d.kernel_spatial[s]));
      labels.output_spatial.push_back(moved(to, d.output_spatial[s]));
      window.dims.push_back(w.dims[s]);
    }
    labels.lhs_rank = static_cast<int>(ni.size()), labels.rhs_rank = static_cast<int>(nk.size()),
    labels.out_rank = static_cast<int>(no.size());
    std::vector<InstId> ops{make_reshape(m, lhs, ni), make_reshape(m, rhs, nk)};
    InstId conv = m.clone_inst(i, m.parent(i), ops, m.u().array(m.shape(i).type, no));
    m.set_attr(conv, Attr::window, window);
    m.set_attr(conv, Attr::dim_labels, Boxed<DimLabels>(labels));
    InstId back = m.add(m.parent(i), {.op = Opcode::Reshape, .shape = m.shape_id(i), .operands = {conv}});
    changed |= m.replace(i, back);
  }
  return changed;
}

//   pred convolution(A, F)      →      convert(f16 convolution(convert(A), convert(F)))
bool run_convolution_pred_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Convolution)) {
    if (m.shape(m.operand(i, 0)).type != ElementType::Pred || m.shape(m.operand(i, 1)).type != ElementType::Pred ||
        m.shape(i).type != ElementType::Pred)
      continue;
    if (!ctx.spend(m, "convolution of truth values", {i})) return changed;
    std::vector<InstId> ops{make_convert(m, m.operand(i, 0), ElementType::F16),
                            make_convert(m, m.operand(i, 1), ElementType::F16)};
    InstId conv = m.clone_inst(i, m.parent(i), ops, m.u().with_type(m.shape_id(i), ElementType::F16));
    changed |= m.replace(i, m.add(m.parent(i), {.op = Opcode::Convert, .shape = m.shape_id(i), .operands = {conv}}));
  }
  return changed;
}

//   sort(P, V) by P, a permutation      →      tuple(iota, scatter of V to P)
bool run_permutation_sort_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Sort)) {
    if (!m.shape(i).is_tuple() || m.shape(m.operand(i, 0)).rank() != 1) continue;
    // The comparator: first keys ascending.
    const Computation& less = m.comp(m.called(i)[0]);
    if (m.op(less.root) != Opcode::Compare || m.operand(less.root, 0) != less.params[0] ||
        m.operand(less.root, 1) != less.params[1] || u.text(m.attrs(less.root).text(Attr::direction)) != "LT")
      continue;
    // The keys: what another sort made of an iota.
    InstId keys = m.operand(i, 0);
    if (m.op(keys) != Opcode::GetTupleElement || m.op(m.operand(keys, 0)) != Opcode::Sort ||
        !is_integral(m.shape(keys).type))
      continue;
    InstId made = m.operand(m.operand(keys, 0), static_cast<size_t>(m.attrs(keys).integer(Attr::index)));
    if (m.op(made) != Opcode::Iota) continue;
    if (!ctx.spend(m, "sort by a permutation", {i})) return changed;
    CompId c = m.parent(i);
    std::vector<InstId> parts{make(m, c, Opcode::Iota, {},
                                   attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}), m.shape_id(keys))};
    for (size_t k = 1; k < m.operand_count(i); ++k) {
      InstId v = m.operand(i, k);
      CompId replace = m.add_computation("update_replace_computation");
      ShapeId scalar = u.scalar(m.shape(v).type);
      m.parameter(replace, 0, scalar, "scalar_lhs");
      m.set_root(replace, m.parameter(replace, 1, scalar, "scalar_rhs"));
      InstId zero = make_broadcast(m, c, make_scalar(m, c, m.shape(v).type, 0), {}, m.shape_id(v));
      InstId places = make_reshape(m, keys, {m.shape(keys).dims[0], 1});
      parts.push_back(make(m, c, Opcode::Scatter, {zero, places, v},
                           attrs_of(u, Opcode::Scatter,
                                    {{Attr::update_window_dims, Dims{}},
                                     {Attr::inserted_window_dims, Dims{0}},
                                     {Attr::scatter_dims_to_operand_dims, Dims{0}},
                                     {Attr::index_vector_dim, int64_t{1}},
                                     {Attr::unique_indices, true},
                                     {Attr::to_apply, replace}}),
                           m.shape_id(v)));
    }
    changed |= m.replace(i, make(m, c, Opcode::Tuple, parts));
  }
  return changed;
}

namespace {

// The shape with E(bits) in the layouts of what takes less than a byte.
ShapeId packed(Universe& u, ShapeId id) {
  Shape s = u[id];
  if (s.is_tuple()) {
    for (ShapeId& e : s.elements) e = packed(u, e);
    return u.tuple(std::move(s.elements));
  }
  if (!s.is_array() || s.type == ElementType::Pred || type_bits(s.type) >= 8) return id;
  std::string& rest = s.layout.rest;
  std::string size = fmt::format("E({})", type_bits(s.type));
  if (rest.find(size) != std::string::npos) return id;
  // Tiles stand in front of it, memory space and the like behind.
  rest.insert(std::min(rest.find_first_of("SP"), rest.size()), size);
  return u.shape(std::move(s));
}

}  // namespace

//   s4[8]{0}      →      s4[8]{0:E(4)}
bool run_sub_byte_size_setter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      ShapeId to = packed(m.u(), m.shape_id(i));
      if (to == m.shape_id(i)) continue;
      if (!ctx.spend(m, "size of an element", {i})) return changed;
      m.set_shape(i, to);
      changed = true;
    }
  return changed;
}

//   s8 stochastic-convert(A, random)
//     →   floor(|A|), one more where random < (|A| - floor(|A|)) · 2^bits, with A's sign, and the limits of the type
bool run_stochastic_convert_decomposer(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::StochasticConvert)) {
    CompId c = m.parent(i);
    InstId a = m.operand(i, 0), random = m.operand(i, 1);
    ElementType to = m.shape(i).type, bits = m.shape(random).type;
    if (!is_signed_int(to) || !is_float(m.shape(a).type)) {
      ctx.note(m, "stochastic-convert kept", {i}, "other than floats to signed integers");
      continue;
    }
    if (!ctx.spend(m, "stochastic-convert", {i})) return changed;
    auto unary = [&](Opcode op, InstId x) { return make(m, c, op, {x}, {}, m.shape_id(x)); };
    auto binary = [&](Opcode op, InstId x, InstId y) { return make(m, c, op, {x, y}, {}, m.shape_id(x)); };
    auto compare = [&](InstId x, InstId y, std::string_view direction) {
      return make(m, c, Opcode::Compare, {x, y}, attrs_of(u, Opcode::Compare, {{Attr::direction, u.str(direction)}}));
    };
    auto choose = [&](InstId which, InstId x, InstId y) {
      return make(m, c, Opcode::Select, {which, x, y}, {}, m.shape_id(x));
    };
    InstId sign = unary(Opcode::Sign, a);
    InstId negative = compare(sign, make_scalar_like(m, sign, 0), "LT");
    InstId size = unary(Opcode::Abs, a);
    InstId whole = unary(Opcode::Floor, size);
    InstId fraction = binary(Opcode::Subtract, size, whole);
    // 2^bits may be beyond what f16 holds.
    if (m.shape(fraction).type == ElementType::F16) fraction = make_convert(m, fraction, ElementType::F32);
    InstId chance = binary(Opcode::Multiply, fraction, make_scalar_like(m, fraction, std::ldexp(1.0, type_bits(bits))));
    InstId up = compare(random, make_convert(m, chance, bits), "LT");
    InstId number = make_convert(m, whole, to);
    number = choose(up, binary(Opcode::Add, number, make_scalar_like(m, number, 1)), number);
    InstId result = choose(negative, unary(Opcode::Negate, number), number);
    int64_t most = type_bits(to) == 64 ? INT64_MAX : (int64_t{1} << (type_bits(to) - 1)) - 1, least = -most - 1;
    InstId low = compare(a, make_scalar_like(m, a, static_cast<double>(least)), "LE");
    result = choose(low, make_scalar_like(m, result, least), result);
    InstId high = compare(a, make_scalar_like(m, a, static_cast<double>(most)), "GE");
    result = choose(high, make_scalar_like(m, result, most), result);
    changed |= m.replace(i, result);
  }
  return changed;
}

}  // namespace hlo
