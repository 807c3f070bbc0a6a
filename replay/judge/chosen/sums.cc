#include "replay/judge/chosen/sums.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/base/hash.h"
#include "ir/literal.h"
#include "replay/judge/inside/canonical.h"

namespace hlo {
namespace {

using Part = Expressions::Part;

// Reductions of reductions, views and pads that are looked through.
constexpr int kMostDeep = 64;

// What is being taken together: elements of `of` at offset + those of each part.
struct Terms {
  Opcode op = Opcode::Add;
  ExprId of = kNoExpr;
  int64_t offset = 0;
  std::vector<Part> kept, over;
};

InstId without_conversions(const Module& m, InstId i) {
  while (role_of(m, i) == Role::kSame) i = m.operand(i, 0);
  return i;
}

// The one operation of a reducer whose order does not count.
bool plain_operation(const Module& m, CompId c, Opcode* op) {
  const Computation& comp = m.comp(c);
  const InstId root = without_conversions(m, comp.root);
  if (comp.params.size() != 2 || m.operands(root).size() != 2) return false;
  const InstId a = without_conversions(m, m.operand(root, 0)), b = without_conversions(m, m.operand(root, 1));
  *op = m.op(root);
  switch (*op) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return (a == comp.params[0] && b == comp.params[1]) || (a == comp.params[1] && b == comp.params[0]);
    default:
      return false;
  }
}

bool is_neutral_number(Opcode op, double value) {
  if (op == Opcode::Add) return value == 0;
  if (op == Opcode::Multiply) return value == 1;
  return std::isinf(value) && (op == Opcode::Maximum ? value < 0 : op == Opcode::Minimum && value > 0);
}

bool is_neutral_integer(Opcode op, ElementType type, int64_t value) {
  const int bits = type == ElementType::Pred ? 1 : type_bits(type);
  const bool has_sign = is_signed_int(type);
  const auto all = static_cast<int64_t>(bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  const auto top = static_cast<int64_t>(uint64_t{1} << (bits - 1));
  switch (op) {
    case Opcode::Add:
    case Opcode::Or:
    case Opcode::Xor:
      return value == 0;
    case Opcode::Multiply:
      return value == 1;
    case Opcode::And:
      return (value & all) == all;
    case Opcode::Maximum:
      return has_sign ? (value & all) == top : value == 0;
    case Opcode::Minimum:
      return (value & all) == (has_sign ? top - 1 : all);
    default:
      return false;
  }
}

// Is it a constant that changes nothing?
bool is_neutral(const Expressions& all, ExprId e, Opcode op) {
  const Expr& x = all[e];
  if (x.kind != Expr::kOperation || x.m->op(x.inst) != Opcode::Constant) return false;
  const Literal& l = x.m->literal(x.inst);
  const Shape& s = x.m->u()[l.shape];
  if (l.elided || !s.is_array() || s.elements_count() != 1 || l.bytes.empty()) return false;
  if (is_complex(s.type)) {
    const std::complex<double> z = load_complex(s.type, l.bytes.data());
    return z.imag() == 0 && (op == Opcode::Add || op == Opcode::Multiply) && is_neutral_number(op, z.real());
  }
  if (is_float(s.type)) return is_neutral_number(op, load_double(s.type, l.bytes.data()));
  if (s.type == ElementType::Pred) return is_neutral_integer(op, s.type, l.bytes[0] != 0);
  return is_neutral_integer(op, s.type, load_int(s.type, l.bytes.data()));
}

// Terms of an array as terms of what that array's elements are: `sizes` are its dimensions, `steps` where they lie.
class Moved {
 public:
  Moved(Dims sizes, Dims steps)
      : sizes_(std::move(sizes)), steps_(std::move(steps)), strides_(row_major_strides(sizes_)), reach_(sizes_.size()) {
    whole_.assign(sizes_.size(), 0);
  }
  // Of that dimension so many elements count, and it must be taken together as a whole.
  void only_whole(size_t d, int64_t count) { whole_[d] = count; }

  bool apply(Terms* t, int64_t offset, ExprId of) {
    int64_t left = t->offset;
    if (left < 0) return false;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      reach_[d] = left / strides_[d], left %= strides_[d];
      if (whole_[d] && reach_[d]) return false;
      offset += reach_[d] * steps_[d];
    }
    std::vector<Part> kept, over;
    for (const Part& p : t->kept)
      if (!split(p, false, &kept)) return false;
    for (const Part& p : t->over)
      if (!split(p, true, &over)) return false;
    for (size_t d = 0; d < sizes_.size(); ++d)
      if (whole_[d] > 0 || reach_[d] >= sizes_[d]) return false;
    t->offset = offset, t->of = of, t->kept = std::move(kept), t->over = std::move(over);
    return true;
  }

 private:
  // One part as those that lie within one dimension each, the outermost first.
  bool split(Part p, bool over, std::vector<Part>* to) {
    std::vector<Part> inner_first;
    if (p.size > 1 && p.step == 0) inner_first.push_back(p), p.size = 1;
    while (p.size > 1) {
      size_t d = sizes_.size();
      while (d-- > 0)
        if (sizes_[d] > 1 && p.step >= strides_[d] && p.step < strides_[d] * sizes_[d]) break;
      if (d >= sizes_.size() || p.step % strides_[d]) return false;
      const int64_t each = p.step / strides_[d];
      int64_t here = p.size;
      if ((p.size - 1) * each >= sizes_[d]) {
        here = sizes_[d] / each;
        if (sizes_[d] % each || here < 2 || p.size % here) return false;
      }
      reach_[d] += (here - 1) * each;
      if (whole_[d]) {
        // Negative: done.
        if (!over || whole_[d] < 0 || each != 1 || here != sizes_[d]) return false;
        inner_first.push_back({whole_[d], steps_[d]});
        whole_[d] = -1;
      } else {
        inner_first.push_back({here, steps_[d] * each});
      }
      p.size /= here, p.step = strides_[d] * sizes_[d];
    }
    to->insert(to->end(), inner_first.rbegin(), inner_first.rend());
    return true;
  }

  Dims sizes_, steps_, strides_, reach_, whole_;
};

// The largest steps first, and neighbours that run on as one; what repeats counts once where it may.
void tidy_over(Terms* t) {
  const bool once = t->op != Opcode::Add && t->op != Opcode::Multiply && t->op != Opcode::Xor;
  for (Part& p : t->over)
    if (p.step < 0) t->offset += (p.size - 1) * p.step, p.step = -p.step;
  std::erase_if(t->over, [&](const Part& p) { return p.size == 1 || (p.step == 0 && once); });
  std::sort(t->over.begin(), t->over.end(),
            [](const Part& a, const Part& b) { return a.step != b.step ? a.step > b.step : a.size > b.size; });
  std::vector<Part> joined;
  for (const Part& p : t->over) {
    if (!joined.empty() && p.step && joined.back().step == p.step * p.size)
      joined.back() = {joined.back().size * p.size, p.step};
    else if (!joined.empty() && p.step == 0 && joined.back().step == 0)
      joined.back().size *= p.size;
    else
      joined.push_back(p);
  }
  t->over = std::move(joined);
}

bool through_pad(const Expressions& all, Terms* t) {
  const Expr& x = all[t->of];
  const Shape &out = x.m->u()[x.shape], &in = x.m->shape(x.m->operand(x.inst, 0));
  const auto* pads = x.m->attrs(x.inst).get<std::vector<PaddingDim>>(Attr::padding);
  if (!pads || x.operands.size() != 2 || !is_neutral(all, x.operands[1], t->op)) return false;
  const Shape& made = x.m->shape(x.inst);
  if (made.dims.size() != pads->size() || made.elements_count() != out.elements_count() || !in.elements_count())
    return false;
  Moved moved(made.dims, row_major_strides(in.dims));
  for (size_t d = 0; d < pads->size(); ++d) {
    const PaddingDim& p = (*pads)[d];
    if (p.low < 0 || p.high < 0) return false;
    if (made.dims[d] != in.dims[d]) moved.only_whole(d, in.dims[d]);
  }
  return moved.apply(t, 0, x.operands[0]);
}

bool through(const Expressions& all, Terms* t) {
  const Expr& x = all[t->of];
  if (x.kind == Expr::kView) return Moved(x.view.sizes, x.view.steps).apply(t, x.view.offset, x.operands[0]);
  if (x.kind == Expr::kSum && x.sum == t->op) {
    const auto kept = static_cast<ptrdiff_t>(x.kept);
    const Dims sizes(x.view.sizes.begin(), x.view.sizes.begin() + kept),
        steps(x.view.steps.begin(), x.view.steps.begin() + kept);
    if (!Moved(sizes, steps).apply(t, x.view.offset, x.operands[0])) return false;
    for (size_t k = x.kept; k < x.view.sizes.size(); ++k) t->over.push_back({x.view.sizes[k], x.view.steps[k]});
    return true;
  }
  return x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Pad && through_pad(all, t);
}

void append(const std::vector<Part>& parts, Expr::View* v) {
  for (const Part& p : parts) v->sizes.push_back(p.size), v->steps.push_back(p.step);
}

}  // namespace

