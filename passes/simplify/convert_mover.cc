// convert-mover (xla/hlo/transforms/simplifiers/convert_mover.cc): data is moved in its narrower type.
#include <algorithm>
#include <deque>

#include "ir/eval/kernels.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

bool moves_data(Opcode op) {
  return op == Opcode::Concatenate || op == Opcode::Pad || op == Opcode::Reshape || op == Opcode::Slice ||
         op == Opcode::Transpose;
}

InstId with_type(Module& m, InstId i, const std::vector<InstId>& operands, ElementType type) {
  return m.clone_inst(i, m.parent(i), operands, m.u().with_type(m.shape_id(i), type));
}

// Does the constant survive a trip through the type?
bool lossless(const Module& m, InstId constant, ElementType through) {
  const Literal& lit = m.literal(constant);
  ElementType type = m.shape(constant).type;
  if (lit.elided) return false;
  int64_t n = m.shape(constant).elements_count();
  std::string there(static_cast<size_t>(n * storage_bytes(through)), '\0'), back(lit.bytes.size(), '\0');
  convert_kernel(type, through, n, lit.bytes.data(), there.data());
  convert_kernel(through, type, n, there.data(), back.data());
  return back == lit.bytes;
}

//   concatenate(f32 convert(bf16 A), f32 convert(bf16 B))      →      convert(concatenate(A, B))
bool sink_converts(Module& m, PassContext& ctx, CompId c, bool* stop) {
  bool changed = false;
  for (InstId i : m.post_order(c)) {
    if (!m.alive(i) || !moves_data(m.op(i)) || m.has_control(i)) continue;
    ElementType narrow = ElementType::Tuple, wide = m.shape(i).type;
    bool fits = true;
    for (InstId o : m.operands(i)) {
      if (m.op(o) == Opcode::Constant) continue;
      if (m.op(o) != Opcode::Convert || m.user_count(o) != 1 || m.has_control(o)) {
        fits = false;
        break;
      }
      ElementType from = m.shape(m.operand(o, 0)).type;
      fits &= narrow == ElementType::Tuple || narrow == from;
      narrow = from;
    }
    if (!fits || narrow == ElementType::Tuple || type_bits(narrow) >= type_bits(wide) ||
        (type_bits(narrow) < 8 && narrow != ElementType::Pred))
      continue;
    for (InstId o : m.operands(i)) fits &= m.op(o) != Opcode::Constant || lossless(m, o, narrow);
    if (!fits) continue;
    if (!ctx.spend(m, "convert after the movement", {i})) {
      *stop = true;
      return changed;
    }
    std::vector<InstId> ops;
    for (InstId o : std::vector<InstId>(m.operands(i).begin(), m.operands(i).end()))
      ops.push_back(m.op(o) == Opcode::Convert ? m.operand(o, 0) : make_convert(m, o, narrow));
    InstId small = with_type(m, i, ops, narrow);
    changed |= m.replace(i, make_convert(m, small, wide));
  }
  return changed;
}

//   bf16 convert(slice(f32 A))      →      slice(convert(A))
bool hoist(Module& m, PassContext& ctx, CompId c, bool* stop) {
  bool changed = false;
  std::vector<InstId> order = m.post_order(c);
  std::deque<InstId> work(order.rbegin(), order.rend());
  while (!work.empty()) {
    InstId i = work.front();
    work.pop_front();
    if (!m.alive(i) || m.op(i) != Opcode::Convert || m.has_control(i)) continue;
    InstId o = m.operand(i, 0);
    ElementType to = m.shape(i).type;
    if (!moves_data(m.op(o)) || m.user_count(o) != 1 || m.has_control(o) ||
        type_bits(to) >= type_bits(m.shape(o).type) || type_bits(to) < 8)
      continue;
    if (!ctx.spend(m, "convert before the movement", {i})) {
      *stop = true;
      return changed;
    }
    std::vector<InstId> ops;
    for (InstId part : std::vector<InstId>(m.operands(o).begin(), m.operands(o).end())) {
      InstId small = make_convert(m, part, to);
      ops.push_back(small);
      if (small != part) work.push_front(small);
    }
    changed |= m.replace(i, with_type(m, o, ops, to));
  }
  return changed;
}

}  // namespace

bool run_convert_mover(Module& m, PassContext& ctx) {
  bool changed = false, stop = false;
  for (CompId c : m.nonfusion_computations()) {
    if (!stop) changed |= hoist(m, ctx, c, &stop);
    if (!stop) changed |= sink_converts(m, ctx, c, &stop);
  }
  return changed;
}

}  // namespace hlo
