// Which fusions count as the same one (xla/service/gpu/fusion_deduplication_cache.cc). XLA cuts a producer and its
// consumer into tiles once for all pairs of the same kind; it does not look at what else the consumer reads, so
// multiply(x, x) and multiply(x, y) are one kind, and have the price of the one that came first.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "ir/module.h"
#include "ir/query/fingerprint.h"

namespace hlo {

class FusionIds {
 public:
  explicit FusionIds(const Module& m) : m_(m), fingerprints_(m) {}
  using PairId = std::array<uint32_t, 3>;  // the producer's, the consumer's, at which operand
  PairId of(InstId producer, InstId consumer);
  // What was made of a pair of that id.
  void fused(InstId fusion, const PairId& of);

 private:
  uint32_t id(InstId i);  // of an instruction that nothing was fused into: by what it does with which shapes

  const Module& m_;
  Fingerprints fingerprints_;
  uint32_t next_ = 0;
  std::unordered_map<InstId, uint32_t> ids_;
  std::unordered_map<uint64_t, uint32_t> by_content_;
  std::map<PairId, uint32_t> by_pair_;
};

}  // namespace hlo
