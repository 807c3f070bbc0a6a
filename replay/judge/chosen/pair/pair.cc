#include "replay/judge/chosen/pair/pair.h"

#include <algorithm>

#include "ir/base/check.h"
#include "replay/judge/chosen/elements/elements_run.h"

namespace hlo {
namespace {

// Candidates for a new value; how many of them are tried in other orders of dimensions.
constexpr size_t kMostTried = 12, kMostTurned = 4, kMostOfName = 4;
// Of a stage so many may have nothing in the one before: what reads the first of them has nothing either.
constexpr size_t kMostInVain = 300;
// What is forced to be as it was, one after the other, to see whether all else is the same.
constexpr size_t kMostFindings = 6;
// Values that are taken for the same, and rounds in which more are found by what reads them.
constexpr size_t kMostAssumed = 500;
constexpr int kMostRounds = 12;

using Set = ExprSet;

// What lies in an order of its own, whatever the instruction's is.
bool in_own_order(const Expr& x) { return x.kind == Expr::kSum || x.kind == Expr::kOperation; }

void add_arrays(const ExprTree& t, std::vector<const ExprTree*>* to) {
  if (t.id != kNoExpr) to->push_back(&t);
  for (const ExprTree& e : t.elements) add_arrays(e, to);
}

bool compares(const Expr& x) { return x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Compare; }

Dims without_ones(const Dims& dims) {
  Dims out;
  for (int64_t d : dims)
    if (d != 1) out.push_back(d);
  return out;
}

}  // namespace

ExprId ByElements::Pair::found_same(ExprId e, ExprId same) {
  s_.all.set_same(e, same);
  found_.push_back(e);
  return same;
}

ExprId ByElements::Pair::seen_same(ExprId e, ExprId same, InstId by) {
  sampled_.add(std::string(wide_->inst_name(by)), seen_, of_);
  return found_same(e, same);
}

// Elements in another order are no assumption that anything could stand upon.
bool ByElements::Pair::may_assume(ExprId e, ExprId before) const {
  return assumed_.size() < kMostAssumed && comparable(e, before) &&
         without_ones(shape_of(e).dims) == without_ones(shape_of(before).dims);
}

ExprId ByElements::Pair::assume(Assumed a) {
  assumed_.push_back(std::move(a));
  return found_same(assumed_.back().now, assumed_.back().before);
}

bool ByElements::Pair::rests_on_assumed(ExprId e) const {
  if (assumed_.empty()) return false;
  Set taken;
  for (const Assumed& a : assumed_) taken.insert(a.before);
  bool all = false;
  const std::vector<ExprId> on = reached({e}, {}, &all);
  return !all || std::any_of(on.begin(), on.end(), [&](ExprId x) { return taken.contains(x); });
}

// Of the stage before, what is no literal as it stands: it may have been folded in a type of fewer bits.
const std::vector<ExprId>& ByElements::Pair::computed_scalars() {
  if (!computed_scalars_) {
    Set out;
    for (const ExprVisit& v : s_.before.visits)
      if (v.value.id != kNoExpr && shape_of(v.value.id).elements_count() == 1 && s_.is_fixed(v.value.id) &&
          s_.before.wide->op(v.inst) != Opcode::Constant)
        out.insert(v.value.id);
    computed_scalars_.emplace(out.begin(), out.end());
    std::sort(computed_scalars_->begin(), computed_scalars_->end());
  }
  return *computed_scalars_;
}

// In the order of the elements of `e`, whose instruction's array is of dimensions `own`.
ByElements::Pair::Counterpart ByElements::Pair::lined_up(ExprId e, Counterpart c, const Dims& own,
                                                         const Expr::View* order) const {
  const Expr& x = s_.all[c.e];
  // What a message is made of, as the sum of a reduce-scatter, is met by its name, too, and has other elements.
  if (!comparable(e, c.e)) return c;
  const std::optional<Expr::View> back = order ? turned_back(*order) : std::nullopt;
  const bool same_dims = c.dims == own;
  if (back && same_dims) return {ordered(s_.all, c.e, *back, s_.all[e].shape), shape_of(e).dims};
  if ((order || !same_dims) && x.kind == Expr::kView && in_own_order(s_.all[x.operands[0]]) && in_own_order(s_.all[e]))
    return {x.operands[0], shape_of(x.operands[0]).dims};
  return c;
}

// Values that the stage before has by that name; what is called twice has several: those of more common operands first.
std::vector<ByElements::Pair::Counterpart> ByElements::Pair::of_name(ExprId e, InstId by,
                                                                     const Expr::View* order) const {
  std::vector<Counterpart> out;
  auto at = s_.by_name.find(std::string(wide_->inst_name(by)));
  if (at == s_.by_name.end()) return out;
  const uint32_t leaf = s_.all[e].leaf;
  std::vector<ShapeId> own;
  add_leaf_shapes(wide_->u(), wide_->shape_id(by), &own);
  for (const ExprTree& t : at->second) {
    std::vector<const ExprTree*> arrays;
    add_arrays(t, &arrays);
    if (leaf >= arrays.size() || leaf >= own.size()) continue;
    const Counterpart c =
        lined_up(e, {arrays[leaf]->id, wide_->u()[arrays[leaf]->shape].dims}, wide_->u()[own[leaf]].dims, order);
    if (!comparable(e, c.e)) continue;
    if (std::any_of(out.begin(), out.end(), [&](const Counterpart& other) { return other.e == c.e; })) continue;
    out.push_back(c);
  }
  likest_first(e, &out, kMostOfName);
  return out;
}

// Those of more common operands first; no more than `most` of them.
void ByElements::Pair::likest_first(ExprId e, std::vector<Counterpart>* of, size_t most) const {
  const auto common = common_operands(e);
  std::stable_sort(of->begin(), of->end(),
                   [&](const Counterpart& a, const Counterpart& b) { return common(a.e) > common(b.e); });
  if (of->size() > most) of->resize(most);
}

bool ByElements::Pair::reads_uncompared(ExprId e) const {
  for (ExprId o : s_.all[e].operands)
    if (pending_.contains(o) || (s_.all[o].kind == Expr::kView && pending_.contains(s_.all[o].operands[0])))
      return true;
  return false;
}

void ByElements::Pair::suspect(ExprId e, ExprId before, ElementsFinding f) {
  ++in_vain_;
  suspects_.push_back({e, before, std::move(f)});
}

ExprId ByElements::Pair::any_permuted(ExprId e, const std::vector<Counterpart>& named, const std::vector<ExprId>& with,
                                      const Set& leaves) {
  for (size_t k = 0; k < std::min(with.size(), kMostTurned); ++k) {
    const Dims& from = k < named.size() ? named[k].dims : shape_of(with[k]).dims;
    if (ExprId v = permuted(e, with[k], from, shape_of(e).dims, leaves); v != kNoExpr) return v;
  }
  return kNoExpr;
}

ExprId ByElements::Pair::met(ExprId e, InstId by, const Expr::View* order) {
  s_.names.emplace(e, wide_->inst_name(by));
  const Expr x = s_.all[e];
  if (x.kind == Expr::kFormal || x.kind == Expr::kParameter || s_.has(e)) return e;
  if (!tried_.insert(e).second) {
    auto at = pending_.find(e);
    return assuming_ && at != pending_.end() && may_assume(e, at->second.before) ? assume(at->second) : e;
  }
  const Shape& shape = wide_->u()[x.shape];
  if (shape.elements_count() == 0 || s_.spent >= s_.most_now) return e;
  const std::vector<Counterpart> named = by_origin_ ? of_origin(e, by, order) : of_name(e, by, order);
  auto unsure = [&](std::string why) {
    why_[e] = why;
    if (named.empty()) return e;
    Assumed a{e, named[0].e, std::string(wide_->inst_name(by)), std::move(why)};
    if (assuming_ && may_assume(e, a.before)) return assume(std::move(a));
    pending_.emplace(e, std::move(a));
    return e;
  };
  if (x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Constant && named.empty())
    if (ExprId exact = s_.all.rounded_from(e, computed_scalars()); exact != kNoExpr) return found_same(e, exact);
  ElementsFinding f;
  const bool sure = !named.empty() && surely_differs(e, named[0].e, by, &f);
  if (sure && hardly_told(x)) {
    suspect(e, named[0].e, std::move(f));
    return e;
  }
  if (x.kind == Expr::kLoop) return unsure("a loop whose trips compute in another way");
  Set leaves;
  if (!known_leaves(e, &leaves)) return unsure("it is computed from what has no elements");
  if (in_vain_ > kMostInVain) return why_[e] = "too much before it was not compared", e;
  std::vector<ExprId> with;
  for (const Counterpart& c : named) with.push_back(c.e);
  for (ExprId c : near(e, by, leaves))
    if (with.size() < kMostTried && std::find(with.begin(), with.end(), c) == with.end()) with.push_back(c);
  if (named.empty()) suspect_beginning(e, by, &with);
  if (with.empty()) return why_[e] = "nothing of the stage before is like it", e;
  if (ExprId part = proven_part(e, with); part != kNoExpr) return found_same(e, part);
  for (size_t k = 0; divided_ && k < std::min(with.size(), kMostTurned); ++k)
    if (scatter_of_parts(e, with[k])) return seen_same(e, with[k], by);
  ExprId same = kNoExpr;
  unsure_.clear();
  // What devices take together is what no single one of them has.
  less_ = reads_uncompared(e) && !(divided_ && x.kind == Expr::kMessage);
  // What is told at once, then what lies in another order, and only then what must be gone down for.
  if (compare(e, with, shape.dims, !named.empty(), &same, &f, 0, 1) == Answer::kSame) return seen_same(e, same, by);
  const bool ended = ended_, over = over_;
  if (ExprId v = any_permuted(e, named, with, leaves); v != kNoExpr) return seen_same(e, v, by);
  over_ = over;
  Answer answer = ended ? Answer::kUnsure : compare(e, with, shape.dims, !named.empty(), &same, &f, 1);
  if (answer == Answer::kUnsure && over_ && !named.empty() && !reads_uncompared(e)) {
    more_ = true;
    answer = compare(e, {with[0]}, shape.dims, true, &same, &f);
    more_ = false;
  }
  if (answer == Answer::kSame) return seen_same(e, same, by);
  const std::string why = unsure_;
  for (size_t k = 0; answer == Answer::kUnsure && k < std::min(with.size(), kMostTurned); ++k)
    if (same_terms(e, with[k])) return seen_same(e, with[k], by);
  if ((answer == Answer::kDiffers || sure) && !named.empty() && !rests_on_assumed(e)) {
    if (answer == Answer::kDiffers) f.before = f.after = wide_->inst_name(by), f.words.clear();
    suspect(e, with[0], std::move(f));
    return e;
  }
  const ExprId taken = unsure(why);
  in_vain_ += taken == e;
  return taken;
}

ExprStage ByElements::Pair::walk() {
  ExpressionWalk w(
      s_.all, wide_, [this](ExprId e, InstId by, const Expr::View* order) { return met(e, by, order); },
      divided_ ? this : nullptr);
  w.follow(trips_);
  return w.run();
}

// With what lies in an order of its own and is read in another one.
Set ByElements::Pair::values_of(const ExprStage& stage) const {
  std::vector<ExprId> ids;
  for (const ExprVisit& v : stage.visits) v.value.leaves(&ids);
  Set out(ids.begin(), ids.end());
  for (ExprId e : ids)
    if (s_.all[e].kind == Expr::kView) out.insert(s_.all[e].operands[0]);
  return out;
}

// Outputs that are other expressions are compared once more, each with the one in its place.
bool ByElements::Pair::outputs_same(const ExprStage& now) {
  std::vector<ExprId> a, b;
  s_.before.result.leaves(&a), now.result.leaves(&b);
  if (a.size() != b.size()) return false;
  if (divided_)
    for (size_t k = 0; k < a.size(); ++k)
      if (ExprId part = output_part(k, a[k]); part != kNoExpr) a[k] = part;
  bool all = true;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] == b[k] || same_outputs_.contains(b[k])) continue;
    ExprId same = kNoExpr;
    ElementsFinding told;
    const bool tried = comparable(b[k], a[k]) && s_.spent < s_.most_now;
    const bool moved = comparable(b[k], a[k]) && other_elements(s_.all, b[k], a[k]) && !s_.is_fixed(b[k]);
    if (moved) told.words = "gives its elements in another order";
    const Answer answer = moved   ? Answer::kDiffers
                          : tried ? compare(b[k], {a[k]}, shape_of(b[k]).dims, true, &same, &told)
                                  : Answer::kUnsure;
    if (answer == Answer::kSame) {
      same_outputs_.insert(b[k]);
      continue;
    }
    all = false;
    output_differs_ |= answer == Answer::kDiffers;
    if (answer == Answer::kDiffers) suspect_output(now, b[k], a[k], std::move(told));
  }
  return all;
}

