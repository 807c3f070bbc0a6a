// Two stages side by side, from where their values differ down to what makes them so: by the places of operands, not by
// names.
#include <algorithm>
#include <optional>
#include <set>

#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"
#include "replay/judge/values/walk.h"

namespace hlo {
namespace {

constexpr size_t kMostPairs = 4096;
constexpr size_t kDeepestUnread = 16;  // operands of operands that no walk has visited

// Visits of calls, by what they call; of loops, whose first trip begins with what they are given, too.
std::unordered_map<CompId, std::vector<uint32_t>> calls_of(const StageNumbers& s) {
  const Module& m = s.module->m();
  std::unordered_map<CompId, std::vector<uint32_t>> out;
  for (uint32_t k = 0; k < s.visits.size(); ++k) {
    const Role role = role_of(m, s.visits[k].inst);
    if (role == Role::kCall || role == Role::kWhile)
      for (CompId c : m.called(s.visits[k].inst)) out[c].push_back(k);
  }
  return out;
}

// The last visit of `i` in front of another one, or UINT32_MAX.
uint32_t visit_of(const StageNumbers& s, InstId i, uint32_t in_front) {
  auto at = s.by_name.find(s.module->m()[i].name);
  if (at == s.by_name.end()) return UINT32_MAX;
  for (auto k = std::lower_bound(at->second.begin(), at->second.end(), in_front); k != at->second.begin();)
    if (s.visits[*--k].inst == i) return *k;
  return UINT32_MAX;
}

}  // namespace

class Inside::Comparison::Lockstep {
 public:
  explicit Lockstep(Comparison& c)
      : c_(c), a_(c.a_.walked), b_(c.b_.walked), calls_before_(calls_of(a_)), calls_now_(calls_of(b_)) {}

  bool down(uint32_t before, uint32_t now, uint32_t reader, Departed* out) {
    if (now == UINT32_MAX || before == UINT32_MAX || seen_.size() > kMostPairs) return false;
    if (!seen_.insert({before, now}).second || c_.agrees(b_.visits[now].term, a_.visits[before].term)) return false;
    const std::vector<uint32_t> own = chain(b_, calls_now_, now), old = chain(a_, calls_before_, before);
    const uint32_t last = own.back(), was = old.back();
    if (c_.n_.why_unknown(b_.visits[last].term) || c_.n_.why_unknown(a_.visits[was].term)) return false;
    if (untouched(last, was)) return misread(own, was, reader, out);
    if (known_by_another_name(last) && beside(own, was, reader, true, out)) return true;
    const Module &a = a_.module->m(), &b = b_.module->m();
    const Visit &v = b_.visits[last], &w = a_.visits[was];
    const Role role = role_of(b, v.inst), old_role = role_of(a, w.inst);
    if (role == Role::kElement || old_role == Role::kElement) {
      // Of a loop, or of what a loop carries: another index, or the loop.
      const bool begin = state(b_, last) && state(a_, was);
      if (role == old_role && (begin || c_.agrees(v.operands[0], w.operands[0]))) return take(was, last, true, out);
      if (role == old_role) return down(maker(a_, was), maker(b_, last), last, out);
      return role == Role::kOperation && v.operands.empty() && take(was, last, false, out);
    }
    if (role == Role::kWhile && old_role == role && !c_.elements_of_loop(last, was).empty())
      return take(was, last, true, out);
    return operands(was, last, out);
  }

 private:
  bool take(uint32_t before, uint32_t now, bool agree, Departed* out) {
    *out = {before, now, agree, false};
    return true;
  }

