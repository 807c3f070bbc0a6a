#include "replay/hunt/inside/search.h"

#include <algorithm>

#include "ir/base/memory.h"
#include "ir/eval/kernels.h"
#include "replay/hunt/annotations.h"
#include "replay/judge/values/inputs.h"

namespace hlo {
namespace {

// A value in f64 in the types that another one has, where it has floats.
Value narrowed(const Universe& u, const Value& high, const Value& like) {
  Value out = high;
  out.shape = like.shape;
  for (size_t k = 0; k < out.elements.size() && k < like.elements.size(); ++k)
    out.elements[k] = narrowed(u, high.elements[k], like.elements[k]);
  const Shape &from = u[high.shape], &to = u[like.shape];
  bool floats = is_float(to.type) || is_complex(to.type);
  if (!floats || !from.is_array() || !to.is_array() || from.type == to.type || from.dims != to.dims) return out;
  out.data = new_array(u, like.shape);
  convert_kernel(from.type, to.type, to.elements_count(), high.bytes(), out.mutable_bytes());
  return out;
}

}  // namespace

Judgement in_own_types(const Module& m, const Session& session, const EvalOptions& options, double tolerance,
                       const Value& high) {
  Value got = session.run(m, *find_executor("evaluator"), options, 1, false);
  Comparison c = compare_results(m.u(), got, narrowed(m.u(), high, got), tolerance);
  return c.equal ? good_within(c) : Judgement{Verdict::kUnknown, c.first_difference()->why};
}

namespace {

// One set of inputs, stage after stage.
class Row {
 public:
  Row(std::unique_ptr<Inside> inside, InsideSearch* out) : inside_(std::move(inside)), out_(out) {
    out_->operations_first = inside_->numbers().count.operations;
    out_->found.judged[0] = {Verdict::kGood, "the stage that the others are compared with"};
    out_->found.outcome = Bisection::kAllGood;
  }
  Judgement look(size_t k, const Module& m, std::shared_ptr<StageModule> module) {
    InsideStage s = inside_->next(m, true, std::move(module));
    look_at_annotations(m, &s);
    Judgement told{s.verdict, s.why};
    out_->stages[k] = std::move(s);
    return told;
  }
  // Those that were wrong when they came are no pass's fault.
  void begin(const Module& first) {
    for (const WrongAnnotation& w : check_annotations(first).wrong) wrong_.push_back(w.words);
  }
  void look_at_annotations(const Module& m, InsideStage* s) {
    const Annotations found = check_annotations(m);
    s->annotations = found.checked, s->annotations_not_checked = found.not_checked;
    for (const WrongAnnotation& w : found.wrong) {
      if (std::find(wrong_.begin(), wrong_.end(), w.words) != wrong_.end()) continue;
      wrong_.push_back(w.words);
      InsideFinding f;
      f.after = w.inst, f.difference = w.words, f.annotation = f.operands_agree = true;
      f.region_after = {w.inst};
      s->findings.push_back(std::move(f));
      if (s->verdict != Verdict::kBad) s->why = fmt::format("{}: {}", m.inst_name(w.inst), w.words);
      s->verdict = Verdict::kBad;
    }
  }
  // A stage that is the one before, which was good, is good.
  bool may_repeat(size_t k) const {
    auto before = out_->found.judged.find(k - 1);
    return before != out_->found.judged.end() && before->second.verdict == Verdict::kGood &&
           out_->stages.contains(k - 1);
  }
  Judgement repeat(size_t k) {
    InsideStage s = out_->stages.at(k - 1);
    s.same = s.values - s.unknown, s.changed = s.fresh = s.touched = s.not_compared = 0;
    out_->stages[k] = std::move(s);
    take(k, {Verdict::kGood, ""});
    return {Verdict::kGood, ""};
  }
  std::shared_ptr<StageModule> stage_module(const Module& m) const { return inside_->stage_module(m); }
  void take(size_t k, const Judgement& j) {
    Bisection& b = out_->found;
    b.judged[k] = j;
    if (j.verdict == Verdict::kGood) good_ = k;
    if (j.verdict != Verdict::kBad) return;
    b.bad_ones.push_back(k);
    if (b.outcome != Bisection::kAllGood) return;
    b.outcome = Bisection::kFound, b.good = good_, b.bad = k;
    // Inside it was held against the very stage before, whatever that one's outputs are.
    auto found = out_->stages.find(k);
    if (found != out_->stages.end() && !found->second.findings.empty() && found->second.findings[0].operands_agree &&
        out_->stages.contains(k - 1))
      b.good = k - 1;
  }
  void stopped() {
    if (out_->found.outcome != Bisection::kFound) out_->found.outcome = Bisection::kStopped;
  }
  void end(size_t stages) {
    Bisection& b = out_->found;
    out_->operations = inside_->numbers().count.operations;
    bool any = false;
    for (const auto& [k, j] : b.judged) any |= k > 0 && j.verdict != Verdict::kUnknown;
    if (b.outcome == Bisection::kAllGood && !any && stages > 1) b.outcome = Bisection::kUnknown;
  }

