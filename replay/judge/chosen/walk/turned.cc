#include "replay/judge/chosen/walk/turned.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "ir/eval/kernels.h"

namespace hlo {
namespace {

using Parts = std::vector<std::vector<Expressions::Part>>;

// One operand that has the result's dimensions, by what its elements are elements of.
struct Moved {
  int64_t offset = 0;
  ExprId base = kNoExpr;
  Parts parts;
};

size_t arrays_of(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Concatenate:
      return m.operand_count(i);
    case Opcode::DynamicUpdateSlice:
      return 2;
    case Opcode::Pad:
    case Opcode::DynamicSlice:
      return 1;
    default:
      return 0;
  }
}

bool has_elements(const Shape& s) { return s.is_array() && !s.is_dynamic() && s.elements_count() > 0; }

// The order of dimensions, the outermost first, by the operands' steps; empty where these tell none.
std::vector<size_t> order_of(const Expressions& all, const Module& m, InstId i, const std::vector<ExprId>& operands,
                             size_t arrays, std::vector<Moved>* moved) {
  const auto rank = static_cast<size_t>(m.shape(i).rank());
  for (size_t k = 0; k < arrays; ++k) {
    const Shape& s = m.shape(m.operand(i, k));
    Moved one;
    if (!has_elements(s) || s.dims.size() != rank || s.type != m.shape(i).type ||
        !all.parts(operands[k], s.dims, &one.offset, &one.base, &one.parts))
      return {};
    moved->push_back(std::move(one));
  }
  auto steps = [&](size_t d) {
    Dims out;
    for (const Moved& x : *moved) out.push_back(x.parts[d].empty() ? 0 : std::abs(x.parts[d][0].step));
    return out;
  };
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return steps(a) > steps(b); });
  return order;
}

// Those that say what it computes.
AttrSet own_attributes(const Module& m, InstId i) {
  AttrSet a = m.attrs(i);
  for (const Attr other :
       {Attr::sharding, Attr::frontend_attributes, Attr::backend_config, Attr::origin, Attr::statistics})
    a.erase(other);
  return a;
}

AttrSet turned_attributes(const Module& m, InstId i, const std::vector<size_t>& order) {
  AttrSet a = own_attributes(m, i);
  auto turn = [&](const auto& list) {
    auto out = list;
    for (size_t d = 0; d < order.size(); ++d) out[d] = list[order[d]];
    return out;
  };
  if (const auto* v = a.get<std::vector<PaddingDim>>(Attr::padding)) a.set(Attr::padding, turn(*v));
  if (const auto* v = a.get<Dims>(Attr::dynamic_slice_sizes)) a.set(Attr::dynamic_slice_sizes, turn(*v));
  if (m.op(i) != Opcode::Concatenate) return a;
  const auto place = std::find(order.begin(), order.end(), static_cast<size_t>(a.ints(Attr::dimensions)[0]));
  a.set(Attr::dimensions, Dims{place - order.begin()});
  return a;
}

Dims turned(const Dims& dims, const std::vector<size_t>& order) {
  Dims out;
  for (size_t d : order) out.push_back(dims[d]);
  return out;
}

std::optional<TurnedForm> turned_iota(Expressions& all, const Module& m, InstId i) {
  const Shape& s = m.shape(i);
  if (!has_elements(s) || s.rank() < 2) return {};
  const auto along = static_cast<size_t>(m.attrs(i).integer(Attr::iota_dimension));
  AttrSet a = own_attributes(m, i);
  a.set(Attr::iota_dimension, int64_t{0});
  TurnedForm form;
  form.inst = all.made(m.universe(), Opcode::Iota, m.u().array(s.type, {s.dims[along]}), {}, a, &form.m);
  form.order.sizes = s.dims, form.order.steps.assign(s.dims.size(), 0);
  form.order.steps[along] = 1;
  return form;
}

}  // namespace

std::optional<TurnedForm> turned_form(Expressions& all, const Module& m, InstId i,
                                      const std::vector<ExprId>& operands) {
  if (m.op(i) == Opcode::Iota) return turned_iota(all, m, i);
  const size_t arrays = arrays_of(m, i);
  const Shape& out = m.shape(i);
  if (!arrays || operands.size() != m.operand_count(i) || !has_elements(out)) return {};
  const bool starts = m.op(i) == Opcode::DynamicSlice || m.op(i) == Opcode::DynamicUpdateSlice;
  if (starts && operands.size() != arrays + out.dims.size()) return {};  // indices as one vector
  std::vector<Moved> moved;
  const std::vector<size_t> order = order_of(all, m, i, operands, arrays, &moved);
  if (std::is_sorted(order.begin(), order.end())) return {};
  TurnedForm form;
  std::vector<ShapeId> shapes;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape& s = m.shape(m.operand(i, k));
    if (k >= arrays) {
      const size_t from = starts ? arrays + order[k - arrays] : k;
      form.operands.push_back(operands[from]), shapes.push_back(m.shape_id(m.operand(i, from)));
      continue;
    }
    Expr::View v;
    v.offset = moved[k].offset;
    for (size_t d : order)
      for (const Expressions::Part& p : moved[k].parts[d]) v.sizes.push_back(p.size), v.steps.push_back(p.step);
    shapes.push_back(m.u().array(s.type, turned(s.dims, order)));
    form.operands.push_back(all.view(moved[k].base, std::move(v), shapes.back()));
  }
  const Dims dims = turned(out.dims, order), strides = row_major_strides(dims);
  form.inst =
      all.made(m.universe(), m.op(i), m.u().array(out.type, dims), shapes, turned_attributes(m, i, order), &form.m);
  form.order.sizes = out.dims, form.order.steps.assign(order.size(), 0);
  for (size_t d = 0; d < order.size(); ++d) form.order.steps[order[d]] = strides[d];
  return form;
}

}  // namespace hlo
