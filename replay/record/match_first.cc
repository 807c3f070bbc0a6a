// Until the matcher of record/match.h is there: by the matching that diff works with.
#include <algorithm>

#include "replay/match.h"
#include "replay/record/match.h"

namespace hlo {

StageMatch match_stages(const Module& before, const Module& after, const MatchOptions&) {
  Matching matching(before, after);
  StageMatch out;
  out.same.resize(after.inst_slots()), out.same_computation.resize(after.comp_slots());
  out.undecided.assign(before.inst_slots(), false);
  std::vector<bool> taken(before.inst_slots());
  for (CompId c : after.computations()) {
    out.same_computation[c.value] = matching.first(c);
    for (InstId i : after.comp(c).order)
      if (after.alive(i))
        if (InstId was = matching.first(i); was.valid()) out.same[i.value] = was, taken[was.value] = true;
  }
  for (auto [from, to] : matching.moved()) {
    out.heirs.push_back({from, to, HeirKind::kCloned});
    taken[from.value] = true;
  }
  for (CompId c : before.computations())
    for (InstId i : before.comp(c).order) {
      if (!before.alive(i) || taken[i.value]) continue;
      // What its users read in its place now.
      size_t found = out.heirs.size();
      for (InstId user : before.users(i)) {
        InstId twin = matching.second(user);
        if (!twin.valid() || after.operand_count(twin) != before.operand_count(user)) continue;
        for (size_t k = 0; k < before.operand_count(user); ++k)
          if (before.operand(user, k) == i) out.heirs.push_back({i, after.operand(twin, k), HeirKind::kReplaced});
      }
      if (out.heirs.size() == found && !before.users(i).empty()) out.undecided[i.value] = true;
    }
  return out;
}

}  // namespace hlo
