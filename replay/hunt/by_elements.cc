#include "replay/hunt/by_elements.h"

namespace hlo {

ElementsSearch search_by_elements(const Candidates& row, const Module& first, const ElementsOptions& elements,
                                  const BisectOptions& options) {
  ElementsSearch out;
  ByElements judge(elements);
  Bisection& b = out.found;
  out.stages[0] = judge.first(first);
  b.judged[0] = {Verdict::kGood, "the stage that the others are held against"};
  b.outcome = Bisection::kAllGood;
  size_t last = 0;
  bool any = row.labels.size() < 2;
  for (size_t k = 1; k < row.labels.size(); ++k) {
    if (options.stop && options.stop()) {
      if (b.outcome != Bisection::kFound) b.outcome = Bisection::kStopped;
      break;
    }
    Judgement j;
    if (row.same && last == k - 1 && row.same(k)) {
      ElementsStage same = out.stages.at(last);
      same.verdict = Verdict::kGood, same.why.clear(), same.findings.clear(), same.not_compared.clear();
      same.changed = same.compared = 0, same.outputs_same = same.outputs;
      out.stages[k] = std::move(same);
      j = {Verdict::kGood, ""};
    } else {
      j = judgement_of(
          [&] {
            ElementsStage s = judge.next(*row.load(k));
            Judgement told{s.verdict, s.why};
            out.stages[k] = std::move(s);
            return told;
          },
          options.stop);
    }
    if (out.stages.contains(k)) last = k;
    b.judged[k] = j;
    any |= j.verdict != Verdict::kUnknown;
    if (options.judged) options.judged(row.labels[k], j);
    if (j.verdict != Verdict::kBad) continue;
    b.bad_ones.push_back(k);
    if (b.outcome == Bisection::kFound) continue;
    b.outcome = Bisection::kFound, b.good = k - 1, b.bad = k;
  }
  if (b.outcome == Bisection::kAllGood && !any) b.outcome = Bisection::kUnknown;
  return out;
}

}  // namespace hlo
