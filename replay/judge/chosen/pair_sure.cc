// What is another value for certain, whatever its elements: told without evaluating what may be too large for that.
#include <algorithm>

#include "replay/judge/chosen/pair.h"
#include "replay/judge/chosen/sums.h"

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
  *words = "begins with another number than before";
  return true;
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
  return literal_of(x) || (x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Compare);
}

bool other_elements(const Expressions& all, ExprId a, ExprId b) {
  auto array = [&](ExprId e) { return all[e].kind == Expr::kView ? all[e].operands[0] : e; };
  return a != b && array(a) == array(b);
}

bool ByElements::Pair::surely_differs(ExprId e, ExprId before, InstId by, ElementsFinding* told) const {
  const Expr &x = s_.all[e], &y = s_.all[before];
  told->before = told->after = wide_->inst_name(by);
  if (other_reduction(s_.all, x, y, &told->words) || other_reduction(s_.all, y, x, &told->words)) return true;
  if (other_literal(x, y, &told->words) || other_reducer(x, y, &told->words) || turned_round(x, y, &told->words) ||
      sides_turned_round(x, y, &told->words) || other_direction(x, y, &told->words))
    return true;
  if (x.kind == Expr::kOperation && from_another_literal(x, y, &told->words)) {
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

// With each literal as it was before, and nothing taken for the same that rests on one: is all the same then? A literal
// that differs by no more than rounding would else be found the same.
const ByElements::Pair::Suspect* ByElements::Pair::literal_alone() {
  std::vector<const Suspect*> literals;
  for (const Suspect& s : suspects_)
    if (hardly_told(s_.all[s.now])) literals.push_back(&s);
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

}  // namespace hlo
