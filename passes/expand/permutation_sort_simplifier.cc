// permutation_sort_simplifier (xla/hlo/transforms/expanders/permutation_sort_expander.cc).
#include "passes/rewrite.h"

namespace hlo {

//   sort(P, V) by P, a permutation      →      tuple(iota, scatter of V to P)
bool run_permutation_sort_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Sort)) {
    if (!m.shape(i).is_tuple() || m.shape(m.operand(i, 0)).rank() != 1) continue;
    // The comparator: first keys ascending.
    const Computation& less = m.comp(m.called(i)[0]);
    if (m.op(less.root) != Opcode::Compare || m.operand(less.root, 0) != less.params[0] ||
        m.operand(less.root, 1) != less.params[1] || u.text(m.attrs(less.root).text(Attr::direction)) != "LT")
      continue;
    // The keys: what another sort made of an iota.
    InstId keys = m.operand(i, 0);
    if (m.op(keys) != Opcode::GetTupleElement || m.op(m.operand(keys, 0)) != Opcode::Sort ||
        !is_integral(m.shape(keys).type))
      continue;
    InstId made = m.operand(m.operand(keys, 0), static_cast<size_t>(m.attrs(keys).integer(Attr::index)));
    if (m.op(made) != Opcode::Iota) continue;
    if (!ctx.spend(m, "sort by a permutation", {i})) return changed;
    CompId c = m.parent(i);
    std::vector<InstId> parts{make(m, c, Opcode::Iota, {},
                                   attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}), m.shape_id(keys))};
    for (size_t k = 1; k < m.operand_count(i); ++k) {
      InstId v = m.operand(i, k);
      CompId replace = m.add_computation("update_replace_computation");
      ShapeId scalar = u.scalar(m.shape(v).type);
      m.parameter(replace, 0, scalar, "scalar_lhs");
      m.set_root(replace, m.parameter(replace, 1, scalar, "scalar_rhs"));
      InstId zero = make_broadcast(m, c, make_scalar(m, c, m.shape(v).type, 0), {}, m.shape_id(v));
      InstId places = make_reshape(m, keys, {m.shape(keys).dims[0], 1});
      parts.push_back(make(m, c, Opcode::Scatter, {zero, places, v},
                           attrs_of(u, Opcode::Scatter,
                                    {{Attr::update_window_dims, Dims{}},
                                     {Attr::inserted_window_dims, Dims{0}},
                                     {Attr::scatter_dims_to_operand_dims, Dims{0}},
                                     {Attr::index_vector_dim, int64_t{1}},
                                     {Attr::unique_indices, true},
                                     {Attr::to_apply, replace}}),
                           m.shape_id(v)));
    }
    changed |= m.replace(i, make(m, c, Opcode::Tuple, parts));
  }
  return changed;
}

}  // namespace hlo
