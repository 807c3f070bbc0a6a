// stable-sort-expander (xla/hlo/transforms/expanders/stable_sort_expander.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// An operand that counts along the sorted dimension; -1 where there is none.
int64_t iota_operand(const Module& m, InstId sort, int64_t dim) {
  for (size_t k = 0; k < m.operand_count(sort); ++k) {
    InstId o = m.operand(sort, k);
    if (m.op(o) == Opcode::Iota && m.shape(o).type == ElementType::S32 &&
        m.attrs(o).integer(Attr::iota_dimension) == dim)
      return static_cast<int64_t>(k);
  }
  return -1;
}

// A copy of the comparator with the two sides of a further operand as parameters, made before the rest of it.
CompId with_sides(Module& m, CompId less, int64_t operand) {
  const CompId own = m.clone_computation(less, "clone");
  std::vector<InstId> order;
  for (int side = 0; side < 2; ++side)
    order.push_back(m.parameter(own, 2 * operand + side, m.u().scalar(ElementType::S32),
                                fmt::format("p.{}.{}.clone", operand, side ? "rhs" : "lhs")));
  const std::vector<InstId> all = m.comp(own).order;
  order.insert(order.end(), all.begin(), all.end() - 2);
  m.set_order(own, std::move(order));
  return own;
}

InstId counter(Module& m, InstId i, int64_t dim) {
  Universe& u = m.u();
  Shape s = m.shape(m.operand(i, 0));
  s.type = ElementType::S32;
  ShapeId shape = u.shape(std::move(s));
  return make(m, m.parent(i), Opcode::Iota, {}, attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, dim}}), shape);
}

// The sort with one more operand.
InstId with_operand(Module& m, InstId i, InstId more) {
  std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
  ops.push_back(more);
  std::vector<ShapeId> shapes;
  for (InstId o : ops) shapes.push_back(m.shape_id(o));
  if (m.shape(i).is_tuple())
    std::copy(m.shape(i).elements.begin(), m.shape(i).elements.end(), shapes.begin());
  else
    shapes[0] = m.shape_id(i);
  return m.clone_inst(i, m.parent(i), ops, m.u().tuple(shapes));
}

// Where neither side is less than the other, the operand `at` decides: the comparator again with both sides exchanged.
void break_ties(Module& m, CompId less, int64_t at) {
  Universe& u = m.u();
  std::unordered_map<InstId, InstId> map;
  const std::vector<InstId> params = m.comp(less).params;
  std::vector<InstId> order = m.post_order(less);
  InstId root = m.comp(less).root;
  for (InstId b : order) {
    if (m.op(b) == Opcode::Parameter || m.op(b) == Opcode::Constant) {
      map[b] = m.op(b) == Opcode::Constant ? b : params[static_cast<size_t>(m.parameter_number(b) ^ 1)];
      continue;
    }
    std::vector<InstId> args;
    for (InstId o : m.operands(b)) args.push_back(map.at(o));
    map[b] = m.clone_inst(b, less, args);
  }
  ShapeId pred = u.scalar(ElementType::Pred);
  auto compare = [&](InstId a, InstId b, const char* direction) {
    return make(m, less, Opcode::Compare, {a, b}, attrs_of(u, Opcode::Compare, {{Attr::direction, u.str(direction)}}),
                pred);
  };
  InstId same = compare(root, map.at(root), "EQ");
  InstId first = compare(params[static_cast<size_t>(2 * at)], params[static_cast<size_t>(2 * at + 1)], "LT");
  m.set_root(less, make(m, less, Opcode::Select, {same, first, root}, {}, pred));
}

// What readers of `i` see is what `sort` gives, but for the last.
void take_results(Module& m, InstId i, InstId sort) {
  const size_t n = m.operand_count(i);
  auto part = [&](size_t k) { return make_element(m, sort, static_cast<int64_t>(k)); };
  InstId to;
  if (m.shape(i).is_tuple()) {
    std::vector<InstId> parts;
    for (size_t k = 0; k < n; ++k) parts.push_back(part(k));
    to = make(m, m.parent(i), Opcode::Tuple, parts, {}, m.shape_id(i));
  } else {
    to = part(0);
  }
  m.replace(i, to);
}

}  // namespace

//   sort(K), is_stable=true, to_apply=less
//   →  sort(K, iota), to_apply=select(less(a, b) == less(b, a), i < j, less(a, b))
bool run_stable_sort_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Sort)) return false;
  std::vector<InstId> sorts;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c))
      if (m.op(i) == Opcode::Sort && m.attrs(i).flag(Attr::is_stable)) sorts.push_back(i);
  // Comparators that several operations share are copied before they change.
  std::unordered_map<CompId, size_t> uses;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i))
        for (CompId called : m.called(i)) ++uses[called];
  bool changed = false;
  for (InstId i : sorts) {
    int64_t dim = m.attrs(i).ints(Attr::dimensions)[0];
    const Shape& keys = m.shape(m.operand(i, 0));
    if (keys.dims[static_cast<size_t>(dim)] > INT32_MAX)
      fail(FailureKind::kUnsupported, "stable-sort-expander: {} sorts more than 2^31-1 elements", m.inst_name(i));
    if (!ctx.spend(m, "iota breaks ties", {i})) return changed;
    int64_t at = iota_operand(m, i, dim);
    size_t n = m.operand_count(i);
    CompId less = m.called(i)[0];
    InstId sort = i;
    if (at < 0) {
      InstId iota = counter(m, i, dim);
      CompId own = with_sides(m, less, static_cast<int64_t>(n));
      sort = with_operand(m, i, iota);
      m.replace_called(sort, less, own);
      --uses[less];
      less = own, at = static_cast<int64_t>(n);
    } else {
      if (uses[less]-- > 1) {
        CompId own = m.clone_computation(less, "clone");
        m.replace_called(sort, less, own);
        less = own;
      }
    }
    m.erase_attr(sort, Attr::is_stable);
    break_ties(m, less, at);
    if (sort != i) take_results(m, i, sort);
    changed = true;
  }
  return changed;
}

}  // namespace hlo
