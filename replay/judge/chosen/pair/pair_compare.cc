#include "replay/judge/chosen/pair/pair.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/pair/kept_leaves.h"
#include "replay/judge/chosen/pair/landings.h"

namespace hlo {
namespace {

// Values that one is taken apart into.
constexpr size_t kMostApart = 4000;
// Candidates may cost so many times what the value itself does, and a few elements more.
constexpr int64_t kTimesOwn = 4, kFewElements = 1 << 12;
// What went over budget is held against its namesake once more, with so many times the elements.
constexpr int64_t kTimesMore = 8;
// What reads a value that was not found the same seldom is: it is tried with few elements.
constexpr int64_t kTimesLess = 16;
// Numbers of a table that are drawn as they stand: where each device's part begins.
constexpr int64_t kSmallTable = 64;
// The seed of a leaf that is drawn anew.
constexpr uint64_t kAnew = 0xA2E3;
// Behind the partitioner so many levels are tried at least.
constexpr int kLevelsOfJoined = 3;
// How far a leaf's own operands are looked at.
constexpr size_t kMostTies = 200;
// Draws in which each leaf has a magnitude of its own, where a constant may make one small.
constexpr int64_t kScaledTurns = 2;
// Elements of one draw from which on there are few of them.
constexpr int64_t kDear = 1 << 17;
// Constants of more elements are `{...}` in XLA's dumps (xla/hlo/ir/hlo_print_options.h).
constexpr int64_t kElided = 10;

using Set = ExprSet;

}  // namespace

bool element_by_element(const Expr& e) {
  if (e.kind == Expr::kView || e.kind == Expr::kBranch) return true;
  if (e.kind == Expr::kMessage) return e.message->kind != DeviceMessage::kReduce;
  if (e.kind != Expr::kOperation) return false;
  switch (op_info(e.m->op(e.inst)).cls) {
    case OpClass::Elementwise:
    case OpClass::Move:
    case OpClass::Gather:
    case OpClass::Leaf:
      return true;
    default:
      return false;
  }
}

bool ByElements::State::is_fixed(ExprId e) {
  // Operands come before their readers.
  while (fixed.size() <= e) {
    const Expr& x = all[static_cast<ExprId>(fixed.size())];
    bool is = x.kind == Expr::kMessage || element_by_element(x);
    if (x.kind == Expr::kOperation && x.operands.empty())
      is = x.m->op(x.inst) == Opcode::Constant || x.m->op(x.inst) == Opcode::Iota;
    for (ExprId o : x.operands) is = is && fixed[o];
    fixed.push_back(is);
  }
  return fixed[e];
}

std::string ByElements::Pair::name(ExprId e) const {
  auto at = s_.names.find(e);
  if (at != s_.names.end()) return at->second;
  const Expr& x = s_.all[e];
  return std::string(x.m->inst_name(x.inst));
}

bool ByElements::Pair::comparable(ExprId e, ExprId with) const {
  const Expr &a = s_.all[e], &b = s_.all[with];
  const Shape &x = a.m->u()[a.shape], &y = b.m->u()[b.shape];
  return x.type == y.type && x.elements_count() == y.elements_count();
}

bool ByElements::Pair::known_leaves(ExprId e, Set* out) {
  std::vector<ExprId> work{e};
  Set seen{e};
  while (!work.empty()) {
    const ExprId x = work.back();
    work.pop_back();
    if (s_.is_fixed(x)) continue;
    const Expr& expr = s_.all[x];
    if (x != e && s_.has(x)) {
      // Others may read the array in another order.
      out->insert(expr.kind == Expr::kView ? expr.operands[0] : x);
      continue;
    }
    if (expr.kind == Expr::kLoop || expr.kind == Expr::kFormal) {
      if (!s_.has(x)) return false;
      continue;
    }
    if (seen.size() > kMostApart) return false;
    for (ExprId o : expr.operands)
      if (seen.insert(o).second) work.push_back(o);
  }
  return true;
}

// Each leaf in its operands' place, where it is element by element; `all_the_way`: until nothing of that kind is left.
Set ByElements::Pair::taken_apart(const Set& leaves, bool all_the_way) const {
  Set out, seen;
  std::vector<ExprId> work(leaves.begin(), leaves.end());
  std::sort(work.begin(), work.end());
  while (!work.empty()) {
    const ExprId x = work.back();
    work.pop_back();
    if (!seen.insert(x).second) continue;
    // What devices take together costs as many times more as there are: once it is worth that.
    const bool sent = s_.all[x].kind == Expr::kMessage && !all_the_way;
    const bool apart = (sent || element_by_element(s_.all[x])) && seen.size() < kMostApart;
    if (!apart) {
      out.insert(x);
      continue;
    }
    for (ExprId o : s_.all[x].operands)
      if (all_the_way)
        work.push_back(o);
      else
        out.insert(o);
  }
  return out;
}

// All that they are made of, down to what is drawn.
std::vector<ExprId> ByElements::Pair::reached(std::vector<ExprId> work, const Set& cut, bool* all) const {
  std::vector<ExprId> out;
  Set seen(work.begin(), work.end());
  while (!work.empty() && seen.size() < kMostApart) {
    const ExprId e = work.back();
    work.pop_back();
    out.push_back(e);
    for (ExprId o : s_.all[e].operands)
      if (!cut.contains(o) && seen.insert(o).second) work.push_back(o);
  }
  if (all) *all = work.empty();
  return out;
}

// Those that dumps elide unless they are asked not to.
Set ByElements::Pair::large_constants(ExprId e, const Set& cut) const {
  Set out;
  for (ExprId at : reached({e}, cut)) {
    const Expr& x = s_.all[at];
    const bool constant = x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Constant;
    if (constant && x.m->u()[x.shape].elements_count() > kElided) out.insert(at);
  }
  return out;
}

bool ByElements::Pair::other_leaves(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut) {
  // What a loop hands on may be a constant, which nothing here sees; and one that a dump elides has a made-up value.
  if (s_.is_fixed(a) != s_.is_fixed(b) || large_constants(a, cut) != large_constants(b, cut)) return true;
  Set found[2];
  for (int side = 0; side < 2; ++side) {
    Sampled values;
    ChosenElements elements = evaluation(cut, Draw::kMixed, &found[side]);
    if (!sample(elements, side ? b : a, at, &values) || !values.sure) return true;
    std::erase_if(found[side], [&](ExprId e) { return s_.all[e].kind == Expr::kParameter; });
  }
  return found[0] != found[1];
}

// Leaves that are made of other leaves, near by, in their operands' place: drawn apart from these they are no values
// that the program has.
Set ByElements::Pair::untied(const Set& cut, const Set& used) const {
  Set out = cut;
  for (ExprId leaf : used) {
    const Expr& x = s_.all[leaf];
    if (x.kind == Expr::kParameter || x.kind == Expr::kFormal || x.kind == Expr::kLoop || x.operands.empty()) continue;
    std::deque<ExprId> work(x.operands.begin(), x.operands.end());
    Set seen(x.operands.begin(), x.operands.end());
    // So are several results of one operation: values and where they were, of a sort.
    bool tied = x.kind == Expr::kOperation && std::any_of(used.begin(), used.end(), [&](ExprId other) {
                  const Expr& y = s_.all[other];
                  return other != leaf && y.kind == Expr::kOperation && y.m == x.m && y.inst == x.inst &&
                         y.operands == x.operands;
                });
    while (!work.empty() && !tied && seen.size() < kMostTies) {
      const ExprId o = work.front();
      work.pop_front();
      tied = used.contains(o);
      for (ExprId p : s_.all[o].operands)
        if (seen.insert(p).second) work.push_back(p);
    }
    if (!tied) continue;
    out.erase(leaf);
    out.insert(x.operands.begin(), x.operands.end());
  }
  return out;
}

int64_t ByElements::Pair::affordable() const {
  const int64_t most =
      less_ ? s_.options.most_elements / kTimesLess : s_.options.most_elements * (more_ ? kTimesMore : 1);
  return std::clamp<int64_t>(s_.most_now - s_.spent, 0, most);
}

// Evaluates with these values as they are drawn.
ChosenElements::Options ByElements::Pair::options_of(const Set& cut) {
  ChosenElements::Options o;
  o.cut = [&cut, this](ExprId x) { return cut.contains(x) && !s_.is_fixed(x); };
  o.most_elements = affordable();
  o.stop = s_.options.stop;
  o.devices = s_.all.devices().devices() > 1 ? &s_.all.devices() : nullptr;
  return o;
}

ChosenElements ByElements::Pair::evaluation(const Set& cut, Draw how, Set* used, const DrawnNear* near, bool kept) {
  return ChosenElements(
      s_.all.all(),
      [this, how, used, near, kept](ExprId x, std::span<const int64_t> indices, char* to) {
        used->insert(x);
        const Expr& leaf = s_.all[x];
        if (kept && leaf.kind == Expr::kParameter &&
            s_.options.kept->give(leaf.leaf, leaf.m->u()[leaf.shape], indices, to))
          return;
        const auto turn = static_cast<uint64_t>(near ? near->turn : 0) + (near && near->anew == x ? kAnew : 0);
        draw_elements(s_.all, x, indices, s_.options.seed + turn, how, near, to);
      },
      options_of(cut));
}

bool ByElements::Pair::sample(ChosenElements& elements, ExprId e, std::span<const int64_t> at, Sampled* out) {
  std::vector<char> bytes;
  const int64_t before = elements.evaluated();
  try {
    bytes = elements.at(e, at);
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported || (s_.options.stop && s_.options.stop())) throw;
    s_.spent += elements.evaluated() - before;
    unsure_ = f.what();
    return false;
  }
  s_.spent += elements.evaluated() - before;
  // What is no more than a name for itself tells nothing by being another one.
  for (const auto& [x, why] : elements.uninterpreted())
    if (!s_.has(x)) out->sure = false, unsure_ = why;
  const Expr& x = s_.all[e];
  const ElementType type = x.m->u()[x.shape].type;
  const auto width = static_cast<size_t>(storage_bytes(type));
  const bool floats = is_float(type);
  for (size_t k = 0; k < at.size(); ++k) {
    const char* p = bytes.data() + k * width;
    if (is_complex(type)) {
      const ElementType part = width == 16 ? ElementType::F64 : ElementType::F32;
      out->values.push_back(load_double(part, p)), out->values.push_back(load_double(part, p + width / 2));
    } else if (type == ElementType::Pred) {
      out->values.push_back(*p != 0);
    } else {
      out->values.push_back(floats ? load_double(type, p) : static_cast<double>(load_int(type, p)));
    }
  }
  return true;
}

