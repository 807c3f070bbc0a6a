// Rules of gathers, scatters and what else is addressed by indices.
#include <algorithm>
#include <numeric>
#include <set>

#include "ir/base/checked.h"
#include "ir/inference/shape_inference.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "ir/verify/operation_rules.h"

namespace hlo {

void OperationRules::select_and_scatter() {
  window();
  const Window* w = a_.get<Window>(Attr::window);
  if (!w || static_cast<int>(w->dims.size()) != in(0).rank())
    return attribute("has a window of other dimensions than its operand");
  Dims source;
  for (size_t d = 0; d < w->dims.size(); ++d) {
    if (w->dims[d].stride < 1) return;
    if (!window_fits(w->dims[d], in(0).dims[d]))
      return attribute("has a window that does not fit into 63 bits in dimension {}", d);
    source.push_back(w->dims[d].output_size(in(0).dims[d]));
  }
  if (in(1).dims != source) shape("takes a source of {} elements a dimension, not {}", fmt::join(source, ","), text(1));
  if (in(2).rank()) return shape("starts with a scalar, not {}", text(2));
  const Computation& f = m_.comp(a_.comp(Attr::scatter));
  if (!settled_ || f.params.size() != 2) return;
  // What is there first and what comes to it: the initial value and the source.
  for (size_t k = 0; k < 2; ++k)
    if (!same_float_or_equal(m_.shape(f.params[k]).type, type(k ? 1 : 2)))
      return error_("calls", fmt::format("combines {} by {}, which takes {}", text(k ? 1 : 2),
                                         m_.comp_name(a_.comp(Attr::scatter)), text(f.params[k])));
}

bool OperationRules::batching(const Shape& operand, const Shape& idx, const Dims& of_operand, const Dims& of_indices,
                              int64_t ivd, const Dims& dropped, const Dims& mapped) {
  if (!sorted_unique(of_operand, operand.rank(), "the batching dimensions of the operand")) return false;
  if (!unique(of_indices, idx.rank(), "the batching dimensions of the indices")) return false;
  if (of_operand.size() != of_indices.size())
    return attribute("has {} and {} batching dimensions", of_operand.size(), of_indices.size()), false;
  if (overlap(of_operand, dropped) || overlap(of_operand, mapped))
    return attribute("uses a batching dimension otherwise"), false;
  if (has(of_indices, ivd)) return attribute("has index_vector_dim among its batching dimensions"), false;
  for (size_t k = 0; k < of_operand.size(); ++k)
    if (operand.dims[static_cast<size_t>(of_operand[k])] != idx.dims[static_cast<size_t>(of_indices[k])])
      return attribute("has batching dimensions of different sizes"), false;
  return true;
}

void OperationRules::gather() {
  const Shape &operand = in(0), &idx = in(1);
  const Dims &offset = a_.ints(Attr::offset_dims), &collapsed = a_.ints(Attr::collapsed_slice_dims),
             &map = a_.ints(Attr::start_index_map), &sizes = a_.ints(Attr::slice_sizes),
             &ob = a_.ints(Attr::operand_batching_dims), &sb = a_.ints(Attr::start_indices_batching_dims);
  int64_t ivd = a_.integer(Attr::index_vector_dim);
  if (!integral(idx.type)) return shape("takes integers as indices, not {}", text(1));
  int64_t rank = static_cast<int64_t>(offset.size()) + idx.rank() - (ivd == idx.rank() ? 0 : 1);
  if (!sorted_unique(offset, rank, "offset_dims") || !sorted_unique(collapsed, operand.rank(), "collapsed_slice_dims"))
    return;
  if (static_cast<int64_t>(map.size()) != vector_size(idx, ivd))
    return attribute("has {} entries in start_index_map for index vectors of {}", map.size(), vector_size(idx, ivd));
  if (!unique(map, operand.rank(), "start_index_map") || !batching(operand, idx, ob, sb, ivd, collapsed, map)) return;
  for (const Dims* d : {&collapsed, &ob})
    for (int64_t v : *d)
      if (sizes[static_cast<size_t>(v)] > 1)
        return attribute("drops dimension {} of slice size {}", v, sizes[static_cast<size_t>(v)]);
}

void OperationRules::scatter() {
  size_t n = m_.operand_count(i_) / 2;
  const Shape &operand = in(0), &idx = in(n);
  const Dims &window = a_.ints(Attr::update_window_dims), &inserted = a_.ints(Attr::inserted_window_dims),
             &map = a_.ints(Attr::scatter_dims_to_operand_dims), &ib = a_.ints(Attr::input_batching_dims),
             &sb = a_.ints(Attr::scatter_indices_batching_dims);
  int64_t ivd = a_.integer(Attr::index_vector_dim);
  if (!idx.is_array() || !integral(idx.type)) return shape("takes integers as indices, not {}", text(n));
  if (ivd < 0 || ivd > idx.rank()) return attribute("has no index_vector_dim {}", ivd);
  for (size_t k = 1; k < n; ++k)
    if (in(k).dims != operand.dims) return shape("scatters into arrays of different dimensions");
  for (size_t k = 0; k < n; ++k) {
    const Shape& updates = in(n + 1 + k);
    if (updates.type != in(k).type && !(is_float(updates.type) && is_float(in(k).type)))
      return shape("updates {} by {}", text(k), text(n + 1 + k));
    int64_t rank = static_cast<int64_t>(window.size()) + idx.rank() - (ivd == idx.rank() ? 0 : 1);
    if (updates.rank() != rank) return shape("takes updates of {} dimensions, not {}", rank, text(n + 1 + k));
    // layout_normalization leaves windows in any order; scatter_simplifier, a few passes on, sorts them. A module with
    // bitcasts is one behind the assignment of layouts, where that is.
    bool in_order = settled_ && !m_.count(Opcode::Bitcast) ? sorted_unique(window, updates.rank(), "update_window_dims")
                                                           : unique(window, updates.rank(), "update_window_dims");
    if (!in_order || !sorted_unique(inserted, operand.rank(), "inserted_window_dims")) return;
    if (static_cast<int64_t>(window.size() + inserted.size() + ib.size()) != operand.rank())
      return attribute("has windows of {} dimensions for an operand of {}", window.size() + inserted.size() + ib.size(),
                       operand.rank());
    if (static_cast<int64_t>(map.size()) != vector_size(idx, ivd))
      return attribute("has {} entries in scatter_dims_to_operand_dims for index vectors of {}", map.size(),
                       vector_size(idx, ivd));
    if (!unique(map, operand.rank(), "scatter_dims_to_operand_dims") ||
        !batching(operand, idx, ib, sb, ivd, inserted, map))
      return;
    size_t w = 0;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      if (has(inserted, d) || has(ib, d)) continue;
      int64_t size = updates.dims[static_cast<size_t>(window[w++])];
      if (size > operand.dims[static_cast<size_t>(d)])
        return shape("updates {} elements of dimension {} of {}", size, d, text(size_t{0}));
    }
    size_t s = 0;
    for (int64_t d = 0; d < updates.rank(); ++d) {
      if (has(window, d)) continue;
      if (static_cast<int64_t>(s) == ivd) ++s;
      if (s < idx.dims.size() && updates.dims[static_cast<size_t>(d)] != idx.dims[s])
        return shape("has {} updates for {} indices in dimension {}", updates.dims[static_cast<size_t>(d)], idx.dims[s],
                     d);
      ++s;
    }
  }
  reducer_of_scatter(n);
}

}  // namespace hlo
