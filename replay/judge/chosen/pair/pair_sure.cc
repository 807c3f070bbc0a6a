// What is another value for certain, whatever its elements: told without evaluating what may be too large for that.
#include <algorithm>
#include <cmath>
#include <set>

#include "ir/query/find_instruction.h"
#include "ir/types/literal.h"
#include "passes/loops/loops.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/pair/pair.h"

namespace hlo {
namespace {

const Literal* literal_of(const Expr& x) {
  if (x.kind != Expr::kOperation || x.m->op(x.inst) != Opcode::Constant) return nullptr;
  const Literal& l = x.m->literal(x.inst);
  return l.elided || l.bytes.empty() ? nullptr : &l;
}

// A literal is no rounded one of another.
bool other_literal(const Expr& x, const Expr& y, std::string* words) {
  const Literal *now = literal_of(x), *before = literal_of(y);
  if (!now || !before || x.m->u()[now->shape].type != y.m->u()[before->shape].type || now->bytes == before->bytes ||
      now->bytes.size() != before->bytes.size())
    return false;
  *words = "is another literal than before";
  return true;
}

// Of which one element may hide all others.
bool takes_one_of_them(Opcode op) {
  return op == Opcode::Maximum || op == Opcode::Minimum || op == Opcode::And || op == Opcode::Or;
}

bool takes_extremes_or_sums(Opcode op) {
  return op == Opcode::Add || op == Opcode::Multiply || op == Opcode::Maximum || op == Opcode::Minimum;
}

// The same terms, taken together by another operation.
bool other_reducer(const Expr& x, const Expr& y, std::string* words) {
  if (x.kind != Expr::kSum || y.kind != Expr::kSum || x.operands != y.operands || x.view.sizes != y.view.sizes ||
      x.sum->kept != y.sum->kept || x.sum->by == y.sum->by || x.sum->kept == x.view.sizes.size() ||
      !takes_extremes_or_sums(x.sum->by) || !takes_extremes_or_sums(y.sum->by) ||
      x.m->u()[x.shape].type == ElementType::Pred)
    return false;
  for (size_t f = 0; f < x.operands.size(); ++f) {
    const Expr::View &a = x.sum->of(f, x.view), &b = y.sum->of(f, y.view);
    if (a.offset != b.offset || a.steps != b.steps) return false;
  }
  *words = std::string("takes by ") + std::string(op_text(x.sum->by)) + " what was taken together by " +
           std::string(op_text(y.sum->by));
  return true;
}

// The same terms taken together by another operation.
bool other_reduction(const Expressions& all, const Expr& reduction, const Expr& sum, std::string* words) {
  if (reduction.kind != Expr::kOperation || reduction.m->op(reduction.inst) != Opcode::Reduce ||
      reduction.operands.size() != 2 || sum.kind != Expr::kSum || sum.operands.size() != 1)
    return false;
  const Module& m = *reduction.m;
  ExprId from = reduction.operands[0];
  if (all[from].kind == Expr::kView) from = all[from].operands[0];
  int64_t terms = 1;
  for (size_t k = sum.sum->kept; k < sum.view.sizes.size(); ++k) terms *= sum.view.sizes[k];
  const Shape &in = m.shape(m.operand(reduction.inst, 0)), &out = m.shape(reduction.inst);
  Opcode op;
  if (from != sum.operands[0] || !out.is_array() || out.type == ElementType::Pred || terms < 2 ||
      in.elements_count() != terms * out.elements_count() || !plain_operation(m, m.called(reduction.inst)[0], &op) ||
      op == sum.sum->by || !takes_extremes_or_sums(op) || !takes_extremes_or_sums(sum.sum->by))
    return false;
  *words = "takes together by another operation than before";
  return true;
}

double number_of(const Literal& l, ElementType type) {
  if (type == ElementType::Pred) return l.bytes[0] != 0;
  return is_float(type) ? load_double(type, l.bytes.data()) : static_cast<double>(load_int(type, l.bytes.data()));
}

// Of two reductions, as they are written: the same sums or products, from another literal?
bool from_another_literal(const Expr& x, const Expr& y, std::string* words) {
  if (x.m->op(x.inst) != Opcode::Reduce || y.m->op(y.inst) != Opcode::Reduce || x.m->operand_count(x.inst) != 2 ||
      y.m->operand_count(y.inst) != 2 || x.m->shape_id(x.inst) != y.m->shape_id(y.inst) ||
      x.m->attrs(x.inst).ints(Attr::dimensions) != y.m->attrs(y.inst).ints(Attr::dimensions))
    return false;
  Opcode now, before;
  if (!plain_operation(*x.m, x.m->called(x.inst)[0], &now) || !plain_operation(*y.m, y.m->called(y.inst)[0], &before) ||
      now != before || (now != Opcode::Add && now != Opcode::Multiply))
    return false;
  const InstId a = x.m->operand(x.inst, 1), b = y.m->operand(y.inst, 1);
  if (x.m->op(a) != Opcode::Constant || y.m->op(b) != Opcode::Constant) return false;
  const Literal &l = x.m->literal(a), &r = y.m->literal(b);
  if (l.elided || r.elided || l.bytes == r.bytes || l.bytes.size() != r.bytes.size()) return false;
  const ElementType type = x.m->shape(a).type;
  if (type != y.m->shape(b).type) return false;
  if (!is_complex(type) && number_of(l, type) == number_of(r, type)) return false;  // 0 and -0
  *words = "begins with another number than before";
  return true;
}

// Drawn values are so small where constants count, and so many elements tell; how many of those fall short of them.
constexpr double kSmall = 0x1p-20;
constexpr size_t kEnoughShort = 4, kPartShort = 4;

// The literal that a reduction of one array begins with.
const Literal* begins_with(const Expr& x) {
  if (x.m->op(x.inst) != Opcode::Reduce || x.m->operand_count(x.inst) != 2) return nullptr;
  const InstId i = x.m->operand(x.inst, 1);
  if (x.m->op(i) != Opcode::Constant || !x.m->shape(i).is_array()) return nullptr;
  const Literal& l = x.m->literal(i);
  return l.elided || l.bytes.empty() ? nullptr : &l;
}

// Are the terms of both the elements of one array, as many for each result?
bool of_one_array(const Expressions& all, const Expr& x, const Expr& y) {
  const Shape& in = x.m->shape(x.m->operand(x.inst, 0));
  if (y.kind == Expr::kOperation) {
    if (y.m->op(y.inst) != Opcode::Reduce) return false;
    const Shape& were = y.m->shape(y.m->operand(y.inst, 0));
    return x.operands[0] == y.operands[0] && in.dims == were.dims &&
           x.m->attrs(x.inst).ints(Attr::dimensions) == y.m->attrs(y.inst).ints(Attr::dimensions);
  }
  if (y.kind != Expr::kSum || y.operands.size() != 1) return false;
  int64_t terms = 1;
  for (size_t k = y.sum->kept; k < y.view.sizes.size(); ++k) terms *= y.view.sizes[k];
  const ExprId from = all[x.operands[0]].kind == Expr::kView ? all[x.operands[0]].operands[0] : x.operands[0];
  return from == y.operands[0] && in.elements_count() == terms * x.m->shape(x.inst).elements_count();
}

// Is what that function of two gives made of no more than one of them?
bool leaves_one_out(const Module& m, CompId c) {
  const Computation& comp = m.comp(c);
  if (comp.params.size() != 2) return false;
  std::vector<InstId> work{comp.root};
  std::unordered_set<InstId> seen(work.begin(), work.end());
  while (!work.empty()) {
    const InstId at = work.back();
    work.pop_back();
    for (InstId o : m.operands(at))
      if (seen.insert(o).second) work.push_back(o);
  }
  return !seen.contains(comp.params[0]) || !seen.contains(comp.params[1]);
}

// The same terms, which were all taken together: of some of them nothing is left now.
bool drops_terms(const Expressions& all, const Expr& x, const Expr& y, std::string* words) {
  Opcode op;
  if (x.kind != Expr::kOperation || x.m->op(x.inst) != Opcode::Reduce || x.m->operand_count(x.inst) != 2 ||
      x.m->u()[x.shape].type == ElementType::Pred || !of_one_array(all, x, y) ||
      x.m->shape(x.m->operand(x.inst, 0)).elements_count() < 2 * x.m->shape(x.inst).elements_count() ||
      !leaves_one_out(*x.m, x.m->called(x.inst)[0]))
    return false;
  if (y.kind == Expr::kOperation &&
      (y.m->op(y.inst) != Opcode::Reduce || !plain_operation(*y.m, y.m->called(y.inst)[0], &op)))
    return false;
  *words = "takes its terms together by a function that leaves one of two out";
  return true;
}

// Literals of which the former value is tried.
constexpr size_t kMostUnseen = 12;

// Has what is taken together some value of either sign, whatever it is made of?
bool of_either_sign(const Expr& x) {
  if (x.kind == Expr::kParameter || x.kind == Expr::kFormal) return true;
  if (x.kind == Expr::kSum)
    return x.sum->by == Opcode::Add && (x.operands.size() == 1 || x.operands[0] != x.operands[1]);
  if (x.kind != Expr::kOperation) return false;
  const Opcode op = x.m->op(x.inst);
  return (op == Opcode::Dot || op == Opcode::Convolution) && x.operands[0] != x.operands[1];
}

// A loop's trips, where it counts them.
std::optional<int64_t> trips_of(const Module& m, InstId loop) {
  constexpr int64_t kMost = 1 << 16;
  if (Trips t; trip_count(m, loop, &t)) return t.count;
  const std::optional<int64_t> index = induction_index(m, loop);
  return index ? counted_trips(m, loop, *index, kMost) : std::nullopt;
}

// The only loop whose condition ends in an instruction of that name.
InstId loop_that_asks(const Module& m, std::string_view name) {
  InstId out;
  for (CompId c : m.computation_post_order())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::While || m.inst_name(m.comp(m.attrs(i).comp(Attr::condition)).root) != name) continue;
      if (out.valid()) return {};
      out = i;
    }
  return out;
}

