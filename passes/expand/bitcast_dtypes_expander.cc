// bitcast_dtypes_expander (xla/hlo/transforms/expanders/bitcast_dtypes_expander.cc).
#include <algorithm>
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

}  // namespace hlo
