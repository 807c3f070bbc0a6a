#include "replay/judge/values/stages.h"

#include <algorithm>

#include "ir/base/hash.h"
#include "ir/base/memory.h"
#include "ir/eval/widen.h"
#include "replay/compare/shards.h"

namespace hlo {

Stages::Stages(const Session& session, EvalOptions options, int64_t most_bytes, StageTypes types)
    : session_(session),
      options_(std::move(options)),
      types_(types),
      numbers_(session.universe(), most_bytes, types == StageTypes::kOwn) {}

ShapeId Stages::in_types(ShapeId shape) const {
  return types_ == StageTypes::kWide ? widened_shape(*session_.universe(), shape) : shape;
}

std::vector<Term> Stages::arguments(const Module& m, int64_t devices) {
  Universe& u = m.u();
  const std::vector<Value>& given = session_.arguments();
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  if (params.size() != given.size())
    fail(FailureKind::kUsage, "the module takes {} arguments, {} were given", params.size(), given.size());
  std::vector<Term> out;
  for (size_t k = 0; k < params.size(); ++k) {
    ShapeId local = m.shape_id(params[k]);
    bool same = u.compatible(local, given[k].shape);
    std::string_view sharding = session_.sharding_of(m, k);
    uint64_t key = hash_combine(hash_combine(0xA26, k), same ? 0 : hash_bytes(sharding));
    if (!same) key = hash_combine(key, hash_bytes(u.shape_text_plain(local)));
    bool found = false;
    Term t = numbers_.find(key, &found);
    if (!found) {
      std::vector<Value> each;
      for (int64_t d = 0; d < (same ? 1 : devices); ++d) {
        int64_t partition = d % std::max<int64_t>(m.config().num_partitions, 1);
        Value v = same ? given[k] : shard_of(u, given[k], local, sharding, partition);
        each.push_back(types_ == StageTypes::kWide ? widened_value(u, v) : std::move(v));
      }
      t = numbers_.place(std::move(each));
      numbers_.set(key, t);
    }
    out.push_back(t);
  }
  return out;
}

int64_t bytes_to_keep(int64_t asked) {
  return asked > 0 ? asked : std::min(available_memory().bytes / 4, int64_t{3} << 30);
}

void leaves_of(const Term& t, std::vector<Term>* out) {
  if (t.is_array()) out->push_back(t);
  if (t.elements)
    for (const Term& e : *t.elements) leaves_of(e, out);
}

// What each device holds for itself is the same, or the first one's counts as in Session::run.
bool Stages::shards_make_result(const Module& m, const StageNumbers& walked) const {
  ShapeId local = m.shape_id(m.comp(m.entry()).root);
  return walked.module->devices > 1 && !m.u().compatible(local, session_.result_shape());
}

Term Stages::whole_result(const Module& m, const StageNumbers& walked) {
  if (!shards_make_result(m, walked) || numbers_.why_unknown(walked.result)) return walked.result;
  Universe& u = m.u();
  InstId root = m.comp(m.entry()).root;
  std::string_view sharding = session_.result_sharding(m);
  uint64_t key = hash_combine(hash_combine(0xA55E, Numbering::hash(numbers_, walked.result)), hash_bytes(sharding));
  bool found = false;
  Term whole = numbers_.find(key, &found);
  if (!found) {
    std::vector<Value> shards;
    for (int64_t d = 0; d < std::max<int64_t>(m.config().num_partitions, 1); ++d)
      shards.push_back(numbers_.value(walked.result, in_types(m.shape_id(root)), d));
    whole = numbers_.place({assembled(u, shards, in_types(session_.result_shape()), sharding)});
    numbers_.set(key, whole);
  }
  return whole;
}

std::shared_ptr<StageModule> Stages::stage_module(const Module& m) const {
  Universe& u = m.u();
  int64_t devices = devices_needed(m);
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  for (size_t k = 0; k < std::min(params.size(), session_.arguments().size()); ++k)
    if (!u.compatible(m.shape_id(params[k]), session_.arguments()[k].shape))
      devices = std::max(devices, device_count(m));
  if (devices > kMostDevices)
    fail(FailureKind::kUnsupported, "the module runs on {} devices, at most {} are simulated", devices, kMostDevices);
  return std::make_shared<StageModule>(m, options_, devices, types_);
}

StageNumbers Stages::walk(const Module& m, std::shared_ptr<StageModule> module, bool remember,
                          const std::unordered_map<InstId, Term>* instead) {
  int64_t devices = module->devices;
  return StageWalk(numbers_, std::move(module), remember, instead).run(arguments(m, devices));
}

bool Stages::run(const Module& m, bool take_rounded, std::shared_ptr<StageModule>* module, Ran* out) {
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (i.valid() && role_of(m, i) == Role::kDraw) return false;
  if (!*module) *module = stage_module(m);
  ++numbers_.stage;
  numbers_.take_rounded = take_rounded, numbers_.taken = 0;
  StageNumbers walked = walk(m, *module, false);
  numbers_.take_rounded = false;
  if (numbers_.why_unknown(walked.result)) return false;
  out->shards = shards_make_result(m, walked);
  out->whole = whole_result(m, walked);
  out->known = Numbering::hash(numbers_, out->whole);
  out->rounded = numbers_.taken;
  return true;
}

Value Stages::result(const Module& m, const Ran& ran) {
  return numbers_.value(ran.whole, ran.shards ? in_types(session_.result_shape()) : m.shape_id(m.comp(m.entry()).root),
                        0);
}

}  // namespace hlo
