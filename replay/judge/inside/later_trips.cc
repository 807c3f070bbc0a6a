// Loops that begin with the same state and end with another: the trip in which they part is looked into.
#include <algorithm>
#include <functional>

#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"
#include "replay/judge/values/walk.h"

namespace hlo {
namespace {

constexpr int64_t kMostTrips = 1 << 20;
constexpr int kMostTripsTried = 8;

bool parts(const Universe& u, const Value& a, const Value& b) {
  for (size_t k = 0; k < a.elements.size(); ++k)
    if (parts(u, a.elements[k], b.elements[k])) return true;
  if (!a.data || !b.data) return false;
  return deviation(u, std::span(&a, 1), std::span(&b, 1)) > 1e-9;
}

// For each element of `now` one of `before`, in the same order, that it agrees with; empty where there is none.
// `last`: of those that do the last one, else the first.
std::vector<size_t> in_order(size_t now, size_t before, bool last, const std::function<bool(size_t, size_t)>& agrees) {
  std::vector<size_t> out(now);
  size_t taken = 0;
  for (size_t k = 0; k < now; ++k) {
    const size_t own = last ? now - 1 - k : k;
    while (taken < before && !agrees(own, last ? before - 1 - taken : taken)) ++taken;
    if (taken == before) return {};
    out[own] = last ? before - 1 - taken : taken;
    ++taken;
  }
  return out;
}

Value elements_of(const Value& v, const std::vector<size_t>& which, ShapeId shape) {
  Value out;
  out.shape = shape;
  for (size_t k : which) out.elements.push_back(v.elements[k]);
  return out;
}

Term elements_of(const Term& t, const std::vector<size_t>& which, ShapeId shape) {
  std::vector<Term> elements;
  for (size_t k : which) elements.push_back((*t.elements)[k]);
  Term out;
  out.shape = shape;
  out.elements = std::make_shared<const std::vector<Term>>(std::move(elements));
  return out;
}

}  // namespace

// Which elements of the old loop's state this one's are: all, in their order, or without those that a pass has taken
// out. Empty where the two do not begin alike.
std::vector<size_t> Inside::Comparison::elements_of_loop(uint32_t now, uint32_t before) {
  const Visit &v = b_.walked.visits[now], &w = a_.walked.visits[before];
  const Term &init = v.operands[0], &old = w.operands[0];
  if (!init.elements || !old.elements || n_.why_unknown(init) || n_.why_unknown(old)) return {};
  auto same = [&](size_t k, size_t o) {
    const Term &x = (*init.elements)[k], &y = (*old.elements)[o];
    return agrees(x, y) && b_.walked.module->m().u().compatible(x.shape, y.shape);
  };
  const size_t count = init.elements->size(), all = old.elements->size();
  std::vector<size_t> first = in_order(count, all, false, same), last = in_order(count, all, true, same);
  if (first == last) return first;
  // What is equal at the begin goes apart: by which of both the first trip gives more that agrees.
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  if (a_.devices > 1 || b_.devices > 1) return {};
  try {
    const Value state = n_.value(old, a.m().shape_id(w.inst), 0);
    const CompId body = b.m().attrs(v.inst).comp(Attr::body);
    const Value next = a.evaluators[0]->run_computation(a.m().attrs(w.inst).comp(Attr::body), {state});
    auto agreeing = [&](const std::vector<size_t>& which) {
      const Value got = b.evaluators[0]->run_computation(body, {elements_of(state, which, b.m().shape_id(v.inst))});
      size_t n = 0;
      for (size_t k = 0; k < count; ++k) n += !parts(n_.universe(), got.elements[k], next.elements[which[k]]);
      return n;
    };
    return agreeing(last) > agreeing(first) ? last : first;
  } catch (const Failure&) {
    return {};
  }
}

// The first loop of the same name that leads to outputs and begins as it did; UINT32_MAX where there is none.
uint32_t Inside::Comparison::first_loop() {
  uint32_t first = UINT32_MAX;
  for (uint32_t k : reached_) {
    const Visit& v = b_.walked.visits[k];
    if (k >= first || role_of(b_.walked.module->m(), v.inst) != Role::kWhile) continue;
    const uint32_t old = counterpart(k);
    if (old == UINT32_MAX) continue;
    const Visit& w = a_.walked.visits[old];
    if (role_of(a_.walked.module->m(), w.inst) == Role::kWhile && agrees(v.operands[0], w.operands[0]) &&
        !agrees(v.term, w.term))
      first = k;
  }
  return first;
}

// A loop that ended in the stage before and does not end now.
void Inside::Comparison::judge_endless(InsideStage* out) {
  for (uint32_t k = 0; k < b_.walked.visits.size(); ++k) {
    const Visit& v = b_.walked.visits[k];
    if (role_of(b_.walked.module->m(), v.inst) != Role::kWhile || !n_.why_unknown(v.term)) continue;
    const uint32_t old = counterpart(k);
    if (old == UINT32_MAX || n_.why_unknown(v.operands[0]) || n_.why_unknown(a_.walked.visits[old].term)) continue;
    if (!agrees(v.operands[0], a_.walked.visits[old].operands[0]) || !later_trip(k, old, out)) continue;
    out->verdict = Verdict::kBad, out->why = *n_.why_unknown(v.term);
    return;
  }
}

// Both loops trip by trip, until their conditions or states part; then that trip is compared as stages are.
bool Inside::Comparison::later_trip(uint32_t now, uint32_t old, InsideStage* out) {
  const Visit &v = b_.walked.visits[now], &w = a_.walked.visits[old];
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  if (a_.devices > 1 || b_.devices > 1) return false;
  const std::vector<size_t> which = elements_of_loop(now, old);
  if (which.empty()) return false;
  const ShapeId shape = b.m().shape_id(v.inst);
  auto computation = [](const StageModule& s, InstId loop, Attr called) { return s.m().attrs(loop).comp(called); };
  auto parted = [&](Attr called, const Value& state, int64_t trip) {
    const Term given = n_.place({state});
    Stage before, after;
    --n_.stage;
    before.walked = StageWalk(n_, a_.walked.module).run_computation(computation(a, w.inst, called), {given});
    ++n_.stage;
    after.walked = StageWalk(n_, b_.walked.module)
                       .run_computation(computation(b, v.inst, called), {elements_of(given, which, shape)});
    const bool body = called == Attr::body;
    leaves_of(body ? elements_of(before.walked.result, which, shape) : before.walked.result, &before.outputs);
    leaves_of(after.walked.result, &after.outputs);
    after.local = after.outputs;
    Comparison trips(n_, before, after, before.outputs);
    if (body) trips.elements_ = which;
    InsideStage told = trips.judge();
    if (told.findings.empty()) return false;
    out->findings.push_back(std::move(told.findings[0]));
    InsideFinding& f = out->findings.back();
    if (f.trip < 0) f.trip = trip;
    f.outputs_move = !moved_.empty(), f.outputs_by = moved_by_;
    return true;
  };
  try {
    Value state = n_.value(w.operands[0], a.m().shape_id(w.inst), 0);
    int tries = 0;
    for (int64_t trip = 0; trip < kMostTrips; ++trip) {
      if (a.options.stop && a.options.stop()) return false;
      const Value own = elements_of(state, which, shape);
      const bool go = a.evaluators[0]->run_computation(computation(a, w.inst, Attr::condition), {state}).bytes()[0];
      if (go != static_cast<bool>(
                    b.evaluators[0]->run_computation(computation(b, v.inst, Attr::condition), {own}).bytes()[0]))
        return parted(Attr::condition, state, trip);
      if (!go) return false;
      Value next = a.evaluators[0]->run_computation(computation(a, w.inst, Attr::body), {state});
      const Value other = b.evaluators[0]->run_computation(computation(b, v.inst, Attr::body), {own});
      // What is too little to tell there grows.
      if (tries < kMostTripsTried && parts(n_.universe(), elements_of(next, which, shape), other)) {
        ++tries;
        if (parted(Attr::body, state, trip)) return true;
      }
      state = std::move(next);
      state.shape = a.m().shape_id(w.inst);
    }
  } catch (const Failure&) {
    // The loop is named.
  }
  return false;
}

}  // namespace hlo
