#include "replay/hunt/by_elements.h"

#include <algorithm>
#include <utility>

#include "replay/hunt/inside/annotations.h"

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
    b.bad_ones.push_back(k);
    if (b.outcome == Bisection::kFound) continue;
    b.outcome = Bisection::kFound, b.good = before, b.bad = k;
  }
  if (b.outcome == Bisection::kAllGood && !any) b.outcome = Bisection::kUnknown;
  return out;
}

}  // namespace hlo