// Of the largest magnitude where both are close to it, else of the largest that no mask fills in: a mask is one number,
// far larger than all that it leaves.
ByElements::Pair::Magnitudes::Magnitudes(std::span<const double> a, std::span<const double> b) {
  auto each = [&](auto&& look) {
    for (std::span<const double> s : {a, b})
      for (double x : s)
        if (std::isfinite(x)) look(std::fabs(x));
  };
  each([&](double x) { largest_ = std::max(largest_, x); });
  bool one = true;
  double rest = 0;
  each([&](double x) {
    if (x * kFarLarger < largest_)
      rest = std::max(rest, x);
    else
      one = one && largest_ - x <= kOneNumber * largest_;
  });
  beside_ = one && rest > 0 ? rest : largest_;
}

double ByElements::Pair::Magnitudes::at(double x, double y) const {
  return std::max(std::fabs(x), std::fabs(y)) > beside_ ? largest_ : beside_;
}

bool ByElements::Pair::alike(const Sampled& a, const Sampled& b, size_t* where, double rounding) const {
  const Magnitudes largest(a.values, b.values);
  for (size_t k = 0; k < a.values.size(); ++k) {
    const double x = a.values[k], y = b.values[k];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (std::fabs(x - y) <= std::max(kRounding, rounding) * largest.at(x, y)) continue;
    *where = k;
    return false;
  }
  return true;
}

