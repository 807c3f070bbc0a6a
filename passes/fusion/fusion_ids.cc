#include "passes/fusion/fusion_ids.h"

#include <algorithm>

#include "ir/base/hash.h"

namespace hlo {

uint32_t FusionIds::id(InstId i) {
  auto [at, fresh] = ids_.emplace(i, 0);
  if (!fresh) return at->second;
  uint64_t content = fingerprints_.instruction(i);
  for (InstId o : m_.operands(i)) content = hash_combine(content, m_.shape_id(o).value);
  auto [known, first] = by_content_.emplace(content, next_);
  next_ += first;
  return at->second = known->second;
}

FusionIds::PairId FusionIds::of(InstId producer, InstId consumer) {
  const auto operands = m_.operands(consumer);
  const auto at = std::find(operands.begin(), operands.end(), producer);
  return {id(producer), id(consumer), static_cast<uint32_t>(at - operands.begin())};
}

void FusionIds::fused(InstId fusion, const PairId& of) {
  auto [at, fresh] = by_pair_.emplace(of, next_);
  next_ += fresh;
  ids_[fusion] = at->second;
}

}  // namespace hlo
