// hlo-get-dimension-size-rewriter (xla/service/hlo_get_dimension_size_rewriter.cc).
#include "passes/rewrite.h"

namespace hlo {

//   get-dimension-size(A), dimensions={0} of a static array      →      constant
bool run_get_dimension_size_rewriter(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::GetDimensionSize)) return false;
  return each_instruction(m, [&](InstId i) {
    if (m.op(i) != Opcode::GetDimensionSize || m.has_control(i)) return false;
    const Shape& s = m.shape(m.operand(i, 0));
    if (s.is_dynamic()) {
      ctx.note(m, "dynamic dimension", {i}, "its size is not known before the program runs");
      return false;
    }
    if (!ctx.spend(m, "static size", {i})) return false;
    InstId c = make_scalar(m, m.parent(i), ElementType::S32,
                           static_cast<double>(s.dims[static_cast<size_t>(m.attrs(i).ints(Attr::dimensions)[0])]));
    return m.replace(i, c);
  });
}

}  // namespace hlo