// A difference or a quotient the other way round.
bool turned_round(const Expr& x, const Expr& y, std::string* words) {
  if (x.kind != Expr::kOperation || y.kind != Expr::kOperation || x.operands.size() != 2 || y.operands.size() != 2)
    return false;
  const Opcode op = x.m->op(x.inst);
  if (op != y.m->op(y.inst) || (op != Opcode::Subtract && op != Opcode::Divide && op != Opcode::Power)) return false;
  if (x.operands[0] != y.operands[1] || x.operands[1] != y.operands[0] || x.operands[0] == x.operands[1]) return false;
  *words = "has its operands the other way round";
  return true;
}

// A choice by the same mask, its sides the other way round.
bool sides_turned_round(const Expr& x, const Expr& y, std::string* words) {
  for (const Expr* e : {&x, &y})
    if (e->kind != Expr::kOperation || e->m->op(e->inst) != Opcode::Select || e->operands.size() != 3) return false;
  if (x.operands[0] != y.operands[0] || x.operands[1] != y.operands[2] || x.operands[2] != y.operands[1] ||
      x.operands[1] == x.operands[2])
    return false;
  *words = "has its sides the other way round";
  return true;
}

// What a float compared with itself tells: whether it is a number, whether it is none, or nothing.
int told_of_itself(std::string_view direction) {
  if (direction == "NE") return 1;
  return direction == "LT" || direction == "GT" ? 2 : 0;
}

