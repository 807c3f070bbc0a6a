#include "replay/judge/chosen/elements/known.h"

#include <algorithm>
#include <bit>

#include "ir/base/check.h"

namespace hlo {

int64_t KnownElements::find_hashed(int64_t index) const {
  if (table_.empty()) return -1;
  for (size_t s = slot_of(index);; s = s + 1 == table_.size() ? 0 : s + 1) {
    const uint32_t key = table_[s];
    if (!key) return -1;
    if (keys_[key - 1] == index) return static_cast<int64_t>(run_) + key - 1;
  }
}

void KnownElements::put(int64_t index, uint32_t key) {
  size_t s = slot_of(index);
  while (table_[s]) s = s + 1 == table_.size() ? 0 : s + 1;
  table_[s] = key + 1;
}

void KnownElements::add(std::span<const int64_t> indices, const char* values, int width) {
  if (indices.empty()) return;
  values_.insert(values_.end(), values, values + indices.size() * static_cast<size_t>(width));
  if (!count_) first_ = indices[0];
  count_ += indices.size();
  while (keys_.empty() && !indices.empty() && indices[0] == first_ + static_cast<int64_t>(run_))
    ++run_, indices = indices.subspan(1);
  const size_t before = keys_.size(), now = before + indices.size();
  if (now == before) return;
  if (now >= UINT32_MAX) fail(FailureKind::kUnsupported, "over budget: more than 2^32 elements of one array");
  keys_.insert(keys_.end(), indices.begin(), indices.end());
  const bool grows = table_.size() < 2 * now;
  if (grows) {
    table_.assign(std::max<size_t>(std::bit_ceil(2 * now), 4), 0);
    shift_ = 64 - std::countr_zero(table_.size());
  }
  for (size_t k = grows ? 0 : before; k < now; ++k) put(keys_[k], static_cast<uint32_t>(k));
}

}  // namespace hlo
