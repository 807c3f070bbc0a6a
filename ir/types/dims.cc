#include "ir/types/dims.h"

#include <algorithm>

namespace hlo {

Dims major_to_minor(const Shape& s) {
  Dims order = s.layout.minor_to_major;
  if (order.size() != s.dims.size()) order = default_minor_to_major(s.rank());
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::pair<size_t, size_t>> common_factors(const Dims& a, const Dims& b) {
  // xla/util.cc, CommonFactors: dimensions of one stand in factors of their own.
  std::vector<std::pair<size_t, size_t>> bounds;
  size_t i = 0, j = 0;
  for (; i < a.size() && j < b.size() && a[i] == b[j]; ++i, ++j) bounds.push_back({i, j});
  auto product = [](const Dims& d, size_t from) {
    int64_t n = 1;
    for (; from < d.size(); ++from) n *= d[from];
    return n;
  };
  int64_t rest = product(a, i);
  if (rest != product(b, j)) return {{0, 0}, {a.size(), b.size()}};
  if (rest == 0) {
    bounds.push_back({i, j});
    bounds.push_back({a.size(), b.size()});
    return bounds;
  }
  int64_t pa = 1, pb = 1;
  bool fresh = true;  // has either moved since the last bound?
  while (true) {
    if (pa == pb && fresh) {
      bounds.push_back({i, j});
      fresh = false;
      continue;
    }
    bool more_a = i < a.size(), more_b = j < b.size();
    if (!more_a && !more_b) return bounds;
    bool next_a = pa < pb || (more_a && (!more_b || (pa == pb && a[i] <= b[j])));
    bool next_b = pb < pa || (more_b && (!more_a || (pb == pa && b[j] <= a[i])));
    if (next_a) pa *= a[i++];
    if (next_b) pb *= b[j++];
    fresh = true;
  }
}

}  // namespace hlo
