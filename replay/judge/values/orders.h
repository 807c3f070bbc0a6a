// Orders that sorts have brought their operands into: a comparator that is written in another way, or that compares
// positions, too, asks for the same order, and that is told by what it compares, without sorting.
#pragma once
#include <vector>

#include "ir/eval/evaluator.h"

namespace hlo {

class SortOrders {
 public:
  struct Known {
    uint64_t id;
    Dims dims;
    int64_t dim;
    SortOrder order;
  };
  // The order of a sort of these operands: one id for the same order. Null where it cannot be told without comparing.
  // Good until the next call.
  const Known* of(Evaluator& evaluator, const Module& m, InstId sort, std::span<const Value> operands);

 private:
  std::vector<Known> known_;  // the last ones
  uint64_t count_ = 0;
};

}  // namespace hlo
