// What a mask hides is not compared: which sides of masks were seen, and elements on both.
#include <algorithm>

#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/pair/pair.h"
#include "replay/judge/chosen/walk/mask_places.h"

namespace hlo {
namespace {

// Elements of either side of a mask: what is seldom seen is told apart seldom, too.
constexpr int64_t kSeenSides = 4;

// One in so many is rare; draws that show such a side, elements of one of them, and leaves that are drawn anew from it.
constexpr int64_t kRarePart = 4, kRareCost = 1 << 14;
constexpr int kRareShown = 3;
constexpr size_t kMostAnew = 12;
// Elements beside masks may take one part in so many of what may be evaluated.
constexpr int64_t kPartBeside = 4;

using Set = ExprSet;

}  // namespace

ByElements::Pair::Masks ByElements::Pair::masks_of(ExprId a, ExprId b, const Set& cut, bool choices) {
  Set chosen;
  for (ExprId e : reached({a, b}, cut)) {
    const Expr& x = s_.all[e];
    const Opcode op = x.kind == Expr::kOperation ? x.m->op(x.inst) : Opcode::Tuple;
    const bool hides = op == Opcode::And || op == Opcode::Or;
    const bool chooses = choices && (x.kind == Expr::kBranch || op == Opcode::Select);
    for (size_t k = 0; k < (hides ? x.operands.size() : chooses ? 1 : 0); ++k)
      if (shape_of(x.operands[k]).type == ElementType::Pred && !s_.is_fixed(x.operands[k]))
        chosen.insert(x.operands[k]);
  }
  // What is never true, as a row of `one_hot` nearly is, is alike whatever it is.
  for (ExprId e : {a, b})
    if (shape_of(e).type == ElementType::Pred && !s_.is_fixed(e)) chosen.insert(e);
  Masks out;
  out.of.assign(chosen.begin(), chosen.end());
  out.seen.resize(out.of.size());
  return out;
}

void ByElements::Pair::Masks::note(const ChosenElements& elements) {
  for (size_t k = 0; k < of.size(); ++k) elements.count_sides(of[k], &seen[k].first, &seen[k].second);
}

bool ByElements::Pair::Masks::both() const {
  return std::all_of(seen.begin(), seen.end(), [](const auto& s) {
    return s.first + s.second == 0 || std::min(s.first, s.second) >= kSeenSides;
  });
}

// Both sides of masks that constants and magnitudes did not show, by further draws.
bool ByElements::Pair::alike_masked(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut, bool* over,
                                    Masks* masks) {
  DrawnNear turns;
  const int64_t most = s_.spent + affordable();
  for (turns.turn = 1; turns.turn <= kMaskTurns && !masks->both() && s_.spent < most; ++turns.turn) {
    if (!alike_drawn(a, b, at, cut, turns.turn % 2 ? Draw::kMixed : Draw::kPositive, turns, over, masks)) return false;
  }
  return masks->both();
}

namespace {

// A side of a mask that is rare, as one element in so many is.
bool one_side_rare(const std::pair<int64_t, int64_t>& seen) {
  return seen.first && seen.second && std::min(seen.first, seen.second) * kRarePart < seen.first + seen.second;
}

}  // namespace

bool ByElements::Pair::Masks::rare() const { return std::any_of(seen.begin(), seen.end(), one_side_rare); }

bool ByElements::Pair::Masks::side_seen(const ChosenElements& elements) const {
  for (size_t k = 0; k < of.size(); ++k) {
    if (!one_side_rare(seen[k])) continue;
    int64_t no = 0, yes = 0;
    elements.count_sides(of[k], &no, &yes);
    if (seen[k].first < seen[k].second ? no : yes) return true;
  }
  return false;
}

// What a mask hides was compared in few states where one of its sides is rare: from draws that show that side each leaf
// is drawn anew, all others as they were, which mostly stays there.
bool ByElements::Pair::alike_rare(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut, const Masks& masks) {
  if (!masks.rare()) return true;
  DrawnNear turns;
  int shown = 0;
  for (turns.turn = 0; turns.turn < kMaskTurns && shown < kRareShown; ++turns.turn) {
    Set used;
    auto agree = [&](bool* side) {
      ChosenElements elements = evaluation(cut, Draw::kMixed, &used, &turns);
      Sampled x, y;
      size_t where = 0;
      const bool known = sample(elements, a, at, &x) && sample(elements, b, at, &y);
      *side = known && elements.evaluated() <= kRareCost && masks.side_seen(elements);
      return !known || (alike(x, y, &where) && only_rounded(a, b, at, cut, Draw::kMixed, &turns, x, y));
    };
    bool side = false;
    const int64_t before = s_.spent;
    if (!agree(&side)) return false;
    if (s_.spent - before > 2 * kRareCost) return true;
    if (!side) continue;
    ++shown;
    std::vector<ExprId> leaves(used.begin(), used.end());
    std::sort(leaves.begin(), leaves.end());
    for (size_t k = 0; k < std::min(leaves.size(), kMostAnew) && s_.spent < s_.most_now; ++k) {
      turns.anew = leaves[k];
      if (!agree(&side)) return false;
    }
    turns.anew = kNoExpr;
  }
  return true;
}

// Elements on both sides of masks that positions decide, as a diagonal: of those of few that are looked at hardly one
// is on it. None where one element costs too much for more of them.
std::vector<int64_t> ByElements::Pair::beside_masks(ExprId e, ExprId with, const Dims& dims, const Set& cut) {
  Set used;
  ChosenElements elements = evaluation(cut, Draw::kMixed, &used);
  MaskSearch search;
  search.drawn = [&](ExprId x) { return cut.contains(x) && !s_.is_fixed(x); };
  search.fixed = [&](ExprId x) { return s_.is_fixed(x); };
  search.seed = e;
  std::vector<int64_t> out;
  for (ExprId x : {e, with})
    for (int64_t i : mask_places(s_.all.all(), x, dims, search, elements)) out.push_back(i);
  s_.spent += elements.evaluated();
  if (const int64_t last = s_.all.devices().devices() - 1; last > 0 && !one_value(e, std::span(&with, 1)))
    for (size_t k = 0, count = out.size(); k < count; ++k) out.push_back(last * shape_of(e).elements_count() + out[k]);
  return out;
}

// Their values, too, are added to what was sampled of both draws. False where they go over budget.
bool ByElements::Pair::sample_beside(ExprId e, ExprId with, const Dims& dims, const Set& cut, ChosenElements* elements,
                                     std::vector<int64_t>* at, Sampled* now) {
  std::vector<int64_t> more = beside_masks(e, with, dims, cut);
  const int64_t each = std::max(elements[0].evaluated(), elements[1].evaluated()) / static_cast<int64_t>(at->size());
  if (more.empty() || each * static_cast<int64_t>(more.size()) > affordable() / kPartBeside) return true;
  more.insert(more.end(), at->begin(), at->end());
  std::sort(more.begin(), more.end());
  more.erase(std::unique(more.begin(), more.end()), more.end());
  *at = std::move(more);
  for (int d = 0; d < 2; ++d) {
    now[d] = {};
    if (!sample(elements[d], e, *at, &now[d])) return false;
  }
  return true;
}

}  // namespace hlo
