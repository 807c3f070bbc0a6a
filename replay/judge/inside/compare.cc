#include <algorithm>
#include <cmath>

#include "ir/eval/widen.h"
#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"

namespace hlo {
namespace {

// Of outputs, whose types may be any.
constexpr double kOutputNoise = 5e-7;
// The same of all stages together.
constexpr double kOutputDrift = 1e-5;
// Rounding in f64 of what sums over other elements are taken in.
constexpr double kLeastNoise = 1e-13;
constexpr size_t kMostFindings = 8;
constexpr size_t kMostRegion = 24;

}  // namespace

bool Inside::Comparison::compares(const Module& m, InstId i) {
  Role r = role_of(m, i);
  return r == Role::kOperation && m.op(i) != Opcode::Bitcast && m.op(i) != Opcode::AfterAll;
}

bool Inside::Comparison::fresh(const Term& t) const {
  if (t.is_array()) return n_[t.number].stage == n_.stage;
  if (t.elements)
    for (const Term& e : *t.elements)
      if (fresh(e)) return true;
  return false;
}

bool Inside::Comparison::agrees(const Term& t, const Term& with) const {
  if (t.is_array() || with.is_array()) return t.number == with.number;
  size_t count = t.elements ? t.elements->size() : 0;
  if (count != (with.elements ? with.elements->size() : 0)) return false;
  for (size_t k = 0; k < count; ++k)
    if (!agrees((*t.elements)[k], (*with.elements)[k])) return false;
  return true;
}

// How far two values are from each other, of the largest magnitude; negative where that cannot be said.
double Inside::Comparison::apart(const Term& now, const Term& before, std::string* words) {
  if (!now.is_array() || !before.is_array()) {
    double worst = 0;
    size_t count = now.elements ? now.elements->size() : 0;
    if (count != (before.elements ? before.elements->size() : 0)) return -1;
    for (size_t k = 0; k < count; ++k) {
      double one = apart((*now.elements)[k], (*before.elements)[k], words);
      if (one < 0) return one;
      worst = std::max(worst, one);
    }
    return worst;
  }
  const Number &x = n_[now.number], &y = n_[before.number];
  if (now.number == before.number) return 0;
  if (!x.known || !y.known || x.sketch.kind != y.sketch.kind) return -1;
  try {
    Universe& u = b_.walked.module->m().u();
    std::vector<Value> a = n_.values(now.number), b = n_.values(before.number);
    int64_t at = -1;
    double d = deviation(u, a, b, &at);
    const bool masked = x.sketch.has_mask() && y.sketch.has_mask() && std::isfinite(d);
    const double beside = masked ? deviation_beside_mask(u, a, b, std::min(x.sketch.cut, y.sketch.cut)) : 0;
    if (words) {
      if (x.sketch.nan != y.sketch.nan)
        *words = fmt::format("NaN at {} places, at {} before", x.sketch.nan, y.sketch.nan);
      else if (!x.sketch.floats)
        *words = "integers differ";
      else if (std::isinf(d))
        *words = "infinities are at other places, or what was zero is not";
      else if (beside > d)
        *words =
            fmt::format("next to a mask of {:.3g} off by {:.3g} times the largest magnitude", y.sketch.largest, beside);
      else
        *words = fmt::format("off by {:.3g} times the largest magnitude {:.6g}", d, y.sketch.largest);
    }
    return std::max(d, beside);
  } catch (const Failure&) {
    return -1;
  }
}

// Does an instruction that has the operands and the value that it had compute something else, that these inputs do not
// show?
bool Inside::Comparison::other_function(const Visit& before, const Visit& now) {
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  const bool applies = !b.m().called(now.inst).empty();
  if (!applies && a.m()[before.inst].attrs == b.m()[now.inst].attrs && a.m().op(before.inst) == b.m().op(now.inst) &&
      b.m().op(now.inst) != Opcode::Constant)
    return false;
  for (size_t k = 0; k < now.operands.size(); ++k)
    if (k >= before.operands.size() || !agrees(before.operands[k], now.operands[k])) return false;
  auto own = a.literals.find(before.inst), other = b.literals.find(now.inst);
  if (own != a.literals.end() && other != b.literals.end()) {
    const Universe& u = b.m().u();
    const Literal &x = u[own->second], &y = u[other->second];
    if (x.elided || y.elided || u[x.shape].type != u[y.shape].type || x.bytes == y.bytes) return false;
    // A new constant in the place of one that is gone may be folded from it, but where a pass only gives names.
    return a.m()[before.inst].name == b.m()[now.inst].name || renamed_only();
  }
  if (a.canonical.operation(before.inst) == b.canonical.operation(now.inst)) return false;
  const double apart = n_.deviation_elsewhere(a, before.inst, b, now.inst);
  // What computes with numbers alone is told by any inputs; what compares, or goes by indices, is not. Promises about
  // these are looked at on their own.
  const OpClass kind = op_info(b.m().op(now.inst)).cls;
  const bool inputs_tell = !applies && kind != OpClass::Gather && kind != OpClass::Scatter;
  if (apart < 0 && !inputs_tell) not_told_.push_back(static_cast<uint32_t>(&now - b_.walked.visits.data()));
  return apart > 1e-6;
}

// Does the stage have as many instructions of each kind as the one before, but for one that became another?
bool Inside::Comparison::renamed_only() {
  if (renamed_ >= 0) return renamed_ > 0;
  std::unordered_map<int, int64_t> kinds;
  auto add = [&](const Module& m, int64_t by) {
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (i.valid()) kinds[static_cast<int>(m.op(i))] += by;
  };
  add(a_.walked.module->m(), 1), add(b_.walked.module->m(), -1);
  int64_t more = 0, fewer = 0;
  for (const auto& [kind, by] : kinds) (by > 0 ? fewer : more) += std::abs(by);
  renamed_ = more == fewer && more <= 1;
  return renamed_ > 0;
}

// Another element of the same tuple, of which nothing takes the one that it was: names alone may have been given anew.
bool Inside::Comparison::other_element(const Visit& before, const Visit& now) const {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  if (role_of(a, before.inst) != Role::kElement || !agrees(now.operands[0], before.operands[0])) return false;
  const int64_t was = a.attrs(before.inst).integer(Attr::index);
  for (InstId other : b.users(b.operand(now.inst, 0)))
    if (b.op(other) == Opcode::GetTupleElement && b.attrs(other).integer(Attr::index) == was) return false;
  return true;
}

// Instructions that are one by their names and have another value now.
void Inside::Comparison::find_departed() {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  for (uint32_t k = 0; k < b_.walked.visits.size(); ++k) {
    const Visit& v = b_.walked.visits[k];
    const bool loop = role_of(b, v.inst) == Role::kWhile, element = role_of(b, v.inst) == Role::kElement;
    if (!compares(b, v.inst) && !loop && !element && role_of(b, v.inst) != Role::kSame) continue;
    uint32_t other = counterpart(k);
    if (other == UINT32_MAX) continue;
    const Visit& w = a_.walked.visits[other];
    // An operation may have become a copy of its operand.
    const bool alike = loop      ? role_of(a, w.inst) == Role::kWhile
                       : element ? other_element(w, v)
                                 : compares(a, w.inst) || compares(b, v.inst);
    if (!alike || n_.why_unknown(v.term) || n_.why_unknown(w.term)) continue;
    const Shape &s = b.shape(v.inst), &t = a.shape(w.inst);
    if (s.type != t.type || s.dims != t.dims) continue;
    bool elsewhere = values_agree(v, w);
    if (elsewhere && (loop || !compares(a, w.inst) || !compares(b, v.inst))) continue;
    const bool constant = elsewhere && other_constant(w, v);
    if (elsewhere && !constant && !other_function(w, v)) continue;
    bool same = v.operands.size() == w.operands.size();
    std::vector<bool> used(w.operands.size(), false);
    for (size_t o = 0; same && o < v.operands.size(); ++o) {
      size_t match = w.operands.size();
      for (size_t p = 0; p < w.operands.size() && match == w.operands.size(); ++p) {
        size_t slot = (o + p) % w.operands.size();
        if (!used[slot] && agrees(v.operands[o], w.operands[slot])) match = slot;
      }
      same = match < w.operands.size();
      if (same) used[match] = true;
    }
    std::vector<Term> own, old;
    leaves_of(v.term, &own), leaves_of(w.term, &old);
    for (size_t l = 0; l < own.size(); ++l)
      if (elsewhere || l >= old.size() || !agrees(own[l], old[l])) departed_numbers_[own[l].number].push_back(k);
    if (!loop) departed_.push_back({other, k, same || constant, elsewhere});
  }
}

void Inside::Comparison::find_readers() {
  for (uint32_t k = 0; k < b_.walked.visits.size(); ++k) {
    auto read = [&](auto&& self, const Term& t) -> void {
      if (t.is_array() && (n_[t.number].stage == n_.stage || departed_numbers_.contains(t.number)))
        readers_[t.number].push_back(k);
      if (t.elements)
        for (const Term& e : *t.elements) self(self, e);
    };
    for (const Term& o : b_.walked.visits[k].operands) read(read, o);
  }
}

void Inside::Comparison::find_producers() {
  auto fill = [&](const Stage& s, std::unordered_map<NumberId, uint32_t>& made) {
    const Module& m = s.walked.module->m();
    for (uint32_t k = 0; k < s.walked.visits.size(); ++k) {
      const Visit& v = s.walked.visits[k];
      Role r = role_of(m, v.inst);
      if (r != Role::kOperation && r != Role::kDraw && r != Role::kWhile) continue;
      std::vector<Term> leaves;
      auto walk = [&](auto&& self, const Term& t) -> void {
        if (t.is_array()) made.emplace(t.number, k);
        if (t.elements)
          for (const Term& e : *t.elements) self(self, e);
      };
      walk(walk, v.term);
    }
  };
  fill(a_, made_before_), fill(b_, made_now_);
}

uint32_t Inside::Comparison::producer(NumberId n) const {
  auto at = made_now_.find(n);
  return at == made_now_.end() ? UINT32_MAX : at->second;
}

// The operations with new values that these are made of.
void Inside::Comparison::reach_back(const std::vector<Term>& from) {
  std::vector<Term> work = from;
  while (!work.empty()) {
    Term t = work.back();
    work.pop_back();
    if (t.elements) work.insert(work.end(), t.elements->begin(), t.elements->end());
    if (!t.is_array()) continue;
    auto take = [&](uint32_t k) {
      if (k == UINT32_MAX || !reached_.insert(k).second) return;
      const Visit& v = b_.walked.visits[k];
      work.insert(work.end(), v.operands.begin(), v.operands.end());
    };
    if (n_[t.number].stage == n_.stage) take(producer(t.number));
    // A value that is new here may be one that something else had before.
    if (auto at = departed_numbers_.find(t.number); at != departed_numbers_.end())
      for (uint32_t k : at->second) take(k);
  }
}

void Inside::Comparison::count(InsideStage* out) {
  const Module& m = b_.walked.module->m();
  for (const Visit& v : b_.walked.visits) {
    Role r = role_of(m, v.inst);
    if (r != Role::kOperation && r != Role::kWhile) continue;
    ++out->values;
    if (n_.why_unknown(v.term)) {
      ++out->unknown;
    } else if (n_.stage == 0 || !fresh(v.term)) {
      ++out->same;
    } else {
      ++out->fresh;
    }
  }
  out->fresh -= std::min(out->fresh, departed_.size());
  out->changed = departed_.size();
  if (!departed_.empty()) out->changed_example = m.inst_name(b_.walked.visits[departed_[0].now].inst);
  out->loops = b_.walked.loops, out->branches_left = b_.walked.branches_left;
}

void Inside::Comparison::compare_outputs(InsideStage* out) {
  if (expected_.size() != b_.outputs.size()) {
    out->verdict = Verdict::kUnknown;
    out->why = fmt::format("{} outputs, {} in the stage before", b_.outputs.size(), expected_.size());
    return;
  }
  std::string why;
  bool unknown = false;
  for (size_t k = 0; k < b_.outputs.size(); ++k) {
    const Term &now = b_.outputs[k], &before = expected_[k];
    // What cannot be computed, but is the same expression as in the last stage that was judged, is the same.
    if (now.number == before.number) continue;
    const std::string* none = n_.why_unknown(now);
    if (!none) none = n_.why_unknown(before);
    if (none) {
      if (!unknown) out->why = *none;
      unknown = true;
      continue;
    }
    std::string words;
    double d = apart(now, before, &words);
    if (d >= 0 && d <= kOutputNoise) continue;
    // Rounding of several stages adds up.
    if (d >= 0 && d <= kOutputDrift && k < a_.outputs.size()) {
      const double step = apart(now, a_.outputs[k], nullptr);
      if (step >= 0 && step <= kOutputNoise) continue;
    }
    if (why.empty()) why = fmt::format("o{}: {}", k, words.empty() ? "another shape" : words);
    moved_.push_back(k < b_.local.size() ? b_.local[k] : now);
    moved_by_ = std::max(moved_by_, d < 0 ? INFINITY : d);
  }
  if (moved_.empty()) {
    out->verdict = unknown ? Verdict::kUnknown : Verdict::kGood;
    return;
  }
  bool draws = a_.walked.draws || b_.walked.draws;
  out->verdict = draws ? Verdict::kUnknown : Verdict::kBad;
  out->why = draws ? "random numbers that the stages may draw in other ways: " + why : why;
}

std::string Inside::Comparison::name_of(const Stage& s, NumberId n) const {
  const auto& made = &s == &a_ ? made_before_ : made_now_;
  auto at = made.find(n);
  const Module& m = s.walked.module->m();
  if (at != made.end()) return std::string(m.inst_name(s.walked.visits[at->second].inst));
  for (InstId p : m.comp(m.entry()).params) {
    auto known = s.walked.by_name.find(m[p].name);
    if (known != s.walked.by_name.end() && s.walked.visits[known->second[0]].term.number == n)
      return std::string(m.inst_name(p));
  }
  return {};
}

void Inside::Comparison::add_regions(InsideFinding* f, uint32_t now, const uint32_t* before) {
  std::unordered_set<NumberId> known;
  for (const auto& [number, visit] : made_before_) known.insert(number);
  auto region = [&](const Stage& s, uint32_t from, auto&& stops, std::vector<InstId>* list) {
    const auto& made = &s == &a_ ? made_before_ : made_now_;
    std::vector<uint32_t> work{from};
    std::unordered_set<uint32_t> seen{from};
    for (size_t k = 0; k < work.size() && k < kMostRegion; ++k) {
      list->push_back(s.walked.visits[work[k]].inst);
      for (const Term& o : s.walked.visits[work[k]].operands) {
        if (!o.is_array() || stops(o.number)) continue;
        auto at = made.find(o.number);
        if (at != made.end() && seen.insert(at->second).second) work.push_back(at->second);
      }
    }
  };
  region(
      b_, now, [&](NumberId n) { return n_[n].stage != n_.stage; }, &f->region_after);
  if (before)
    region(
        a_, *before, [&](NumberId n) { return made_now_.contains(n); }, &f->region_before);
}

InsideFinding Inside::Comparison::describe(const Departed& d) {
  InsideFinding f;
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  const Visit &v = b_.walked.visits[d.now], &w = a_.walked.visits[d.before];
  f.before = w.inst, f.after = v.inst;
  apart(v.term, w.term, &f.difference);
  if (f.difference.empty()) f.difference = "another value";
  if (d.elsewhere)
    f.difference = b.op(v.inst) == Opcode::Constant ? "another constant" : "the same on these inputs, other on others";
  f.near = d.elsewhere && b.op(v.inst) == Opcode::Constant;
  for (size_t k = 0; k < std::max(v.operands.size(), w.operands.size()); ++k) {
    InsideFinding::Operand o;
    if (k < w.operands.size()) o.before = a.inst_name(a.operand(w.inst, k));
    if (k < v.operands.size()) o.after = b.inst_name(b.operand(v.inst, k));
    o.agrees = k < v.operands.size() && k < w.operands.size() && agrees(v.operands[k], w.operands[k]);
    if (f.partial.empty() && !o.agrees && k < v.operands.size() && k < w.operands.size() &&
        adds_up(v.operands[k], w.operands[k]))
      f.partial = partial_words(o.after, o.before, b.inst_name(v.inst));
    f.operands.push_back(std::move(o));
  }
  add_regions(&f, d.now, &d.before);
  describe_applied(d, &f);
  f.operands_agree = d.operands_agree;
  f.outputs_move = !moved_.empty();
  f.outputs_by = f.outputs_move ? moved_by_ : 0;
  return f;
}

// What makes a value another one: itself, where it is made of the same values, or something that it is made of.
Inside::Comparison::Departed Inside::Comparison::cause_of(const Departed& d) {
  Departed named, placed;
  if (d.operands_agree) return d;
  const bool known = origin(d, &named);
  const Module& b = b_.walked.module->m();
  if (known && named.operands_agree && role_of(b, b_.walked.visits[named.now].inst) == Role::kOperation) return named;
  // What is paired by its place alone may be another one: the results are one pair for sure.
  const bool by_name = a_.walked.by_name.contains(b[b_.walked.visits[d.now].inst].name);
  if (!by_name && lockstep_of_results(&placed)) return placed;
  if (lockstep(d.before, d.now, &placed)) return placed;
  return known ? named : rewired_behind(d);
}

// Of a loop what is another one inside of it.
void Inside::Comparison::tell(const Departed& d, InsideStage* out) {
  const bool loop = role_of(b_.walked.module->m(), b_.walked.visits[d.now].inst) == Role::kWhile &&
                    role_of(a_.walked.module->m(), a_.walked.visits[d.before].inst) == Role::kWhile;
  if (loop && later_trip(d.now, d.before, out)) return;
  out->findings.push_back(describe(d));
}

void Inside::Comparison::describe_outputs(InsideStage* out) {
  reach_back(moved_);
  if (a_.devices == 1 && b_.devices > 1) {
    InsideFinding f;
    f.outputs_move = true, f.outputs_by = moved_by_, f.difference = out->why;
    describe_partial(&f);
    if (!f.partial.empty()) {
      out->findings.push_back(std::move(f));
      return;
    }
  }
  // A loop's value is made by what its computations, looked into in their first trip, call.
  const Module& m = b_.walked.module->m();
  std::unordered_set<CompId> in_loops;
  std::vector<InstId> callers;
  for (uint32_t k : reached_)
    if (m.op(b_.walked.visits[k].inst) == Opcode::While) callers.push_back(b_.walked.visits[k].inst);
  while (!callers.empty()) {
    InstId caller = callers.back();
    callers.pop_back();
    for (CompId c : m.called(caller))
      if (in_loops.insert(c).second)
        for (InstId i : m.comp(c).order)
          if (i.valid() && !m.called(i).empty()) callers.push_back(i);
  }
  const uint32_t loop = first_loop();
  for (const Departed& d : departed_) {
    bool looped = in_loops.contains(m.parent(b_.walked.visits[d.now].inst));
    if (!leads_to_outputs(d.now) && !looped) continue;
    if (loop < d.now) break;
    tell(cause_of(d), out);
    return;
  }
  if (loop != UINT32_MAX) {
    tell({counterpart(loop), loop, true, false}, out);
    return;
  }
  // What moved has a value that something else had before: by what departed from operands that agree.
  for (const Departed& d : departed_)
    if (reached_.empty() && d.operands_agree && !d.elsewhere) {
      out->findings.push_back(describe(d));
      return;
    }
  // No name is left of what was before: by the places of operands.
  if (Departed from; lockstep_of_results(&from)) {
    tell(from, out);
    return;
  }
  // Or the first new value that is made of values that agree.
  uint32_t first = UINT32_MAX;
  for (uint32_t k : reached_) first = std::min(first, k);
  InsideFinding f;
  f.outputs_move = true, f.outputs_by = moved_by_, f.difference = out->why;
  if (first != UINT32_MAX) {
    f.after = b_.walked.visits[first].inst;
    const Module& b = b_.walked.module->m();
    for (InstId o : b.operands(f.after)) f.operands.push_back({"", std::string(b.inst_name(o)), true});
    add_regions(&f, first, nullptr);
  } else {
    f.before = a_.walked.visits.back().inst, f.after = b_.walked.visits.back().inst;
  }
  out->findings.push_back(std::move(f));
}

// Whatever the outputs say: the same instruction on the same values gives another one.
void Inside::Comparison::judge_values(InsideStage* out) {
  std::unordered_set<uint32_t> told;
  for (Departed d : departed_) {
    if (out->findings.size() >= kMostFindings) break;
    // Or it reads one that stands in another's place.
    if (Departed from; !d.operands_agree) {
      if (origin(d, &from) && from.operands_agree && only_name(from))
        d = from;
      else if (!other_number(d))
        continue;
    }
    if (!told.insert(d.now).second) continue;
    const Visit &v = b_.walked.visits[d.now], &w = a_.walked.visits[d.before];
    if (!out->findings.empty() && out->findings[0].after == v.inst) continue;
    // What has moved the outputs needs no second witness.
    if (!moved_.empty() && leads_to_outputs(d.now)) continue;
    Frontier frontier;
    const Fate what = fate(d.now, &frontier);
    const bool may_be_alone = d.operands_agree && !d.elsewhere && (what == Fate::kNotTold || frontier.cancelled);
    const bool alone = what != Fate::kErased && may_be_alone && alone_differs(d.now, w.term);
    if (what == Fate::kHealed && !alone) continue;
    std::string words;
    double by = apart(v.term, w.term, &words);
    if (!d.elsewhere && by >= 0 && by <= std::max(kLeastNoise, b_.walked.module->noise(v.inst))) continue;
    if (what == Fate::kNotTold && !alone) {
      not_told_.push_back(d.now);
      continue;
    }
    out->findings.push_back(describe(d));
    if (InstId folded = folded_anew(d); folded.valid()) out->findings.back().after = folded;
    out->findings.back().outputs_move = false;
    if (out->verdict != Verdict::kBad) {
      out->verdict = Verdict::kBad;
      out->why = fmt::format("{}: {}", b_.walked.module->m().inst_name(out->findings.back().after),
                             out->findings.back().difference);
    }
  }
}

InsideStage Inside::Comparison::judge() {
  InsideStage out;
  find_departed();
  find_producers();
  count(&out);
  compare_outputs(&out);
  if (!moved_.empty() && out.verdict == Verdict::kBad) describe_outputs(&out);
  judge_values(&out);
  judge_rewired(&out);
  judge_promises(&out);
  count_not_compared(&out);
  if (out.verdict == Verdict::kUnknown && moved_.empty()) judge_endless(&out);
  return out;
}

}  // namespace hlo