// Elements of what is the same, in another order: nothing that was met.
void ByElements::Pair::suspect_output(const ExprStage& now, ExprId e, ExprId before, ElementsFinding f) {
  if (s_.all[e].kind != Expr::kView || !assumed_.empty() || !tried_.insert(e).second) return;
  for (const ExprVisit& v : now.visits) {
    if (v.value.id != e) continue;
    auto namesake = s_.by_name.find(std::string(wide_->inst_name(v.inst)));
    if (namesake == s_.by_name.end() || namesake->second.size() != 1 || namesake->second[0].id != before) continue;
    f.before = f.after = wide_->inst_name(v.inst);
    return suspect(e, before, std::move(f));
  }
}

bool ByElements::Pair::pair_values(ExprId now, ExprId before) {
  if (now == before || s_.has(now) || s_.all.same(now) != now || !comparable(now, before)) return false;
  const Expr &x = s_.all[now], &y = s_.all[before];
  if (x.kind == Expr::kFormal || x.kind == Expr::kParameter) return false;
  // The same elements of two values: it is these that may be one.
  if (x.kind == Expr::kView && y.kind == Expr::kView && x.view.sizes == y.view.sizes && x.view.steps == y.view.steps &&
      x.view.offset == y.view.offset)
    return pair_values(x.operands[0], y.operands[0]);
  ExprId same = kNoExpr;
  ElementsFinding told;
  unsure_.clear();
  Set leaves;
  const bool comparable_now = x.kind != Expr::kLoop && known_leaves(now, &leaves);
  if (comparable_now &&
      (compare(now, {before}, shape_of(now).dims, true, &same, &told) == Answer::kSame || same_terms(now, before))) {
    found_same(now, before);
    return true;
  }
  if (!may_assume(now, before)) return false;
  assume({now, before, name(now), unsure_});
  return true;
}

