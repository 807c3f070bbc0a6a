// algsimp on conversions, bitcasts and copies.
#include <algorithm>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kConversionRules[] = {
    {"convert to the same type", Opcode::Convert, "convert(A) to A's type", "A", &AlgebraicSimplifier::convert_to_same},
    {"convert there and back", Opcode::Convert, "convert(convert(A)) to A's type, by a type with all its values", "A",
     &AlgebraicSimplifier::convert_back},
    {"operation between converts in the narrow type", Opcode::Convert,
     "convert(add(convert(A), convert(B))) of integers, back to A's type; of other arithmetic, too", "add(A, B)",
     &AlgebraicSimplifier::narrow_operation},

    {"bitcast-convert twice", Opcode::BitcastConvert, "bitcast-convert(bitcast-convert(A))", "bitcast-convert(A)",
     &AlgebraicSimplifier::bitcast_convert_twice},
    {"bitcast-convert around a concatenate", Opcode::BitcastConvert,
     "bitcast-convert(concatenate(bitcast-convert(A), bitcast-convert(B))) to A's type", "concatenate(A, B)",
     &AlgebraicSimplifier::bitcast_convert_of_concatenate},
    {"bitcast-convert is a bitcast", Opcode::BitcastConvert, "bitcast-convert(A) that is laid out as A", "bitcast(A)",
     &AlgebraicSimplifier::bitcast_convert_in_place},
    {"bitcast-convert of parts is a bitcast", Opcode::BitcastConvert,
     "bitcast-convert(A) into or of parts of words, along the minor-most dimension", "bitcast(A)",
     &AlgebraicSimplifier::bitcast_convert_of_parts},
    {"bitcast-convert to the same type", Opcode::BitcastConvert, "bitcast-convert(A) to A's type", "A",
     &AlgebraicSimplifier::same_as_operand},

    {"copy twice", Opcode::Copy, "copy(copy(A))", "copy(A)", &AlgebraicSimplifier::copy_twice},
    {"copy that moves nothing", Opcode::Copy, "copy(A) that is laid out as A", "A",
     &AlgebraicSimplifier::copy_in_place},
    {"copy of a reshape", Opcode::Copy, "copy(reshape(A)) that moves nothing of A", "reshape(A)",
     &AlgebraicSimplifier::copy_of_reshape},
    {"copy is a bitcast", Opcode::Copy, "copy(A) that moves nothing of A", "bitcast(A)",
     &AlgebraicSimplifier::copy_as_bitcast},

    {"bitcast twice", Opcode::Bitcast, "bitcast(bitcast(A))", "bitcast(A), a new one for each",
     &AlgebraicSimplifier::bitcast_twice},
    {"bitcast to the same shape", Opcode::Bitcast, "bitcast(A) of A's shape", "A",
     &AlgebraicSimplifier::bitcast_to_same},
    {"bitcast after an elementwise operation", Opcode::Bitcast,
     "bitcast(f(bitcast(A))) for elementwise f of one operand", "bitcast(f(A))",
     &AlgebraicSimplifier::bitcast_of_elementwise},
    {"bitcast of a broadcast", Opcode::Bitcast, "bitcast(broadcast(A)) that transposes, A's dimensions in order",
     "broadcast(A)", &AlgebraicSimplifier::bitcast_of_broadcast},
};

// Does a conversion to `to` keep every value of `from`?
bool preserves(ElementType from, ElementType to) {
  if (from == to) return true;
  auto mantissa = [](ElementType t) {
    return t == ElementType::F32   ? 24
           : t == ElementType::F64 ? 53
           : float_format(t)       ? float_format(t)->mantissa_bits + 1
                                   : 0;
  };
  auto exponent = [](ElementType t) {
    return t == ElementType::F32   ? 8
           : t == ElementType::F64 ? 11
           : float_format(t)       ? float_format(t)->exponent_bits
                                   : 0;
  };
  if (is_complex(to) && !is_complex(from)) return preserves(from, component_type(to));
  if (is_complex(from)) return is_complex(to) && type_bits(to) >= type_bits(from);
  if (from == ElementType::Pred) return is_integral(to) || is_float(to);
  if (to == ElementType::Pred) return false;
  if (is_float(from)) {
    if (!is_float(to) || to == ElementType::F8E8M0FNU || from == ElementType::F8E8M0FNU) return false;
    return mantissa(to) >= mantissa(from) && exponent(to) >= exponent(from);
  }
  if (is_float(to))
    return mantissa(to) >= type_bits(from) - is_signed_int(from) && (1 << (exponent(to) - 1)) >= type_bits(from);
  if (is_unsigned_int(from)) return type_bits(to) - is_signed_int(to) >= type_bits(from);
  return is_signed_int(to) && type_bits(to) >= type_bits(from);
}

}  // namespace