// Floats compared in another direction: a few elements seldom tell whether equal ones count, nor what is NaN.
bool other_direction(const Expr& x, const Expr& y, std::string* words) {
  for (const Expr* e : {&x, &y})
    if (e->kind != Expr::kOperation || e->m->op(e->inst) != Opcode::Compare || e->operands.size() != 2 ||
        !is_float(e->m->shape(e->m->operand(e->inst, 0)).type))
      return false;
  const auto now = x.m->attrs(x.inst).text(Attr::direction), before = y.m->attrs(y.inst).text(Attr::direction);
  if (x.operands != y.operands || now == before) return false;
  const bool itself = x.operands[0] == x.operands[1];
  if (itself && told_of_itself(x.m->u().text(now)) == told_of_itself(y.m->u().text(before))) return false;
  *words = "compares in another direction than before";
  return true;
}

// A call of one meaning, on operands of which one is another arrangement of what it was.
bool other_operand(const Expr& x, const Expr& y, size_t* operand) {
  if (x.kind != Expr::kOperation || y.kind != Expr::kOperation || x.m->op(x.inst) != Opcode::CustomCall ||
      y.m->op(y.inst) != Opcode::CustomCall || x.operands.size() != y.operands.size() || x.leaf != y.leaf)
    return false;
  const AttrSet &a = x.m->attrs(x.inst), &b = y.m->attrs(y.inst);
  for (const Attr text : {Attr::custom_call_target, Attr::backend_config})
    if (a.text(text) != b.text(text)) return false;
  const size_t count = x.m->operand_count(x.inst);
  if (count != y.m->operand_count(y.inst) || count != x.operands.size()) return false;
  for (size_t k = 0; k < count; ++k)
    if (x.m->shape_id(x.m->operand(x.inst, k)) != y.m->shape_id(y.m->operand(y.inst, k))) return false;
  return count > *operand;
}

}  // namespace

