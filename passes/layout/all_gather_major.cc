// all-gather-major-dimension-rewriter (xla/service/gpu/transforms/collectives/all_gather_major_dimension_rewriter.cc).
#include "passes/layout/physical.h"

namespace hlo {
namespace {

// The dimensions, minor first, with a further one behind `behind`, which is numbered `place`.
Dims with_gathered(const Dims& minor_to_major, int64_t behind, int64_t place) {
  Dims out;
  for (int64_t d : minor_to_major) {
    out.push_back(d + (d >= place ? 1 : 0));
    if (d == behind) out.push_back(place);
  }
  return out;
}

bool between_copies(const Module& m, InstId i) {
  return m.op(i) == Opcode::AllGather && m.operand_count(i) == 1 && m.op(m.operand(i, 0)) == Opcode::Copy &&
         m.user_count(m.operand(i, 0)) == 1 && m.user_count(i) == 1 && m.op(m.users(i)[0]) == Opcode::Copy &&
         m.shape(i).is_array() && !m.shape(i).is_dynamic() && m.shape(i).rank() > 0 && !m.is_root(i);
}

}  // namespace

//   copy({1,0} all-gather({0,1} copy(A)), dimensions={1})      →
//   bitcast(copy({2,0,1} bitcast(all-gather(A), dimensions={0})))
bool run_all_gather_major_dimension_rewriter(Module& m, PassContext& ctx) {
  Universe& u = m.u();
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::AllGather)) {
    if (!between_copies(m, i)) continue;
    const InstId from = m.operand(m.operand(i, 0), 0), out = m.users(i)[0];
    const Shape in = m.shape(from), to = m.shape(out), all = m.shape(i);
    if (!in.has_layout || !to.has_layout || in.type != to.type || in.has_zero() ||
        in.dims != m.shape(m.operand(i, 0)).dims || m.has_control(out))
      continue;
    const Dims dims = m.attrs(i).ints(Attr::dimensions);
    if (dims.size() != 1) continue;
    const auto gathered = static_cast<size_t>(dims[0]);
    const int64_t shards = all.dims[gathered] / in.dims[gathered], major = in.layout.minor_to_major.back();
    if (!ctx.spend(m, "all-gather along the major dimension", {i})) return changed;
    Shape whole = in;
    whole.dims[static_cast<size_t>(major)] *= shards;
    const InstId gather = m.clone_inst(i, m.parent(i), std::vector<InstId>{from}, u.shape(whole));
    m.set_attr(gather, Attr::dimensions, Dims{major});
    Dims apart = in.dims;
    apart.insert(apart.begin() + major, shards);
    auto shape = [&](const Dims& minor_to_major) { return u.with_layout(u.array(to.type, apart), minor_to_major); };
    const InstId pieces = bitcast_to(m, gather, shape(with_gathered(in.layout.minor_to_major, major, major)));
    const InstId moved = make(m, m.parent(i), Opcode::Copy, {pieces}, {},
                              shape(with_gathered(to.layout.minor_to_major, dims[0], major)));
    changed = true;
    m.replace(out, bitcast_to(m, moved, m.shape_id(out)), {.relay_control = true});
  }
  return changed;
}

}  // namespace hlo
