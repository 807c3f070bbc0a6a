// slice-sinker (xla/hlo/transforms/simplifiers/slice_sinker.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

//   add(slice(A), slice(B))  with other such pairs      →      slice(add(A, B)) (…/simplifiers/slice_sinker.cc)
bool run_slice_sinker(Module& m, PassContext& ctx) {
  bool changed = false;
  auto slices = [&](InstId i) { return *m.attrs(i).get<std::vector<SliceDim>>(Attr::slice); };
  for (CompId c : m.computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || !op_info(m.op(i)).elementwise || m.operand_count(i) == 0 || m.users(i).empty() ||
          m.op(i) == Opcode::Copy)
        continue;
      auto all_slices = [&](InstId x) {
        for (InstId o : m.operands(x)) {
          if (m.op(o) != Opcode::Slice || slices(o) != slices(m.operand(x, 0))) return false;
          if (m.shape(m.operand(o, 0)).dims != m.shape(m.operand(m.operand(x, 0), 0)).dims) return false;
        }
        return true;
      };
      if (!all_slices(i)) continue;
      InstId source = m.operand(m.operand(i, 0), 0);
      std::vector<InstId> group;
      int64_t elements = 0;
      for (InstId s : m.users_copy(source)) {
        if (m.op(s) != Opcode::Slice) continue;
        for (InstId u : m.users_copy(s)) {
          bool alike = m.op(u) == m.op(i) && m[u].attrs == m[i].attrs && m.shape(u).type == m.shape(i).type &&
                       m.operand_count(u) == m.operand_count(i) && !m.users(u).empty() && all_slices(u) &&
                       std::find(group.begin(), group.end(), u) == group.end();
          for (size_t k = 0; alike && k < m.operand_count(u); ++k)
            alike = m.operand(m.operand(u, k), 0) == m.operand(m.operand(i, k), 0);
          if (alike) group.push_back(u), elements += m.shape(u).elements_count();
        }
      }
      if (group.empty() || elements < m.shape(source).elements_count() || !ctx.spend(m, "slices sunk", {i})) continue;
      std::vector<InstId> sources;
      for (InstId o : m.operands(group[0])) sources.push_back(m.operand(o, 0));
      Shape s = m.shape(source);
      s.type = m.shape(i).type;
      InstId whole = m.clone_inst(group[0], c, sources, m.u().shape(std::move(s)));
      for (InstId u : group) {
        InstId piece = m.clone_inst(m.operand(u, 0), c, std::vector<InstId>{whole}, m.shape_id(u));
        m.replace_all_uses(u, piece);
      }
      changed = true;
    }
  return changed;
}

}  // namespace hlo
