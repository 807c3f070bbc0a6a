#include "replay/inside/search.h"

#include <algorithm>

#include "ir/base/memory.h"

namespace hlo {
int64_t bytes_to_keep(const InsideOptions& o) {
  if (o.most_bytes > 0) return o.most_bytes;
  int64_t free = available_memory().bytes;
  return std::min(free / 4, int64_t{3} << 30);
}

InsideSearch search_inside(const Candidates& row, const Module& first, const Session& session,
                           const InsideOptions& options) {
  InsideSearch out;
  Bisection& b = out.found;
  auto begin = [&](const Session& with) {
    auto one = std::make_unique<Inside>(with, options.eval, bytes_to_keep(options));
    out.stages[0] = one->first(first);
    out.told = one->inputs();
    return one;
  };
  std::unique_ptr<Inside> own = begin(session);
  if (!out.told.tell() && options.others) {
    InputsTold was = out.told;
    const Session* with = nullptr;
    for (int attempt = 1; (with = options.others(attempt)); ++attempt) {
      own.reset();
      own = begin(*with);
      out.attempt = attempt;
      if (out.told.tell()) break;
    }
    if (!out.told.tell()) {  // none is better
      own.reset();
      own = begin(session);
      out.attempt = 0;
    }
  }
  Inside& inside = *own;
  out.operations_first = inside.numbers().count.operations;
  b.judged[0] = {Verdict::kGood, "the stage that the others are held against"};
  size_t good = 0;
  b.outcome = Bisection::kAllGood;
  for (size_t k = 1; k < row.labels.size(); ++k) {
    if (options.stop && options.stop()) {
      if (b.outcome != Bisection::kFound) b.outcome = Bisection::kStopped;
      break;
    }
    const Judgement j = judgement_of(
        [&] {
          InsideStage s = inside.next(*row.load(k));
          Judgement told{s.verdict, s.why};
          out.stages[k] = std::move(s);
          return told;
        },
        options.stop);
    b.judged[k] = j;
    if (options.judged) options.judged(row.labels[k], j);
    if (j.verdict == Verdict::kBad) {
      b.bad_ones.push_back(k);
      if (b.outcome == Bisection::kAllGood) {
        b.outcome = Bisection::kFound, b.good = good, b.bad = k;
        // Inside it was held against the very stage before, whatever that one's outputs are.
        auto found = out.stages.find(k);
        if (found != out.stages.end() && !found->second.findings.empty() && found->second.findings[0].operands_agree &&
            out.stages.contains(k - 1))
          b.good = k - 1;
      }
    } else if (j.verdict == Verdict::kGood) {
      good = k;
    }
  }
  out.operations = inside.numbers().count.operations;
  bool any = false;
  for (const auto& [k, j] : b.judged) any |= k > 0 && j.verdict != Verdict::kUnknown;
  if (b.outcome == Bisection::kAllGood && !any && row.labels.size() > 1) b.outcome = Bisection::kUnknown;
  return out;
}

Judge inside_judge(const Module& good, const Session& session, const InsideOptions& options) {
  auto inside = std::make_shared<Inside>(session, options.eval, bytes_to_keep(options));
  inside->first(good);
  return [inside](const Module& m) {
    InsideStage s = inside->next(m, false);
    return Judgement{s.verdict, s.why};
  };
}

}  // namespace hlo
