#include "replay/hunt/by_elements.h"

#include <algorithm>
#include <utility>

#include "replay/hunt/annotations.h"

namespace hlo {
namespace {

// Numbers that the device goes by: those that were wrong before are no fault of this stage.
void look_at_annotations(const Module& m, std::vector<std::string>& wrong, ElementsStage* s) {
  for (const WrongAnnotation& w : check_annotations(m).wrong) {
    if (std::find(wrong.begin(), wrong.end(), w.words) != wrong.end()) continue;
    wrong.push_back(w.words);
    if (!s) continue;
    ElementsFinding f;
    f.before = f.after = m.inst_name(w.inst), f.words = w.words;
    if (s->verdict != Verdict::kBad) s->why = fmt::format("{}: {}", f.after, f.words);
    s->findings.push_back(std::move(f));
    s->verdict = Verdict::kBad;
  }
}

// Open stages that are looked at again.
constexpr size_t kMostOpen = 6;

Verdict judged_against(const Candidates& row, const ElementsOptions& elements, size_t before, size_t k) {
  ByElements judge(elements);
  try {
    judge.first(*row.load(before));
    return judge.next(*row.load(k)).verdict;
  } catch (const Failure&) {
    return Verdict::kUnknown;
  }
}

// What stage `k` changes may be what one left open had changed: it is bad where `k` has the values of the stage in
// front of that one, and not of the stages behind it.
struct TakenBack {
  std::optional<size_t> guilty;  // that open stage
  size_t before = 0;             // whose values stage `k` has
};
std::optional<TakenBack> taken_back(const Candidates& row, const ElementsSearch& s, size_t k,
                                    const ElementsOptions& elements, const BisectOptions& options) {
  bool sure = true;
  size_t tried = 0;
  for (auto at = s.stages.lower_bound(k); at != s.stages.begin();) {
    --at;
    if (at == s.stages.begin() || at->second.verdict != Verdict::kUnknown) continue;
    if (++tried > kMostOpen || (options.stop && options.stop())) break;
    const size_t before = std::prev(at)->first;
    const Verdict now = judged_against(row, elements, before, k);
    if (now == Verdict::kGood) return TakenBack{sure ? std::optional(at->first) : std::nullopt, before};
    sure = now == Verdict::kBad;
  }
  return std::nullopt;
}

// The verdicts that follow: stage `k` is no fault then.
void take_back(const Candidates& row, const TakenBack& t, size_t k, ElementsSearch* s) {
  ElementsStage& now = s->stages.at(k);
  const ElementsFinding there = now.findings.empty() ? ElementsFinding() : now.findings[0];
  now.verdict = Verdict::kUnknown, now.findings.clear();
  now.why = fmt::format("has the values of {} again, which a stage between them changed", row.labels[t.before]);
  s->found.judged[k] = {now.verdict, now.why};
  if (!t.guilty) return;
  ElementsStage& bad = s->stages.at(*t.guilty);
  ElementsFinding f;
  const bool named = std::find(bad.begins.begin(), bad.begins.end(), there.before) != bad.begins.end();
  f.before = f.after = named || bad.begins.empty() ? there.before : bad.begins[0];
  f.words = fmt::format("gives another value than before, which {} takes back", row.labels[k]);
  bad.verdict = Verdict::kBad, bad.why = fmt::format("{}: {}", f.after, f.words);
  bad.findings = {std::move(f)};
  s->found.judged[*t.guilty] = {bad.verdict, bad.why};
}

}  // namespace

ElementsSearch search_by_elements(const Candidates& row, const Module& first, const ElementsOptions& elements,
                                  const BisectOptions& options,
                                  const std::function<void(size_t, const ElementsStage&)>& told) {
  ElementsSearch out;
  ByElements judge(elements);
  Bisection& b = out.found;
  out.stages[0] = judge.first(first);
  if (told) told(0, out.stages[0]);
  std::vector<std::string> wrong;
  look_at_annotations(first, wrong, nullptr);
  b.judged[0] = {Verdict::kGood, "the stage that the others are compared with"};
  b.outcome = Bisection::kAllGood;
  auto stopped = [&] {
    if (b.outcome != Bisection::kFound) b.outcome = Bisection::kStopped;
  };
  size_t last = 0;
  bool any = row.labels.size() < 2;
  for (size_t k = 1; k < row.labels.size(); ++k) {
    if (options.stop && options.stop()) {
      stopped();
      break;
    }
    Judgement j;
    bool by_values = false;  // bad, not by an annotation alone
    if (row.same && last == k - 1 && row.same(k)) {
      ElementsStage same = out.stages.at(last);
      same.verdict = Verdict::kGood, same.why.clear(), same.findings.clear(), same.not_compared.clear();
      same.changed = same.compared = 0, same.outputs_same = same.outputs;
      out.stages[k] = std::move(same);
      j = {Verdict::kGood, ""};
    } else {
      out.unread.insert(k);
      const std::optional<Judgement> asked = judgement_unless_stopped(
          [&] {
            const std::unique_ptr<Module> m = row.load(k);
            out.unread.erase(k);
            ElementsStage s = judge.next(*m);
            by_values = s.verdict == Verdict::kBad;
            look_at_annotations(*m, wrong, &s);
            Judgement said{s.verdict, s.why};
            out.stages[k] = std::move(s);
            return said;
          },
          options.stop);
      if (!asked) {
        out.unread.erase(k);
        stopped();
        break;
      }
      j = *asked;
    }
    const size_t before = std::exchange(last, out.stages.contains(k) ? k : last);
    b.judged[k] = j;
    any |= j.verdict != Verdict::kUnknown;
    if (told && out.stages.contains(k)) told(k, out.stages.at(k));
    if (options.judged) options.judged(row.labels[k], j);
    if (j.verdict != Verdict::kBad) continue;
    size_t good = before, bad = k;
    const bool ask = by_values && b.outcome != Bisection::kFound;
    if (const auto t = ask ? taken_back(row, out, k, elements, options) : std::nullopt) {
      take_back(row, *t, k, &out);
      if (!t->guilty) continue;
      good = t->before, bad = *t->guilty;
    }
    b.bad_ones.push_back(bad);
    if (b.outcome == Bisection::kFound) continue;
    b.outcome = Bisection::kFound, b.good = good, b.bad = bad;
  }
  if (b.outcome == Bisection::kAllGood && !any) b.outcome = Bisection::kUnknown;
  return out;
}

}  // namespace hlo
