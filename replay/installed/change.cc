#include "replay/installed/change.h"

#include <algorithm>
#include <vector>

namespace hlo {

Change find_change(size_t count, const std::function<Side(size_t)>& side) {
  Change out;
  if (count < 2) return out;
  std::map<size_t, Side> known;
  auto ask = [&](size_t k) { return known.emplace(k, Side::kUnknown).second ? known[k] = side(k) : known[k]; };
  if (ask(0) == Side::kUnknown || ask(count - 1) == Side::kUnknown) return out;
  if (known[0] == known[count - 1]) {
    out.outcome = Change::kNone;
    return out;
  }
  size_t low = 0, high = count - 1;
  // The middle, or where that cannot be asked the nearest to it that can.
  auto middle = [&]() -> size_t {
    std::vector<size_t> between;
    for (size_t k = low + 1; k < high; ++k) between.push_back(k);
    const size_t at = low + (high - low) / 2;
    std::stable_sort(between.begin(), between.end(), [&](size_t x, size_t y) {
      return std::max(x, at) - std::min(x, at) < std::max(y, at) - std::min(y, at);
    });
    for (size_t k : between)
      if (ask(k) != Side::kUnknown) return k;
    return low;
  };
  while (high - low > 1) {
    const size_t k = middle();
    if (k == low) break;
    (known[k] == known[0] ? low : high) = k;
  }
  out.outcome = Change::kFound, out.before = low, out.after = high;
  // The search itself cannot contradict itself: one more question on either side, in the widest gap.
  auto probe = [&](size_t first, size_t last) {
    size_t from = first, widest = 0, at = 0;
    for (size_t k = first + 1; k <= last; ++k) {
      if (!known.contains(k)) continue;
      if (k - from > widest) widest = k - from, at = from + widest / 2;
      from = k;
    }
    if (widest > 1) ask(at);
  };
  probe(0, low), probe(high, count - 1);
  for (const auto& [k, s] : known)
    if (s != Side::kUnknown && (s == known[0]) != (k <= low)) out.once = false;
  return out;
}

}  // namespace hlo