// Scalars and small tables that stand in either, down to what is drawn: integers and floats that mean something.
DrawnNear ByElements::Pair::constants_of(ExprId a, ExprId b, const Set& cut) const {
  DrawnNear out;
  std::set<int64_t> integers;
  std::set<double> reals;
  for (ExprId e : reached({a, b}, cut)) {
    const Expr& x = s_.all[e];
    const Shape& shape = x.m->u()[x.shape];
    if (x.kind != Expr::kOperation || x.m->op(x.inst) != Opcode::Constant) continue;
    const Literal& l = x.m->literal(x.inst);
    const bool integer = type_kind(shape.type) == TypeKind::kSigned || type_kind(shape.type) == TypeKind::kUnsigned;
    if (l.elided || l.bytes.empty() || shape.elements_count() > (integer ? kSmallTable : 1)) continue;
    for (int64_t k = 0; integer && k < shape.elements_count(); ++k)
      for (int64_t d = -1; d <= 1; ++d)
        integers.insert(static_cast<int64_t>(
            static_cast<uint64_t>(load_int(shape.type, l.bytes.data() + k * storage_bytes(shape.type))) +
            static_cast<uint64_t>(d)));
    if (is_float(shape.type) && std::isfinite(load_double(shape.type, l.bytes.data())))
      reals.insert(load_double(shape.type, l.bytes.data()));
  }
  out.integers.assign(integers.begin(), integers.end()), out.reals.assign(reals.begin(), reals.end());
  return out;
}

