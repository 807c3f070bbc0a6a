#include "ir/eval/widen.h"

#include <algorithm>

#include "ir/eval/kernels.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

ElementType wide_type(ElementType t) {
  if (is_complex(t)) return ElementType::C128;
  return is_float(t) ? ElementType::F64 : t;
}

LitId wide_literal(Universe& u, LitId id) {
  Literal lit = u[id];
  ShapeId to = widened_shape(u, lit.shape);
  if (to == lit.shape) return id;
  for (LitId& e : lit.elements) e = wide_literal(u, e);
  const Shape& from = u[lit.shape];
  if (from.is_array() && !lit.elided) {
    ElementType type = u[to].type;
    std::string bytes(static_cast<size_t>(from.elements_count() * storage_bytes(type)), '\0');
    convert_kernel(from.type, type, from.elements_count(), lit.bytes.data(), bytes.data());
    lit.bytes = std::move(bytes);
  }
  lit.shape = to;
  return u.literal(std::move(lit));
}

// Rounds to what the type has anyway: as a convert to that type, it is none in f64.
bool keeps_all_bits(const AttrSet& a, ElementType type) {
  const FloatFormat* own = float_format(type);
  const int64_t exponent = own ? own->exponent_bits : type == ElementType::F32 ? 8 : 11;
  const int64_t mantissa = own ? own->mantissa_bits : type == ElementType::F32 ? 23 : 52;
  return a.integer(Attr::exponent_bits) >= exponent && a.integer(Attr::mantissa_bits) >= mantissa;
}

AttrSet all_bits_of_f64(AttrSet a) {
  for (auto& [key, value] : a.list)
    if (key == Attr::exponent_bits)
      value = int64_t{11};
    else if (key == Attr::mantissa_bits)
      value = int64_t{52};
  return a;
}

}  // namespace

ShapeId widened_shape(Universe& u, ShapeId id) {
  Shape s = u[id];
  if (s.is_tuple()) {
    for (ShapeId& e : s.elements) e = widened_shape(u, e);
    return u.tuple(s.elements);
  }
  return s.is_array() && wide_type(s.type) != s.type ? u.with_type(id, wide_type(s.type)) : id;
}

std::unique_ptr<Module> widened_module(const Module& m) {
  std::unique_ptr<Module> wide = m.clone();
  Universe& u = wide->u();
  wide->set_scheduled(false);  // instructions are added behind
  for (ShapeId& s : wide->edit_config().entry_params) s = widened_shape(u, s);
  if (wide->config().has_entry_layout) wide->edit_config().entry_result = widened_shape(u, wide->config().entry_result);
  for (CompId c : wide->computations())
    for (InstId i : wide->live_order(c)) {
      ShapeId narrow = wide->shape_id(i), to = widened_shape(u, narrow);
      Opcode op = wide->op(i);
      bool bits = op == Opcode::BitcastConvert || op == Opcode::Rng || op == Opcode::RngBitGenerator ||
                  op == Opcode::StochasticConvert ||
                  (op == Opcode::Bitcast && m.shape(i).type != m.shape(m.operand(i, 0)).type);
      if (bits) {
        // bitcast-convert(x)  ⇒  convert(bitcast-convert(convert(x))) around its own types
        for (size_t k = 0; k < wide->operand_count(i); ++k) {
          ShapeId own = m.shape_id(m.operand(i, k));
          if (widened_shape(u, own) != own)
            wide->set_operand(i, k, wide->add(c, {Opcode::Convert, own, {wide->operand(i, k)}}));
        }
        if (to != narrow && !u[to].is_tuple()) {
          InstId back = wide->add(c, {Opcode::Convert, to, {}});
          wide->replace_all_uses(i, back);
          wide->set_operands(back, std::vector<InstId>{i});
        }
        continue;
      }
      if (to == narrow) continue;
      if (op == Opcode::ReducePrecision && keeps_all_bits(wide->attrs(i), u[narrow].type))
        wide->set_attrs(i, u.attrs(all_bits_of_f64(wide->attrs(i))));
      if (op == Opcode::Constant) wide->set_literal(i, wide_literal(u, wide->literal_id(i)));
      wide->set_shape(i, to);
    }
  return wide;
}

Value widened_value(Universe& u, const Value& v) {
  Value out;
  out.shape = widened_shape(u, v.shape);
  for (const Value& e : v.elements) out.elements.push_back(widened_value(u, e));
  const Shape &from = u[v.shape], &to = u[out.shape];
  if (!from.is_array() || from.type == to.type) {
    out.data = v.data;
    return out;
  }
  out.data = std::make_shared<std::vector<char>>(static_cast<size_t>(from.elements_count() * storage_bytes(to.type)));
  convert_kernel(from.type, to.type, from.elements_count(), v.bytes(), out.data->data());
  return out;
}

}  // namespace hlo
