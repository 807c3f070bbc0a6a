#include "replay/bisect.h"

namespace hlo {

Bisection bisect(size_t count, const std::function<Judgement(size_t)>& judge, const BisectOptions& options,
                 std::map<size_t, Judgement> known) {
  Bisection out;
  out.judged = std::move(known);
  auto verdict = [&](size_t k) {
    auto at = out.judged.find(k);
    if (at == out.judged.end()) {
      at = out.judged.emplace(k, judge(k)).first;
      ++out.runs;
      if (options.judged) options.judged(k, at->second);
    }
    return at->second.verdict;
  };
  auto stopped = [&] { return options.stop && options.stop(); };
  if (count == 0) return out;
  Verdict first = verdict(0);
  if (first != Verdict::kGood) {
    out.outcome = first == Verdict::kBad ? Bisection::kFirstBad : Bisection::kUnknown;
    return out;
  }
  // The last one that can be judged.
  size_t last = count - 1;
  while (last > 0 && verdict(last) == Verdict::kUnknown && !stopped()) --last;
  if (stopped()) {
    out.outcome = Bisection::kStopped;
    return out;
  }
  if (last == 0) {
    out.outcome = count == 1 ? Bisection::kAllGood : Bisection::kUnknown;
    return out;
  }
  size_t good = 0, bad = last;
  if (verdict(last) == Verdict::kGood) {
    out.outcome = Bisection::kAllGood;
    if (!options.every) return out;
    for (size_t k = 1; k < last; ++k) {
      if (stopped()) {
        out.outcome = Bisection::kStopped;
        return out;
      }
      if (verdict(k) == Verdict::kBad) out.bad_ones.push_back(k);
    }
    if (out.bad_ones.empty()) return out;
    bad = out.bad_ones[0];
    for (good = bad - 1; verdict(good) != Verdict::kGood;) --good;
  } else {
    while (bad - good > 1) {
      if (stopped()) {
        out.outcome = Bisection::kStopped;
        return out;
      }
      // Around the middle, whatever can be judged.
      size_t middle = good + (bad - good) / 2, pick = 0;
      for (size_t d = 0; d < bad - good && !pick; ++d)
        for (size_t k : {middle - d, middle + d})
          if (!pick && k > good && k < bad && middle >= d && verdict(k) != Verdict::kUnknown) pick = k;
      if (!pick) break;  // only unknown ones between them
      (verdict(pick) == Verdict::kGood ? good : bad) = pick;
    }
    out.bad_ones = {bad};
  }
  out.outcome = Bisection::kFound;
  out.good = good, out.bad = bad;
  return out;
}

}  // namespace hlo