// True where a pair has been found.
bool ByElements::Pair::pair_operands_of(ExprId now, ExprId before) {
  const Expr x = s_.all[now], y = s_.all[before];
  if (x.kind != y.kind || x.leaf != y.leaf || x.operands.size() != y.operands.size() || x.kind == Expr::kLoop)
    return false;
  if (x.kind == Expr::kOperation && x.m->op(x.inst) != y.m->op(y.inst)) return false;
  size_t others = 0;
  for (size_t k = 0; k < x.operands.size(); ++k)
    if (x.operands[k] != y.operands[k]) {
      if (s_.has(x.operands[k]) || !comparable(x.operands[k], y.operands[k])) return false;
      ++others;
    }
  bool found = false;
  for (size_t k = 0; k < x.operands.size() && others; ++k)
    if (x.operands[k] != y.operands[k]) found |= pair_values(x.operands[k], y.operands[k]);
  return found;
}

bool ByElements::Pair::pair_operands(const ExprStage& now) {
  bool found = false;
  Set seen;
  for (const ExprVisit& v : now.visits) {
    if (by_origin_) break;
    auto at = s_.by_name.find(std::string(wide_->inst_name(v.inst)));
    if (at == s_.by_name.end() || at->second.size() != 1) continue;
    std::vector<ExprId> ids, was;
    v.value.leaves(&ids), at->second[0].leaves(&was);
    for (size_t k = 0; k < ids.size() && ids.size() == was.size(); ++k)
      if (!s_.has(ids[k]) && seen.insert(ids[k]).second) found |= pair_operands_of(ids[k], was[k]);
    if (s_.spent >= s_.most_now) return found;
  }
  if (found) return true;
  std::vector<ExprId> ids, was;
  now.result.leaves(&ids), s_.before.result.leaves(&was);
  for (size_t k = 0; k < ids.size() && ids.size() == was.size(); ++k)
    if (!s_.has(ids[k]) && !same_outputs_.contains(ids[k]))
      found |= pair_operands_of(ids[k], was[k]) || pair_values(ids[k], was[k]);
  return found;
}

