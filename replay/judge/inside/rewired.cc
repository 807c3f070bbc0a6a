// Instructions that read another value than they did, where these inputs do not tell, or something cancels it.
#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"
#include "replay/judge/values/walk.h"

namespace hlo {
namespace {

// Instructions that what is made of constants alone may be made of.
constexpr size_t kMostOfConstants = 64;

// The constants that it is made of, where it is made of nothing else; else none.
std::vector<InstId> made_of_constants(const Module& m, InstId i) {
  std::vector<InstId> work{i}, out;
  std::unordered_set<InstId> seen{i};
  for (size_t k = 0; k < work.size(); ++k) {
    const Opcode op = m.op(work[k]);
    if (op == Opcode::Constant) out.push_back(work[k]);
    const bool leaf = op == Opcode::Constant || op == Opcode::Iota;
    if (k >= kMostOfConstants || !m.called(work[k]).empty() || (!leaf && m.operands(work[k]).empty())) return {};
    for (InstId o : m.operands(work[k]))
      if (seen.insert(o).second) work.push_back(o);
  }
  return out;
}

}  // namespace

// Integers of constants alone: whatever the inputs, another one than there was.
bool Inside::Comparison::other_number(const Departed& d) const {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  const Visit &v = b_.walked.visits[d.now], &w = a_.walked.visits[d.before];
  const Shape& shape = b.shape(v.inst);
  return shape.is_array() && (is_integral(shape.type) || shape.type == ElementType::Pred) &&
         a[w.inst].name == b[v.inst].name && !made_of_constants(a, w.inst).empty() &&
         !made_of_constants(b, v.inst).empty();
}

// The constant under a new name that such a number is made of, where it is one alone.
InstId Inside::Comparison::folded_anew(const Departed& d) const {
  const Module& b = b_.walked.module->m();
  InstId out;
  if (d.operands_agree || !other_number(d)) return out;
  for (InstId c : made_of_constants(b, b_.walked.visits[d.now].inst)) {
    if (a_.walked.by_name.contains(b[c].name)) continue;
    if (out.valid()) return {};
    out = c;
  }
  return out;
}

// The same operation, or call, that reads by another name a value that there was, in the place of one that is not read
// under another name.
bool Inside::Comparison::reads_other_value(const Visit& before, const Visit& now) const {
  StageModule &x = *a_.walked.module, &y = *b_.walked.module;
  const Module &a = x.m(), &b = y.m();
  const Role role = role_of(b, now.inst);
  if (role_of(a, before.inst) != role || before.operands.size() != now.operands.size()) return false;
  if (role == Role::kCall
          ? x.canonical.computation(a.called(before.inst)[0]) != y.canonical.computation(b.called(now.inst)[0])
          : x.canonical.operation(before.inst) != y.canonical.operation(now.inst))
    return false;
  auto value = [](const Stage& s, StrId name) -> const Term* {
    auto at = s.walked.by_name.find(name);
    return at == s.walked.by_name.end() || at->second.size() != 1 ? nullptr : &s.walked.visits[at->second[0]].term;
  };
  bool other = false;
  for (size_t k = 0; k < now.operands.size(); ++k) {
    if (agrees(now.operands[k], before.operands[k])) continue;
    const StrId was = a[a.operand(before.inst, k)].name, is = b[b.operand(now.inst, k)].name;
    const Term *kept = value(b_, was), *had = value(a_, is);
    if (was == is || !had || !agrees(*had, now.operands[k])) return false;
    if (kept && !agrees(*kept, before.operands[k])) return false;
    other = true;
  }
  return other;
}

// The same operands by their names, each in its place.
bool Inside::Comparison::reads_as_before(const Visit& now, const Visit& before) const {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  if (a.operand_count(before.inst) != b.operand_count(now.inst)) return false;
  for (size_t k = 0; k < b.operand_count(now.inst); ++k)
    if (a[a.operand(before.inst, k)].name != b[b.operand(now.inst, k)].name) return false;
  return true;
}

// One that reads another constant that there was, and gives the same on these inputs alone: as where all that a maximum
// is taken of is larger than both.
bool Inside::Comparison::other_constant(const Visit& before, const Visit& now) {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  if (other_operands(now, before) != 1 || !reads_other_value(before, now)) return false;
  for (size_t k = 0; k < now.operands.size(); ++k) {
    if (agrees(now.operands[k], before.operands[k])) continue;
    if (a.op(a.operand(before.inst, k)) != Opcode::Constant || b.op(b.operand(now.inst, k)) != Opcode::Constant)
      return false;
    return n_.deviation_by_operand(*b_.walked.module, now.inst, k, before.operands[k], now.operands[k]) > 1e-6;
  }
  return false;
}

// Of what reads another value: the copy, the reshape or the call between, which is what reads another one by name.
Inside::Comparison::Departed Inside::Comparison::rewired_behind(const Departed& d) {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  Departed at = d;
  for (bool further = true; further;) {
    further = false;
    const Visit &v = b_.walked.visits[at.now], &w = a_.walked.visits[at.before];
    for (size_t k = 0; k < std::min(v.operands.size(), w.operands.size()) && !further; ++k) {
      if (agrees(v.operands[k], w.operands[k])) continue;
      InstId o = b.operand(v.inst, k);
      if (b[o].name != a[a.operand(w.inst, k)].name) continue;
      if (b.op(o) == Opcode::Parameter && b.parent(o) != b.entry()) {
        const CompId body = b.parent(o);
        for (const Visit& caller : b_.walked.visits)
          if (role_of(b, caller.inst) == Role::kCall && b.called(caller.inst)[0] == body) o = caller.inst;
      }
      auto own = b_.walked.by_name.find(b[o].name);
      const Role role = role_of(b, o);
      if ((role != Role::kSame && role != Role::kCall) || own == b_.walked.by_name.end() || own->second.size() != 1)
        continue;
      const uint32_t now = own->second[0], before = counterpart(now);
      if (before == UINT32_MAX || now >= b_.walked.visits.size()) continue;
      if (reads_other_value(a_.walked.visits[before], b_.walked.visits[now])) return {before, now, false, false};
      if (role == Role::kSame && role_of(a, a_.walked.visits[before].inst) == role)
        at = {before, now, false, false}, further = true;
    }
  }
  return d;
}

// With that value as it was, is all that another one has come of as it was, too? Then what else the pass has rewritten
// does not make up for it.
bool Inside::Comparison::alone_differs(uint32_t now, const Term& before) {
  const Module& b = b_.walked.module->m();
  const CompId c = b.parent(b_.walked.visits.back().inst);
  std::vector<Term> arguments;
  for (InstId p : b.comp(c).params) {
    Term given;
    given.shape = b.shape_id(p);
    if (auto at = b_.walked.by_name.find(b[p].name); at != b_.walked.by_name.end())
      given = b_.walked.visits[at->second[0]].term;
    arguments.push_back(std::move(given));
  }
  const std::unordered_map<InstId, Term> instead{{b_.walked.visits[now].inst, before}};
  const StageNumbers as_it_was = StageWalk(n_, b_.walked.module, true, &instead).run_computation(c, arguments);
  for (const auto& [name, visits] : as_it_was.by_name) {
    auto own = b_.walked.by_name.find(name), old = a_.walked.by_name.find(name);
    if (own == b_.walked.by_name.end() || own->second.size() != visits.size()) return false;
    if (old == a_.walked.by_name.end() || old->second.size() != visits.size()) continue;
    for (size_t k = 0; k < visits.size(); ++k) {
      const Term& t = as_it_was.visits[visits[k]].term;
      if (!agrees(t, b_.walked.visits[own->second[k]].term) && !agrees(t, a_.walked.visits[old->second[k]].term))
        return false;
    }
  }
  return true;
}

// Does something give that value that did not give it in the stage before?
bool Inside::Comparison::taken_over(NumberId n) {
  if (!made_now_.contains(n)) return false;
  for (uint32_t k = made_now_.at(n); k < b_.walked.visits.size(); ++k) {
    const Visit& v = b_.walked.visits[k];
    if (v.term.number != n) continue;
    const uint32_t other = counterpart(k);
    if (other == UINT32_MAX || a_.walked.visits[other].term.number != n) return true;
  }
  return false;
}

// What reads another value than it did, where nothing gives any more what it gave: that names alone are other ones does
// not look like that.
void Inside::Comparison::judge_rewired(InsideStage* out) {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  if (departed_.empty() || !moved_.empty() || !out->findings.empty() || a_.devices != b_.devices) return;
  for (uint32_t k = 0; k < b_.walked.visits.size(); ++k) {
    const Visit& v = b_.walked.visits[k];
    const Role role = role_of(b, v.inst);
    if (role != Role::kCall && !compares(b, v.inst)) continue;
    const uint32_t other = counterpart(k);
    if (other == UINT32_MAX) continue;
    const Visit& w = a_.walked.visits[other];
    // Of a library's call the first element is what it computes.
    const Term& gave = w.term.elements && !w.term.elements->empty() ? (*w.term.elements)[0] : w.term;
    if (!gave.is_array() || values_agree(v, w) || !b.u().compatible(a.shape_id(w.inst), b.shape_id(v.inst))) continue;
    if (n_.why_unknown(v.term) || n_.why_unknown(w.term) || !reads_other_value(w, v)) continue;
    if (taken_over(gave.number)) continue;
    Frontier frontier;
    const Fate what = fate(k, &frontier);
    // Or all that reads it is what it was, operands by their names included: what cancels it is no pass's doing.
    const bool cancelled = what == Fate::kErased && frontier.cancelled && !frontier.rewired;
    if (what == Fate::kHealed || (!frontier.blind && !cancelled)) continue;
    std::string words;
    const double by = apart(v.term, w.term, &words);
    if (by >= 0 && by <= b_.walked.module->noise(v.inst)) continue;
    out->findings.push_back(describe({other, k, false, false}));
    out->verdict = Verdict::kBad;
    out->why = fmt::format("{}: {}", b.inst_name(v.inst), out->findings.back().difference);
    return;
  }
}

}  // namespace hlo
