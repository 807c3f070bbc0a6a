#include "replay/judge/chosen/walk/in_order.h"

#include <algorithm>
#include <numeric>

#include "ir/eval/kernels.h"
#include "replay/judge/chosen/elements/terms.h"

namespace hlo {
namespace {

bool is_identity(const Expr::View& order) {
  int64_t step = 1;
  for (size_t k = order.sizes.size(); k-- > 0; step *= order.sizes[k])
    if (order.sizes[k] != 1 && order.steps[k] != step) return false;
  return true;
}

// Are all operands of the result's dimensions, or scalars?
bool fits(const Module& m, InstId i, const std::vector<ExprId>& operands) {
  const Shape& out = m.shape(i);
  if (!op_info(m.op(i)).elementwise || !m.called(i).empty() || !out.is_array() || out.is_dynamic() || !out.rank() ||
      !out.elements_count() || operands.empty() || operands.size() != m.operands(i).size())
    return false;
  for (InstId o : m.operands(i)) {
    const Shape& s = m.shape(o);
    if (!s.is_array() || s.is_dynamic() || (s.rank() && s.dims != out.dims)) return false;
  }
  return true;
}

}  // namespace

std::optional<ElementwiseForm> elementwise_form(Expressions& all, const Module& m, InstId i,
                                                const std::vector<ExprId>& operands) {
  if (!fits(m, i, operands)) return {};
  const Shape& out = m.shape(i);
  Terms t;
  std::vector<size_t> places;  // of the operands that are factors
  bool views = false;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!m.shape(m.operand(i, k)).rank()) continue;
    places.push_back(k), t.factors.push_back({operands[k], 0});
    views |= all[operands[k]].kind == Expr::kView;
  }
  if (!views) return {};
  const Dims strides = row_major_strides(out.dims);
  for (size_t d = 0; d < out.dims.size(); ++d)
    if (out.dims[d] != 1) t.kept.push_back({out.dims[d], Dims(places.size(), strides[d])});
  for (size_t f = 0; f < places.size(); ++f) {
    const Expr& x = all[t.factors[f].of];
    if (x.kind == Expr::kView) FactorMove(x.view.sizes, x.view.steps, x.view.offset).apply(&t, f, x.operands[0]);
  }
  // The order does not go by which operand is which: operands are swapped.
  std::vector<size_t> first(places.size());
  std::iota(first.begin(), first.end(), 0);
  auto number = [&](size_t f) { return std::pair(t.factors[f].of, t.factors[f].offset); };
  std::stable_sort(first.begin(), first.end(), [&](size_t a, size_t b) { return number(a) < number(b); });
  ElementwiseForm form;
  form.order = t.put_in_order(first);
  if (is_identity(form.order)) return {};
  form.operands = operands;
  for (const Terms::Part& p : t.kept) form.dims.push_back(p.size);
  for (size_t f = 0; f < places.size(); ++f) {
    Expr::View v;
    v.offset = t.factors[f].offset;
    for (const Terms::Part& p : t.kept) v.sizes.push_back(p.size), v.steps.push_back(p.steps[f]);
    const Shape& shape = m.shape(m.operand(i, places[f]));
    form.operands[places[f]] = all.view(t.factors[f].of, std::move(v), m.u().array(shape.type, form.dims));
  }
  return form;
}

std::optional<Expr::View> turned_back(const Expr::View& order) {
  std::vector<size_t> places;
  for (size_t k = 0; k < order.sizes.size(); ++k) {
    if (order.sizes[k] == 1) continue;
    if (order.steps[k] <= 0) return {};
    places.push_back(k);
  }
  std::sort(places.begin(), places.end(), [&](size_t a, size_t b) { return order.steps[a] > order.steps[b]; });
  const Dims strides = row_major_strides(order.sizes);
  Expr::View back;
  for (size_t k : places) back.sizes.push_back(order.sizes[k]), back.steps.push_back(strides[k]);
  int64_t step = 1;
  for (size_t k = places.size(); k-- > 0; step *= order.sizes[places[k]])
    if (order.steps[places[k]] != step) return {};
  return back;
}

}  // namespace hlo