std::span<const AlgebraicRule> conversion_rules() { return kConversionRules; }

bool AlgebraicSimplifier::convert_to_same(InstId i) {
  if (type(i) != type(operand(i, 0))) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::convert_back(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Convert || type(operand(a, 0)) != type(i) || !preserves(type(i), type(a))) return false;
  replace_if_compatible(i, operand(a, 0));
  return true;
}

bool AlgebraicSimplifier::narrow_operation(InstId i) {
  InstId a = operand(i, 0);
  Opcode inner = op(a);
  bool arithmetic = inner == Opcode::Add || inner == Opcode::Subtract || inner == Opcode::Multiply;
  bool division = inner == Opcode::Divide || inner == Opcode::Remainder;
  if ((!arithmetic && !division) || !one_user(a) || !integral(i) || !integral(a)) return false;
  InstId x = operand(a, 0), y = operand(a, 1);
  if (op(x) != Opcode::Convert || op(y) != Opcode::Convert || !one_user(x) || !one_user(y) ||
      type(operand(x, 0)) != type(i) || type(operand(y, 0)) != type(i) || type_bits(type(i)) < 8 ||
      is_signed_int(type(i)) != is_signed_int(type(a)) || !preserves(type(i), type(a)) ||
      (division && !is_unsigned_int(type(i))))
    return false;
  if (spend(i)) rewrite(i, inner, {operand(x, 0), operand(y, 0)});
  return true;
}

bool AlgebraicSimplifier::bitcast_convert_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::BitcastConvert) return false;
  if (spend(i)) rewrite(i, Opcode::BitcastConvert, {operand(a, 0)});
  return true;
}

bool AlgebraicSimplifier::bitcast_convert_of_concatenate(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Concatenate || type_bits(type(i)) != type_bits(type(a))) return false;
  std::vector<InstId> pieces;
  for (InstId o : m_.operands(a)) {
    if (op(o) != Opcode::BitcastConvert || type(operand(o, 0)) != type(i)) return false;
    pieces.push_back(operand(o, 0));
  }
  if (spend(i)) rewrite(i, Opcode::Concatenate, pieces, m_[a].attrs);
  return true;
}

bool AlgebraicSimplifier::bitcast_convert_in_place(InstId i) {
  InstId a = operand(i, 0);
  if (!layout_sensitive_ || m_.shape(i).dims != m_.shape(a).dims || m_.shape(i).layout != m_.shape(a).layout ||
      type_bits(type(i)) != type_bits(type(a)) || type(i) == type(a))
    return false;
  if (spend(i)) rewrite(i, Opcode::Bitcast, {a});
  return true;
}

bool AlgebraicSimplifier::bitcast_convert_of_parts(InstId i) {
  InstId a = operand(i, 0);
  if (!layout_sensitive_ || m_.shape(i).rank() == m_.shape(a).rank()) return false;
  bool parts = m_.shape(i).rank() > m_.shape(a).rank();
  const Shape &more = parts ? m_.shape(i) : m_.shape(a), &less = parts ? m_.shape(a) : m_.shape(i);
  Dims outer(more.layout.minor_to_major.begin() + (more.layout.minor_to_major.empty() ? 0 : 1),
             more.layout.minor_to_major.end());
  if (more.rank() != less.rank() + 1 || more.dims.back() * type_bits(more.type) % 8 != 0 ||
      more.layout.minor_to_major.front() != more.rank() - 1 ||
      outer != Dims(less.layout.minor_to_major.begin(), less.layout.minor_to_major.end()))
    return false;
  if (spend(i)) rewrite(i, Opcode::Bitcast, {a});
  return true;
}

bool AlgebraicSimplifier::same_as_operand(InstId i) { return replace_if_compatible(i, operand(i, 0)); }