 private:
  std::unique_ptr<Inside> inside_;
  std::vector<std::string> wrong_;  // annotations, told already
  InsideSearch* out_;
  size_t good_ = 0;
};

// More than others keep where a few arrays would fill that.
int64_t bytes_for(const Module& m, int64_t asked) {
  const int64_t usual = bytes_to_keep(asked);
  return asked > 0 ? usual : std::max(usual, std::min(available_memory().bytes / 4, 2 * bytes_inside(m)));
}

// The first stage, with inputs that tell something where there are such.
std::unique_ptr<Inside> begun(InsideSearch& out, const Module& first, const Session& session,
                              const InsideOptions& options) {
  auto begin = [&](const Session& with) {
    auto one = std::make_unique<Inside>(with, options.eval, bytes_for(first, options.most_bytes));
    out.stages[0] = one->first(first);
    out.told = one->inputs();
    if (!one->outputs(&out.outputs)) out.outputs = Value();
    return one;
  };
  std::unique_ptr<Inside> own = begin(session);
  if (out.told.tell() || !options.others) return own;
  const Session* with = nullptr;
  for (int attempt = 1; (with = options.others(attempt)); ++attempt) {
    own.reset();
    own = begin(*with);
    out.attempt = attempt;
    if (out.told.tell()) return own;
  }
  own.reset();  // none is better
  own = begin(session);
  out.attempt = 0;
  return own;
}

}  // namespace

InsideSearch search_inside(const Candidates& row, const Module& first, const Session& session,
                           const InsideOptions& options) {
  InsideSearch out;
  Row own(begun(out, first, session, options), &out);
  if (options.only && !options.only(out.told)) {
    out.found.outcome = Bisection::kUnknown;
    return out;
  }
  own.begin(first);
  std::unique_ptr<Row> second;
  if (options.second) {
    InsideOptions alone = options;
    alone.others = nullptr;
    out.second = std::make_unique<InsideSearch>();
    second = std::make_unique<Row>(begun(*out.second, first, *options.second, alone), out.second.get());
    second->begin(first);
  }
  for (size_t k = 1; k < row.labels.size(); ++k) {
    if (options.stop && options.stop()) {
      own.stopped();
      break;
    }
    if (row.same && own.may_repeat(k) && (!second || second->may_repeat(k)) && row.same(k)) {
      const Judgement j = own.repeat(k);
      if (second) second->repeat(k);
      if (options.judged) options.judged(row.labels[k], j);
      continue;
    }
    std::unique_ptr<Module> m;
    std::shared_ptr<StageModule> module;
    std::optional<Judgement> j = judgement_unless_stopped(
        [&] {
          m = row.load(k);
          module = own.stage_module(*m);
          return own.look(k, *m, module);
        },
        options.stop);
    if (j) {
      own.take(k, *j);
      if (options.judged) options.judged(row.labels[k], *j);
      if (out.found.outcome == Bisection::kFound) second.reset(), out.second.reset();
      if (second && module) j = judgement_unless_stopped([&] { return second->look(k, *m, module); }, options.stop);
      if (second && j) second->take(k, *j);
    }
    if (!j) {
      own.stopped();
      break;
    }
  }
  own.end(row.labels.size());
  if (second) second->end(row.labels.size());
  return out;
}

Judge inside_judge(const Module& good, const Session& session, const InsideOptions& options) {
  auto inside = std::make_shared<Inside>(session, options.eval, bytes_to_keep(options.most_bytes));
  inside->first(good);
  return [inside](const Module& m) {
    InsideStage s = inside->next(m, false);
    return Judgement{s.verdict, s.why};
  };
}

}  // namespace hlo
