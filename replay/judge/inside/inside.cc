#include "replay/judge/inside/inside.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "replay/judge/inside/stage.h"

namespace hlo {

Inside::Inside(const Session& session, const EvalOptions& options, int64_t most_bytes)
    : stages_(std::make_unique<Stages>(session, options, most_bytes, StageTypes::kWide)),
      numbers_(&stages_->numbers()) {}
Inside::~Inside() = default;

const Numbering& Inside::numbers() const { return *numbers_; }

std::shared_ptr<StageModule> Inside::stage_module(const Module& m) const { return stages_->stage_module(m); }

std::unique_ptr<Inside::Stage> Inside::number(const Module& m, std::shared_ptr<StageModule> module) {
  if (!module) module = stage_module(m);
  auto s = std::make_unique<Stage>();
  s->devices = module->devices;
  s->partitions = std::max<int64_t>(m.config().num_partitions, 1);
  s->walked = stages_->walk(m, module, true);
  leaves_of(stages_->whole_result(m, s->walked), &s->outputs), leaves_of(s->walked.result, &s->local);
  return s;
}

InsideStage Inside::first(const Module& m, std::shared_ptr<StageModule> module) {
  numbers_->stage = 0;
  first_ = number(m, std::move(module));
  last_ = std::make_unique<Stage>(*first_);
  expected_ = first_->outputs;
  InsideStage out;
  Comparison(*numbers_, *last_, *last_, expected_).count(&out);
  out.verdict = Verdict::kGood;
  return out;
}

InsideStage Inside::next(const Module& m, bool keep, std::shared_ptr<StageModule> module) {
  ++numbers_->stage;
  std::unique_ptr<Stage> now = number(m, std::move(module));
  InsideStage out = Comparison(*numbers_, *last_, *now, expected_).judge();
  if (!keep) return out;
  // What is the same but for rounding is held against the older one further on, or many small steps would be none.
  if (out.verdict == Verdict::kBad || expected_.size() != now->outputs.size()) {
    bool known =
        std::none_of(now->outputs.begin(), now->outputs.end(), [&](const Term& t) { return numbers_->why_unknown(t); });
    if (known) expected_ = now->outputs;
  } else {
    for (size_t k = 0; k < expected_.size(); ++k)
      if (numbers_->why_unknown(expected_[k]) && !numbers_->why_unknown(now->outputs[k]))
        expected_[k] = now->outputs[k];
  }
  last_ = std::move(now);
  return out;
}

bool Inside::outputs(Value* out) {
  if (!first_ || first_->devices > 1 || numbers_->why_unknown(first_->walked.result)) return false;
  const Module& m = first_->walked.module->m();
  *out = numbers_->value(first_->walked.result, m.shape_id(m.comp(m.entry()).root), 0);
  return true;
}

InputsTold Inside::inputs() const {
  InputsTold out;
  const Numbering& n = *numbers_;
  const StageNumbers& w = first_->walked;
  const Module& m = w.module->m();
  // What depends on an argument.
  std::unordered_set<NumberId> live;
  std::vector<Term> leaves;
  auto depends = [&](const Term& t) {
    leaves.clear();
    leaves_of(t, &leaves);
    return std::any_of(leaves.begin(), leaves.end(), [&](const Term& l) { return live.contains(l.number); });
  };
  std::unordered_set<NumberId> seen;
  for (const Visit& v : w.visits) {
    bool from = m.op(v.inst) == Opcode::Parameter && m.parent(v.inst) == m.entry();
    for (const Term& o : v.operands) from = from || depends(o);
    if (!from) continue;
    std::vector<Term> own;
    leaves_of(v.term, &own);
    for (const Term& l : own) {
      live.insert(l.number);
      const Sketch& s = n[l.number].sketch;
      if (!n[l.number].known || !s.floats || s.elements < 2 || !seen.insert(l.number).second) continue;
      ++out.floats;
      out.with_nan += s.nan > 0;
      if (s.nan && out.nan_begins.empty()) out.nan_begins = m.inst_name(v.inst);
      out.infinite += s.infinite > 0;
      out.zero += s.largest == 0 && !s.nan && !s.infinite;
      out.uniform += s.uniform && s.largest > 0 && m.op(v.inst) != Opcode::Broadcast;
    }
  }
  for (const Term& t : first_->outputs) {
    const Sketch& s = n[t.number].sketch;
    if (!n[t.number].known || !s.elements) continue;
    ++out.outputs;
    out.dull_outputs += s.nan == s.elements || (s.elements > 1 && s.uniform && !s.nan);
  }
  return out;
}

}  // namespace hlo