bool hardly_told(const Expr& x) {
  if (literal_of(x)) return true;
  const Opcode op = x.kind == Expr::kOperation ? x.m->op(x.inst) : Opcode::Tuple;
  Opcode by;
  return op == Opcode::Compare ||
         (op == Opcode::Reduce && begins_with(x) && plain_operation(*x.m, x.m->called(x.inst)[0], &by) &&
          (takes_one_of_them(by) || takes_extremes_or_sums(by)));
}

bool other_elements(const Expressions& all, ExprId a, ExprId b) {
  auto array = [&](ExprId e) { return all[e].kind == Expr::kView ? all[e].operands[0] : e; };
  return a != b && array(a) == array(b);
}

// The same comparison in another direction, at the end of a loop's condition: the loop goes round another number of
// times, all else being the same.
bool ByElements::Pair::other_trips(const Expr& x, const Expr& y, InstId by, std::string* words) {
  for (const Expr* e : {&x, &y})
    if (e->kind != Expr::kOperation || e->m->op(e->inst) != Opcode::Compare) return false;
  if (x.operands != y.operands || x.m->attrs(x.inst).text(Attr::direction) == y.m->attrs(y.inst).text(Attr::direction))
    return false;
  const Module& before = *s_.before.wide;
  const InstId loop = loop_that_asks(*wide_, wide_->inst_name(by)),
               loop_before = loop_that_asks(before, wide_->inst_name(by));
  if (!loop.valid() || !loop_before.valid()) return false;
  const std::optional<int64_t> now = trips_of(*wide_, loop), was = trips_of(before, loop_before);
  if (!now || !was || *now == *was) return false;
  *words = fmt::format("lets {} go round {} times instead of {}", wide_->inst_name(loop), *now, *was);
  return true;
}

// An extreme that begins with what some of its terms fall short of, and began with less: sums of thousands are seldom
// so small, whatever is drawn, but nothing keeps them from it.
bool ByElements::Pair::begins_too_far(ExprId e, ExprId before, std::string* words) {
  const Expr &x = s_.all[e], &y = s_.all[before];
  if (x.kind != Expr::kOperation) return false;
  const Literal *l = begins_with(x), *r = begins_with(y);
  Opcode now, was;
  if (!l || !r || !plain_operation(*x.m, x.m->called(x.inst)[0], &now) ||
      !plain_operation(*y.m, y.m->called(y.inst)[0], &was) || now != was || !takes_one_of_them(now) ||
      !of_one_array(s_.all, x, y))
    return false;
  const ElementType type = x.m->shape(x.inst).type;
  if (is_complex(type) || x.m->u()[l->shape].type != type || y.m->u()[r->shape].type != type) return false;
  const bool extreme = now == Opcode::Maximum || now == Opcode::Minimum;
  if (!extreme && type != ElementType::Pred) return false;
  const double up = now == Opcode::Maximum || now == Opcode::Or ? 1 : -1;
  const double from = up * number_of(*l, type);
  if (!(from > up * number_of(*r, type))) return false;
  // What is made of it may begin with that, too.
  if (const auto readers = s_.readers.find(before); readers != s_.readers.end())
    for (ExprId reader : readers->second) {
      const Expr& o = s_.all[reader];
      if (o.kind == Expr::kOperation && (o.m->op(o.inst) == now || o.m->op(o.inst) == Opcode::Clamp)) return false;
    }
  const ExprId terms = x.operands[0];
  if (s_.is_fixed(terms)) return false;
  const ExprSet cut = taken_apart({terms}, true);
  const std::vector<int64_t> at = sampled_indices(shape_of(terms).dims, s_.options.samples, terms);
  for (const Draw how : {Draw::kMixed, Draw::kPositive}) {
    bool free = true;
    ChosenElements elements(
        s_.all.all(),
        [&](ExprId leaf, std::span<const int64_t> indices, char* to) {
          const ElementType t = shape_of(leaf).type;
          free = free && (s_.all[leaf].kind == Expr::kParameter || is_float(t)) &&
                 (how == Draw::kPositive || of_either_sign(s_.all[leaf]));
          draw_elements(s_.all, leaf, indices, s_.options.seed, how, nullptr, to);
          const auto width = static_cast<size_t>(storage_bytes(t));
          for (size_t k = 0; is_float(t) && k < indices.size(); ++k)
            store_double(t, to + k * width, load_double(t, to + k * width) * kSmall);
        },
        options_of(cut));
    Sampled values;
    if (!sample(elements, terms, at, &values) || !values.sure) return false;
    size_t finite = 0, shorter = 0;
    for (double v : values.values)
      if (std::isfinite(v)) ++finite, shorter += up * v < from;
    if (!free || finite < kEnoughShort || (how == Draw::kPositive && shorter < finite) || shorter * kPartShort < finite)
      continue;
    *words = "begins with another number than before, which its terms need not reach";
    return true;
  }
  return false;
}

