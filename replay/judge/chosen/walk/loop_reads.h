// What the arrays of a loop's state are made of in a trip.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

class LoopReads {
 public:
  // Arrays of the state in some trip, behind it, and whether there is another one.
  LoopReads(const Expressions& all, const std::vector<ExprId>& formal, const std::vector<ExprId>& then, ExprId goes_on)
      : all_(all) {
    for (size_t k = 0; k < formal.size(); ++k) place_.emplace(formal[k], k);
    for (ExprId e : then) read_.push_back(of(e));
    by_condition_ = of(goes_on);
  }
  // Places of all that counts for what `leaf` is in the end, itself among them.
  std::unordered_set<size_t> counted(size_t leaf) const {
    std::unordered_set<size_t> counts{leaf};
    std::vector<size_t> work{leaf};
    auto reach = [&](const std::vector<size_t>& places) {
      for (size_t k : places)
        if (counts.insert(k).second) work.push_back(k);
    };
    reach(by_condition_);
    while (!work.empty()) {
      const size_t k = work.back();
      work.pop_back();
      reach(read_[k]);
    }
    return counts;
  }

 private:
  std::vector<size_t> of(ExprId e) const {
    std::vector<size_t> out;
    std::vector<ExprId> work{e};
    std::unordered_set<ExprId> seen{e};
    while (!work.empty()) {
      const ExprId x = work.back();
      work.pop_back();
      if (auto at = place_.find(x); at != place_.end()) out.push_back(at->second);
      for (ExprId o : all_[x].operands)
        if (seen.insert(o).second) work.push_back(o);
    }
    return out;
  }

  const Expressions& all_;
  std::unordered_map<ExprId, size_t> place_;
  std::vector<std::vector<size_t>> read_;
  std::vector<size_t> by_condition_;
};

}  // namespace hlo
