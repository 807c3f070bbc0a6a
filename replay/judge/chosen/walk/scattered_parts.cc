#include "replay/judge/chosen/walk/scattered_parts.h"

#include <algorithm>

#include "replay/judge/values/canonical.h"

namespace hlo {
namespace {

bool is_scatter(const Expr& x) {
  return x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Scatter && x.operands.size() == 3;
}

Dims coordinates(int64_t element, const Dims& dims) {
  Dims out(dims.size());
  for (size_t d = dims.size(); d-- > 0; element /= dims[d]) out[d] = element % dims[d];
  return out;
}

}  // namespace

bool scatters_alike(const Expr& local, const Expr& whole, const DeviceMessage& part, std::vector<Dims>* starts) {
  if (!is_scatter(local) || !is_scatter(whole)) return false;
  const AttrSet &a = local.m->attrs(local.inst), &b = whole.m->attrs(whole.inst);
  for (const Attr k : {Attr::update_window_dims, Attr::inserted_window_dims, Attr::scatter_dims_to_operand_dims})
    if (a.ints(k) != b.ints(k)) return false;
  if (a.integer(Attr::index_vector_dim) != b.integer(Attr::index_vector_dim) ||
      !a.ints(Attr::input_batching_dims).empty() || !b.ints(Attr::input_batching_dims).empty())
    return false;
  Canonical now(*local.m), before(*whole.m);
  if (now.computation(local.m->called(local.inst)[0]) != before.computation(whole.m->called(whole.inst)[0]))
    return false;
  const auto in = [](const Expr& x, size_t k) -> const Shape& { return x.m->shape(x.m->operand(x.inst, k)); };
  for (size_t k = 0; k < 3; ++k)
    if (in(local, k).type != in(whole, k).type || (k && in(local, k).dims != in(whole, k).dims)) return false;
  // What is less than 0 must not come back from above.
  if (type_bits(in(local, 1).type) < 32) return false;
  const Dims &own = in(local, 0).dims, &all = in(whole, 0).dims;
  if (own.size() != all.size()) return false;
  const Dims &inserted = a.ints(Attr::inserted_window_dims), &map = a.ints(Attr::scatter_dims_to_operand_dims);
  starts->clear();
  for (size_t device = 0; device < part.starts.size(); ++device) {
    const DeviceMessage::Element first = part.element(static_cast<int64_t>(device), 0);
    if (first.element < 0) return false;
    starts->push_back(coordinates(first.element, all));
    for (size_t d = 0; d < own.size(); ++d) {
      const auto at = static_cast<int64_t>(d);
      const bool divided = own[d] != all[d] || starts->back()[d] != 0;
      if (divided && (std::find(inserted.begin(), inserted.end(), at) == inserted.end() ||
                      std::find(map.begin(), map.end(), at) == map.end()))
        return false;
    }
    if (!is_box(part, static_cast<int64_t>(device), own, all)) return false;
  }
  return !starts->empty();
}

}  // namespace hlo
