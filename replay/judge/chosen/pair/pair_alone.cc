// What one instruction gives is another value, and nothing makes up for it: told by form, however dear it is to
// evaluate what it is made of and what is made of it.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "replay/judge/chosen/elements/elements_run.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/pair/pair.h"
#include "replay/judge/values/canonical.h"

namespace hlo {
namespace {

// Instructions that are tried, and how far down from one of them it is looked for what differs.
constexpr size_t kMostBeginnings = 24, kMostEvaluated = 3, kMostNamed = 8;
constexpr int kMostDown = 8, kMostUnlike = 4;
// Elements that may be evaluated for all of them.
constexpr int64_t kMostForBeginnings = int64_t{1} << 22;

using Set = ExprSet;

ExprId base_of(const Expressions& all, ExprId e) { return all[e].kind == Expr::kView ? all[e].operands[0] : e; }

// It is a value of its own: neither handed on nor what a computation makes.
bool makes_its_value(const Module& m, InstId i) {
  switch (role_of(m, i)) {
    case Role::kOperation:
    case Role::kSame:
    case Role::kTuple:
    case Role::kElement:
      return m.op(i) != Opcode::Parameter;
    default:
      return false;
  }
}

Set bases_of(const Expressions& all, const std::vector<ExprId>& of) {
  Set out;
  for (ExprId e : of) out.insert(base_of(all, e));
  return out;
}

bool calls_out(const Expr& x) { return x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::CustomCall; }

std::string_view called_target(const Expr& x) {
  return x.m->u().text(x.m->attrs(x.inst).text(Attr::custom_call_target));
}

// What XLA calls for an operation of its own.
bool is_library(std::string_view target) {
  if (target.starts_with("__")) target.remove_prefix(2);
  return target.starts_with("cusolver") || target.starts_with("cublas") || target.starts_with("cudnn");
}

// What is written in one way wherever it is met, but for the arrays that it is made of: products, sums, solvers.
bool written_in_one_way(const Expr& x) {
  if (x.kind == Expr::kSum) return true;
  if (x.kind != Expr::kOperation) return false;
  switch (x.m->op(x.inst)) {
    case Opcode::Dot:
    case Opcode::Convolution:
    case Opcode::Fft:
    case Opcode::TriangularSolve:
    case Opcode::Cholesky:
      return true;
    case Opcode::CustomCall:
      return is_library(called_target(x));
    default:
      return false;
  }
}

// What is the same wherever it is met: a loop may be its body's value, and so may a state that it never changes.
bool without_state(const Expr& x) { return x.kind != Expr::kLoop && x.kind != Expr::kFormal; }

// Is `e` made of that value, by what may be no more than another name for it?
bool hands_on(const Expressions& all, ExprId e, ExprId value) {
  const Expr& x = all[e];
  const bool alone = x.operands.size() == 1;
  if (written_in_one_way(x) && !(x.kind == Expr::kSum && alone)) return false;
  if (calls_out(x) && !alone) return false;  // what XLA itself takes away, a mark, has one operand
  std::vector<ExprId> work(x.operands);
  Set seen(work.begin(), work.end());
  while (!work.empty()) {
    const ExprId at = work.back();
    work.pop_back();
    if (at == value) return true;
    if (!element_by_element(all[at])) continue;
    for (ExprId o : all[at].operands)
      if (seen.insert(o).second) work.push_back(o);
  }
  return false;
}

// Drawn values of these types are such as the program may have: of an index only some are.
bool free_to_draw(const Expr& x, ElementType type) {
  return x.kind == Expr::kParameter || is_float(type) || is_complex(type) || type_kind(type) == TypeKind::kUnsigned;
}

// Does another value of that operand make another one of the result, whatever the others are?
bool tells_operand(const Expr& x, size_t operand) {
  if (x.kind == Expr::kSum) return x.sum->by == Opcode::Add;
  switch (x.m->op(x.inst)) {
    case Opcode::Dot:
    case Opcode::Convolution:
    case Opcode::Fft:
      return true;
    case Opcode::TriangularSolve:  // of the other one it reads a triangle alone
      return operand == 1;
    case Opcode::CustomCall:
      // Of attention: queries, keys, values, of which masks and lengths leave some.
      return (called_target(x) == "__cudnn$fmhaSoftmax" && operand < 3) ||
             called_target(x).starts_with("__cudnn$conv") || called_target(x).starts_with("__cublas$gemm") ||
             called_target(x).starts_with("__cublas$lt$matmul");
    case Opcode::Reduce:
      return operand == 0 && x.operands.size() == 2;
    default:
      return false;
  }
}

// `name`, and what it was called before a pass copied it: each with one `.clone`, `.1` less.
std::vector<std::string> former_names(std::string name) {
  std::vector<std::string> out{name};
  for (;;) {
    const size_t dot = name.find_last_of('.');
    if (dot == std::string::npos || dot == 0) return out;
    const std::string_view last = std::string_view(name).substr(dot + 1);
    if (last != "clone" && last.find_first_not_of("0123456789") != std::string_view::npos) return out;
    name.resize(dot);
    out.push_back(name);
  }
}

// An instruction each time that it is visited, in order.
struct VisitedRow {
  InstId inst;
  const ExprTree* value;
  std::vector<const ExprTree*> operands;
};
using VisitedRows = std::unordered_map<std::string, std::vector<VisitedRow>>;

// `order`: names, each once.
VisitedRows visited_rows(const ExprStage& stage, std::vector<std::string>* order) {
  VisitedRows out;
  std::unordered_map<InstId, const ExprTree*> last;
  for (const ExprVisit& v : stage.visits) {
    VisitedRow r{v.inst, &v.value, {}};
    for (InstId o : stage.wide->operands(v.inst))
      if (const auto at = last.find(o); at != last.end()) r.operands.push_back(at->second);
    last[v.inst] = &v.value;
    std::vector<VisitedRow>& rows = out[std::string(stage.wide->inst_name(v.inst))];
    if (rows.empty() && order) order->push_back(std::string(stage.wide->inst_name(v.inst)));
    rows.push_back(std::move(r));
  }
  return out;
}

std::vector<ExprId> array_leaves(const std::vector<const ExprTree*>& trees) {
  std::vector<ExprId> out;
  for (const ExprTree* t : trees) t->leaves(&out);
  return out;
}

// Which of the visits before is that one: of the same operands, or else in the same place where they are as many.
const VisitedRow* row_before(const std::vector<VisitedRow>& before, const std::vector<VisitedRow>& now, size_t k) {
  const std::vector<ExprId> operands = array_leaves(now[k].operands);
  if (before.size() == now.size() && array_leaves(before[k].operands) == operands) return &before[k];
  for (const VisitedRow& r : before)
    if (array_leaves(r.operands) == operands) return &r;
  return before.size() == now.size() ? &before[k] : nullptr;
}

}  // namespace

// Visits of what reads these operands, whatever its name.
using ByOperands = std::map<std::vector<ExprId>, std::vector<const VisitedRow*>>;

ByOperands by_operands(const VisitedRows& rows) {
  ByOperands out;
  for (const auto& [name, of] : rows)
    for (const VisitedRow& r : of)
      if (!r.operands.empty()) out[array_leaves(r.operands)].push_back(&r);
  return out;
}

// What had another name: the only value of as many arrays that was made of these operands, and there is none now.
const VisitedRow* unnamed_before(const ByOperands& before, const VisitedRow& now) {
  const auto at = before.find(array_leaves(now.operands));
  if (at == before.end()) return nullptr;
  const std::vector<ExprId> values = array_leaves({now.value});
  const VisitedRow* out = nullptr;
  for (const VisitedRow* r : at->second) {
    const std::vector<ExprId> was = array_leaves({r->value});
    if (was == values) return nullptr;
    if (was.size() != values.size() || was == array_leaves(r->operands)) continue;
    if (out && array_leaves({out->value}) != was) return nullptr;
    out = r;
  }
  return out;
}

// Values of what applies the same computation as that instruction, as they were.
std::vector<std::pair<InstId, std::vector<ExprTree>>> alike_before(const Module& m, const VisitedRows& now,
                                                                   const VisitedRows& before, InstId inst) {
  std::vector<std::pair<InstId, std::vector<ExprTree>>> out;
  if (m.called(inst).size() != 1) return out;
  for (const auto& [name, rows] : now) {
    const InstId i = rows[0].inst;
    const auto was = before.find(name);
    if (i == inst || m.called(i).size() != 1 || m.called(i)[0] != m.called(inst)[0] || was == before.end() ||
        was->second.size() != rows.size())
      continue;
    std::vector<ExprTree> values;
    for (size_t k = 0; k < rows.size(); ++k) {
      values.push_back(*was->second[k].value);
      values.back().shape = rows[k].value->shape;
    }
    if (array_leaves({&values[0]}).size() == array_leaves({rows[0].value}).size())
      out.emplace_back(i, std::move(values));
  }
  return out;
}

// Constants come last: passes number them anew.
std::vector<ByElements::Pair::Beginning> ByElements::Pair::beginnings(const ExprStage& now) const {
  std::vector<std::string> order;
  const VisitedRows is = visited_rows(now, &order), was = visited_rows(s_.before, nullptr);
  const ByOperands unnamed = by_operands(was);
  auto known = [&](ExprId e) { return s_.has(e) || s_.has(base_of(s_.all, e)); };
  std::stable_partition(order.begin(), order.end(),
                        [&](const std::string& n) { return wide_->op(is.at(n)[0].inst) != Opcode::Constant; });
  std::vector<Beginning> out;
  for (const std::string& name : order) {
    const std::vector<VisitedRow>& rows = is.at(name);
    const VisitedRow& last = rows.back();
    if (!makes_its_value(*wide_, last.inst) || last.operands.size() != wide_->operand_count(last.inst)) continue;
    const std::vector<ExprId> operands = array_leaves(last.operands), values = array_leaves({last.value});
    if (!std::all_of(operands.begin(), operands.end(), known)) continue;
    const std::vector<VisitedRow>* before = nullptr;
    for (const std::string& n : former_names(name))
      if (const auto at = was.find(n); at != was.end()) {
        before = &at->second;
        break;
      }
    Beginning b;
    for (size_t k = 0; k < rows.size(); ++k) {
      const VisitedRow* r = before ? row_before(*before, rows, k) : unnamed_before(unnamed, rows[k]);
      if (!r || array_leaves({r->value}).size() != values.size()) break;
      b.before.push_back(*r->value);
      b.before.back().shape = rows[k].value->shape;
      if (k + 1 < rows.size()) continue;
      b.inst = last.inst, b.inst_before = r->inst;
      for (const ExprTree* t : last.operands) b.operands.push_back(*t);
      for (const ExprTree* t : r->operands) b.were.push_back(*t);
    }
    if (b.before.size() != rows.size()) continue;
    const std::vector<ExprId> former = array_leaves({&b.before.back()});
    size_t k = 0;
    while (k < former.size() && former[k] == values[k]) ++k;
    if (k == former.size() || !comparable(values[k], former[k])) continue;
    b.now = values[k], b.was = former[k];
    b.alike = alike_before(*wide_, is, was, b.inst);
    out.push_back(std::move(b));
  }
  return out;
}

// What constants alone make comes last: that could have been told.
std::vector<std::string> ByElements::Pair::names_of_beginnings(const ExprStage& now) {
  std::vector<std::string> order, out, fixed;
  const VisitedRows is = visited_rows(now, &order);
  auto known = [&](ExprId e) { return s_.has(e) || s_.has(base_of(s_.all, e)); };
  for (const std::string& name : order) {
    const VisitedRow& last = is.at(name).back();
    if (!makes_its_value(*wide_, last.inst) || wide_->op(last.inst) == Opcode::Constant) continue;
    const std::vector<ExprId> operands = array_leaves(last.operands), values = array_leaves({last.value});
    if (std::all_of(operands.begin(), operands.end(), [&](ExprId e) { return known(e) || s_.is_fixed(e); }) &&
        !std::all_of(values.begin(), values.end(), known)) {
      const bool one_value = std::all_of(values.begin(), values.end(), [&](ExprId e) { return s_.is_fixed(e); });
      (one_value ? fixed : out).push_back(name);
    }
    if (out.size() == kMostNamed) break;
  }
  out.insert(out.end(), fixed.begin(), fixed.end());
  if (out.size() > kMostNamed) out.resize(kMostNamed);
  return out;
}

bool ByElements::Pair::alone(const ExprStage& now, bool evaluating, ElementsFinding* told) {
  std::vector<ExprId> before;
  s_.before.result.leaves(&before);
  auto as_before = [&](const ExprStage& stage) {
    std::vector<ExprId> is;
    stage.result.leaves(&is);
    return is == before;
  };
  if (as_before(now)) return false;
  const int64_t whole = s_.most_now;
  bool found = false;
  size_t evaluated = 0, tried = 0;
  for (const Beginning& b : beginnings(now)) {
    s_.most_now = s_.spent + kMostForBeginnings;
    *told = {};
    told->before = told->after = wide_->inst_name(b.inst);
    less_ = more_ = false;
    unsure_.clear();
    if (!surely_differs(b.now, b.was, b.inst, told) && !differs_by_operand(b, told) &&
        !differs_in_general(b.now, b.was, 0, told))
      continue;
    if (++tried > kMostBeginnings) break;
    auto force = [&](ExpressionWalk& w) {
      w.force(b.inst, b.before);
      for (const auto& [inst, values] : b.alike) w.force(inst, values);
    };
    ExpressionWalk by_form(s_.all, wide_, nullptr);
    force(by_form);
    found = as_before(by_form.run());
    if (!found && evaluating && evaluated++ < kMostEvaluated) {
      in_vain_ = 0;
      s_.most_now = s_.spent + most_alone_;
      ExpressionWalk w(s_.all, wide_, [this](ExprId e, InstId by, const Expr::View* o) { return met(e, by, o); });
      force(w);
      found = outputs_same(w.run());
    }
    if (!found) continue;
    if (told->after == wide_->inst_name(b.inst)) {
      const InstId from = handed_from(now, b.inst, b.now, b.was);
      told->before = told->after = wide_->inst_name(from == b.inst ? lowest(now, from) : from);
    }
    break;
  }
  s_.most_now = whole;
  return found;
}

// What hands a value on, a tuple, a loop that leaves it alone, does not make it: the operand that had the other one.
InstId ByElements::Pair::handed_from(const ExprStage& now, InstId by, ExprId is, ExprId was) const {
  std::unordered_map<InstId, const ExprTree*> values;
  for (const ExprVisit& v : now.visits) values[v.inst] = &v.value;
  for (InstId next = by; next.valid();) {
    by = std::exchange(next, InstId());
    for (InstId o : wide_->operands(by)) {
      const auto value = values.find(o);
      const auto before = s_.by_name.find(std::string(wide_->inst_name(o)));
      if (value == values.end() || before == s_.by_name.end() || before->second.size() != 1) continue;
      const std::vector<ExprId> ids = array_leaves({value->second}), were = array_leaves({&before->second[0]});
      for (size_t k = 0; k < ids.size() && ids.size() == were.size(); ++k)
        if (ids[k] == is && were[k] == was && !next.valid()) next = o;
    }
  }
  return by;
}

bool ByElements::Pair::differs_in_general(ExprId e, ExprId before, int depth, ElementsFinding* told) {
  if (e == before || depth > kMostDown || !comparable(e, before)) return false;
  if (other_elements(s_.all, e, before)) {
    told->words = "gives its elements in another order";
    return !s_.is_fixed(e) || differs_at_elements(e, before, told);
  }
  const ExprId array = base_of(s_.all, e), former = base_of(s_.all, before);
  if (!element_by_element(s_.all[array]) && !element_by_element(s_.all[former]))
    return differs_dearly(array, former, depth, told);
  return differs_at_elements(e, before, told);
}

bool ByElements::Pair::differs_by_operand(const Beginning& b, ElementsFinding* told) {
  const Module& m = *wide_;
  const Module& n = *s_.before.wide;
  const InstId i = b.inst, j = b.inst_before;
  if (m.op(i) != n.op(j) || b.operands.size() != b.were.size() || m.called(i).size() != n.called(j).size())
    return false;
  Canonical now(m), before(n);
  if (now.operation(i) != before.operation(j)) return false;
  for (size_t k = 0; k < m.called(i).size(); ++k)
    if (now.computation(m.called(i)[k]) != before.computation(n.called(j)[k])) return false;
  size_t others = 0, which = 0;
  for (size_t k = 0; k < b.operands.size(); ++k)
    if (b.operands[k].id != b.were[k].id) ++others, which = k;
  if (others != 1) return false;
  const ExprId is = b.operands[which].id, was = b.were[which].id;
  Opcode by;
  switch (m.op(i)) {
    case Opcode::Reduce: {
      const bool sums = plain_operation(m, m.called(i)[0], &by) && by == Opcode::Add;
      if (!sums || b.operands.size() != 2 || (which == 0 && other_elements(s_.all, is, was)) ||
          !differs_in_general(is, was, 0, told))
        return false;
      if (which == 1) told->words = "begins with another number than before";
      return true;
    }
    case Opcode::Add:
    case Opcode::Subtract:
      if (!differs_in_general(is, was, 0, told)) return false;
      told->words = fmt::format("has {} as an operand instead of {}", name(is), name(was));
      return true;
    default:
      return false;
  }
}

// Of what is evaluated whatever it costs, one operand is another value; or they are two values that were there before.
bool ByElements::Pair::differs_dearly(ExprId e, ExprId before, int depth, ElementsFinding* told) {
  const Expr x = s_.all[e], y = s_.all[before];
  auto made_of = [&](ExprId now, ExprId was) {
    told->words = fmt::format("is computed from {} instead of {}", name(now), name(was));
    return true;
  };
  const bool operations = x.kind == Expr::kOperation && y.kind == Expr::kOperation && x.leaf == y.leaf &&
                          Canonical(*x.m).operation(x.inst) == Canonical(*y.m).operation(y.inst);
  const bool sums = x.kind == Expr::kSum && y.kind == Expr::kSum && x.view.sizes == y.view.sizes &&
                    x.sum->kept == y.sum->kept && x.sum->by == y.sum->by;
  if ((operations || sums) && x.operands.size() == y.operands.size()) {
    size_t others = 0, which = 0;
    for (size_t k = 0; k < x.operands.size(); ++k)
      if (x.operands[k] != y.operands[k]) ++others, which = k;
    bool aligned = true;
    for (size_t k = 0; sums && k < x.operands.size(); ++k) {
      const Expr::View &a = x.sum->of(k, x.view), &b = y.sum->of(k, y.view);
      aligned = aligned && a.offset == b.offset && a.steps == b.steps;
    }
    if (others == 1 && aligned && tells_operand(x, which)) {
      const ExprId a = x.operands[which], b = y.operands[which];
      const bool reduces = x.kind == Expr::kSum || x.m->op(x.inst) == Opcode::Reduce;
      return !(reduces && other_elements(s_.all, a, b)) && differs_in_general(a, b, depth + 1, told) && made_of(a, b);
    }
  }
  if (x.kind == Expr::kSum && y.kind == Expr::kSum && x.sum->by == Opcode::Add && y.sum->by == Opcode::Add) {
    // Sums of products: with factors that are made of other values, in whatever order these lie.
    Set factors = bases_of(s_.all, x.operands), were = bases_of(s_.all, y.operands), common;
    for (ExprId f : factors)
      if (were.contains(f)) common.insert(f);
    for (ExprId f : common) factors.erase(f), were.erase(f);
    const Set of = taken_apart(factors, true), of_before = taken_apart(were, true);
    if (!common.empty() && !factors.empty() && !were.empty() && of != of_before && tells_apart(of, of_before, false))
      return made_of(*factors.begin(), *were.begin());
  }
  if (!s_.has(e) || !s_.has(before) || !unlike(e, before)) return false;
  return made_of(e, before);
}

// Two values of one stage that are not the same one in two ways of writing it: a sort and what takes its first
// elements, a loop and what it makes in its only trip.
bool ByElements::Pair::unlike(ExprId a, ExprId b, int depth) const {
  const Expr &x = s_.all[a], &y = s_.all[b];
  if (a == b || !without_state(x) || !without_state(y) || hands_on(s_.all, a, b) || hands_on(s_.all, b, a))
    return false;
  if (x.kind == Expr::kParameter || y.kind == Expr::kParameter) return true;
  if (calls_out(x) && calls_out(y)) {
    const AttrSet &p = x.m->attrs(x.inst), &q = y.m->attrs(y.inst);
    if (x.leaf != y.leaf || p.text(Attr::custom_call_target) != q.text(Attr::custom_call_target)) return true;
  } else if (!written_in_one_way(x) || !written_in_one_way(y)) {
    return false;
  }
  const Set of_a = taken_apart(Set(x.operands.begin(), x.operands.end()), true),
            of_b = taken_apart(Set(y.operands.begin(), y.operands.end()), true);
  if (of_a == of_b || depth >= kMostUnlike)
    return bases_of(s_.all, x.operands) != bases_of(s_.all, y.operands) ||
           (x.kind == Expr::kSum && y.kind == Expr::kSum && x.sum->by != y.sum->by);
  for (ExprId p : of_a)
    for (ExprId q : of_b)
      if (!of_b.contains(p) && !of_a.contains(q) && !unlike(p, q, depth + 1)) return false;
  return true;
}

// Of values that only one of them reads none may be another way of writing one that the other reads, and what is drawn
// must be a value that the program can have.
bool ByElements::Pair::tells_apart(const Set& now, const Set& before, bool drawn) const {
  for (const Set* side : {&now, &before})
    for (ExprId e : *side) {
      const Expr& x = s_.all[e];
      const bool of_both = now.contains(e) && before.contains(e);
      if ((!of_both && !without_state(x)) || (drawn && !free_to_draw(x, x.m->u()[x.shape].type))) return false;
      if (x.kind != Expr::kParameter && !s_.has(e)) return false;
    }
  for (ExprId a : now)
    for (ExprId b : before)
      if (!now.contains(b) && !before.contains(a) && !unlike(a, b)) return false;
  return true;
}

// Is it made of a parameter that the other one has no part of, and another value where that parameter is? Nothing else
// is drawn anew, so that whatever else it is made of does not make up for it.
bool ByElements::Pair::read_another_parameter(ExprId e, ExprId before, const Set& cut, ElementsFinding* told) {
  bool all = false;
  const std::vector<ExprId> of = reached({e}, {}, &all);
  if (!all) return false;
  const Set reads(of.begin(), of.end());
  const std::vector<int64_t> at = sampled_indices(shape_of(before).dims, s_.options.samples, before);
  ExprId drawn_anew = kNoExpr;
  auto values = [&](Set* used) {
    ChosenElements elements(
        s_.all.all(),
        [&](ExprId x, std::span<const int64_t> indices, char* to) {
          used->insert(x);
          draw_elements(s_.all, x, indices, s_.options.seed + (x == drawn_anew), Draw::kPositive, nullptr, to);
        },
        options_of(cut));
    Sampled out;
    if (!sample(elements, before, at, &out) || !out.sure || !all_finite(out)) out.values.clear();
    return out;
  };
  Set used, again;
  const Sampled first = values(&used);
  std::vector<ExprId> leaves(used.begin(), used.end());
  std::sort(leaves.begin(), leaves.end());
  for (ExprId leaf : leaves) {
    const Expr& x = s_.all[leaf];
    if (first.values.empty() || x.kind != Expr::kParameter || reads.contains(leaf) || !is_float(shape_of(leaf).type))
      continue;
    drawn_anew = leaf;
    const Sampled other = values(&again);
    size_t where = 0;
    if (other.values.empty() || alike(first, other, &where, s_.coarsest)) continue;
    told->words = fmt::format("is not computed from {}, as it was", name(leaf));
    return true;
  }
  return false;
}

// What is dear is drawn: it is another value wherever these are, positive or not. Parameters have either sign.
bool ByElements::Pair::differs_at_elements(ExprId e, ExprId before, ElementsFinding* told) {
  const Set cut = taken_apart({e, before}, true);
  if (large_constants(e, cut) != large_constants(before, cut) || other_top_k(e, before, cut)) return false;
  if (read_another_parameter(e, before, cut, told)) return true;
  const Dims dims = shape_of(e).dims;
  std::vector<int64_t> at = sampled_indices(dims, s_.options.samples, e);
  for (int64_t k : beside_masks(e, before, dims, cut)) at.push_back(k);
  bool differs = false;
  for (const Draw how : {Draw::kMixed, Draw::kPositive, Draw::kInside}) {
    if (how == Draw::kInside && differs) break;
    Set used[2];
    Sampled values[2];
    for (int side = 0; side < 2; ++side) {
      ChosenElements elements = evaluation(cut, how, &used[side]);
      if (!sample(elements, side ? before : e, at, &values[side]) || !values[side].sure) return false;
    }
    // Not where a number is none.
    std::vector<size_t> places;
    Sampled finite[2];
    for (size_t k = 0; k < values[0].values.size(); ++k) {
      if (!std::isfinite(values[0].values[k]) || !std::isfinite(values[1].values[k])) continue;
      places.push_back(k);
      for (int side = 0; side < 2; ++side) finite[side].values.push_back(values[side].values[k]);
    }
    size_t where = 0;
    differs = !alike(finite[0], finite[1], &where, s_.coarsest);
    if (!differs && how == Draw::kPositive) continue;
    if (!differs) return false;
    const double is = finite[0].values[where], was = finite[1].values[where];
    where = places[where];
    if (!tells_apart(used[0], used[1], true)) return false;
    told->is = is, told->was = was;
    told->index = index_text(at[where / (values[0].values.size() / at.size())], dims);
  }
  told->words.clear();
  return true;
}

}  // namespace hlo