// Of one draw.
bool ByElements::Pair::alike_drawn(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut, Draw how,
                                   const DrawnNear& near, bool* over, Masks* masks) {
  Set used;
  ChosenElements elements = evaluation(cut, how, &used, &near);
  Sampled x, y;
  size_t where = 0;
  if (!sample(elements, a, at, &x) || !sample(elements, b, at, &y)) {
    *over = true;
    return false;
  }
  if (!alike(x, y, &where) || !only_rounded(a, b, at, cut, how, &near, x, y)) return false;
  if (all_finite(x)) masks->note(elements);
  return true;
}

// Of few elements with as many draws more, so that there are `samples` numbers at least.
bool ByElements::Pair::alike_near(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut, bool* over,
                                  Masks* masks) {
  DrawnNear near = constants_of(a, b, cut);
  const auto few = static_cast<int64_t>(at.size() < s_.options.samples ? 2 * s_.options.samples / at.size() : 0);
  const int64_t scaled = near.reals.empty() ? 0 : kScaledTurns;
  // What is dear is drawn once about constants, and once with large scalars.
  const int64_t turns = std::max({near.turns() + scaled, few, int64_t{more_}});
  bool dear = more_;
  for (; near.turn < turns; ++near.turn) {
    if (dear && near.turn && near.turn != near.turns()) continue;
    const int64_t before = s_.spent;
    if (!alike_drawn(a, b, at, cut, Draw::kNear, near, over, masks)) return false;
    dear = dear || s_.spent - before > kDear;
  }
  return true;
}

// Could another value be alike by chance? Masks, zeros, small integers are.
bool ByElements::Pair::tells(const Sampled& a, const Sampled& b) {
  std::set<double> different;
  for (const Sampled* s : {&a, &b})
    for (double x : s->values)
      if (std::isfinite(x) && x != 0) different.insert(x);
  return different.size() * 2 >= std::min(a.values.size() + b.values.size(), kTelling) && different.size() > 1;
}

bool ByElements::Pair::all_finite(const Sampled& s) {
  return std::all_of(s.values.begin(), s.values.end(), [](double x) { return std::isfinite(x); });
}

bool ByElements::Pair::any_finite(const Sampled& s) {
  return std::any_of(s.values.begin(), s.values.end(), [](double x) { return std::isfinite(x); });
}