void ByElements::Pair::count(const ExprStage& now, ElementsStage* out) {
  std::vector<ExprId> outputs, was;
  now.result.leaves(&outputs), s_.before.result.leaves(&was);
  out->outputs = outputs.size();
  for (size_t k = 0; k < outputs.size() && k < was.size(); ++k)
    out->outputs_same += outputs[k] == was[k] || same_outputs_.contains(outputs[k]) ||
                         (divided_ && outputs[k] == output_part(k, was[k]));
  // Behind what is the same nothing counts as not compared.
  Set open;
  std::vector<ExprId> work;
  auto reach = [&](ExprId e) {
    if (!had(e) && !same_outputs_.contains(e) && open.insert(e).second) work.push_back(e);
  };
  for (ExprId e : outputs) reach(e);
  Set changed, assumed;
  for (ExprId e : now.made)
    if (e >= known_) changed.insert(e);
  for (const Assumed& a : assumed_)
    if (changed.contains(a.now)) assumed.insert(a.now), reach(a.now);
  while (!work.empty()) {
    const ExprId e = work.back();
    work.pop_back();
    for (ExprId o : s_.all[e].operands) reach(o);
  }
  Set seen;
  for (const ExprVisit& v : now.visits) {
    std::vector<ExprId> ids;
    v.value.leaves(&ids);
    for (ExprId e : ids)
      if (seen.insert(e).second && !had(e)) changed.insert(e);
  }
  out->values = seen.size(), out->changed = changed.size();
  out->sampled = sampled_;
  for (ExprId e : changed) out->compared += !open.contains(e) && !assumed.contains(e);
  if (out->compared < out->changed) out->not_compared = first_open(now, open);
}

