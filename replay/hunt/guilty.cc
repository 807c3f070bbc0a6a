#include "replay/hunt/guilty.h"

#include <algorithm>

namespace hlo {

Names passes_that_worked(const std::vector<Recording>& all) {
  Names out;
  for (const Recording& r : all)
    for (const StageRow& row : r.rows)
      if (row.kind == StageRow::kPass && row.changed && !row.pass.empty() &&
          std::find(out.begin(), out.end(), row.pass) == out.end())
        out.push_back(row.pass);
  return out;
}

Names guilty_of(const std::function<bool(const Names& left_out)>& heals, const Names& all) {
  Names healing;
  auto find = [&](auto&& self, size_t first, size_t last) -> bool {
    if (first >= last) return false;
    const Names part(all.begin() + static_cast<ptrdiff_t>(first), all.begin() + static_cast<ptrdiff_t>(last));
    const bool yes = heals(part);
    if (yes && (healing.empty() || part.size() < healing.size())) healing = part;
    if (part.size() == 1) return yes;
    const size_t middle = first + part.size() / 2;
    return self(self, first, middle) || self(self, middle, last);
  };
  if (find(find, 0, all.size()) || healing.empty()) return healing;
  for (size_t size = healing.size() / 2; size >= 1; size /= 2)
    for (size_t at = 0; at < healing.size();) {
      Names fewer(healing.begin(), healing.begin() + static_cast<ptrdiff_t>(at));
      if (at + size < healing.size())
        fewer.insert(fewer.end(), healing.begin() + static_cast<ptrdiff_t>(at + size), healing.end());
      if (!fewer.empty() && heals(fewer))
        healing = fewer;
      else
        at += size;
    }
  return healing;
}

int64_t decision_of(const std::function<bool(int64_t fuel)>& good) {
  if (!good(0)) return 0;
  int64_t low = 0, high = 1;
  while (high <= INT32_MAX && good(high)) low = high, high *= 2;
  if (high > INT32_MAX) return 0;  // fuel changes what it does
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (good(middle) ? low : high) = middle;
  }
  // Once more: what wavers must not name a decision.
  return good(low) ? high : 0;
}

}  // namespace hlo
