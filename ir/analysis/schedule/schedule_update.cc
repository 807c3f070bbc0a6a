#include "ir/analysis/schedule/schedule_update.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/marks.h"

namespace hlo {
namespace {

class ScheduleUpdate {
 public:
  ScheduleUpdate(Module& m, CompId c, const std::vector<InstId>& before) : m_(m), c_(c), marks_(m.inst_slots()) {
    for (InstId i : before)
      if (m.alive(i) && m.parent(i) == c) marks_.add(i, kOld);
    for (InstId i : m.live_order(c))
      if (!has(i, kOld)) await(i);
  }

  void run(const std::vector<InstId>& before) {
    place_ready();
    for (InstId i : before)
      if (m_.alive(i) && m_.parent(i) == c_ && !place(i)) return;
    if (placed_.size() == m_.live_order(c_).size()) m_.set_order(c_, std::move(placed_));
  }

 private:
  static constexpr uint32_t kOld = 1, kOpened = 2, kPlaced = 4;
  bool has(InstId i, uint32_t mark) const { return (marks_[i] & mark) != 0; }

  std::vector<InstId> needs(InstId i) const {
    std::vector<InstId> out(m_.operands(i).begin(), m_.operands(i).end());
    out.insert(out.end(), m_.control_preds(i).begin(), m_.control_preds(i).end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  void await(InstId added) {
    const std::vector<InstId> all = needs(added);
    missing_[added] = all.size();
    for (InstId n : all) waiting_[n].push_back(added);
    if (all.empty()) ready_.push_back(added);
  }
  void place_ready() {
    for (size_t k = 0; k < ready_.size(); ++k) {
      const InstId i = ready_[k];
      marks_.add(i, kPlaced), placed_.push_back(i);
      if (const auto at = waiting_.find(i); at != waiting_.end())
        for (InstId next : at->second)
          if (--missing_[next] == 0) ready_.push_back(next);
    }
    ready_.clear();
  }
  // One that was there, after what was there and it reads now, through what was added as well. False: a cycle.
  bool place(InstId wanted) {
    std::vector<InstId> stack{wanted};
    while (!stack.empty()) {
      const InstId i = stack.back();
      const size_t depth = stack.size();
      if (!has(i, kPlaced)) {
        for (InstId n : needs(i))
          if (!has(n, kPlaced)) stack.push_back(n);
        if (stack.size() > depth) {
          if (has(i, kOpened)) return false;
          marks_.add(i, kOpened);
          continue;
        }
        ready_.push_back(i);
        place_ready();
      }
      stack.pop_back();
    }
    return true;
  }

  Module& m_;
  CompId c_;
  Marks marks_;
  std::unordered_map<InstId, size_t> missing_;               // of what was added: needs without a place
  std::unordered_map<InstId, std::vector<InstId>> waiting_;  // added ones by what they need
  std::vector<InstId> ready_, placed_;
};

}  // namespace

void update_schedule(Module& m, CompId c, const std::vector<InstId>& before) {
  ScheduleUpdate(m, c, before).run(before);
}

}  // namespace hlo