std::string ByElements::Pair::first_open(const ExprStage& now, const Set& open) {
  for (const ExprVisit& v : now.visits) {
    std::vector<ExprId> ids;
    v.value.leaves(&ids);
    for (ExprId e : ids) {
      if (!open.contains(e)) continue;
      const std::vector<ExprId>& o = s_.all[e].operands;
      if (std::any_of(o.begin(), o.end(), [&](ExprId x) { return open.contains(x); })) continue;
      auto why = why_.find(e);
      return fmt::format("{}{}{}", wide_->inst_name(v.inst), why == why_.end() || why->second.empty() ? "" : ": ",
                         why == why_.end() ? "" : why->second);
    }
  }
  // What was taken for another one stands there as that.
  if (assumed_.empty()) return "";
  const Assumed& a = assumed_[0];
  return fmt::format("{}{}{}", a.name, a.why.empty() ? "" : ": ", a.why);
}

// First with what can be compared alone. Where that leaves the verdict open, what cannot be is taken for what has its
// name, so that what lies behind it is compared.
ElementsStage ByElements::Pair::judge(ExprStage* now) {
  ElementsStage out = judge_walked(now);
  if (!divided_ && !trips_) return out;
  // The stages behind it are held against what devices have, not against wholes.
  for (ExprId e : found_) s_.all.set_same(e, e);
  *now = ExpressionWalk(s_.all, wide_, nullptr).run();
  return out;
}

ElementsStage ByElements::Pair::judge_walked(ExprStage* now) {
  known_ = s_.all.size();
  // The rest is for what lies behind that which could not be compared.
  const int64_t whole = s_.most_now;
  s_.most_now = s_.spent + (whole - s_.spent) / 2;
  most_alone_ = s_.most_now - s_.spent;
  *now = walk();
  ElementsStage out = judged(*now);
  if (ElementsFinding f; !by_origin_ && !trips_ && out.verdict == Verdict::kBad && alone(*now, false, &f)) {
    out.findings.clear(), out.why.clear();
    tell(std::move(f), &out);
  }
  if (out.verdict != Verdict::kUnknown) return out;
  assuming_ = true, in_vain_ = 0, less_ = false;
  s_.most_now = whole;
  ExprStage again = walk();
  for (int round = 0; round < kMostRounds && !outputs_same(again) && pair_operands(again); ++round) again = walk();
  out = judged(again);
  // The next stage is held against what this one says, not against what was taken for it.
  for (const Assumed& a : assumed_) s_.all.set_same(a.now, a.now);
  *now = ExpressionWalk(s_.all, wide_, nullptr).run();
  ElementsFinding f;
  assumed_.clear(), assuming_ = false;
  if (!by_origin_ && !trips_ && out.verdict == Verdict::kUnknown && (alone(*now, false, &f) || alone(*now, true, &f))) {
    out.verdict = Verdict::kBad;
    tell(std::move(f), &out);
  }
  if (out.verdict == Verdict::kUnknown) out.begins = names_of_beginnings(*now);
  return out;
}