std::string index_text(int64_t at, const Dims& dims) {
  Dims index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) index[d] = at % dims[d], at /= dims[d];
  std::string out = "[";
  for (size_t d = 0; d < index.size(); ++d) out += fmt::format("{}{}", d ? "," : "", index[d]);
  return out + "]";
}
// From the values that the stage before has, then from what these are made of, further and further.
ByElements::Pair::Answer ByElements::Pair::compare(ExprId e, const std::vector<ExprId>& with, const Dims& dims,
                                                   bool named, ExprId* same, ElementsFinding* told, int first,
                                                   int levels) {
  Set cut;
  if (!known_leaves(e, &cut)) return Answer::kUnsure;
  const std::vector<int64_t> anywhere = on_devices(e, with, sampled_indices(dims, s_.options.samples, e));
  Answer last = Answer::kUnsure;
  Set used;
  bool untied_all = false;
  std::vector<int64_t> at;
  for (int level = first; level < levels; ++level) {
    if (level) {
      Set further = level < 3 ? taken_apart(cut, false) : level == 3 ? taken_apart(cut, true) : untied(cut, used);
      if (further == cut && level != 3) {
        if (level < 3) continue;
        untied_all = true;
        break;
      }
      cut = std::move(further);
    }
    used.clear();
    Sampled now[2];
    ChosenElements elements[2] = {evaluation(cut, Draw::kMixed, &used), evaluation(cut, Draw::kPositive, &used)};
    at = where_told(e, with[0], anywhere, elements[0]);
    over_ = !sample(elements[0], e, at, &now[0]) || !sample(elements[1], e, at, &now[1]);
    ended_ = over_ || (!any_finite(now[0]) && !any_finite(now[1]));
    if (!ended_) over_ = ended_ = !sample_beside(e, with[0], dims, cut, elements, &at, now);
    if (ended_) return Answer::kUnsure;
    bool over_first = false;
    const Set own = used;
    // What costs many times more than `e` does is another one: all but the first are soon given up.
    const int64_t few = kTimesOwn * std::max(elements[0].evaluated(), elements[1].evaluated()) + kFewElements;
    for (ExprId c : with) {
      bool alike_all = true, differs = false, over = false;
      for (ChosenElements& one : elements) one.limit(c == with[0] ? affordable() : std::min(affordable(), few));
      for (int d = 0; d < 2 && alike_all; ++d) {
        Sampled was;
        size_t where = 0;
        if (!sample(elements[d], c, at, &was)) {
          alike_all = differs = false, over = true;
          break;
        }
        alike_all = alike(was, now[d], &where) &&
                    only_rounded(c, e, at, cut, d ? Draw::kPositive : Draw::kMixed, nullptr, was, now[d]);
        if (alike_all || c != with[0]) continue;
        // Constants are folded in types of few digits: what that may be is no difference for certain.
        differs = was.sure && now[d].sure && !alike(was, now[d], &where, s_.coarsest);
        const size_t each = now[d].values.size() / at.size();
        told->index = index_text(at[where / each] % shape_of(e).elements_count(), dims);
        if (s_.all.devices().devices() > 1)
          told->index += fmt::format(" on device {}", at[where / each] / shape_of(e).elements_count());
        told->was = was.values[where], told->is = now[d].values[where];
      }
      if (alike_all && (c != with[0] || !named))
        alike_all = (tells(now[0], now[1]) || told_by_draws(e, c, at, cut, few, &over)) && reads_all(c, at, cut, own);
      // What a mask hides was not compared, nor, further down, a side that is never taken.
      Masks masks = alike_all ? masks_of(e, c, cut, level > 0) : Masks();
      for (int d = 0; d < 2; ++d)
        if (all_finite(now[d])) masks.note(elements[d]);  // no number is neither less nor not
      alike_all = alike_all && alike_kept(e, c, at, cut, &masks, &differs, c == with[0] ? told : nullptr);
      alike_all = alike_all && alike_near(e, c, at, cut, &over, &masks) && alike_masked(e, c, at, cut, &over, &masks) &&
                  alike_rare(e, c, at, cut, masks);
      if (alike_all) {
        saw(e, with, at);
        *same = c;
        return Answer::kSame;
      }
      if (c == with[0]) last = differs ? Answer::kDiffers : Answer::kUnsure;
      over_first |= named && over && c == with[0];
    }
    over_ = over_first;
    // Of whole arrays factors are joined to products, which those of parts are not: what is cut lies further down.
    ended_ = over_first && !(divided_ && level < kLevelsOfJoined);
    if (ended_) return Answer::kUnsure;
  }
  if (!untied_all || (last == Answer::kDiffers && (other_leaves(e, with[0], at, cut) || other_top_k(e, with[0], cut))))
    return Answer::kUnsure;
  if (last == Answer::kDiffers) {
    std::vector<ExprId> on(used.begin(), used.end());
    std::sort(on.begin(), on.end());
    for (size_t k = 0; k < std::min<size_t>(on.size(), 8); ++k)
      told->rests_on += fmt::format("{}{}", k ? ", " : "", name(on[k]));
  }
  return last;
}

