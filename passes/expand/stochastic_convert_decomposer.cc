// stochastic_convert_decomposer (xla/hlo/transforms/expanders/stochastic_convert_decomposer.cc).
#include <cmath>

#include "passes/rewrite.h"

namespace hlo {

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