  bool operands(uint32_t before, uint32_t now, Departed* out) {
    const Visit &v = b_.visits[now], &w = a_.visits[before];
    const Module &a = a_.module->m(), &b = b_.module->m();
    const std::vector<size_t>& elements = c_.elements_;
    const bool root = !elements.empty() && now + 1 == b_.visits.size() && before + 1 == a_.visits.size() &&
                      b.op(v.inst) == Opcode::Tuple && elements.size() == v.operands.size();
    const bool same = root || v.operands.size() == w.operands.size();
    auto agree = [&](size_t k, size_t o) { return c_.agrees(v.operands[k], w.operands[o]); };
    const bool turned = same && v.operands.size() == 2 && Canonical::commutes(b, v.inst) && !agree(0, 0) &&
                        !agree(1, 1) && (agree(0, 1) || agree(1, 0));
    std::vector<std::pair<size_t, size_t>> apart;
    for (size_t k = 0; same && k < v.operands.size(); ++k) {
      const size_t slot = root ? elements[k] : turned ? 1 - k : k;
      if (slot >= w.operands.size()) return false;
      if (!c_.agrees(v.operands[k], w.operands[slot])) apart.push_back({k, slot});
    }
    if (same && apart.empty()) return b.op(v.inst) != Opcode::Tuple && take(before, now, true, out);
    if (v.operands.empty() && role_of(b, v.inst) == Role::kOperation) return take(before, now, false, out);
    if (same && !root && b.op(v.inst) != Opcode::Tuple && permuted(v, w)) return take(before, now, false, out);
    if (a.op(w.inst) != b.op(v.inst)) return false;
    // A sort that was made stable reads where each element was, too.
    if (!same && b.op(v.inst) == Opcode::Sort && w.operands.size() + 1 == v.operands.size() &&
        std::equal(w.operands.begin(), w.operands.end(), v.operands.begin(),
                   [&](const Term& x, const Term& y) { return c_.agrees(y, x); }))
      return take(before, now, true, out);
    if (!same) return false;
    for (const auto& [k, slot] : apart)
      if (down(visit_of(a_, a.operand(w.inst, slot), before), visit_of(b_, b.operand(v.inst, k), now), now, out))
        return true;
    return false;
  }

  // Does it read the values that the other one reads, in another order?
  bool permuted(const Visit& now, const Visit& before) const {
    return std::is_permutation(now.operands.begin(), now.operands.end(), before.operands.begin(), before.operands.end(),
                               [&](const Term& x, const Term& y) { return c_.agrees(x, y); });
  }

  // What hands a value on as it is, down to what makes it.
  std::vector<uint32_t> chain(const StageNumbers& s, const std::unordered_map<CompId, std::vector<uint32_t>>& calls,
                              uint32_t k) {
    std::vector<uint32_t> out{k};
    while (out.size() < kMostPairs) {
      const uint32_t next = handed_by(s, calls, out.back());
      if (next == UINT32_MAX || next >= s.visits.size()) return out;
      // Of a computation that is called again on what it was called on there are the first visits alone.
      if (!c_.agrees(s.visits[next].term, s.visits[out.back()].term)) return out;
      out.push_back(next);
    }
    return out;
  }

  static uint32_t caller(const StageNumbers& s, const std::unordered_map<CompId, std::vector<uint32_t>>& calls,
                         uint32_t parameter) {
    auto at = calls.find(s.module->m().parent(s.visits[parameter].inst));
    if (at == calls.end()) return UINT32_MAX;
    auto behind = std::upper_bound(at->second.begin(), at->second.end(), parameter);
    return behind == at->second.end() ? UINT32_MAX : *behind;
  }

  uint32_t handed_by(const StageNumbers& s, const std::unordered_map<CompId, std::vector<uint32_t>>& calls,
                     uint32_t k) {
    const Module& m = s.module->m();
    const InstId i = s.visits[k].inst;
    switch (role_of(m, i)) {
      case Role::kSame:
        return visit_of(s, m.operand(i, 0), k);
      case Role::kCall:
        return visit_of(s, m.comp(m.called(i)[0]).root, k);
      case Role::kParameter: {
        const uint32_t call = caller(s, calls, k);
        if (call == UINT32_MAX) return UINT32_MAX;
        return visit_of(s, m.operand(s.visits[call].inst, static_cast<size_t>(m.parameter_number(i))), call);
      }
      case Role::kElement: {
        const uint32_t from = visit_of(s, m.operand(i, 0), k);
        if (from == UINT32_MAX) return from;
        const uint32_t tuple = chain(s, calls, from).back();
        const auto index = static_cast<size_t>(m.attrs(i).integer(Attr::index));
        const InstId makes = s.visits[tuple].inst;
        if (role_of(m, makes) != Role::kTuple || index >= m.operand_count(makes)) return UINT32_MAX;
        return visit_of(s, m.operand(makes, index), tuple);
      }
      default:
        return UINT32_MAX;
    }
  }

