#include "ir/analysis/fusion/reduction.h"

#include <algorithm>

namespace hlo {
namespace {

Dims kept_dims(const Shape& in, const Dims& reduced) {
  Dims kept;
  for (int64_t d = 0; d < in.rank(); ++d)
    if (!contains(reduced, d)) kept.push_back(d);
  return kept;
}

Dims order_of(const Shape& s) {
  return s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                         : default_minor_to_major(s.rank());
}

// One behind the other in memory, in whichever order.
bool consecutive(const Shape& s, const Dims& dims) {
  if (dims.empty()) return true;
  const Dims order = order_of(s);
  size_t first = order.size(), last = 0;
  for (size_t k = 0; k < order.size(); ++k)
    if (contains(dims, order[k])) first = std::min(first, k), last = std::max(last, k);
  return last - first + 1 == dims.size();
}

// Sizes in front of the group, of the group and behind it, major to minor.
std::array<int64_t, 3> around(const Shape& s, const Dims& group) {
  std::array<int64_t, 3> sizes = {1, 1, 1};
  size_t part = 2;
  for (int64_t d : order_of(s)) {
    const bool inside = contains(group, d);
    if ((part == 2 && inside) || (part == 1 && !inside)) --part;
    sizes[part] *= s.dims[static_cast<size_t>(d)];
  }
  return sizes;
}

bool worth_a_kernel(const ReductionShape& r, int64_t warp) {
  const int64_t d1 = r.dims[1], d2 = r.dims[2];
  if (r.row) return d2 >= warp || (d2 > 0 && warp % d2 == 0);
  return !(d1 < warp || (d1 < 2 * warp && d2 < warp) || (d1 < 4 * warp && d2 < 8) || (d1 < 8 * warp && d2 < 3));
}

ReductionShape shape_of(const Shape& in, const Dims& reduced) {
  const Dims kept = kept_dims(in, reduced);
  if (kept.empty()) return {true, {1, 1, in.elements_count()}};
  if (consecutive(in, kept)) {
    const auto s = around(in, kept);
    if (s[1] == 1) return {true, {1, 1, s[0] * s[2]}};
    if (s[2] == 1) return {false, {1, s[0], s[1]}};
    return {true, s};
  }
  const auto s = around(in, reduced);
  if (s[2] == 1) return {true, {1, s[0], s[1]}};
  return {false, s};
}

}  // namespace

ReductionShape reduction_shape(const Module& m, InstId reduce) {
  return shape_of(m.shape(m.operand(reduce, 0)), m.attrs(reduce).ints(Attr::dimensions));
}

std::optional<ReductionShape> kernel_reduction(const Shape& in, const Dims& reduced, int64_t threads_per_warp) {
  if (!in.is_array() || (!consecutive(in, kept_dims(in, reduced)) && !consecutive(in, reduced))) return std::nullopt;
  const ReductionShape r = shape_of(in, reduced);
  return worth_a_kernel(r, threads_per_warp) ? std::optional(r) : std::nullopt;
}

bool is_kernel_reduction(const Module& m, InstId i, const GpuTarget& target) {
  return m.op(i) == Opcode::Reduce &&
         kernel_reduction(m.shape(m.operand(i, 0)), m.attrs(i).ints(Attr::dimensions), target.threads_per_warp);
}

bool is_race_free(const ReductionShape& r) {
  return r.row ? r.dims[2] <= kMostRow && r.dims[0] <= kMostRowBatch : r.dims[1] <= kMostColumn;
}

}  // namespace hlo
