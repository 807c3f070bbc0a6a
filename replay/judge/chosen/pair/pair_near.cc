// Which values of the stage before a new one may be.
#include <algorithm>
#include <cmath>
#include <deque>

#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/pair/kept_leaves.h"
#include "replay/judge/chosen/pair/pair.h"

namespace hlo {
namespace {

// How far candidates lie behind the values that a new one is made of, how many are looked at, and how many tried.
constexpr size_t kMostNear = 400, kMostGathered = 64, kMostCandidates = 12;

// Elements of one draw that make it cheap.
constexpr int64_t kCheap = 1 << 14;

using Set = ExprSet;

}  // namespace

// How many operands an expression has in common with `e`, whatever order their elements are read in.
std::function<ptrdiff_t(ExprId)> ByElements::Pair::common_operands(ExprId e) const {
  auto base = [this](ExprId x) { return s_.all[x].kind == Expr::kView ? s_.all[x].operands[0] : x; };
  Set own;
  for (ExprId o : s_.all[e].operands) own.insert(base(o));
  return [this, base, own = std::move(own)](ExprId other) {
    const std::vector<ExprId>& o = s_.all[other].operands;
    return std::count_if(o.begin(), o.end(), [&](ExprId x) { return own.contains(base(x)); });
  };
}

// Values of the stage before that are made of the same ones, the nearest first. Where there are none, of what these are
// made of: the stage before may have them written in the way of an earlier one.
std::vector<ExprId> ByElements::Pair::near(ExprId e, InstId by, const Set& leaves) {
  std::vector<ExprId> out;
  auto take = [&](ExprId r) {
    const ExprId part = divided_ ? part_like(by, s_.all[e].leaf, r) : r;
    if (part != kNoExpr && comparable(e, part)) out.push_back(part);
  };
  Set from = leaves, seen(leaves);
  for (int round = 0; round < 4 && out.empty(); ++round) {
    if (round) {
      Set further;
      for (ExprId x : from) {
        const std::vector<ExprId>& operands = s_.all[x].operands;
        further.insert(operands.begin(), operands.end());
        if (operands.empty()) further.insert(x);
      }
      if (further == from || further.size() > kMostNear) break;
      from = std::move(further);
    }
    std::vector<ExprId> sorted(from.begin(), from.end());
    std::sort(sorted.begin(), sorted.end());
    std::deque<ExprId> work(sorted.begin(), sorted.end());
    for (ExprId x : sorted)
      if (s_.has(x)) take(x);
    while (!work.empty() && seen.size() < kMostNear && out.size() < kMostGathered) {
      const ExprId x = work.front();
      work.pop_front();
      auto at = s_.readers.find(x);
      if (at == s_.readers.end()) continue;
      for (ExprId r : at->second) {
        if (!seen.insert(r).second) continue;
        work.push_back(r);
        take(r);
      }
    }
  }
  // A mask that all layers share has readers in each of them: those of more common operands are more likely it.
  const auto common = common_operands(e);
  std::stable_sort(out.begin(), out.end(), [&](ExprId a, ExprId b) { return common(a) > common(b); });
  // Those of its own kind cost no more than it does.
  auto alike = [&](ExprId c) {
    const Expr &x = s_.all[e], &y = s_.all[c];
    if (x.kind != y.kind) return false;
    return x.kind != Expr::kOperation || x.m->op(x.inst) == y.m->op(y.inst);
  };
  std::stable_partition(out.begin(), out.end(), alike);
  if (out.size() > kMostCandidates) out.resize(kMostCandidates);
  return out;
}

// The same elements in another order of dimensions: layouts are written so.
ExprId ByElements::Pair::permuted(ExprId e, ExprId with, const Dims& from, const Dims& to, const Set& cut) {
  Dims now, was;
  for (int64_t d : to)
    if (d != 1) now.push_back(d);
  for (int64_t d : from)
    if (d != 1) was.push_back(d);
  if (now.size() != was.size() || now.size() < 2 || now.size() > 5) return kNoExpr;
  std::vector<size_t> order(now.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  const std::vector<int64_t> at = on_devices(e, std::span(&with, 1), sampled_indices(now, s_.options.samples, e));
  const int64_t count = shape_of(e).elements_count();
  Set used;
  ChosenElements elements[2] = {evaluation(cut, Draw::kMixed, &used), evaluation(cut, Draw::kPositive, &used)};
  Sampled is[2];
  for (int d = 0; d < 2; ++d)
    if (!sample(elements[d], e, at, &is[d])) return kNoExpr;
  if (!tells(is[0], is[1])) return kNoExpr;
  const Set own = used;
  while (std::next_permutation(order.begin(), order.end())) {
    bool fits = true;
    for (size_t k = 0; k < order.size(); ++k) fits = fits && now[k] == was[order[k]];
    if (!fits) continue;
    Dims steps(was.size());
    int64_t step = 1;
    for (size_t k = was.size(); k-- > 0; step *= was[k]) steps[k] = step;
    std::vector<int64_t> there;
    for (int64_t n : at) {
      int64_t index = n / count * count;
      n %= count;
      for (size_t k = now.size(); k-- > 0; n /= now[k]) index += n % now[k] * steps[order[k]];
      there.push_back(index);
    }
    bool same = true;
    for (int d = 0; d < 2 && same; ++d) {
      Sampled was_there;
      size_t where = 0;
      if (!sample(elements[d], with, there, &was_there)) return kNoExpr;
      same = alike(was_there, is[d], &where);
    }
    if (!same || !reads_all(with, there, cut, own)) continue;
    int64_t offset = 0;
    ExprId base = kNoExpr;
    std::vector<std::vector<Expressions::Part>> parts;
    if (!s_.all.parts(with, was, &offset, &base, &parts)) return kNoExpr;
    saw(e, std::span(&with, 1), at);
    Expr::View v;
    v.offset = offset;
    for (size_t k = 0; k < now.size(); ++k)
      for (const Expressions::Part& p : parts[order[k]]) v.sizes.push_back(p.size), v.steps.push_back(p.step);
    return s_.all.view(base, std::move(v), s_.all[e].shape);
  }
  return kNoExpr;
}

bool ByElements::Pair::alike_kept(ExprId e, ExprId c, const std::vector<int64_t>& anywhere, const Set& cut,
                                  Masks* masks, bool* differs, ElementsFinding* told) {
  if (!s_.options.kept || s_.all.devices().devices() != 1) return true;
  Set used;
  ChosenElements elements = evaluation(cut, Draw::kMixed, &used, nullptr, true);
  const Dims& dims = shape_of(e).dims;
  std::vector<int64_t> at = anywhere;
  for (int64_t k : s_.options.kept->places(dims)) at.push_back(k);
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  Sampled now, was;
  if (!sample(elements, e, at, &now) || !sample(elements, c, at, &was)) return true;
  // What is no number in one of them alone may come of the order in which it was computed.
  const size_t each = now.values.size() / at.size();
  Sampled is_finite{{}, now.sure}, was_finite{{}, was.sure};
  std::vector<size_t> places;
  for (size_t k = 0; k < now.values.size(); ++k) {
    if (!std::isfinite(now.values[k]) || !std::isfinite(was.values[k])) continue;
    is_finite.values.push_back(now.values[k]), was_finite.values.push_back(was.values[k]), places.push_back(k / each);
  }
  size_t where = 0;
  if (alike(was_finite, is_finite, &where)) {
    if (all_finite(now)) masks->note(elements);
    return true;
  }
  if (!told) return false;
  *differs = was.sure && now.sure && !alike(was_finite, is_finite, &where, s_.coarsest);
  told->index = index_text(at[places[where]], dims);
  told->was = was_finite.values[where], told->is = is_finite.values[where];
  return false;
}

// One number under a mask is the same at all elements: what is cheap is told by that number in other draws.
bool ByElements::Pair::told_by_draws(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut, int64_t cost,
                                     bool* over) {
  if (cost > kCheap || !is_float(shape_of(a).type)) return false;
  Sampled all;
  DrawnNear turns;
  for (turns.turn = 1; turns.turn <= kMaskTurns; ++turns.turn) {
    Set used;
    ChosenElements elements = evaluation(cut, turns.turn % 2 ? Draw::kMixed : Draw::kPositive, &used, &turns);
    Sampled x, y;
    size_t where = 0;
    if (!sample(elements, a, at, &x) || !sample(elements, b, at, &y)) {
      *over = true;
      return false;
    }
    if (!alike(x, y, &where)) return false;
    all.values.insert(all.values.end(), x.values.begin(), x.values.end());
    if (all.values.size() > kTelling && tells(all, all)) return true;
  }
  return false;
}

}  // namespace hlo
