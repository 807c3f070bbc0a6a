// Loops that begin with the same state and end with another: the trip in which they part is looked into.
#include <algorithm>

#include "replay/judge/inside/stage.h"
#include "replay/judge/inside/stages.h"
#include "replay/judge/inside/walk.h"

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

}  // namespace

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
    if (!agrees(v.operands[0], a_.walked.visits[old].operands[0]) || !later_trip(k, out)) continue;
    out->verdict = Verdict::kBad, out->why = *n_.why_unknown(v.term);
    return;
  }
}

// Both loops trip by trip, until their conditions or states part; then that trip is compared as stages are.
bool Inside::Comparison::later_trip(uint32_t now, InsideStage* out) {
  const Visit &v = b_.walked.visits[now], &w = a_.walked.visits[counterpart(now)];
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  if (a_.devices > 1 || b_.devices > 1) return false;
  auto computation = [](const StageModule& s, InstId loop, Attr which) { return s.m().attrs(loop).comp(which); };
  auto parted = [&](Attr which, const Value& state, int64_t trip) {
    const std::vector<Term> given{n_.place({state})};
    Stage before, after;
    --n_.stage;
    before.walked = StageWalk(n_, a_.walked.module).run_computation(computation(a, w.inst, which), given);
    ++n_.stage;
    after.walked = StageWalk(n_, b_.walked.module).run_computation(computation(b, v.inst, which), given);
    leaves_of(before.walked.result, &before.outputs), leaves_of(after.walked.result, &after.outputs);
    after.local = after.outputs;
    InsideStage told = Comparison(n_, before, after, before.outputs).judge();
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
      const bool go = a.evaluators[0]->run_computation(computation(a, w.inst, Attr::condition), {state}).bytes()[0];
      if (go != static_cast<bool>(
                    b.evaluators[0]->run_computation(computation(b, v.inst, Attr::condition), {state}).bytes()[0]))
        return parted(Attr::condition, state, trip);
      if (!go) return false;
      Value next = a.evaluators[0]->run_computation(computation(a, w.inst, Attr::body), {state});
      const Value other = b.evaluators[0]->run_computation(computation(b, v.inst, Attr::body), {state});
      // What is too little to tell there grows.
      if (tries < kMostTripsTried && parts(n_.universe(), next, other)) {
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
