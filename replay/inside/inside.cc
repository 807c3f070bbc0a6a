#include "replay/inside/inside.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ir/base/hash.h"
#include "ir/eval/widen.h"
#include "replay/inside/stage.h"
#include "replay/shards.h"

namespace hlo {

Inside::Inside(const Session& session, const EvalOptions& options, int64_t most_bytes)
    : session_(session), options_(options), numbers_(std::make_unique<Numbering>(session.universe(), most_bytes)) {}
Inside::~Inside() = default;

const Numbering& Inside::numbers() const { return *numbers_; }

std::vector<Term> Inside::arguments(const Module& m, int64_t devices) {
  Universe& u = m.u();
  const std::vector<Value>& given = session_.arguments();
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  if (params.size() != given.size())
    fail(FailureKind::kUsage, "the module takes {} arguments, {} were given", params.size(), given.size());
  std::vector<Term> out;
  for (size_t k = 0; k < params.size(); ++k) {
    ShapeId local = m.shape_id(params[k]);
    bool same = u.compatible(local, given[k].shape);
    std::string_view sharding = u.text(m.attrs(params[k]).text(Attr::sharding));
    uint64_t key = hash_combine(hash_combine(0xA26, k), same ? 0 : hash_bytes(sharding));
    if (!same) key = hash_combine(key, hash_bytes(u.shape_text_plain(local)));
    bool found = false;
    Term t = numbers_->find(key, &found);
    if (!found) {
      std::vector<Value> each;
      for (int64_t d = 0; d < (same ? 1 : devices); ++d) {
        int64_t partition = d % std::max<int64_t>(m.config().num_partitions, 1);
        each.push_back(widened_value(u, same ? given[k] : shard_of(u, given[k], local, sharding, partition)));
      }
      t = numbers_->place(std::move(each));
      numbers_->set(key, t);
    }
    out.push_back(t);
  }
  return out;
}

namespace {

void leaves_of(const Term& t, std::vector<Term>* out) {
  if (t.is_array()) out->push_back(t);
  if (t.elements)
    for (const Term& e : *t.elements) leaves_of(e, out);
}

}  // namespace

// Of partitions' shards the whole arrays.
void Inside::take_outputs(const Module& m, Stage& s) {
  Universe& u = m.u();
  ShapeId local = m.shape_id(m.comp(m.entry()).root);
  if (s.devices == 1 || u.compatible(local, session_.result_shape()) || numbers_->why_unknown(s.walked.result)) {
    leaves_of(s.walked.result, &s.outputs);
    // What each device holds for itself is the same, or the first one's counts as in Session::run.
    return;
  }
  std::string_view sharding = u.text(m.attrs(m.comp(m.entry()).root).text(Attr::sharding));
  if (sharding.empty()) sharding = session_.output_sharding();
  uint64_t key = hash_combine(hash_combine(0xA55E, Numbering::hash(*numbers_, s.walked.result)), hash_bytes(sharding));
  bool found = false;
  Term whole = numbers_->find(key, &found);
  if (!found) {
    std::vector<Value> shards;
    for (int64_t d = 0; d < std::max<int64_t>(m.config().num_partitions, 1); ++d)
      shards.push_back(numbers_->value(s.walked.result, widened_shape(u, local), d));
    whole = numbers_->place({assembled(u, shards, widened_shape(u, session_.result_shape()), sharding)});
    numbers_->set(key, whole);
  }
  leaves_of(whole, &s.outputs);
}

std::shared_ptr<StageModule> Inside::stage_module(const Module& m) const {
  Universe& u = m.u();
  int64_t devices = devices_needed(m);
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  for (size_t k = 0; k < std::min(params.size(), session_.arguments().size()); ++k)
    if (!u.compatible(m.shape_id(params[k]), session_.arguments()[k].shape))
      devices = std::max(devices, device_count(m));
  if (devices > kMostDevices)
    fail(FailureKind::kUnsupported, "the module runs on {} devices, at most {} are simulated", devices, kMostDevices);
  return std::make_shared<StageModule>(m, options_, devices);
}

std::unique_ptr<Inside::Stage> Inside::number(const Module& m, std::shared_ptr<StageModule> module) {
  if (!module) module = stage_module(m);
  auto s = std::make_unique<Stage>();
  s->devices = module->devices;
  s->partitions = std::max<int64_t>(m.config().num_partitions, 1);
  s->walked = StageWalk(*numbers_, module).run(arguments(m, module->devices));
  take_outputs(m, *s);
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
  bool known =
      std::none_of(now->outputs.begin(), now->outputs.end(), [&](const Term& t) { return numbers_->why_unknown(t); });
  if (known) expected_ = now->outputs;
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
