// algsimp on conversions, bitcasts and copies.
#include <algorithm>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

namespace {
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

void A::convert(InstId i) {
  InstId a = operand(i, 0);
  if (type(i) == type(a)) {
    ric(i, a, "convert to the same type");
    return;
  }
  //   convert(convert(A)) back to A's type      →      A       where the middle type keeps all values
  if (op(a) == Opcode::Convert && type(operand(a, 0)) == type(i) && preserves(type(i), type(a))) {
    ric(i, operand(a, 0), "convert there and back");
    return;
  }
  //   convert(op(convert(A), convert(B)))      →      op(A, B)       in the narrow integer type
  Opcode inner = op(a);
  bool arithmetic = inner == Opcode::Add || inner == Opcode::Subtract || inner == Opcode::Multiply;
  bool division = inner == Opcode::Divide || inner == Opcode::Remainder;
  if ((arithmetic || division) && one_user(a) && integral(i) && integral(a)) {
    InstId x = operand(a, 0), y = operand(a, 1);
    if (op(x) == Opcode::Convert && op(y) == Opcode::Convert && one_user(x) && one_user(y) &&
        type(operand(x, 0)) == type(i) && type(operand(y, 0)) == type(i) && type_bits(type(i)) >= 8 &&
        is_signed_int(type(i)) == is_signed_int(type(a)) && preserves(type(i), type(a)) &&
        (arithmetic || is_unsigned_int(type(i)))) {
      if (!go("operation between converts in the narrow type", i)) return;
      rw(i, inner, {operand(x, 0), operand(y, 0)});
    }
  }
}

void A::bitcast_convert(InstId i) {
  InstId a = operand(i, 0);
  if (op(a) == Opcode::BitcastConvert) {
    if (go("bitcast-convert twice", i)) rw(i, Opcode::BitcastConvert, {operand(a, 0)});
    return;
  }
  //   bitcast-convert(concatenate(bitcast-convert(A), …)) back to A's type      →      concatenate(A, …)
  if (op(a) == Opcode::Concatenate && type_bits(type(i)) == type_bits(type(a))) {
    std::vector<InstId> pieces;
    for (InstId o : m_.operands(a))
      if (op(o) == Opcode::BitcastConvert && type(operand(o, 0)) == type(i)) pieces.push_back(operand(o, 0));
    if (pieces.size() == m_.operand_count(a)) {
      if (go("bitcast-convert around a concatenate", i)) rw(i, Opcode::Concatenate, pieces, m_[a].attrs);
      return;
    }
  }
  if (ls_ && m_.shape(i).dims == m_.shape(a).dims && m_.shape(i).layout == m_.shape(a).layout &&
      type_bits(type(i)) == type_bits(type(a)) && type(i) != type(a)) {
    if (go("bitcast-convert is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
    return;
  }
  // Words cut into parts, or parts put together, along a minor-most dimension lie as they did.
  if (ls_ && m_.shape(i).rank() != m_.shape(a).rank()) {
    bool parts = m_.shape(i).rank() > m_.shape(a).rank();
    const Shape &more = parts ? m_.shape(i) : m_.shape(a), &less = parts ? m_.shape(a) : m_.shape(i);
    Dims outer(more.layout.minor_to_major.begin() + (more.layout.minor_to_major.empty() ? 0 : 1),
               more.layout.minor_to_major.end());
    if (more.rank() == less.rank() + 1 && more.dims.back() * type_bits(more.type) % 8 == 0 &&
        more.layout.minor_to_major.front() == more.rank() - 1 &&
        outer == Dims(less.layout.minor_to_major.begin(), less.layout.minor_to_major.end())) {
      if (go("bitcast-convert is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
      return;
    }
  }
  ric(i, a, "bitcast-convert to the same type");
}

//   clamp(0, partition-id, K)      →      partition-id      where there are at most K + 1 of them, and replicas
//   likewise
void A::copy(InstId i) {
  InstId a = operand(i, 0);
  //   copy(copy(A))      →      A or copy(A)
  if (op(a) == Opcode::Copy) {
    if (!go("copy twice", i)) return;
    m_.set_operand(i, 0, operand(a, 0));
    changed_ = true;
    return;
  }
  if (m_.shape(i).is_array() && m_.is_root(i) && m_.parent(i) == m_.entry() && m_.attrs(i).has(Attr::sharding)) return;
  if (ric(i, a, "copy that moves nothing")) return;
  //   copy(reshape(A)) that moves nothing of A      →      reshape(A)
  if (ls_ && op(a) == Opcode::Reshape && one_user(a) &&
      reshape_is_bitcast(u_, m_.shape_id(operand(a, 0)), m_.shape_id(i))) {
    if (go("copy of a reshape", i)) rw(i, Opcode::Reshape, {operand(a, 0)});
    return;
  }
  if (ls_ && m_.shape(i).is_array() && reshape_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i))) {
    if (go("copy is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
  }
}

void A::bitcast(InstId i) {
  InstId a = operand(i, 0);
  if (!m_.control_preds(i).empty()) return;
  //   bitcast(bitcast(A))      →      bitcast(A)       also where the outer one does nothing: each gets one of its own
  if (op(a) == Opcode::Bitcast) {
    if (!go("bitcast twice", i)) return;
    if (m_.shape_id(operand(a, 0)) == m_.shape_id(i))
      ri(i, operand(a, 0));
    else
      rw(i, Opcode::Bitcast, {operand(a, 0)});
    return;
  }
  if (m_.shape_id(a) == m_.shape_id(i)) {
    ric(i, a, "bitcast to the same shape");
    return;
  }
  //   bitcast(f(bitcast(A)))      →      bitcast(f(A))       for elementwise f of one operand
  if (m_.operand_count(a) == 1 && op_info(op(a)).elementwise && op(a) != Opcode::Copy && one_user(a) &&
      !m_.is_root(a) && op(operand(a, 0)) == Opcode::Bitcast && m_.called(a).empty() &&
      type(a) == type(operand(a, 0))) {
    InstId b = operand(a, 0), source = operand(b, 0);
    const Shape from = m_.shape(source);
    if (type(source) == type(b) && type(a) == type(i) && from.is_array() && from.layout.rest.empty()) {
      if (!go("bitcast after an elementwise operation", i)) return;
      InstId f =
          m_.clone_inst(a, m_.parent(i), std::vector<InstId>{source}, u_.with_type(m_.shape_id(source), type(a)));
      rw(i, Opcode::Bitcast, {f});
      return;
    }
  }
  //   bitcast(broadcast(A)) that only transposes      →      broadcast(A)       where the order of A's dimensions stays
  if (op(a) == Opcode::Broadcast && type(a) == type(i) && m_.shape(a).rank() == m_.shape(i).rank()) {
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
    if (transposes && ascending(dims)) {
      if (go("bitcast of a broadcast", i))
        rw(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, dims));
      return;
    }
  }
}

}  // namespace hlo
