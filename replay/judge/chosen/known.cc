#include "replay/judge/chosen/known.h"

#include <algorithm>
#include <bit>

#include "ir/base/check.h"

namespace hlo {

int64_t KnownElements::find_hashed(int64_t index) const {
  if (table_.empty()) return -1;
  for (size_t s = slot_of(index);; s = s + 1 == table_.size() ? 0 : s + 1) {
    const uint32_t place = table_[s];
    if (!place) return -1;
    if (keys_[place - 1] == index) return place - 1;
  }
}

void KnownElements::put(int64_t index, uint32_t place) {
  size_t s = slot_of(index);
  while (table_[s]) s = s + 1 == table_.size() ? 0 : s + 1;
  table_[s] = place + 1;
}

void KnownElements::add(std::span<const int64_t> indices, const char* values, int width) {
  if (indices.empty()) return;
  const size_t before = keys_.size(), now = before + indices.size();
  if (now >= UINT32_MAX) fail(FailureKind::kUnsupported, "over budget: more than 2^32 elements of one array");
  keys_.insert(keys_.end(), indices.begin(), indices.end());
  values_.insert(values_.end(), values, values + indices.size() * static_cast<size_t>(width));
  if (table_.size() < 2 * now) {
    table_.assign(std::max<size_t>(std::bit_ceil(2 * now), 4), 0);
    shift_ = 64 - std::countr_zero(table_.size());
    for (size_t k = 0; k < now; ++k) put(keys_[k], static_cast<uint32_t>(k));
    return;
  }
  for (size_t k = before; k < now; ++k) put(keys_[k], static_cast<uint32_t>(k));
}

}  // namespace hlo
