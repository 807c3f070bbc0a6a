// zero_sized_hlo_elimination (xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.cc).
#include "passes/rewrite.h"

namespace hlo {

bool run_zero_sized(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i)) continue;
      const Shape& s = m.shape(i);
      if (!s.is_array() || s.is_dynamic() || s.elements_count() != 0 || m.op(i) == Opcode::Constant ||
          m.has_side_effect(i))
        continue;
      bool parameter = m.op(i) == Opcode::Parameter;
      if (m.has_control(i) || (parameter && m.users(i).empty() && !m.is_root(i))) continue;
      if (parameter && m.is_root(i)) continue;
      if (!ctx.spend(m, "array without elements", {i})) return changed;
      Literal empty;
      empty.shape = m.shape_id(i);
      InstId constant = m.constant(c, std::move(empty));
      //   f32[0,4] add(a, b)      →      f32[0,4] constant({})
      if (parameter)
        m.replace_all_uses(i, constant);
      else
        m.replace(i, constant);
      changed = true;
    }
  return changed;
}

}  // namespace hlo
