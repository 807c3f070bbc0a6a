#include "replay/judge/chosen/pair/unrolled.h"

#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/device_classes.h"

namespace hlo {
namespace {

// Elements that both stages may cost, trip by trip.
constexpr int64_t kForTrips = int64_t{1} << 25;

}  // namespace

std::optional<int64_t> FixedNumbers::number(ExprId e) {
  if (const auto at = known_.find(e); at != known_.end()) return at->second;
  std::optional<int64_t>& out = known_[e];
  const Expr& x = s_.all[e];
  const Shape& shape = x.m->u()[x.shape];
  const TypeKind kind = type_kind(shape.type);
  const bool counts = kind == TypeKind::kBool || kind == TypeKind::kSigned || kind == TypeKind::kUnsigned;
  if (!counts || shape.elements_count() != 1 || !s_.is_fixed(e) || s_.all.devices().of(e) != DeviceClasses::kAll)
    return out;
  ChosenElements::Options options;
  options.most_elements = 1 << 12;
  options.devices = s_.all.devices().devices() > 1 ? &s_.all.devices() : nullptr;
  bool drawn = false;
  ChosenElements elements(
      s_.all.all(), [&](ExprId, std::span<const int64_t>, char*) { drawn = true; }, options);
  const int64_t zero = 0;
  try {
    const std::vector<char> bytes = elements.at(e, std::span<const int64_t>(&zero, 1));
    if (!drawn) out = kind == TypeKind::kBool ? bytes[0] != 0 : load_int(shape.type, bytes.data());
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported) throw;
  }
  return out;
}

ExprId FixedNumbers::of_number(ExprId e, int64_t number) {
  const Expr& x = s_.all[e];
  return first_.try_emplace({x.m->u()[x.shape].type, number}, e).first->second;
}

// Are the two stages the same, trip by trip? Only that is told: an instruction is met as often as its loop goes round.
bool ByElements::same_by_trips(const ExprStage& stage, std::shared_ptr<const Module> wide) {
  State& s = *state_;
  // Where all loops give what loops gave before, trips tell nothing more.
  const bool other = std::any_of(stage.loops_met.begin(), stage.loops_met.end(), [&](const LoopVisit& v) {
    return std::any_of(v.result.begin(), v.result.end(), [&](ExprId e) { return !s.has(e); });
  });
  if (!other && stage.loops == s.before.loops) return false;
  s.kept.push_back(s.before.wide);  // it may have had no expression of its own until now
  FixedNumbers numbers(s);
  ExpressionWalk before(s.all, s.before.wide, nullptr);
  before.follow(&numbers);
  ExprStage unrolled = before.run();
  if (!numbers.loops) return false;
  s.take(std::move(unrolled));
  s.most_now = s.spent + kForTrips;
  s.options.most_in_all += kForTrips;
  Pair pair(s, std::move(wide));
  pair.follow(&numbers);
  ExprStage now;
  return pair.judge(&now).verdict == Verdict::kGood;
}

}  // namespace hlo
