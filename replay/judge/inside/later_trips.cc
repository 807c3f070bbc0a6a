// Loops that begin with the same state and end with another: the trip in which they part is looked into.
#include <algorithm>
#include <functional>

#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"
#include "replay/judge/values/walk.h"

namespace hlo {
namespace {

constexpr int64_t kMostTrips = 1 << 20;
constexpr int64_t kMostTripsOfDevices = 1 << 10;
constexpr int kMostTripsTried = 8;
constexpr double kParted = 1e-9;  // of the largest magnitude

bool parts(const Universe& u, const Value& a, const Value& b) {
  for (size_t k = 0; k < a.elements.size(); ++k)
    if (parts(u, a.elements[k], b.elements[k])) return true;
  if (!a.data || !b.data) return false;
  return deviation(u, std::span(&a, 1), std::span(&b, 1)) > kParted;
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

// One computation of both loops on the same state of the trip, compared as stages are.
bool Inside::Comparison::parted_in_trip(const LoopPair& loops, Attr called, const Term& given, int64_t trip,
                                        InsideStage* out) {
  auto run = [&](const Stage& s, InstId loop, const Term& state) {
    Stage own;
    own.devices = s.devices, own.partitions = s.partitions;
    own.walked = StageWalk(n_, s.walked.module).run_computation(s.walked.module->m().attrs(loop).comp(called), {state});
    return own;
  };
  --n_.stage;
  Stage before = run(a_, loops.before, given);
  ++n_.stage;
  Stage after = run(b_, loops.now, elements_of(given, loops.which, loops.shape));
  const bool body = called == Attr::body;
  leaves_of(body ? elements_of(before.walked.result, loops.which, loops.shape) : before.walked.result, &before.outputs);
  leaves_of(after.walked.result, &after.outputs);
  after.local = after.outputs;
  Comparison trips(n_, before, after, before.outputs);
  if (body) trips.elements_ = loops.which;
  InsideStage told = trips.judge();
  if (told.findings.empty()) return false;
  out->findings.push_back(std::move(told.findings[0]));
  InsideFinding& f = out->findings.back();
  if (f.trip < 0) f.trip = trip;
  f.outputs_move = !moved_.empty(), f.outputs_by = moved_by_;
  return true;
}

// Both loops trip by trip, until their conditions or states part; then that trip is compared as stages are.
bool Inside::Comparison::later_trip(uint32_t now, uint32_t old, InsideStage* out) {
  const Visit &v = b_.walked.visits[now], &w = a_.walked.visits[old];
  LoopPair loops{w.inst, v.inst, elements_of_loop(now, old), b_.walked.module->m().shape_id(v.inst)};
  if (loops.which.empty() || a_.devices != b_.devices) return false;
  try {
    return a_.devices > 1 ? trip_of_devices(loops, w.operands[0], out) : trip_of_values(loops, w.operands[0], out);
  } catch (const Failure&) {
    return false;  // the loop is named
  }
}

bool Inside::Comparison::trip_of_values(const LoopPair& loops, const Term& init, InsideStage* out) {
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  auto run = [](StageModule& s, InstId loop, Attr called, const Value& state) {
    return s.evaluators[0]->run_computation(s.m().attrs(loop).comp(called), {state});
  };
  auto parted = [&](Attr called, const Value& state, int64_t trip) {
    return parted_in_trip(loops, called, n_.place({state}), trip, out);
  };
  Value state = n_.value(init, a.m().shape_id(loops.before), 0);
  int tries = 0;
  for (int64_t trip = 0; trip < kMostTrips; ++trip) {
    if (a.options.stop && a.options.stop()) return false;
    const Value own = elements_of(state, loops.which, loops.shape);
    const bool go = run(a, loops.before, Attr::condition, state).bytes()[0];
    if (go != static_cast<bool>(run(b, loops.now, Attr::condition, own).bytes()[0]))
      return parted(Attr::condition, state, trip);
    if (!go) return false;
    Value next = run(a, loops.before, Attr::body, state);
    const Value other = run(b, loops.now, Attr::body, own);
    // What is too little to tell there grows.
    if (tries < kMostTripsTried && parts(n_.universe(), elements_of(next, loops.which, loops.shape), other)) {
      ++tries;
      if (parted(Attr::body, state, trip)) return true;
    }
    state = std::move(next);
    state.shape = a.m().shape_id(loops.before);
  }
  return false;
}

// The same on several devices, which may wait for each other inside.
bool Inside::Comparison::trip_of_devices(const LoopPair& loops, const Term& init, InsideStage* out) {
  auto run = [&](const Stage& s, InstId loop, Attr called, const Term& state) {
    const CompId c = s.walked.module->m().attrs(loop).comp(called);
    Term result = StageWalk(n_, s.walked.module, false).run_computation(c, {state}).result;
    if (const std::string* why = n_.why_unknown(result)) fail(FailureKind::kUnsupported, "{}", *why);
    return result;
  };
  Term state = init;
  int tries = 0;
  for (int64_t trip = 0; trip < kMostTripsOfDevices; ++trip) {
    if (a_.walked.module->options.stop && a_.walked.module->options.stop()) return false;
    const Term own = elements_of(state, loops.which, loops.shape);
    const Term go = run(a_, loops.before, Attr::condition, state);
    if (!agrees(run(b_, loops.now, Attr::condition, own), go))
      return parted_in_trip(loops, Attr::condition, state, trip, out);
    if (!n_.value(go, go.shape, 0).bytes()[0]) return false;
    Term next = run(a_, loops.before, Attr::body, state);
    const double by = apart(run(b_, loops.now, Attr::body, own), elements_of(next, loops.which, loops.shape), nullptr);
    if (tries < kMostTripsTried && (by < 0 || by > kParted)) {
      ++tries;
      if (parted_in_trip(loops, Attr::body, state, trip, out)) return true;
    }
    state = std::move(next);
  }
  return false;
}

}  // namespace hlo
