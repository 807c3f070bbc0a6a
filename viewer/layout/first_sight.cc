// Which groups are open at first sight: the heaviest, while what is seen stays between 60 and 120 boxes. Of equal
// blocks one is opened, for all.
#include <queue>
#include <unordered_set>

#include "viewer/layout/view.h"

namespace hlo {
namespace {

constexpr size_t kMostBoxes = 110, kFewBoxes = 60;

struct Candidate {
  double worth;
  uint32_t group;
  bool operator<(const Candidate& o) const { return worth != o.worth ? worth < o.worth : group > o.group; }
};

double worth_of(const Module& m, const FoldGroup& g) {
  double worth = g.count;
  if (g.kind == FoldGroup::Kind::kParameters || g.kind == FoldGroup::Kind::kResults || g.count < 3) return 0;
  if (g.kind == FoldGroup::Kind::kRepeat) worth *= 4;
  if (g.kind == FoldGroup::Kind::kUncalled) worth *= g.comp.valid() ? 0.1 : 0;
  if (g.kind == FoldGroup::Kind::kComputation && g.label == "body") worth *= 2;
  if (g.kind == FoldGroup::Kind::kCall && m.op(g.inst) == Opcode::Fusion) worth *= 0.02;
  return worth;
}

}  // namespace

std::vector<bool> open_at_first_sight(const Folding& f, uint32_t top) {
  std::vector<bool> open(f.groups().size(), false);
  std::unordered_set<uint64_t> shown;  // blocks of which an equal one is open
  std::priority_queue<Candidate> queue;
  queue.push({1e18, top});
  size_t boxes = 0;
  while (!queue.empty()) {
    uint32_t at = queue.top().group;
    queue.pop();
    const FoldGroup& g = f.groups()[at];
    bool first = at == top, small = boxes < kFewBoxes && boxes + g.children.size() <= kMostBoxes + kFewBoxes / 2;
    if (!first && boxes + g.children.size() > kMostBoxes && !small) continue;
    bool block = g.parent != FoldGroup::kNone && (f.groups()[g.parent].kind == FoldGroup::Kind::kRepeat);
    if (block && !first && !shown.insert(g.parent).second) continue;
    open[at] = true;
    boxes += g.children.size();
    for (FoldItem c : g.children)
      if (c.group)
        if (double worth = worth_of(f.module(), f.groups()[c.value]); worth > 0) queue.push({worth, c.value});
  }
  return open;
}

}  // namespace hlo