// Of an instruction that gives another value: where that begins, as long as one operand alone is another value than
// before. What moves elements of a value that is known is that itself, for it was not compared; what calls with another
// known value is that.
InstId ByElements::Pair::lowest(const ExprStage& now, InstId by) {
  std::unordered_map<InstId, std::vector<const ExprTree*>> visits;
  for (const ExprVisit& v : now.visits) visits[v.inst].push_back(&v.value);
  // The first visit that gave another value before: both values; kNoExpr where there is none.
  auto other = [&](InstId o) -> std::pair<ExprId, ExprId> {
    const auto is = visits.find(o);
    const auto was = s_.by_name.find(std::string(wide_->inst_name(o)));
    if (is == visits.end() || was == s_.by_name.end() || is->second.size() != was->second.size())
      return {kNoExpr, kNoExpr};
    for (size_t k = 0; k < was->second.size(); ++k)
      if (is->second[k]->id != was->second[k].id) return {is->second[k]->id, was->second[k].id};
    return {kNoExpr, kNoExpr};
  };
  auto known = [&](ExprId e) { return s_.has(s_.all[e].kind == Expr::kView ? s_.all[e].operands[0] : e); };
  const std::vector<std::vector<InstId>> callers = wide_->callers();
  for (bool ended = false; !ended;) {
    InstId next;
    for (InstId o : wide_->operands(by)) {
      auto [is, was] = other(o);
      if (is == kNoExpr || was == kNoExpr) continue;
      if (wide_->op(o) == Opcode::Parameter) {
        const std::vector<InstId>& of = callers[wide_->parent(o).value];
        if (of.size() != 1 || wide_->op(of[0]) != Opcode::Fusion) continue;
        const InstId given = wide_->operand(of[0], static_cast<size_t>(wide_->parameter_number(o)));
        const auto [given_is, given_was] = other(given);
        if (given_is == kNoExpr && known(is)) return of[0];
        o = given, is = given_is, was = given_was;
        if (is == kNoExpr || was == kNoExpr) continue;
      }
      const Opcode op = wide_->op(o);
      const bool moves = op_info(op).cls == OpClass::Move || op == Opcode::Iota;
      // As wide as all floats are here a conversion hands its operand on: it may have been handed another one, and a
      // constant may be another one of those that there are.
      const bool hands_on = op == Opcode::Convert || op == Opcode::Constant;
      if (known(is) && !moves && (!hands_on || !is_enough(o, visits.at(o)))) continue;
      if (next.valid()) return by;  // two of them
      // Another meaning of the name is no fault: with its old value all else would have to be the same.
      if (!known(is) && !is_enough(is, was)) continue;
      next = o, ended = known(is);
    }
    if (!next.valid()) return by;
    by = next;
  }
  return by;
}

bool ByElements::Pair::is_enough(InstId now, const std::vector<const ExprTree*>& visits) {
  std::vector<ExprTree> before = s_.by_name.at(std::string(wide_->inst_name(now)));
  for (size_t k = 0; k < before.size() && k < visits.size(); ++k) before[k].shape = visits[k]->shape;
  in_vain_ = 0;
  ExpressionWalk w(s_.all, wide_, [this](ExprId e, InstId by, const Expr::View* o) { return met(e, by, o); });
  w.force(now, std::move(before));
  return outputs_same(w.run());
}