std::optional<SumForm> sum_form(const Expressions& all, const Module& m, InstId reduce, ExprId operand,
                                ExprId initial) {
  Terms t;
  const Shape &in = m.shape(m.operand(reduce, 0)), &out = m.shape(reduce);
  if (!out.is_array() || !in.is_array() || !in.elements_count() || in.type != out.type) return {};
  if (!plain_operation(m, m.called(reduce)[0], &t.op) || !is_neutral(all, initial, t.op)) return {};
  std::vector<std::vector<Part>> parts;
  if (!all.parts(operand, in.dims, &t.offset, &t.of, &parts)) return {};
  const Dims& over = m.attrs(reduce).ints(Attr::dimensions);
  for (size_t d = 0; d < parts.size(); ++d) {
    const bool goes = std::find(over.begin(), over.end(), static_cast<int64_t>(d)) != over.end();
    std::vector<Part>& to = goes ? t.over : t.kept;
    to.insert(to.end(), parts[d].begin(), parts[d].end());
  }
  tidy_over(&t);
  for (int deep = 0; deep < kMostDeep && through(all, &t); ++deep) tidy_over(&t);

  std::erase_if(t.kept, [](const Part& p) { return p.size == 1; });
  SumForm form;
  if (t.over.empty()) {
    form.order.offset = t.offset;
    append(t.kept, &form.order);
    form.sum.kind = Expr::kView, form.sum.operands = {t.of};
    return form;
  }
  std::vector<size_t> places(t.kept.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return std::abs(t.kept[a].step) > std::abs(t.kept[b].step); });
  std::vector<Part> kept;
  Dims steps(t.kept.size(), 0);
  for (size_t k : places)
    if (t.kept[k].step) kept.push_back(t.kept[k]);
  int64_t step = 1;
  for (size_t k = places.size(); k-- > 0;) {
    const Part& p = t.kept[places[k]];
    if (p.step) steps[places[k]] = step, step *= p.size;
  }
  for (const Part& p : t.kept) form.order.sizes.push_back(p.size);
  form.order.steps = std::move(steps);
  form.turned = !std::is_sorted(places.begin(), places.end()) || step != out.elements_count();

  Expr& e = form.sum;
  e.m = &m, e.inst = reduce, e.operands = {t.of}, e.sum = t.op;
  e.kind = Expr::kSum;
  e.view.offset = t.offset;
  append(kept, &e.view);
  Dims dims = e.view.sizes;
  e.kept = kept.size();
  append(t.over, &e.view);
  e.shape = form.turned ? m.u().array(out.type, dims) : m.shape_id(reduce);
  form.key = hash_combine(hash_combine(0x5C3A, static_cast<uint64_t>(t.op)), t.of);
  form.key = hash_combine(hash_combine(form.key, static_cast<uint64_t>(t.offset)), e.kept);
  for (size_t k = 0; k < e.view.sizes.size(); ++k)
    form.key = hash_combine(hash_combine(form.key, static_cast<uint64_t>(e.view.sizes[k])),
                            static_cast<uint64_t>(e.view.steps[k]));
  return form;
}