// Is one of them alone made of the sort, or of the call, that the other one's first elements come from?
bool ByElements::Pair::other_top_k(ExprId a, ExprId b, const Set& cut) const {
  auto sorts = [&](ExprId e) {
    const Expr& x = s_.all[e];
    if (x.kind != Expr::kOperation) return false;
    const Opcode op = x.m->op(x.inst);
    if (op == Opcode::TopK || op == Opcode::Sort) return true;
    const std::string_view target = x.m->u().text(x.m->attrs(x.inst).text(Attr::custom_call_target));
    return op == Opcode::CustomCall && target.find("TopK") != std::string_view::npos;
  };
  auto of = [&](ExprId from) {
    std::set<ExprId> out;
    bool call = false;
    for (ExprId e : reached({from}, cut))
      for (ExprId o : s_.all[e].operands)
        if (sorts(o)) out.insert(o), call |= s_.all[o].m->op(s_.all[o].inst) != Opcode::Sort;
    return std::pair(std::move(out), call);
  };
  const auto now = of(a), before = of(b);
  return (now.second || before.second) && now.first != before.first;
}

// Besides `anywhere`: where the operations that they are do something.
std::vector<int64_t> ByElements::Pair::where_told(ExprId e, ExprId with, const std::vector<int64_t>& anywhere,
                                                  ChosenElements& elements) const {
  std::vector<int64_t> at = anywhere;
  const int64_t last = s_.all.devices().devices() - 1, count = shape_of(e).elements_count();
  for (ExprId x : {e, with})
    if (count > static_cast<int64_t>(anywhere.size()))
      for (int64_t device = 0; device <= last; device += std::max<int64_t>(last, 1))
        for (int64_t i : landings(s_.all.all(), x, elements, e, device)) at.push_back(device * count + i);
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  return at;
}

bool ByElements::Pair::one_value(ExprId e, std::span<const ExprId> with) const {
  auto is_one = [&](ExprId x) { return s_.all.devices().of(x) == DeviceClasses::kAll; };
  return s_.all.devices().devices() == 1 || (is_one(e) && std::all_of(with.begin(), with.end(), is_one));
}

void ByElements::Pair::saw(ExprId e, std::span<const ExprId> with, const std::vector<int64_t>& at) {
  of_ = shape_of(e).elements_count() * (one_value(e, with) ? 1 : s_.all.devices().devices());
  seen_ = std::min<int64_t>(static_cast<int64_t>(at.size()), of_);
}

// What several devices have is looked at on the first of them and the last, and by chance on others.
std::vector<int64_t> ByElements::Pair::on_devices(ExprId e, std::span<const ExprId> with,
                                                  std::vector<int64_t> at) const {
  const int64_t devices = s_.all.devices().devices(), count = shape_of(e).elements_count();
  if (one_value(e, with)) return at;
  uint64_t h = mix64(e);
  auto some = [&] {
    h = mix64(h + 0x9E3779B97F4A7C15ull);
    const auto n = static_cast<uint64_t>(devices);
    return h % 4 == 0 ? 0 : h % 4 == 1 ? devices - 1 : static_cast<int64_t>((h >> 8) % n);
  };
  const size_t each = std::max<size_t>(s_.options.samples / at.size(), 1);
  std::vector<int64_t> out;
  for (int64_t i : at) {
    if (static_cast<int64_t>(each) >= devices)
      for (int64_t d = 0; d < devices; ++d) out.push_back(d * count + i);
    else
      for (size_t k = 0; k < each; ++k) out.push_back(some() * count + i);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Does it read all that `own` has? A few elements do not tell that what it does not read has no part in the other one.
bool ByElements::Pair::reads_all(ExprId e, std::span<const int64_t> at, const Set& cut, const Set& own) {
  Set used;
  Sampled values;
  ChosenElements elements = evaluation(cut, Draw::kMixed, &used);
  return sample(elements, e, at, &values) &&
         std::all_of(own.begin(), own.end(), [&](ExprId x) { return used.contains(x); });
}

bool ByElements::Pair::same_terms(ExprId e, ExprId with) {
  const std::optional<SumTerms> terms = sum_terms(s_.all, wide_->u(), e, with);
  // What is all that is read of a longer array is that array: its elements are numbered in another way.
  if (!terms || !comparable(terms->now, terms->before)) return false;
  ExprId same = kNoExpr;
  ElementsFinding told;
  return terms->now == terms->before ||
         compare(terms->now, {terms->before}, terms->dims, true, &same, &told) == Answer::kSame;
}

}  // namespace hlo
