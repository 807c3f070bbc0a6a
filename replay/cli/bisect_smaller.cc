#include "replay/cli/bisect_smaller.h"

#include "replay/cli/bisect_report.h"
#include "replay/judge/inside/edges.h"
#include "replay/judge/inside/inputs.h"
#include "replay/os/interrupt.h"

namespace hlo {
namespace {

// Draws that are tried at full size.
constexpr uint64_t kDrawsToConfirm = 3;
// Programs larger than that are looked at with one set of inputs.
constexpr int64_t kLargestPairTwice = int64_t{64} << 20;

}  // namespace

AtSmallerSizes judge_at_smaller_sizes(const Candidates& row, size_t before, size_t stage, const InputOptions& inputs,
                                      const BisectArgs& a) {
  AtSmallerSizes out;
  const std::unique_ptr<Module> good = row.load(before);
  if (too_large_to_run(*good)) {
    out.why = "it is too large to run with smaller arrays, too";
    return out;
  }
  const Session session(*good, inputs);
  std::vector<std::unique_ptr<Session>> others;
  auto with_arguments = [&](std::vector<Value> arguments) {
    others.push_back(std::make_unique<Session>(session));
    others.back()->set_arguments(std::move(arguments));
    return others.back().get();
  };
  InsideOptions o;
  o.eval = eval_options(a), o.stop = o.eval.stop = interrupted;
  o.others = [&](int attempt) -> const Session* {
    if (attempt > 3) return nullptr;
    return with_arguments(scaled_arguments(*good, session.arguments(), attempt == 1 ? 1 : 8, attempt != 2));
  };
  if (has_edges(*good) && bytes_inside(*good) <= kLargestPairTwice)
    o.second = with_arguments(edge_arguments(*good, session.arguments()));
  const Candidates two{{row.labels[before], row.labels[stage]},
                       {row.keys[before], row.keys[stage]},
                       [&](size_t k) { return row.load(k ? stage : before); },
                       nullptr};
  auto found = std::make_unique<InsideSearch>(search_inside(two, *good, session, o));
  if (found->found.outcome != Bisection::kFound && found->second && found->second->found.outcome == Bisection::kFound)
    found = std::move(found->second);
  const auto judged = found->found.judged.find(1);
  const auto inside = found->stages.find(1);
  if (judged != found->found.judged.end()) out.why = judged->second.detail;
  if (found->found.outcome == Bisection::kFound) {
    out.verdict = Verdict::kBad;
    if (inside != found->stages.end()) {
      InsideStage moved = std::move(inside->second);
      found->stages.clear();
      found->stages.emplace(stage, std::move(moved));
    }
    out.search = std::move(found);
  } else if (found->found.outcome == Bisection::kAllGood && inside != found->stages.end()) {
    if (!found->told.tell())
      out.why = "the inputs tell little there";
    else if (inside->second.not_compared)
      out.why = inside->second.not_compared_why;
    else
      out.verdict = Verdict::kGood;
  }
  return out;
}

AtFullSize at_full_size(const Module& before, const Module& stage, uint64_t seed) {
  AtFullSize out;
  for (uint64_t k = 0; k < kDrawsToConfirm && !interrupted(); ++k) {
    ElementsOptions o;
    o.seed = seed + k, o.stop = interrupted;
    try {
      ByElements judge(o);
      judge.first(before);
      const ElementsStage s = judge.next(stage);
      if (s.verdict == Verdict::kBad && !s.findings.empty()) {
        out.seen = s.findings[0], out.same = false;
        return out;
      }
      out.same = s.verdict == Verdict::kGood && s.compared == s.changed && (k == 0 || out.same);
    } catch (const Failure&) {  // nothing is told there
      return {};
    }
  }
  return out;
}

}  // namespace hlo
