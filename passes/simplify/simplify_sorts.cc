// simplify-sorts (xla/hlo/transforms/simplifiers/sort_simplifier.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

//   (k, v) sort(K, V) whose v nobody uses      →      sort(K) (xla/hlo/transforms/simplifiers/sort_simplifier.cc)
bool run_simplify_sorts(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Sort)) return false;
  std::vector<InstId> sorts;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::Sort && m.shape(i).is_tuple() && !m.is_root(i)) sorts.push_back(i);
  bool changed = false;
  for (InstId i : sorts) {
    size_t n = m.operand_count(i);
    CompId f = m.called(i)[0];
    std::vector<bool> used(n, false);
    bool plain = true;
    for (InstId user : m.users(i)) {
      if (m.op(user) != Opcode::GetTupleElement)
        plain = false;
      else
        used[static_cast<size_t>(m.attrs(user).integer(Attr::index))] = true;
    }
    for (size_t k = 0; k < n; ++k)
      if (!m.users(m.comp(f).params[2 * k]).empty() || !m.users(m.comp(f).params[2 * k + 1]).empty()) used[k] = true;
    if (!plain || std::all_of(used.begin(), used.end(), [](bool b) { return b; }) ||
        !ctx.spend(m, "unused sort operands", {i}))
      continue;
    // A comparator without the parameters of the dropped operands.
    std::unordered_map<InstId, InstId> map;
    CompId g = m.add_computation(std::string(m.comp_name(f)) + ".clone");
    std::vector<InstId> ops;
    std::vector<ShapeId> shapes;
    std::vector<int64_t> index(n, -1);
    for (size_t k = 0; k < n; ++k) {
      if (!used[k]) continue;
      index[k] = static_cast<int64_t>(ops.size());
      for (size_t s = 0; s < 2; ++s) {
        InstId p = m.comp(f).params[2 * k + s];
        map[p] = m.parameter(g, static_cast<int64_t>(2 * ops.size() + s), m.shape_id(p),
                             fmt::format("p.{}.{}", ops.size(), s ? "rhs" : "lhs"));
      }
      ops.push_back(m.operand(i, k));
      shapes.push_back(m.shape(i).elements[k]);
    }
    for (InstId b : m.post_order(f)) {
      if (m.op(b) == Opcode::Parameter) continue;
      std::vector<InstId> args;
      for (InstId o : m.operands(b)) args.push_back(map.at(o));
      map[b] = m.clone_inst(b, g, args);
    }
    m.set_root(g, map.at(m.comp(f).root));
    InstId sort = m.clone_inst(i, m.parent(i), ops, shapes.size() == 1 ? shapes[0] : m.u().tuple(shapes));
    m.replace_called(sort, f, g);
    // What stays is taken out once each, also what only the comparator looks at.
    std::vector<InstId> parts{sort};
    if (ops.size() > 1) {
      parts.clear();
      for (size_t k = 0; k < ops.size(); ++k) parts.push_back(make_element(m, sort, static_cast<int64_t>(k)));
    }
    for (InstId user : m.users_copy(i)) {
      size_t k = static_cast<size_t>(m.attrs(user).integer(Attr::index));
      m.replace_all_uses(user, parts[static_cast<size_t>(index[k])]);
      m.remove(user);
    }
    if (m.users(i).empty()) m.remove_with_unused_operands(i);
    changed = true;
  }
  return changed;
}

}  // namespace hlo