bool ByElements::Pair::surely_differs(ExprId e, ExprId before, InstId by, ElementsFinding* told) {
  const Expr &x = s_.all[e], &y = s_.all[before];
  told->before = told->after = wide_->inst_name(by);
  if (other_reduction(s_.all, x, y, &told->words) || other_reduction(s_.all, y, x, &told->words)) return true;
  if (other_literal(x, y, &told->words) || other_reducer(x, y, &told->words) || turned_round(x, y, &told->words) ||
      sides_turned_round(x, y, &told->words) || other_direction(x, y, &told->words) ||
      drops_terms(s_.all, x, y, &told->words) || other_trips(x, y, by, &told->words) ||
      begins_too_far(e, before, &told->words))
    return true;
  if (x.kind == Expr::kOperation && from_another_literal(x, y, &told->words)) {
    if (of_one_array(s_.all, x, y)) return true;
    const auto input = s_.by_name.find(std::string(y.m->inst_name(y.m->operand(y.inst, 0))));
    return input != s_.by_name.end() && input->second.size() == 1 && input->second[0].id == x.operands[0];
  }
  size_t others = 0, which = 0;
  for (size_t k = 0; k < x.operands.size() && k < y.operands.size(); ++k)
    if (x.operands[k] != y.operands[k]) ++others, which = k;
  if (others != 1 || !other_operand(x, y, &which) || wide_->operand_count(by) != x.operands.size()) return false;
  if (!other_elements(s_.all, x.operands[which], y.operands[which])) return false;
  told->before = told->after = wide_->inst_name(wide_->operand(by, which));
  told->words = "gives its elements in another order to " + std::string(wide_->inst_name(by));
  return true;
}

// Under a new name: what takes the same terms together from another number is none of what it may be.
void ByElements::Pair::suspect_beginning(ExprId e, InstId by, std::vector<ExprId>* with) {
  const Expr& x = s_.all[e];
  if (x.kind != Expr::kOperation || x.m->op(x.inst) != Opcode::Reduce || !hardly_told(x)) return;
  ElementsFinding f;
  const auto other = std::find_if(with->begin(), with->end(), [&](ExprId c) {
    return (from_another_literal(x, s_.all[c], &f.words) && of_one_array(s_.all, x, s_.all[c])) ||
           begins_too_far(e, c, &f.words);
  });
  if (other == with->end()) return;
  f.before = f.after = wide_->inst_name(by);
  suspect(e, *other, std::move(f));
  with->erase(other);
}