bool ByElements::Pair::is_enough(ExprId now, ExprId before) {
  if (!comparable(now, before) || s_.all.same(now) != now) return false;
  s_.all.set_same(now, before);
  const bool enough = outputs_same(walk());
  s_.all.set_same(now, now);
  return enough;
}

void ByElements::Pair::blame(const ExprStage& now, ElementsFinding f, ElementsStage* out) {
  for (const ExprVisit& v : now.visits)
    if (f.words.empty() && wide_->inst_name(v.inst) == f.after) {
      const std::string_view low = wide_->inst_name(lowest(now, v.inst));
      if (low != f.after)
        f.words = fmt::format("gives other elements to {}{}: {} instead of {}", f.after, f.index, f.is, f.was);
      f.before = f.after = low;
      break;
    }
  tell(std::move(f), out);
}

void ByElements::Pair::tell(ElementsFinding f, ElementsStage* out) {
  if (out->findings.empty())
    out->why = f.words.empty() ? fmt::format("{}{}: {} instead of {}", f.after, f.index, f.is, f.was)
                               : fmt::format("{}: {}", f.after, f.words);
  out->findings.push_back(std::move(f));
}

// Forced to be what they were, does all else agree? One alone, then one after the other; empty: with none of them.
std::vector<ByElements::Pair::Suspect> ByElements::Pair::forced_alike(const ExprStage& now) {
  std::vector<Suspect> forced;
  auto alike = [&](const Suspect& s, Set* present) {
    s_.all.set_same(s.now, s.before);
    forced.push_back(s);
    in_vain_ = 0;
    const ExprStage again = walk();
    *present = values_of(again);
    return outputs_same(again);
  };
  auto undo = [&] {
    for (const Suspect& s : forced) s_.all.set_same(s.now, s.now);
  };
  const Set at_first = values_of(now);
  Set present;
  for (const bool alone : {true, false}) {
    present = at_first;
    const size_t count = alone ? suspects_.size() : SIZE_MAX;
    for (size_t next = 0, tried = 0; next < std::min(count, suspects_.size()) && tried < kMostFindings; ++next) {
      const Suspect s = suspects_[next];
      if (!(alone ? at_first : present).contains(s.now)) continue;
      ++tried;
      const bool all = alike(s, &present);
      if (all || alone) undo();
      if (all) return forced;
      if (alone) forced.clear();
    }
  }
  undo();
  return {};
}

ElementsStage ByElements::Pair::judged(const ExprStage& now) {
  ElementsStage out;
  const bool same = outputs_same(now);
  count(now, &out);
  if (same && assumed_.empty()) {
    const Suspect* literal = rests_on_unseen_ ? nullptr : literal_alone(now);
    const Suspect* unseen = literal ? nullptr : unseen_literal();
    // No pass makes a comparison of the same floats another one alone: what it did besides agrees with the former one.
    if (unseen && compares(s_.all[unseen->now])) literal = unseen;
    out.verdict = literal ? Verdict::kBad : unseen ? Verdict::kUnknown : Verdict::kGood;
    if (literal) blame(now, literal->finding, &out);
    rests_on_unseen_ = !literal && unseen;
    if (rests_on_unseen_) out.why = unsure_;
    return out;
  }
  // Upon what is only taken for the same no stage is called bad.
  // Where names do not tell what is what, outputs must be seen to differ.
  const bool may_blame = assumed_.empty() && !same && (!by_origin_ || output_differs_);
  const std::vector<Suspect> forced = may_blame ? forced_alike(now) : std::vector<Suspect>();
  if (!forced.empty()) {
    out.verdict = Verdict::kBad;
    for (const Suspect& s : forced) blame(now, s.finding, &out);
    return out;
  }
  if (same) {
    const Assumed& a = assumed_[0];
    out.why = fmt::format("{}{} not compared, all else is the same{}{}", a.name,
                          assumed_.size() > 1 ? fmt::format(" and {} more", assumed_.size() - 1) : "",
                          a.why.empty() ? "" : ": ", a.why);
  } else {
    out.why = fmt::format("{} of {} outputs are not computed from what the stage before has{}{}",
                          out.outputs - out.outputs_same, out.outputs, unsure_.empty() ? "" : ": ", unsure_);
  }
  return out;
}

}  // namespace hlo