bool AlgebraicSimplifier::copy_twice(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Copy) return false;
  if (!spend(i)) return true;
  m_.set_operand(i, 0, operand(a, 0));
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::copy_in_place(InstId i) {
  // The copy of a sharded result stays, whatever it moves.
  if (m_.shape(i).is_array() && m_.is_root(i) && m_.parent(i) == m_.entry() && m_.attrs(i).has(Attr::sharding))
    return true;
  return replace_if_compatible(i, operand(i, 0));
}

bool AlgebraicSimplifier::copy_of_reshape(InstId i) {
  InstId a = operand(i, 0);
  if (!layout_sensitive_ || op(a) != Opcode::Reshape || !one_user(a) ||
      !reshape_is_bitcast(u_, m_.shape_id(operand(a, 0)), m_.shape_id(i)))
    return false;
  if (spend(i)) rewrite(i, Opcode::Reshape, {operand(a, 0)});
  return true;
}

bool AlgebraicSimplifier::copy_as_bitcast(InstId i) {
  InstId a = operand(i, 0);
  if (!layout_sensitive_ || !m_.shape(i).is_array() || !reshape_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i)))
    return false;
  if (spend(i)) rewrite(i, Opcode::Bitcast, {a});
  return true;
}

bool AlgebraicSimplifier::bitcast_twice(InstId i) {
  InstId a = operand(i, 0);
  if (!m_.control_preds(i).empty()) return true;  // such a bitcast stays
  if (op(a) != Opcode::Bitcast) return false;
  if (!spend(i)) return true;
  if (m_.shape_id(operand(a, 0)) == m_.shape_id(i))
    replace(i, operand(a, 0));
  else
    rewrite(i, Opcode::Bitcast, {operand(a, 0)});
  return true;
}

bool AlgebraicSimplifier::bitcast_to_same(InstId i) {
  if (m_.shape_id(operand(i, 0)) != m_.shape_id(i)) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::bitcast_of_elementwise(InstId i) {
  InstId a = operand(i, 0);
  if (m_.operand_count(a) != 1 || !op_info(op(a)).elementwise || op(a) == Opcode::Copy || !one_user(a) ||
      m_.is_root(a) || op(operand(a, 0)) != Opcode::Bitcast || !m_.called(a).empty() || type(a) != type(operand(a, 0)))
    return false;
  InstId b = operand(a, 0), source = operand(b, 0);
  const Shape from = m_.shape(source);
  if (type(source) != type(b) || type(a) != type(i) || !from.is_array() || !from.layout.rest.empty()) return false;
  if (!spend(i)) return true;
  InstId f = m_.clone_inst(a, m_.parent(i), std::vector<InstId>{source}, u_.with_type(m_.shape_id(source), type(a)));
  rewrite(i, Opcode::Bitcast, {f});
  return true;
}

bool AlgebraicSimplifier::bitcast_of_broadcast(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) != Opcode::Broadcast || type(a) != type(i) || m_.shape(a).rank() != m_.shape(i).rank()) return false;
  const auto &from = m_.shape(a).layout.minor_to_major, &to = m_.shape(i).layout.minor_to_major;
  const Dims& spread = m_.attrs(a).ints(Attr::dimensions);
  Dims dims(spread.size());
  bool transposes = from.size() == to.size() && ascending(spread);
  for (size_t k = 0; transposes && k < from.size(); ++k) {
    const auto f = static_cast<size_t>(from[k]), t = static_cast<size_t>(to[k]);
    transposes = m_.shape(a).dims[f] == m_.shape(i).dims[t];
    if (auto at = std::find(spread.begin(), spread.end(), from[k]); at != spread.end())
      dims[static_cast<size_t>(at - spread.begin())] = to[k];
  }
  // Ones lie anywhere.
  if (spread.empty()) {
    auto lies = [&](InstId x) {
      Dims out;
      for (int64_t d : m_.shape(x).layout.minor_to_major)
        if (int64_t size = m_.shape(x).dims[static_cast<size_t>(d)]; size != 1) out.push_back(size);
      return out;
    };
    transposes = lies(a) == lies(i);
  }
  if (!transposes || !ascending(dims)) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, dims));
  return true;
}

}  // namespace hlo
