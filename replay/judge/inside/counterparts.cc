// Which operation of a stage is which of the stage before, and what reads it.
#include <algorithm>
#include <optional>
#include <set>

#include "ir/library/library_calls.h"
#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"
#include "replay/judge/values/walk.h"
#include "replay/record/match/match.h"

namespace hlo {
namespace {

constexpr size_t kDeepest = 64;  // operands of operands that are followed
// Instructions that an expression may have more or fewer than the one that it was, once one of them is another one.
constexpr size_t kMostUnlike = 3;

// Does it read another one of those that there were, which are all still there by their names?
bool reads_another(const Module& a, InstId x, const Module& b, InstId y) {
  auto names = [](const Module& m, InstId reader) {
    std::vector<StrId> out;
    for (InstId o : m.operands(reader)) out.push_back(m[o].name);
    if (Canonical::commutes(m, reader))
      std::sort(out.begin(), out.end(), [](StrId l, StrId r) { return l.value < r.value; });
    return out;
  };
  auto holds = [](const Module& m, InstId reader, StrId name) {
    for (InstId i : m.comp(m.parent(reader)).order)
      if (i.valid() && m[i].name == name) return true;
    return false;
  };
  const std::vector<StrId> was = names(a, x), is = names(b, y);
  bool another = false;
  for (size_t k = 0; k < std::min(was.size(), is.size()); ++k) {
    if (was[k] == is[k]) continue;
    if (!holds(a, x, is[k]) || !holds(b, y, was[k])) return false;
    another = true;
  }
  return another;
}

// Two expressions over the same parameters. `turned`: over those of a comparison with its two sides exchanged.
class ExpressionPair {
 public:
  ExpressionPair(StageModule& a, StageModule& b, bool turned) : a_(a), b_(b), turned_(turned) {}

  // Where they begin to be others: the first pair, operands before users, that is not the same operation, or reads
  // another parameter; false where they are one.
  bool begin_to_differ(InstId x, InstId y, size_t depth, InstId* before, InstId* now) {
    if (!alike_.insert({x.value, y.value}).second) return false;
    const Module &p = a_.m(), &q = b_.m();
    *before = x, *now = y;
    if (p.op(x) == Opcode::Parameter && q.op(y) == Opcode::Parameter) return !same_parameter(x, y);
    if (p.op(x) != q.op(y) || p.operand_count(x) != q.operand_count(y)) return true;
    if (a_.canonical.operation(x) != b_.canonical.operation(y)) return true;
    const bool another = reads_another(p, x, q, y);
    for (size_t k = 0; depth < kDeepest && k < p.operand_count(x); ++k) {
      const InstId l = p.operand(x, k);
      InstId r = q.operand(y, k);
      if (another) {
        // Operands come first, each against its own name.
        const auto operands = q.operands(y);
        const auto own =
            std::find_if(operands.begin(), operands.end(), [&](InstId o) { return q[o].name == p[l].name; });
        if (own == operands.end()) continue;
        r = *own;
      }
      if (misread(l, r)) {
        *before = x, *now = y;
        return true;
      }
      if (begin_to_differ(l, r, depth + 1, before, now)) return true;
    }
    *before = x, *now = y;
    return another;
  }

  // Pairs that were looked at until then.
  size_t seen() const { return alike_.size(); }

 private:
  bool same_parameter(InstId x, InstId y) const {
    const int64_t was = a_.m().parameter_number(x), is = b_.m().parameter_number(y);
    return was == (turned_ ? is ^ 1 : is);
  }

  // Is it the reader that is another one, and not what it reads?
  bool misread(InstId l, InstId r) const {
    const Module &p = a_.m(), &q = b_.m();
    const bool was = p.op(l) == Opcode::Parameter, is = q.op(r) == Opcode::Parameter;
    if (was != is || (was && !same_parameter(l, r))) return true;
    return p.op(l) != q.op(r) && std::any_of(alike_.begin(), alike_.end(), [&](const auto& pair) {
             return pair.second == r.value && pair.first != l.value && p.op(InstId(pair.first)) == q.op(r);
           });
  }