  uint32_t maker(const StageNumbers& s, uint32_t element) {
    return visit_of(s, s.module->m().operand(s.visits[element].inst, 0), element);
  }

  // An element of what the computation is given.
  bool state(const StageNumbers& s, uint32_t element) {
    const uint32_t from = maker(s, element);
    return from != UINT32_MAX && role_of(s.module->m(), s.visits[from].inst) == Role::kParameter;
  }

  // Is it, by its name, what it was, and not in the place of the other one?
  bool untouched(uint32_t now, uint32_t before) {
    const Module& b = b_.module->m();
    const InstId i = b_.visits[now].inst;
    if (role_of(b, i) == Role::kParameter) return true;
    if (!a_.by_name.contains(b[i].name)) return constant_unread(i, a_.visits[before].inst);
    const uint32_t other = c_.counterpart(now);
    return other != UINT32_MAX && other != before && c_.agrees(b_.visits[now].term, a_.visits[other].term);
  }

  // A new name for what there was: the same operation of the same values.
  bool known_by_another_name(uint32_t now) const {
    const Visit& v = b_.visits[now];
    if (!v.term.is_array() || a_.by_name.contains(b_.module->m()[v.inst].name)) return false;
    auto at = c_.made_before_.find(v.term.number);
    if (at == c_.made_before_.end()) return false;
    const Visit& w = a_.visits[at->second];
    return w.operands.size() == v.operands.size() &&
           a_.module->canonical.operation(w.inst) == b_.module->canonical.operation(v.inst) &&
           std::equal(v.operands.begin(), v.operands.end(), w.operands.begin(),
                      [&](const Term& x, const Term& y) { return c_.agrees(x, y); });
  }

  // A constant that was there, where nothing read it.
  bool constant_unread(InstId now, InstId beside) {
    const Module &a = a_.module->m(), &b = b_.module->m();
    if (b.op(now) != Opcode::Constant) return false;
    const auto& order = a.comp(a.parent(beside)).order;
    return std::any_of(order.begin(), order.end(), [&](InstId i) {
      return i.valid() && a[i].name == b[now].name &&
             a_.module->canonical.operation(i) == b_.module->canonical.operation(now);
    });
  }

  // The value of what nothing reads any more, which is in no walk; none where its operands have none.
  const Term* unread_value(InstId i, uint32_t reader, size_t depth) {
    if (auto at = unread_.find(i); at != unread_.end()) return at->second ? &*at->second : nullptr;
    const Module& b = b_.module->m();
    if (depth > kDeepestUnread || role_of(b, i) == Role::kParameter) return nullptr;
    std::vector<Term> operands;
    for (InstId o : b.operands(i)) {
      const uint32_t live = visit_of(b_, o, reader);
      const Term* value = live != UINT32_MAX ? &b_.visits[live].term : unread_value(o, reader, depth + 1);
      if (!value) return nullptr;
      operands.push_back(*value);
    }
    std::optional<Term>& out = unread_[i];
    const Term value = StageWalk(c_.n_, c_.b_.walked.module, false).value_of(i, operands);
    if (!c_.n_.why_unknown(value)) out = value;
    return out ? &*out : nullptr;
  }

  // Of `named`'s computation: one that gives, or gave, the value that was read, and stands in front of what reads
  // `named` in its place.
  bool stands_beside(uint32_t named, uint32_t reader, const Term& wanted) {
    const Module &a = a_.module->m(), &b = b_.module->m();
    const InstId own = b_.visits[named].inst;
    const Shape& s = b.shape(own);
    if (!s.is_array()) return false;
    // What gave that value by its own name is read as it was, and is what does not give it any more.
    if (a_.by_name.contains(b[own].name))
      if (const uint32_t gave = c_.counterpart(named); gave != UINT32_MAX && c_.agrees(a_.visits[gave].term, wanted))
        return false;
    for (InstId o : b.comp(b.parent(own)).order) {
      if (!o.valid() || o == own) continue;
      if (o == b_.visits[reader].inst) return false;
      const Shape& t = b.shape(o);
      if (!t.is_array() || t.type != s.type || t.dims != s.dims) continue;
      if (const uint32_t live = visit_of(b_, o, reader); live != UINT32_MAX) {
        if (c_.agrees(b_.visits[live].term, wanted)) return true;
        continue;
      }
      if (const Term* unread = unread_value(o, reader, 0); unread && c_.agrees(*unread, wanted)) return true;
      auto old = a_.by_name.find(b[o].name);
      if (old == a_.by_name.end()) continue;
      const Visit& gave = a_.visits[old->second.back()];
      if (a.op(gave.inst) == b.op(o) && c_.agrees(gave.term, wanted)) return true;
    }
    return false;
  }

