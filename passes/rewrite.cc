#include "passes/rewrite.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ir/inference/shape_inference.h"
#include "ir/marks.h"

namespace hlo {

void visit_computation(Module& m, CompId comp, const std::function<void(InstId)>& f) {
  std::vector<InstId> roots;
  InstId root = m.comp(comp).root;
  for (InstId i : m.live_order(comp))
    if (i != root && m.users(i).empty() && m.control_succs(i).empty()) roots.push_back(i);
  constexpr uint32_t kOpen = 1, kDone = 2;
  Marks state(m.inst_slots());
  for (size_t k = 0; k <= roots.size(); ++k) {
    // The root that the computation has by then.
    InstId start = k < roots.size() ? roots[k] : m.comp(comp).root;
    if (!m.alive(start) || state[start] == kDone) continue;
    std::vector<InstId> stack{start};
    while (!stack.empty()) {
      InstId i = stack.back();
      const uint32_t s = state[i];
      if (s == kDone || !m.alive(i)) {
        stack.pop_back();
        continue;
      }
      if (s == kOpen) {
        stack.pop_back();
        state.set(i, kDone);
        f(i);
        continue;
      }
      state.set(i, kOpen);
      size_t first = stack.size();
      for (InstId o : m.operands(i))
        if (!state[o]) stack.push_back(o);
      for (InstId p : m.control_preds(i))
        if (!state[p]) stack.push_back(p);
      std::reverse(stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
    }
  }
}

bool visit_until_still(Module& m, const std::function<bool(InstId)>& f) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (bool more = true; more;) {
      more = false;
      visit_computation(m, c, [&](InstId i) { more |= f(i); });
      changed |= more;
    }
  return changed;
}

AttrsId attrs_of(Universe& u, Opcode op, std::initializer_list<std::pair<Attr, AttrValue>> list) {
  AttrSet set;
  set.op = op;
  for (const auto& [key, value] : list) set.set(key, value);
  return u.attrs(std::move(set));
}

namespace {
// What a reduction keeps lies in the order in which it lay.
ShapeId as_it_lay(Module& m, const Shape& operand, const Dims& gone, ShapeId result) {
  Dims place(operand.dims.size(), -1), order;
  int64_t next = 0;
  for (size_t d = 0; d < place.size(); ++d)
    if (!contains(gone, static_cast<int64_t>(d))) place[d] = next++;
  for (int64_t d : operand.layout.minor_to_major)
    if (place[static_cast<size_t>(d)] >= 0) order.push_back(place[static_cast<size_t>(d)]);
  return order.size() == m.u()[result].dims.size() ? m.u().with_layout(result, std::move(order)) : result;
}

Module::NewInst described(Module& m, Opcode op, std::vector<InstId>&& operands, AttrsId attrs, ShapeId shape) {
  if (!shape.valid()) {
    Inferred inferred = infer_shape(m, op, operands, m.u()[attrs]);
    HLO_CHECK(inferred.shape.valid(), "{}: {}", op_text(op), inferred.error);
    shape = inferred.shape;
    if (op == Opcode::Reduce && m.u()[shape].is_array())
      shape = as_it_lay(m, m.shape(operands[0]), m.u()[attrs].ints(Attr::dimensions), shape);
  }
  return {.op = op, .shape = shape, .operands = std::move(operands), .attrs = attrs};
}
}  // namespace

InstId make(Module& m, CompId comp, Opcode op, std::vector<InstId> operands, AttrsId attrs, ShapeId shape) {
  return m.add(comp, described(m, op, std::move(operands), attrs, shape));
}

InstId make_derived(Module& m, InstId from, Opcode op, std::vector<InstId> operands, AttrsId attrs, ShapeId shape) {
  return m.add_derived(from, described(m, op, std::move(operands), attrs, shape));
}

InstId make_scalar(Module& m, CompId comp, ElementType type, ScalarValue value) {
  return m.add(comp,
               {.op = Opcode::Constant, .shape = m.u().scalar(type), .payload = m.scalar_literal(type, value).value});
}

InstId make_scalar_like(Module& m, InstId like, ScalarValue value) {
  const Shape s = m.shape(like);
  InstId c = m.add_derived(
      like, {.op = Opcode::Constant, .shape = m.u().scalar(s.type), .payload = m.scalar_literal(s.type, value).value});
  if (s.rank() == 0) return c;
  return m.add_derived(like, {.op = Opcode::Broadcast,
                              .shape = m.shape_id(like),
                              .operands = {c},
                              .attrs = dims_attr(m.u(), Opcode::Broadcast, {})});
}

InstId make_broadcast(Module& m, CompId comp, InstId operand, Dims map, ShapeId shape) {
  return m.add(comp, {.op = Opcode::Broadcast,
                      .shape = shape,
                      .operands = {operand},
                      .attrs = dims_attr(m.u(), Opcode::Broadcast, std::move(map))});
}

InstId make_reshape(Module& m, InstId operand, Dims dims) {
  return m.add_derived(
      operand,
      {.op = Opcode::Reshape, .shape = m.u().with_dims(m.shape_id(operand), std::move(dims)), .operands = {operand}});
}

InstId make_transpose(Module& m, InstId operand, Dims permutation) {
  AttrsId attrs = dims_attr(m.u(), Opcode::Transpose, std::move(permutation));
  return make_derived(m, operand, Opcode::Transpose, {operand}, attrs);
}

InstId make_convert(Module& m, InstId operand, ElementType type) {
  if (m.shape(operand).type == type) return operand;
  return m.add(m.parent(operand),
               {.op = Opcode::Convert, .shape = m.u().with_type(m.shape_id(operand), type), .operands = {operand}});
}

InstId make_element(Module& m, InstId tuple, int64_t index) {
  return m.add(m.parent(tuple), {.op = Opcode::GetTupleElement,
                                 .shape = m.shape(tuple).elements[static_cast<size_t>(index)],
                                 .operands = {tuple},
                                 .attrs = attrs_of(m.u(), Opcode::GetTupleElement, {{Attr::index, index}})});
}

std::vector<InstId> all_of_opcode(Module& m, Opcode op) {
  return all_of_opcode(m, op, [](InstId) { return true; });
}

std::vector<InstId> all_of_opcode(Module& m, Opcode op, const std::function<bool(InstId)>& fits) {
  std::vector<InstId> out;
  if (!m.count(op)) return out;
  // Most computations have none, and need no order; where none of them has, they need none among them.
  auto has_some = [&](CompId c) {
    const std::vector<InstId>& made = m.comp(c).order;
    return std::any_of(made.begin(), made.end(), [&](InstId i) { return m.alive(i) && m.op(i) == op && fits(i); });
  };
  const std::vector<CompId> all = m.computations();
  if (std::none_of(all.begin(), all.end(), has_some)) return out;
  for (CompId c : m.nonfusion_computations()) {
    if (!has_some(c)) continue;
    for (InstId i : m.post_order(c))
      if (m.op(i) == op && !m.has_control(i) && fits(i)) out.push_back(i);
  }
  return out;
}

CompId make_reducer(Module& m, std::string_view name, Opcode op, ElementType type, std::string_view lhs,
                    std::string_view rhs) {
  CompId c = m.add_computation(name);
  ShapeId scalar = m.u().scalar(type);
  InstId a = m.parameter(c, 0, scalar, lhs), b = m.parameter(c, 1, scalar, rhs);
  m.set_root(c, m.add(c, {.op = op, .shape = scalar, .operands = {a, b}}));
  return c;
}

bool is_constant(const Module& m, InstId id) { return m.op(id) == Opcode::Constant; }
bool is_scalar_constant(const Module& m, InstId id) { return is_constant(m, id) && m.shape(id).is_effective_scalar(); }
bool is_broadcast_of_constant(const Module& m, InstId id) {
  return m.op(id) == Opcode::Broadcast && is_constant(m, m.operand(id, 0));
}
bool is_broadcast_of_scalar_constant(const Module& m, InstId id) {
  return m.op(id) == Opcode::Broadcast && is_constant(m, m.operand(id, 0)) && m.shape(m.operand(id, 0)).rank() == 0;
}

bool is_all(const Module& m, InstId id, double value) {
  while (m.op(id) == Opcode::Broadcast) id = m.operand(id, 0);
  if (!is_constant(m, id)) return false;
  const Literal& lit = m.literal(id);
  const Shape& s = m.u()[lit.shape];
  if (lit.elided || !s.is_array() || !s.elements_count()) return false;
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  for (size_t at = 0; at + width <= lit.bytes.size(); at += width) {
    const char* p = lit.bytes.data() + at;
    if (is_complex(s.type)) {
      if (load_complex(s.type, p) != value) return false;
    } else if (load_double(s.type, p) != value) {
      return false;
    }
  }
  return true;
}

Dims inverse_permutation(const Dims& p) {
  Dims out(p.size());
  for (size_t i = 0; i < p.size(); ++i) out[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
  return out;
}

bool is_identity(const Dims& p) {
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<std::pair<int64_t, int64_t>> unmodified_dims(const Dims& from, const Dims& to) {
  std::vector<std::pair<int64_t, int64_t>> out;
  auto bounds = common_factors(from, to);
  for (size_t k = 0; k + 1 < bounds.size(); ++k)
    if (bounds[k + 1].first - bounds[k].first == 1 && bounds[k + 1].second - bounds[k].second == 1)
      out.push_back({static_cast<int64_t>(bounds[k].first), static_cast<int64_t>(bounds[k].second)});
  return out;
}

namespace {
// Strides in elements by logical dimension.
Dims physical_strides(const Shape& s) {
  Dims strides(s.dims.size());
  int64_t stride = 1;
  for (int64_t d : s.layout.minor_to_major)
    strides[static_cast<size_t>(d)] = stride, stride *= s.dims[static_cast<size_t>(d)];
  return strides;
}
}  // namespace

bool reshape_is_bitcast(const Universe& u, ShapeId from_id, ShapeId to_id) {
  const Shape &from = u[from_id], &to = u[to_id];
  if (from.elements_count() == 0 || from.elements_count() == 1) return true;
  // How large an element is says nothing about where it lies.
  auto tiles = [](const Shape& x) { return x.layout.rest.starts_with("E(") ? std::string() : x.layout.rest; };
  if (tiles(from) != tiles(to) || from.layout.rest.starts_with("T(")) return from_id == to_id;
  // Every element of a common factor must lie at the same place: compare strides group by group.
  Dims fs = physical_strides(from), ts = physical_strides(to);
  auto bounds = common_factors(from.dims, to.dims);
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    // Both sides as lists of (size, stride) with ones removed and contiguous neighbours merged.
    auto merged = [](const Shape& s, const Dims& strides, size_t first, size_t last) {
      std::vector<std::pair<int64_t, int64_t>> list;
      for (size_t i = first; i < last; ++i) {
        if (s.dims[i] == 1) continue;
        if (!list.empty() && list.back().second == strides[i] * s.dims[i])
          list.back() = {list.back().first * s.dims[i], strides[i]};
        else
          list.push_back({s.dims[i], strides[i]});
      }
      return list;
    };
    if (merged(from, fs, bounds[k].first, bounds[k + 1].first) !=
        merged(to, ts, bounds[k].second, bounds[k + 1].second))
      return false;
  }
  return true;
}

bool transpose_is_bitcast(const Universe& u, ShapeId from_id, ShapeId to_id, const Dims& permutation) {
  const Shape &from = u[from_id], &to = u[to_id];
  auto tiles = [](const Shape& x) { return x.layout.rest.starts_with("E(") ? std::string() : x.layout.rest; };
  if (!tiles(from).empty() || !tiles(to).empty()) return false;
  Dims fs = physical_strides(from), ts = physical_strides(to);
  for (size_t i = 0; i < permutation.size(); ++i)
    if (to.dims[i] != 1 && ts[i] != fs[static_cast<size_t>(permutation[i])]) return false;
  return true;
}

}  // namespace hlo