  StageModule &a_, &b_;
  const bool turned_;
  std::set<std::pair<uint32_t, uint32_t>> alike_;
};

// Instructions that it is made of, itself among them.
size_t size_of_expression(const Module& m, InstId root) {
  std::vector<InstId> work{root};
  std::unordered_set<InstId> seen{root};
  for (size_t k = 0; k < work.size(); ++k)
    for (InstId o : m.operands(work[k]))
      if (seen.insert(o).second) work.push_back(o);
  return seen.size();
}

// The same of two computations. Where the new one ends with another operation, what the old one computes may be a part
// of it, once with its sides exchanged, as where a sort has been made stable.
bool begin_to_differ(StageModule& a, CompId c, StageModule& b, CompId e, InstId* before, InstId* now) {
  const InstId root = a.m().comp(c).root, own = b.m().comp(e).root;
  if (a.m().op(root) == b.m().op(own)) return ExpressionPair(a, b, false).begin_to_differ(root, own, 0, before, now);
  const size_t size = size_of_expression(a.m(), root);
  size_t most = 0;
  for (InstId i : b.m().live_order(e)) {
    if (b.m().op(i) != a.m().op(root) || a.canonical.operation(root) != b.canonical.operation(i)) continue;
    if (const size_t s = size_of_expression(b.m(), i); s + kMostUnlike < size || s > size + kMostUnlike) continue;
    InstId was, is;
    size_t seen = 0;
    for (const bool turned : {false, true}) {
      ExpressionPair pair(a, b, turned);
      InstId x, y;
      if (!pair.begin_to_differ(root, i, 0, &x, &y)) {
        seen = 0;
        break;
      }
      if (y != i && pair.seen() > seen) seen = pair.seen(), was = x, is = y;
    }
    if (seen > most) most = seen, *before = was, *now = is;
  }
  if (!most) *before = root, *now = own;
  return true;
}

}  // namespace

// The same instruction by its name in the stage before, or UINT32_MAX. In computations that are called several times:
// the same calls in the same order.
uint32_t Inside::Comparison::counterpart(uint32_t now) {
  StrId name = b_.walked.module->m()[b_.walked.visits[now].inst].name;
  auto before = a_.walked.by_name.find(name), own = b_.walked.by_name.find(name);
  if (before == a_.walked.by_name.end() || own == b_.walked.by_name.end()) return by_place(now);
  if (before->second.size() != own->second.size()) return UINT32_MAX;
  auto place = std::lower_bound(own->second.begin(), own->second.end(), now) - own->second.begin();
  return before->second[static_cast<size_t>(place)];
}

// The same where a pass has given other names: what stands in its place, as the matcher of dumps sees it. Only what
// is called as often, and whose name is gone, too.
uint32_t Inside::Comparison::by_place(uint32_t now) {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  if (!placed_) {
    placed_ = true;
    const StageMatch match = match_stages(a, b);
    for (uint32_t k = 0; k < a_.walked.visits.size(); ++k) visits_before_[a_.walked.visits[k].inst].push_back(k);
    for (uint32_t k = 0; k < b_.walked.visits.size(); ++k) visits_now_[b_.walked.visits[k].inst].push_back(k);
    for (const auto& [inst, visits] : visits_now_) {
      const InstId was = inst.value < match.same.size() ? match.same[inst.value] : InstId();
      if (was.valid() && a.op(was) == b.op(inst) && !b_.walked.by_name.contains(a[was].name)) places_[inst] = was;
    }
    pair_by_readers();
  }
  auto was = places_.find(b_.walked.visits[now].inst);
  if (was == places_.end()) return UINT32_MAX;
  auto before = visits_before_.find(was->second);
  const std::vector<uint32_t>& own = visits_now_[b_.walked.visits[now].inst];
  if (before == visits_before_.end() || before->second.size() != own.size()) return UINT32_MAX;
  auto place = std::lower_bound(own.begin(), own.end(), now) - own.begin();
  return before->second[static_cast<size_t>(place)];
}

// What neither name nor matcher tells: an operand that is new where one is gone, of a reader that is the same one and
// reads the same otherwise. Readers first, from the results on, so that it goes on from operand to operand.
void Inside::Comparison::pair_by_readers() {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  std::unordered_set<InstId> taken;
  for (const auto& [now, was] : places_) taken.insert(was);
  // Of computations that one call calls: the call, and its earlier self.
  std::unordered_map<CompId, std::pair<InstId, InstId>> callers;
  const bool renamed = renamed_only();
  auto same = [&](InstId now) {
    auto at = places_.find(now);
    if (at != places_.end()) return at->second;
    auto named = a_.walked.by_name.find(b[now].name);
    if (named == a_.walked.by_name.end()) return InstId();
    const InstId was = a_.walked.visits[named->second[0]].inst;
    return a.op(was) == b.op(now) ? was : InstId();
  };
  auto alone = [&](InstId now, InstId was) {
    if (a_.walked.by_name.contains(b[now].name) || b_.walked.by_name.contains(a[was].name)) return false;
    if (places_.contains(now) || taken.contains(was) || !visits_before_.contains(was)) return false;
    // An operation may have become a copy of its operand.
    const bool made = compares(b, now) || role_of(b, now) == Role::kSame;
    const bool operations = made && compares(a, was) && b.op(now) != Opcode::Constant;
    if (a.op(was) != b.op(now) && !(renamed && operations && a.op(was) != Opcode::Constant)) return false;
    const Shape &s = b.shape(now), &t = a.shape(was);
    if (s.is_array() && t.is_array()) return s.type == t.type && s.dims == t.dims;
    return renamed && b.u().compatible(b.shape_id(now), a.shape_id(was));
  };
  auto pair = [&](InstId now, InstId was) {
    for (size_t depth = 0; depth < kDeepest && b.op(now) == Opcode::Parameter && a.op(was) == Opcode::Parameter;
         ++depth) {
      auto at = callers.find(b.parent(now));
      if (at == callers.end()) return;
      const auto [call, before] = at->second;
      const std::vector<CompId>& called = a.called(before);
      const auto p = static_cast<size_t>(b.parameter_number(now)), q = static_cast<size_t>(a.parameter_number(was));
      if (std::find(called.begin(), called.end(), a.parent(was)) == called.end()) return;
      if (p >= b.operand_count(call) || q >= a.operand_count(before)) return;
      now = b.operand(call, p), was = a.operand(before, q);
    }
    if (!alone(now, was)) return;
    places_[now] = was, taken.insert(was);
  };
  const InstId root = b.comp(b.entry()).root, old_root = a.comp(a.entry()).root;
  if (b.op(root) == Opcode::Tuple && a.op(old_root) == Opcode::Tuple) {
    for (size_t o = 0; o < std::min(b.operand_count(root), a.operand_count(old_root)); ++o)
      pair(b.operand(root, o), a.operand(old_root, o));
  } else {
    pair(root, old_root);
  }
  for (size_t k = b_.walked.visits.size(); k-- > 0;) {
    const InstId now = b_.walked.visits[k].inst, was = same(now);
    auto earlier = visits_before_.find(was);
    if (!was.valid() || earlier == visits_before_.end()) continue;
    const std::vector<CompId>&own = b.called(now), &old = a.called(was);
    const Role role = role_of(b, now);
    for (size_t c = 0; c < own.size() && own.size() == old.size(); ++c) {
      if (role == Role::kCall) callers.emplace(own[c], std::pair(now, was));
      pair(b.comp(own[c]).root, a.comp(old[c]).root);
    }
    const size_t count = b.operand_count(now);
    // Operands of fusions and tuples come in any order, but where a pass only gives names.
    const bool ordered = role == Role::kOperation || role == Role::kSame || renamed;
    if (count != a.operand_count(was) || !ordered) continue;
    const Visit &v = b_.walked.visits[k], &w = a_.walked.visits[earlier->second[0]];
    const bool turned = count == 2 && Canonical::commutes(b, now) &&
                        (agrees(v.operands[0], w.operands[1]) || agrees(v.operands[1], w.operands[0]));
    for (size_t o = 0; o < count; ++o) pair(b.operand(now, o), a.operand(was, turned ? 1 - o : o));
  }
}

// The same values but for the memory that a library's call works in, which is no value.
bool Inside::Comparison::values_agree(const Visit& now, const Visit& before) const {
  const Module& b = b_.walked.module->m();
  const auto &own = now.term.elements, &old = before.term.elements;
  if (b.op(now.inst) != Opcode::CustomCall || !own || !old || own->size() != old->size() || own->size() < 2)
    return agrees(now.term, before.term);
  const std::optional<size_t> scratch = scratch_element(b, now.inst);
  for (size_t k = 0; k < own->size(); ++k)
    if (k != scratch && !agrees((*own)[k], (*old)[k])) return false;
  return true;
}

// The same but for the memory that a library's call works in, which the autotuner gives it.
bool Inside::Comparison::same_operation(InstId before, InstId now) {
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  auto memory = [](const Module& m, InstId i) { return scratch_element(m, i) == 1 && m.shape(i).elements.size() == 2; };
  if (!memory(a.m(), before) || !memory(b.m(), now)) return a.canonical.operation(before) == b.canonical.operation(now);
  return a.m().shape(before).elements[0] == b.m().shape(now).elements[0] &&
         a.canonical.library_call(before) == b.canonical.library_call(now);
}

// What reads that value: by its number, which is its own where the value is new. Many an instruction has a zero: what
// reads that one is told by the module, where only operations do.
void Inside::Comparison::find_readers_of(uint32_t visit, std::vector<uint32_t>* out) {
  if (readers_.empty()) find_readers();
  const Module& b = b_.walked.module->m();
  const Visit& v = b_.walked.visits[visit];
  bool told = v.term.is_array() && !fresh(v.term) && !b.is_root(v.inst);
  const std::vector<uint32_t>& own = b_.walked.by_name.at(b[v.inst].name);
  auto place = static_cast<size_t>(std::lower_bound(own.begin(), own.end(), visit) - own.begin());
  std::vector<uint32_t> direct;
  if (told)
    for (InstId u : b.users(v.inst)) {
      auto at = b_.walked.by_name.find(b[u].name);
      if (at == b_.walked.by_name.end()) continue;  // dead
      told = told && role_of(b, u) == Role::kOperation && at->second.size() == own.size();
      if (told) direct.push_back(at->second[place]);
    }
  if (told) {
    out->insert(out->end(), direct.begin(), direct.end());
    return;
  }
  std::vector<Term> leaves;
  leaves_of(v.term, &leaves);
  for (const Term& t : leaves)
    if (auto readers = readers_.find(t.number); readers != readers_.end())
      out->insert(out->end(), readers->second.begin(), readers->second.end());
}

// How many of its operands have another value than the one's before that stands in their place.
size_t Inside::Comparison::other_operands(const Visit& now, const Visit& before) const {
  size_t others = 0;
  for (size_t o = 0; o < std::min(now.operands.size(), before.operands.size()); ++o)
    others += !agrees(now.operands[o], before.operands[o]);
  return others;
}

// Both operands of one that commutes are other ones, and each is what the other was.
bool Inside::Comparison::changed_places(const Visit& now, const Visit& before) const {
  return now.operands.size() == 2 && before.operands.size() == 2 && other_operands(now, before) == 2 &&
         Canonical::commutes(b_.walked.module->m(), now.inst) && agrees(now.operands[0], before.operands[1]) &&
         agrees(now.operands[1], before.operands[0]);
}

// What reads that value, directly or not, is followed down to values that agree with the stage before.
Inside::Comparison::Fate Inside::Comparison::fate(uint32_t visit, Frontier* frontier) {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  std::vector<uint32_t> work{visit};
  std::unordered_set<uint32_t> seen{visit};
  bool rewritten = false;
  Frontier own;
  for (size_t k = 0; k < work.size(); ++k) {
    std::vector<uint32_t> readers;
    find_readers_of(work[k], &readers);
    for (uint32_t r : readers) {
      const Visit& reader = b_.walked.visits[r];
      Role role = role_of(b, reader.inst);
      if (role == Role::kWhile || role == Role::kConditional || role == Role::kDraw) return Fate::kHealed;
      if (role != Role::kOperation || !seen.insert(r).second) continue;
      const uint32_t old = counterpart(r);
      if (old == UINT32_MAX) {
        rewritten = true;
        if (fresh(reader.term)) work.push_back(r);
        continue;
      }
      const Visit& was = a_.walked.visits[old];
      const bool same = role_of(a, was.inst) == role && same_operation(was.inst, reader.inst);
      rewritten = rewritten || !same;
      own.rewired = own.rewired || !reads_as_before(reader, was);
      const bool differs = !values_agree(reader, was);
      if (differs || (fresh(reader.term) && b.op(reader.inst) != Opcode::CustomCall)) {
        work.push_back(r);
      } else if (same) {
        // As where all that it reads is transposed.
        rewritten = rewritten || changed_places(reader, was);
        const size_t others = reader.operands.size() == was.operands.size() ? other_operands(reader, was) : 0;
        own.blind = own.blind || others == 1, own.cancelled = own.cancelled || others > 1;
      }
    }
  }
  if (frontier) *frontier = own;
  if (!rewritten) return Fate::kErased;
  return own.blind ? Fate::kNotTold : Fate::kHealed;
}

// Of two that are one and read other values: the pair that makes the first operand that is not what it was.
bool Inside::Comparison::pair_of_operands(uint32_t before, uint32_t now, Departed* out) {
  const Visit &v = b_.walked.visits[now], &w = a_.walked.visits[before];
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  if (a.op(w.inst) != b.op(v.inst) || v.operands.size() != w.operands.size()) return false;
  std::vector<bool> used(w.operands.size(), false);
  if (Canonical::commutes(b, v.inst))
    for (const Term& t : v.operands)
      for (size_t k = 0; k < w.operands.size(); ++k)
        if (!used[k] && agrees(t, w.operands[k])) {
          used[k] = true;
          break;
        }
  for (size_t k = 0; k < v.operands.size(); ++k) {
    const Term& was = w.operands[k];
    if (!v.operands[k].is_array() || !was.is_array() || used[k] || !fresh(v.operands[k])) continue;
    if (agrees(v.operands[k], was)) continue;
    const uint32_t maker = producer(v.operands[k].number);
    auto old = made_before_.find(was.number);
    if (maker == UINT32_MAX || maker >= now || old == made_before_.end()) continue;
    if (n_[v.operands[k].number].sketch.kind != n_[was.number].sketch.kind) continue;
    *out = {old->second, maker, false, false};
    return true;
  }
  return false;
}

// Both names are in one of the two stages alone.
bool Inside::Comparison::only_name(const Departed& d) const {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  return !a_.walked.by_name.contains(b[b_.walked.visits[d.now].inst].name) &&
         !b_.walked.by_name.contains(a[a_.walked.visits[d.before].inst].name);
}

// Where an instruction has departed because it reads a new one in the place of one that is gone: these two, or what
// they, being the same operation, read.
bool Inside::Comparison::origin(const Departed& d, Departed* out) {
  Departed at = d, next;
  bool found = false;
  for (size_t depth = 0; depth < kDeepest && pair_of_operands(at.before, at.now, &next); ++depth) {
    const Visit &v = b_.walked.visits[next.now], &w = a_.walked.visits[next.before];
    const bool same = same_operation(w.inst, v.inst);
    if (!same && !only_name(next)) break;
    at = next, found = true;
    if (!same) break;
  }
  if (!found) return false;
  const Visit &v = b_.walked.visits[at.now], &w = a_.walked.visits[at.before];
  at.operands_agree = v.operands.size() == w.operands.size();
  for (size_t k = 0; at.operands_agree && k < v.operands.size(); ++k)
    at.operands_agree = agrees(v.operands[k], w.operands[k]);
  *out = at;
  return true;
}

// On scalars of which the two make another result, compared as stages are.
bool Inside::Comparison::applied_by_values(CompId before, CompId now, InsideFinding* f) {
  for (const std::vector<Value>& given : n_.scalars_that_tell(*a_.walked.module, before, *b_.walked.module, now)) {
    std::vector<Term> terms;
    Stage old, own;
    --n_.stage;
    for (const Value& v : given) terms.push_back(n_.place({v}));
    old.walked = StageWalk(n_, a_.walked.module).run_computation(before, terms);
    ++n_.stage;
    own.walked = StageWalk(n_, b_.walked.module).run_computation(now, terms);
    leaves_of(old.walked.result, &old.outputs), leaves_of(own.walked.result, &own.outputs);
    own.local = own.outputs;
    const InsideStage told = Comparison(n_, old, own, old.outputs).judge();
    if (told.findings.empty() || !told.findings[0].after.valid() || !told.findings[0].before.valid()) continue;
    const Module& b = b_.walked.module->m();
    if (told.findings[0].after == b.comp(now).root && !a_.walked.by_name.contains(b[b.comp(now).root].name)) continue;
    f->applied_before = a_.walked.module->of_stage(told.findings[0].before);
    f->applied_after = b_.walked.module->of_stage(told.findings[0].after);
    return true;
  }
  return false;
}

void Inside::Comparison::describe_applied(const Departed& d, InsideFinding* f) {
  StageModule &a = *a_.walked.module, &b = *b_.walked.module;
  const InstId was = a_.walked.visits[d.before].inst, is = b_.walked.visits[d.now].inst;
  if (role_of(b.m(), is) != Role::kOperation || a.m().called(was).size() != b.m().called(is).size()) return;
  for (size_t k = 0; k < b.m().called(is).size(); ++k) {
    const CompId c = a.m().called(was)[k], e = b.m().called(is)[k];
    if (a.canonical.computation(c) == b.canonical.computation(e)) continue;
    if (applied_by_values(c, e, f)) return;
    InstId before, now;
    if (!begin_to_differ(a, c, b, e, &before, &now)) continue;
    f->applied_before = before, f->applied_after = now;
    return;
  }
}

}  // namespace hlo