// By its name the same operation of the same operands, which are what they were, perhaps in another order: it is by
// itself that it gives another value.
bool ByElements::Pair::edited(const ExprStage& now, const Suspect& s) const {
  const Module& before = *s_.before.wide;
  const InstId i = find_instruction(*wide_, s.finding.after), was = find_instruction(before, s.finding.after);
  if (!i.valid() || !was.valid() || wide_->op(i) != before.op(was) || wide_->operand_count(i) == 0 ||
      wide_->operand_count(i) != before.operand_count(was))
    return false;
  std::multiset<std::string_view> names, own;
  for (InstId o : before.operands(was)) names.insert(before.inst_name(o));
  for (InstId o : wide_->operands(i)) own.insert(wide_->inst_name(o));
  if (own != names) return false;
  std::unordered_map<std::string_view, std::vector<ExprId>> values;
  for (const ExprVisit& v : now.visits)
    if (own.contains(wide_->inst_name(v.inst))) v.value.leaves(&values[wide_->inst_name(v.inst)]);
  return std::all_of(own.begin(), own.end(), [&](std::string_view name) {
    const auto at = s_.by_name.find(std::string(name));
    std::vector<ExprId> old;
    for (size_t k = 0; at != s_.by_name.end() && k < at->second.size(); ++k) at->second[k].leaves(&old);
    return !old.empty() && old == values[name];
  });
}

// With each literal as it was before, and nothing taken for the same that rests on one: is all the same then? A literal
// that differs by no more than rounding would else be found the same; so would what cancels out, as the largest of a
// softmax taken along another dimension.
const ByElements::Pair::Suspect* ByElements::Pair::literal_alone(const ExprStage& now) {
  std::vector<const Suspect*> literals;
  for (const Suspect& s : suspects_)
    if (hardly_told(s_.all[s.now]) || edited(now, s)) literals.push_back(&s);
  if (literals.empty()) return nullptr;
  std::vector<std::pair<ExprId, ExprId>> undone;
  for (ExprId e : found_) {
    const std::vector<ExprId> on = reached({e}, {});
    if (std::none_of(on.begin(), on.end(), [&](ExprId x) {
          return std::any_of(literals.begin(), literals.end(), [&](const Suspect* s) { return s->now == x; });
        }))
      continue;
    undone.emplace_back(e, s_.all.same(e));
    s_.all.set_same(e, e);
  }
  auto results = [&] {
    std::vector<ExprId> out;
    ExpressionWalk(s_.all, wide_, nullptr).run().result.leaves(&out);
    return out;
  };
  std::vector<ExprId> before;
  s_.before.result.leaves(&before);
  const bool other = results() != before;
  for (const Suspect* s : literals) s_.all.set_same(s->now, s->before);
  const bool alone = other && results() == before;
  for (const Suspect* s : literals) s_.all.set_same(s->now, s->now);
  for (const auto& [e, same] : undone) s_.all.set_same(e, same);
  return alone ? literals[0] : nullptr;
}

// Of what a few elements hardly show: does the stage pass with its former value, too? Then no element showed which of
// both is right, and the stage rests on it all the same.
const ByElements::Pair::Suspect* ByElements::Pair::unseen_literal() {
  const std::vector<Suspect> suspects = suspects_;
  std::vector<ExprId> before;
  s_.before.result.leaves(&before);
  size_t tried = 0;
  for (size_t k = 0; k < suspects.size(); ++k) {
    const Suspect& s = suspects[k];
    if (!hardly_told(s_.all[s.now]) || s_.all.same(s.now) != s.now) continue;
    // By form alone nothing may rest on it.
    std::vector<std::pair<ExprId, ExprId>> undone;
    for (ExprId e : found_) {
      const std::vector<ExprId> on = reached({e}, {});
      if (std::find(on.begin(), on.end(), s.now) == on.end()) continue;
      undone.emplace_back(e, s_.all.same(e));
      s_.all.set_same(e, e);
    }
    std::vector<ExprId> is;
    ExpressionWalk(s_.all, wide_, nullptr).run().result.leaves(&is);
    bool passes = false;
    if (is != before && tried++ < kMostUnseen) {
      s_.all.set_same(s.now, s.before);
      in_vain_ = 0;
      passes = outputs_same(walk());
      s_.all.set_same(s.now, s.now);
    }
    for (const auto& [e, same] : undone) s_.all.set_same(e, same);
    if (!passes) continue;
    unsure_ = fmt::format("{} {}, which no chosen element shows", name(s.now), s.finding.words);
    return &suspects_[k];
  }
  return nullptr;
}

}  // namespace hlo
