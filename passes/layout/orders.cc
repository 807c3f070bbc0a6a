#include "passes/layout/orders.h"

#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

uint32_t Orders::id(const Dims& order) {
  auto [at, fresh] = ids_.try_emplace(order, static_cast<uint32_t>(list_.size()));
  if (fresh) list_.push_back(order);
  return at->second;
}

namespace {
// Without dimensions of one element.
struct Squeezed {
  Dims dims, order, where;  // where: the dimension that each was
};
Squeezed squeezed(const Dims& dims, const Dims& order) {
  Squeezed s;
  std::vector<bool> kept;
  for (size_t k = 0; k < dims.size(); ++k) {
    kept.push_back(dims[k] != 1);
    if (dims[k] != 1) s.dims.push_back(dims[k]), s.where.push_back(static_cast<int64_t>(k));
  }
  s.order = order_of_kept(order, kept);
  return s;
}
}  // namespace

std::optional<Dims> aligned_order(const Dims& from, const Dims& order, const Dims& to, const Dims& like) {
  const Squeezed a = squeezed(from, order), b = squeezed(to, like);
  auto bounds = common_factors(a.dims, b.dims);
  std::vector<size_t> factor(a.dims.size());
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    size_t first = bounds[k].first, last = bounds[k + 1].first;
    if (first == last) continue;
    auto at = std::find(a.order.begin(), a.order.end(), static_cast<int64_t>(first));
    factor[first] = k;
    // The dimensions of a factor must lie together, in order.
    for (size_t d = first + 1; d < last; ++d) {
      if (at == a.order.begin() || *--at != static_cast<int64_t>(d)) return {};
      factor[d] = k;
    }
  }
  Dims out;
  for (size_t minor = 0; out.size() < b.dims.size();) {
    if (minor >= a.order.size()) return {};
    size_t k = factor[static_cast<size_t>(a.order[minor])];
    const auto &low = bounds[k], &high = bounds[k + 1];
    for (size_t d = high.second; d > low.second; --d) out.push_back(b.where[d - 1]);
    minor += high.first - low.first;
  }
  // Those of one element lie behind the dimension that they lie behind in `like`.
  Dims all;
  auto ones_behind = [&](auto at) {
    for (; at != like.end() && to[static_cast<size_t>(*at)] == 1; ++at) all.push_back(*at);
  };
  ones_behind(like.begin());
  for (int64_t d : out) {
    all.push_back(d);
    ones_behind(std::find(like.begin(), like.end(), d) + 1);
  }
  return all;
}

std::vector<bool> flags_of(const Dims& dims, size_t rank) {
  std::vector<bool> out(rank);
  for (int64_t d : dims) out[static_cast<size_t>(d)] = true;
  return out;
}

Dims order_of_kept(const Dims& order, const std::vector<bool>& kept) {
  Dims number(kept.size()), out;
  int64_t next = 0;
  for (size_t d = 0; d < kept.size(); ++d)
    if (kept[d]) number[d] = next++;
  for (int64_t d : order)
    if (kept[static_cast<size_t>(d)]) out.push_back(number[static_cast<size_t>(d)]);
  return out;
}

bool is_matrix_order(const Dims& order, const Dims& batch, const Dims& rows, const Dims& columns) {
  for (size_t k = 0; k < order.size();) {
    const Dims* group = nullptr;
    for (const Dims* g : {&rows, &columns, &batch})
      if (!group && !g->empty() && g->back() == order[k]) group = g;
    if (!group || (group == &batch && k == 0)) return false;
    for (auto d = group->rbegin(); d != group->rend(); ++d)
      if (k >= order.size() || order[k++] != *d) return false;
  }
  return true;
}

Dims order_of_major_to_minor(Dims dims) {
  std::reverse(dims.begin(), dims.end());
  return dims;
}

Dims with_major(const Dims& order, int64_t dim) {
  Dims out;
  for (int64_t d : order)
    if (d != dim) out.push_back(d);
  out.push_back(dim);
  return out;
}

Dims with_minor(const Dims& order, int64_t dim) {
  Dims out{dim};
  for (int64_t d : order)
    if (d != dim) out.push_back(d);
  return out;
}

}  // namespace hlo
