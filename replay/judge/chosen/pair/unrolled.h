// Two stages whose loops are followed trip by trip.
#pragma once
#include "replay/judge/chosen/pair/pair.h"

namespace hlo {

// Numbers that constants alone make, for all walks over one Expressions.
class FixedNumbers : public LoopTrips {
 public:
  explicit FixedNumbers(ByElements::State& s) : s_(s) {}
  std::optional<int64_t> number(ExprId e) override;
  ExprId of_number(ExprId e, int64_t number) override;

 private:
  ByElements::State& s_;
  std::unordered_map<ExprId, std::optional<int64_t>> known_;
  std::map<std::pair<ElementType, int64_t>, ExprId> first_;
};

}  // namespace hlo
