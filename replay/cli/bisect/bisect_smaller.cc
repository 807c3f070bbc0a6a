// bisect over a folder: at smaller sizes.
#include <algorithm>
#include <utility>

#include "ir/eval/inputs.h"
#include "replay/cli/bisect/bisect_folder.h"
#include "replay/judge/values/edges.h"
#include "replay/judge/values/inputs.h"
#include "replay/os/interrupt.h"

namespace hlo {
namespace {

// Draws that are tried at full size.
constexpr uint64_t kDrawsToConfirm = 3;
// Programs larger than that are looked at with one set of inputs.
constexpr int64_t kLargestPairTwice = int64_t{64} << 20;

// Inputs besides that a stage is looked at with, as many as so many bytes of arrays are in all.
constexpr int64_t kTurnsOfPair = 64, kBytesOfTurns = int64_t{256} << 20;

// Accusations by small arrays that full size does not bear out, after which the next one is told.
constexpr size_t kMostRefuted = 6;

struct AtSmallerSizes {
  Verdict verdict = Verdict::kUnknown;  // good: every changed instruction was compared
  std::string why;
  std::unique_ptr<InsideSearch> search;  // of a bad one, which stands under its own place in the row
};

// One stage of the row against the one that stands `before` it, both as `row` loads them: with small arrays. Throws
// what running them throws.
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
  // Where these find nothing: few elements, by many draws, each other one of numbers that reach bounds.
  auto reach = [&](uint64_t turn) {
    return with_arguments(turn == 0   ? scaled_arguments(*good, session.arguments(), 8, true)
                          : turn == 1 ? balanced_arguments(*good, session.arguments())
                                      : seeded_arguments(*good, (turn % 2 ? kReachingFrom : a.seed) + turn, false));
  };
  const Candidates two{{row.labels[before], row.labels[stage]},
                       {row.keys[before], row.keys[stage]},
                       [&](size_t k) { return row.load(k ? stage : before); },
                       nullptr};
  auto found = std::make_unique<InsideSearch>(search_inside(two, *good, session, o));
  if (found->found.outcome != Bisection::kFound && found->second && found->second->found.outcome == Bisection::kFound)
    found = std::move(found->second);
  const int64_t turns = std::min(kTurnsOfPair, kBytesOfTurns / std::max<int64_t>(bytes_inside(*good), 1));
  InsideOptions further = o;
  further.others = nullptr, further.second = nullptr;
  further.only = [&](const InputsTold& told) {
    return told.with_nan <= found->told.with_nan && told.infinite <= found->told.infinite;
  };
  for (int64_t k = 0; k < turns && found->found.outcome == Bisection::kAllGood && !interrupted(); ++k) {
    const auto turn = static_cast<uint64_t>(k);
    auto more = std::make_unique<InsideSearch>(search_inside(two, *good, *reach(turn), further));
    others.pop_back();
    if (more->found.outcome == Bisection::kFound) found = std::move(more);
  }
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
      out.why = "the inputs show little there";
    else if (inside->second.not_compared)
      out.why = inside->second.not_compared_why;
    else
      out.verdict = Verdict::kGood;
  }
  return out;
}

// What smaller sizes accuse, at full size: at chosen elements, by several draws.
struct AtFullSize {
  std::optional<ElementsFinding> seen;  // it is wrong there, too
  bool same = false;                    // it is not: all that it changes was compared there
};
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

}  // namespace

void FolderBisection::tell_smaller(const SmallerPlan& plan) {
  told_["smaller"] = {{"sizes", sizes_json(plan)}, {"confirmed", false}, {"open", Json()},
                      {"stages", Json()},          {"values", Json()},   {"refuted", Json::array()}};
}

// All stages with small arrays, where no other way to judge them is left. False where that is none, either.
bool FolderBisection::run_smaller() {
  if (plan_ || !a_.inputs.empty() || !a_.outputs.empty() || !a_.resume.empty()) return false;
  if (!(plan_ = smaller_plan(a_, paths_, true))) return false;
  tell_smaller(*plan_), elided_.reset(), first_ = row_.load(0);
  return true;
}

// Stages that chosen elements leave open, by a smaller program: they are good there, or one is accused.
void FolderBisection::close_open(Bisection& b) {
  const bool found = b.outcome == Bisection::kFound || b.outcome == Bisection::kStopped;
  if (open_.empty() || found || a_.elements || a_.smaller || interrupted()) return;
  if (!(plan_ = smaller_plan(a_, paths_, true))) return;
  tell_smaller(*plan_);
  std::unique_ptr<ElidedConstants> whole = std::exchange(elided_, nullptr);
  size_t closed = 0, values = 0, done = 0;
  Progress progress("bisecting " + a_.file + " at smaller sizes");
  for (const auto& [k, open] : open_) {
    if (interrupted()) break;
    progress.at(done++, open_.size(), row_.labels[k]);
    AtSmallerSizes s;
    const std::optional<Judgement> asked = judgement_unless_stopped(
        [&, k = k, open = open] {
          s = judge_at_smaller_sizes(row_, open.before, k, inputs_, a_);
          return Judgement{s.verdict, s.why};
        },
        interrupted);
    if (!asked || asked->verdict == Verdict::kUnknown || (asked->verdict == Verdict::kBad && !s.search)) continue;
    if (asked->verdict == Verdict::kBad) {
      // What is folded from made-up constants stays open.
      if (inputs_.fill_elided.empty() && constants().folds_made_up(from_ + open.before, from_ + k)) continue;
      Bisection accused = b;
      accused.outcome = Bisection::kFound, accused.good = open.before, accused.bad = k, accused.bad_ones = {k};
      accused.judged[k] = *asked;
      inside_ = std::move(s.search);
      const bool differs = confirm(accused);
      if (differs && told_["smaller"]["confirmed"] == true) {
        b = std::move(accused);
        elided_ = std::move(whole);
        return;
      }
      inside_.reset();
      // That small arrays alone show it is a guess: it stays open.
      if (differs) {
        b.judged[k].detail += "; with small arrays it differs (--smaller): " + asked->detail;
        continue;
      }
    }
    ++closed, values += open.values;
    b.judged[k] = {Verdict::kGood, "at smaller sizes"};
    so_far_.judged(from_ + k, b.judged[k]);
    b.outcome = Bisection::kAllGood;
  }
  told_["smaller"]["open"] = open_.size(), told_["smaller"]["stages"] = closed, told_["smaller"]["values"] = values;
  plan_.reset(), elided_ = std::move(whole);
}

bool FolderBisection::confirm(Bisection& b) {
  const LoadOptions options{.universe = std::make_shared<Universe>()};
  auto whole = [&](size_t k) { return load_verified(paths_[from_ + k], !a_.no_verify, nullptr, options); };
  AtFullSize full;
  try {
    full = at_full_size(*whole(b.good), *whole(b.bad), a_.seed);
  } catch (const Failure&) {  // one does not verify, which small arrays have told
  }
  if (full.same && refuted_.size() < kMostRefuted) {
    refuted_.push_back(row_.labels[b.bad]);
    return false;
  }
  told_["smaller"]["confirmed"] = full.seen.has_value();
  if (full.seen) plan_.reset(), inside_.reset(), by_elements_ = true, elements_finding_ = std::move(full.seen);
  return true;
}

std::unique_ptr<Module> FolderBisection::smaller(std::unique_ptr<Module> m) {
  return plan_ ? with_sizes(*m, plan_->choice) : std::move(m);
}

}  // namespace hlo