  bool told(uint32_t who, uint32_t was, Departed* out) {
    const uint32_t other = c_.counterpart(who);
    return take(other == UINT32_MAX ? was : other, who, false, out);
  }

  // Is it read elsewhere, too, or by another operand, so that it was there for more than this?
  bool read_elsewhere(uint32_t read, uint32_t reader) const {
    const Module& b = b_.module->m();
    const InstId own = b_.visits[read].inst, by = b_.visits[reader].inst;
    const auto operands = b.operands(by);
    return b.is_root(own) || std::count(operands.begin(), operands.end(), own) > 1 ||
           std::any_of(b.users(own).begin(), b.users(own).end(), [&](InstId u) { return u != by; });
  }

  // Of those that hand the value on, what reads each of them: itself a copy, a tuple or a call.
  uint32_t reader_in_chain(const std::vector<uint32_t>& own, size_t k) {
    const Role role = role_of(b_.module->m(), b_.visits[own[k]].inst);
    if (role == Role::kParameter) return caller(b_, calls_now_, own[k]);
    if (role == Role::kElement) return chain(b_, calls_now_, maker(b_, own[k])).back();
    return role == Role::kSame ? own[k] : UINT32_MAX;
  }

  // The reader of what stands beside the value that was read before. `shared`: what it reads others read, too; what
  // nothing else reads was rather made for its reader.
  bool beside(const std::vector<uint32_t>& own, uint32_t was, uint32_t reader, bool shared, Departed* out) {
    const Term& wanted = a_.visits[was].term;
    auto here = [&](uint32_t read, uint32_t by) {
      return by != UINT32_MAX && read_elsewhere(read, by) == shared && stands_beside(read, by, wanted);
    };
    if (here(own[0], reader)) return told(reader, was, out);
    for (size_t k = 0; k + 1 < own.size(); ++k)
      if (const uint32_t by = reader_in_chain(own, k); here(own[k + 1], by)) return told(by, was, out);
    return false;
  }

  // What reads something that is what it was, in the place of another one: that beside which the other one stands;
  // else the nearest of those that hand it on, which may be another operation than it was.
  bool misread(const std::vector<uint32_t>& own, uint32_t was, uint32_t reader, Departed* out) {
    if (beside(own, was, reader, true, out) || beside(own, was, reader, false, out)) return true;
    const Module& b = b_.module->m();
    for (uint32_t k : own)
      if (role_of(b, b_.visits[k].inst) == Role::kSame && c_.counterpart(k) == was) return told(k, was, out);
    uint32_t nearest = reader, call = UINT32_MAX;
    for (size_t k = 0; k < own.size(); ++k) {
      const Role role = role_of(b, b_.visits[own[k]].inst);
      if (role == Role::kSame || role == Role::kElement) nearest = own[k], call = UINT32_MAX;
      if (k + 1 < own.size() && role == Role::kParameter) call = caller(b_, calls_now_, own[k]);
    }
    if (call != UINT32_MAX && nearest == reader) nearest = call;
    return nearest != UINT32_MAX && told(nearest, was, out);
  }

  Comparison& c_;
  const StageNumbers &a_, &b_;
  const std::unordered_map<CompId, std::vector<uint32_t>> calls_before_, calls_now_;
  std::set<std::pair<uint32_t, uint32_t>> seen_;
  std::unordered_map<InstId, std::optional<Term>> unread_;
};

bool Inside::Comparison::lockstep(uint32_t before, uint32_t now, Departed* out) {
  return a_.devices == b_.devices && Lockstep(*this).down(before, now, UINT32_MAX, out);
}

bool Inside::Comparison::lockstep_of_results(Departed* out) {
  const size_t before = a_.walked.visits.size(), now = b_.walked.visits.size();
  if (!before || !now) return false;
  return lockstep(static_cast<uint32_t>(before) - 1, static_cast<uint32_t>(now) - 1, out);
}

}  // namespace hlo
