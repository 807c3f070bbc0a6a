// simplify-fp-conversions (xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc).
#include "passes/rewrite.h"

namespace hlo {

//   convert(convert(A))      →      convert(A)      (results that are floats; what the narrower one rounded stays
//   unrounded)
bool run_simplify_fp_conversions(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Convert)) return false;
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::Convert || !is_float(m.shape(i).type) || m.has_control(i)) continue;
      InstId first = m.operand(i, 0);
      size_t chain = 1;
      for (; m.op(first) == Opcode::Convert && is_float(m.shape(first).type); ++chain) first = m.operand(first, 0);
      if (chain < 2) continue;
      if (!ctx.spend(m, "chain of converts", {i, first})) return changed;
      bool same = m.shape(first).type == m.shape(i).type;
      changed |= m.replace(i, same ? first : make(m, c, Opcode::Convert, {first}, {}, m.shape_id(i)));
    }
  return changed;
}

}  // namespace hlo