ExprId ordered(Expressions& all, ExprId of, const Expr::View& order, ShapeId shape) {
  Terms t;
  t.of = of, t.offset = order.offset;
  for (size_t k = 0; k < order.sizes.size(); ++k) t.kept.push_back({order.sizes[k], order.steps[k]});
  const Expr& x = all[of];
  if (x.kind != Expr::kView || !Moved(x.view.sizes, x.view.steps).apply(&t, x.view.offset, x.operands[0]))
    return all.view(of, order, shape);
  Expr::View v;
  v.offset = t.offset;
  append(t.kept, &v);
  return all.view(t.of, std::move(v), shape);
}

std::optional<SumTerms> sum_terms(Expressions& all, Universe& u, ExprId now, ExprId before) {
  const ExprId ids[2] = {now, before};
  ExprId views[2];
  Dims dims;
  for (int side = 0; side < 2; ++side) {
    const Expr x = all[ids[side]];
    if (x.kind != Expr::kSum || x.sum != all[now].sum) return {};
    Dims own{1, 1};
    for (size_t k = 0; k < x.view.sizes.size(); ++k) own[k < x.kept ? 0 : 1] *= x.view.sizes[k];
    if (side && own != dims) return {};
    dims = own;
    views[side] = all.view(x.operands[0], x.view, u.array(u[x.shape].type, own));
  }
  return SumTerms{views[0], views[1], dims};
}

}  // namespace hlo
