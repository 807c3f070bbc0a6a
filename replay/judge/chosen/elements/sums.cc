#include "replay/judge/chosen/elements/sums.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/base/checked.h"
#include "ir/base/hash.h"
#include "ir/eval/kernels.h"
#include "ir/eval/library/gemm_call.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/products.h"
#include "replay/judge/chosen/elements/terms.h"
#include "replay/judge/values/canonical.h"

namespace hlo {
namespace {

// Reductions of reductions, views, pads and products that are looked through; factors of a term.
constexpr int kMostDeep = 64;
constexpr size_t kMostFactors = 6;
// Terms of a sum of products' sums that is taken for one sum.
constexpr int64_t kMostProducts = 1 << 16;

InstId without_conversions(const Module& m, InstId i) {
  while (role_of(m, i) == Role::kSame) i = m.operand(i, 0);
  return i;
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

bool through_pad(const Expressions& all, Terms* t, size_t factor) {
  const Expr& x = all[t->factors[factor].of];
  const Shape &in = x.m->shape(x.m->operand(x.inst, 0)), &made = x.m->shape(x.inst);
  const auto* pads = x.m->attrs(x.inst).get<std::vector<PaddingDim>>(Attr::padding);
  if (!pads || x.operands.size() != 2 || !in.elements_count()) return false;
  const bool neutral = is_neutral(all, x.operands[1], t->by);
  if (made.dims.size() != pads->size() || in.dims.size() != pads->size()) return false;
  FactorMove move(made.dims, row_major_strides(in.dims), 0);
  for (size_t d = 0; d < pads->size(); ++d) {
    const PaddingDim& p = (*pads)[d];
    if (p.low < 0 || p.high < 0) return false;
    if (made.dims[d] != in.dims[d]) move.pad(d, p.low, p.interior + 1, in.dims[d], neutral);
  }
  return move.apply(t, factor, x.operands[0]);
}

bool is_operation(const Expr& x, Opcode op) { return x.kind == Expr::kOperation && x.m->op(x.inst) == op; }

// A factor that lies within one part of a concatenation.
bool through_concatenation(const Expr& x, Terms* t, size_t factor) {
  const Shape& made = x.m->shape(x.inst);
  const auto dim = static_cast<size_t>(x.m->attrs(x.inst).ints(Attr::dimensions)[0]);
  int64_t start = 0;
  for (size_t k = 0; k < x.operands.size(); ++k) {
    const Shape& in = x.m->shape(x.m->operand(x.inst, k));
    FactorMove move(made.dims, row_major_strides(in.dims), 0);
    move.pad(dim, start, 1, in.dims[dim], false);
    if (in.elements_count() && move.apply(t, factor, x.operands[k])) return true;
    start += in.dims[dim];
  }
  return false;
}

// A factor that is a sum itself, of sums: its terms are the terms.
bool through_sum(const Expr& x, Terms* t) {
  const auto kept = static_cast<ptrdiff_t>(x.sum->kept);
  const Dims sizes(x.view.sizes.begin(), x.view.sizes.begin() + kept);
  if (t->factors.size() != 1 || x.sum->by != t->by) return false;
  // Products of many are worth more as values of their own, for they can be drawn then (below); a reduction in several
  // steps is one reduction.
  const bool reduction = x.m->op(x.inst) == Opcode::Reduce;
  Checked terms = 1;
  for (size_t k = x.sum->kept; k < x.view.sizes.size(); ++k) terms *= x.view.sizes[k];
  for (const Terms::Part& p : t->over) terms *= p.size;
  // Each operand's own steps, all over the same indices.
  Terms all = *t;
  std::vector<Terms> own;
  for (size_t f = 0; f < x.operands.size(); ++f) {
    const Expr::View& v = x.sum->of(f, x.view);
    own.push_back(*t);
    FactorMove move(sizes, Dims(v.steps.begin(), v.steps.begin() + kept), v.offset);
    if (!move.apply(&own.back(), 0, x.operands[f])) return false;
  }
  all = own[0];
  for (size_t f = 1; f < own.size(); ++f) {
    all.factors.push_back(own[f].factors[0]);
    for (size_t k = 0; k < all.kept.size(); ++k) all.kept[k].steps.push_back(own[f].kept[k].steps[0]);
    for (size_t k = 0; k < all.over.size(); ++k) all.over[k].steps.push_back(own[f].over[k].steps[0]);
  }
  for (size_t k = x.sum->kept; k < x.view.sizes.size(); ++k) {
    Terms::Part p{x.view.sizes[k], {}};
    for (size_t f = 0; f < x.operands.size(); ++f) p.steps.push_back(x.sum->of(f, x.view).steps[k]);
    all.over.push_back(std::move(p));
  }
  // What lies along all sides of a product is a part of its own terms: a product made in pieces is one product.
  const bool pieces = std::all_of(
      all.over.begin(), all.over.begin() + static_cast<ptrdiff_t>(t->over.size()), [](const Terms::Part& p) {
        return std::all_of(p.steps.begin(), p.steps.end(), [](int64_t s) { return s != 0; });
      });
  if (x.operands.size() > 1 && !reduction && !pieces && terms.capped() > kMostProducts) return false;
  *t = std::move(all);
  return true;
}

// A factor that is a product: its factors.
bool through_product(const Expr& x, Terms* t, size_t factor, ElementType type) {
  const Shape& s = x.m->shape(x.inst);
  if (t->by != Opcode::Add || t->over.empty() || t->factors.size() >= kMostFactors || x.operands.size() != 2 ||
      s.type != type)
    return false;
  t->factors.push_back({x.operands[1], t->factors[factor].offset});
  t->factors[factor].of = x.operands[0];
  for (std::vector<Terms::Part>* parts : {&t->kept, &t->over})
    for (Terms::Part& p : *parts) p.steps.push_back(p.steps[factor]);
  const size_t places[2] = {factor, t->factors.size() - 1};
  for (size_t k = 0; k < 2; ++k) {
    if (x.m->shape(x.m->operand(x.inst, k)).rank() != 0 || s.rank() == 0) continue;
    t->factors[places[k]].offset = 0;
    for (std::vector<Terms::Part>* parts : {&t->kept, &t->over})
      for (Terms::Part& p : *parts) p.steps[places[k]] = 0;
  }
  return true;
}

// Of negatives, exactly, the sum is the sum's negative, and a product of one, too.
bool through_negative(const Expr& x, Terms* t, size_t factor, ElementType type) {
  if (t->by != Opcode::Add || t->over.empty() || x.operands.size() != 1 || x.m->u()[x.shape].type != type ||
      type == ElementType::Pred)
    return false;
  t->factors[factor].of = x.operands[0];
  t->negated = !t->negated;
  return true;
}

bool through(const Expressions& all, Terms* t, ElementType type) {
  for (size_t f = 0; f < t->factors.size(); ++f) {
    const Expr& x = all[t->factors[f].of];
    if (x.kind == Expr::kView && FactorMove(x.view.sizes, x.view.steps, x.view.offset).apply(t, f, x.operands[0]))
      return true;
    if (x.kind == Expr::kSum && through_sum(x, t)) return true;
    if (is_operation(x, Opcode::Negate) && through_negative(x, t, f, type)) return true;
    if (is_operation(x, Opcode::Pad) && through_pad(all, t, f)) return true;
    if (is_operation(x, Opcode::Concatenate) && through_concatenation(x, t, f)) return true;
  }
  // The newest first, so that it does not count which of them was a factor at the beginning.
  std::vector<size_t> order(t->factors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return t->factors[a].of > t->factors[b].of; });
  for (size_t f : order) {
    const Expr& x = all[t->factors[f].of];
    if (is_operation(x, Opcode::Multiply) && through_product(x, t, f, type)) return true;
  }
  return false;
}

// Views of the factors over the parts.
void write_views(const Terms& t, Expr* e, Expr::Sum* sum) {
  e->operands.clear(), e->view = {}, sum->more.clear();
  for (size_t f = 0; f < t.factors.size(); ++f) {
    Expr::View v;
    v.offset = t.factors[f].offset;
    for (const std::vector<Terms::Part>* parts : {&t.kept, &t.over})
      for (const Terms::Part& p : *parts) v.sizes.push_back(p.size), v.steps.push_back(p.steps[f]);
    e->operands.push_back(t.factors[f].of);
    if (f)
      sum->more.push_back(std::move(v));
    else
      e->view = std::move(v);
  }
}

uint64_t key_of(const Expr& e, const Expr::Sum& sum, ElementType type) {
  uint64_t h = hash_combine(hash_combine(0x5C3A, static_cast<uint64_t>(sum.by)), static_cast<uint64_t>(type));
  h = hash_combine(hash_combine(h, sum.kept), e.operands.size());
  for (int64_t n : e.view.sizes) h = hash_combine(h, static_cast<uint64_t>(n));
  for (size_t f = 0; f < e.operands.size(); ++f) {
    const Expr::View& v = sum.of(f, e.view);
    h = hash_combine(hash_combine(h, e.operands[f]), static_cast<uint64_t>(v.offset));
    for (int64_t s : v.steps) h = hash_combine(h, static_cast<uint64_t>(s));
  }
  return h;
}

// What sums nothing is a product of two arrays.
void write_product(Expressions& all, const Terms& t, ElementType type, Expr* e, Expr::Sum* sum, SumForm* form) {
  Expr::View own;
  Dims dims;
  for (const Terms::Part& p : t.kept) dims.push_back(p.size);
  own.sizes = dims, own.steps = row_major_strides(dims);
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  for (size_t f = 0; f < 2; ++f) {
    const Expr::View& v = sum->of(f, e->view);
    const Expr& x = all[e->operands[f]];
    e->operands[f] = all.view(e->operands[f], v, x.m->u().array(x.m->u()[x.shape].type, dims));
  }
  form->key = multiplied_key(type, count, e->operands[0], e->operands[1]);
  e->view = own, sum->more = {own};
}

// `t`: looked through as far as that goes.
SumForm form_of_all(Expressions& all, const Module& m, InstId inst, Terms t, ShapeId shape) {
  const ElementType type = m.u()[shape].type;
  SumForm form;
  form.negated = t.negated;
  Expr& e = form.expr;
  auto sum = std::make_shared<Expr::Sum>();
  sum->by = t.by;
  e.m = &m, e.inst = inst;
  if (t.over.empty() && t.factors.size() == 1) {
    write_views(t, &e, sum.get());
    form.order = e.view, e.kind = Expr::kView;
    return form;
  }
  form.order = t.put_in_order({});
  sum->kept = t.kept.size();
  write_views(t, &e, sum.get());
  Dims dims(e.view.sizes.begin(), e.view.sizes.begin() + static_cast<ptrdiff_t>(sum->kept));
  const bool own = std::is_sorted(form.order.steps.rbegin(), form.order.steps.rend()) &&
                   std::find(form.order.steps.begin(), form.order.steps.end(), 0) == form.order.steps.end();
  e.kind = Expr::kSum, e.shape = own ? shape : m.u().array(type, dims);
  form.key = key_of(e, *sum, type);
  if (t.over.empty() && t.by == Opcode::Add && t.factors.size() == 2) write_product(all, t, type, &e, sum.get(), &form);
  e.sum = std::move(sum);
  return form;
}

SumForm form_of(Expressions& all, const Module& m, InstId inst, Terms t, ShapeId shape) {
  const ElementType type = m.u()[shape].type;
  t.tidy();
  for (int deep = 0; deep < kMostDeep && through(all, &t, type); ++deep) t.tidy();
  return form_of_all(all, m, inst, std::move(t), shape);
}

// Dimensions of one operand as parts of a term; -1: not this factor's.
void add_parts(const Shape& s, const Dims& which, size_t factor, size_t factors, std::vector<Terms::Part>* to) {
  const Dims strides = row_major_strides(s.dims);
  for (int64_t d : which) {
    Terms::Part p{s.dims[static_cast<size_t>(d)], Dims(factors, 0)};
    p.steps[factor] = strides[static_cast<size_t>(d)];
    to->push_back(std::move(p));
  }
}

}  // namespace

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

uint64_t multiplied_key(ElementType type, int64_t count, ExprId a, ExprId b) {
  uint64_t h = hash_combine(hash_combine(0x3017, static_cast<uint64_t>(type)), static_cast<uint64_t>(count));
  return hash_combine(hash_combine(h, std::min(a, b)), std::max(a, b));
}

std::optional<SumForm> reduction_form(Expressions& all, const Module& m, InstId reduce, ExprId operand,
                                      ExprId initial) {
  const Shape &in = m.shape(m.operand(reduce, 0)), &out = m.shape(reduce);
  if (!out.is_array() || !in.is_array() || !in.elements_count() || in.type != out.type) return {};
  Terms t;
  if (!plain_operation(m, m.called(reduce)[0], &t.by) || !is_neutral(all, initial, t.by)) return {};
  t.factors = {{operand, 0}};
  const Dims& over = m.attrs(reduce).ints(Attr::dimensions);
  add_parts(in, over, 0, 1, &t.over);
  add_parts(in, other_dims(in, over, {}), 0, 1, &t.kept);
  return form_of(all, m, reduce, std::move(t), m.shape_id(reduce));
}

std::optional<SumForm> product_form(Expressions& all, const Module& m, InstId product, ExprId left, ExprId right) {
  const Shape &ls = m.shape(m.operand(product, 0)), &rs = m.shape(m.operand(product, 1));
  const AttrSet& a = m.attrs(product);
  Dims l_batch, l_sum, r_batch, r_sum;
  ShapeId shape = m.shape_id(product);
  if (m.op(product) == Opcode::Dot) {
    l_batch = a.ints(Attr::lhs_batch_dims), l_sum = a.ints(Attr::lhs_contracting_dims);
    r_batch = a.ints(Attr::rhs_batch_dims), r_sum = a.ints(Attr::rhs_contracting_dims);
  } else {
    GemmCall call(m, product);
    if (!call.plain()) return {};
    l_batch = call.lhs_batch, l_sum = call.lhs_sum, r_batch = call.rhs_batch, r_sum = call.rhs_sum;
    if (m.shape(product).is_tuple()) shape = m.shape(product).elements[0];
  }
  const Shape& out = m.u()[shape];
  if (!out.is_array() || !ls.is_array() || !rs.is_array() || out.type == ElementType::Pred || !out.elements_count() ||
      !ls.elements_count() || !rs.elements_count() || l_sum.size() != r_sum.size() || l_batch.size() != r_batch.size())
    return {};
  Terms t;
  t.factors = {{left, 0}, {right, 0}};
  auto both = [&](const Dims& l, const Dims& r, std::vector<Terms::Part>* to) {
    const size_t first = to->size();
    add_parts(ls, l, 0, 2, to);
    const Dims strides = row_major_strides(rs.dims);
    for (size_t k = 0; k < r.size(); ++k) {
      if (rs.dims[static_cast<size_t>(r[k])] != (*to)[first + k].size) return false;
      (*to)[first + k].steps[1] = strides[static_cast<size_t>(r[k])];
    }
    return true;
  };
  if (!both(l_batch, r_batch, &t.kept) || !both(l_sum, r_sum, &t.over)) return {};
  add_parts(ls, other_dims(ls, l_batch, l_sum), 0, 2, &t.kept);
  add_parts(rs, other_dims(rs, r_batch, r_sum), 1, 2, &t.kept);
  int64_t count = 1;
  for (const Terms::Part& p : t.kept) count *= p.size;
  if (count != out.elements_count()) return {};
  return form_of(all, m, product, std::move(t), shape);
}

std::optional<SumForm> part_form(Expressions& all, const Module& m, InstId i, ExprId view) {
  const Expr x = all[view];
  if (x.kind != Expr::kView || all[x.operands[0]].kind != Expr::kSum || !m.shape(i).is_array()) return {};
  auto joined = [&](const std::vector<ExprId>& factors) {
    return std::any_of(factors.begin(), factors.end(),
                       [&](ExprId f) { return is_operation(all[f], Opcode::Concatenate); });
  };
  if (!joined(all[x.operands[0]].operands)) return {};
  Terms t;
  t.by = all[x.operands[0]].sum->by, t.factors = {{x.operands[0], x.view.offset}};
  for (size_t k = 0; k < x.view.sizes.size(); ++k) t.kept.push_back({x.view.sizes[k], {x.view.steps[k]}});
  SumForm form = form_of(all, m, i, std::move(t), m.shape_id(i));
  if (form.expr.kind != Expr::kSum || joined(form.expr.operands)) return {};
  return form;
}

ExprId ordered(Expressions& all, ExprId of, const Expr::View& order, ShapeId shape) {
  Terms t;
  t.factors = {{of, order.offset}};
  for (size_t k = 0; k < order.sizes.size(); ++k) t.kept.push_back({order.sizes[k], {order.steps[k]}});
  const Expr& x = all[of];
  if (x.kind != Expr::kView || !FactorMove(x.view.sizes, x.view.steps, x.view.offset).apply(&t, 0, x.operands[0]))
    return all.view(of, order, shape);
  Expr e;
  Expr::Sum none;
  write_views(t, &e, &none);
  return all.view(t.factors[0].of, std::move(e.view), shape);
}

namespace {

bool through_devices(const Expressions& all, Terms* t, ElementType type, int64_t device);

// A factor of which the device has a part: elements of the whole.
bool through_part(const Expr& x, Terms* t, size_t factor, int64_t device) {
  const DeviceMessage& p = *x.message;
  const Dims &start = p.starts[static_cast<size_t>(device)], steps = row_major_strides(p.from);
  int64_t first = 0;
  for (size_t d = 0; d < start.size(); ++d) {
    if (start[d] + p.to[d] > p.from[d]) return false;
    first += start[d] * steps[d];
  }
  return FactorMove(p.to, steps, first).apply(t, factor, x.operands[0]);
}

bool same_parts(const std::vector<Terms::Part>& a, const std::vector<Terms::Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Terms::Part& x, const Terms::Part& y) { return x.size == y.size && x.steps == y.steps; });
}

// A sum that devices add up: where each sums what lies one step further along the same arrays, which all of them have
// alike, it is one sum over all of that.
bool through_added(const Expressions& all, const Expr& x, Terms* t, ElementType type, int64_t device) {
  if (t->factors.size() != 1 || x.message->by != Opcode::Add || t->by != Opcode::Add) return false;
  std::vector<Terms> each;
  for (int64_t member : x.message->group(device)) {
    Terms own = *t;
    own.factors[0].of = x.operands[0];
    through_devices(all, &own, type, member);
    for (const Terms::Factor& f : own.factors)
      if (all.devices().of(f.of) != DeviceClasses::kAll) return false;
    each.push_back(std::move(own));
  }
  const auto offsets = [](const Terms& x) {
    Dims out;
    for (const Terms::Factor& f : x.factors) out.push_back(f.offset);
    return out;
  };
  std::sort(each.begin(), each.end(), [&](const Terms& a, const Terms& b) { return offsets(a) < offsets(b); });
  const Dims first = offsets(each[0]), second = offsets(each[each.size() > 1]);
  for (size_t k = 0; k < each.size(); ++k) {
    const Terms& one = each[k];
    if (one.negated != each[0].negated || one.factors.size() != first.size() || !same_parts(one.kept, each[0].kept) ||
        !same_parts(one.over, each[0].over))
      return false;
    for (size_t f = 0; f < first.size(); ++f)
      if (one.factors[f].of != each[0].factors[f].of ||
          one.factors[f].offset != first[f] + static_cast<int64_t>(k) * (second[f] - first[f]))
        return false;
  }
  Terms::Part devices{static_cast<int64_t>(each.size()), {}};
  for (size_t f = 0; f < first.size(); ++f) devices.steps.push_back(second[f] - first[f]);
  *t = std::move(each[0]);
  t->over.push_back(std::move(devices));
  return true;
}

// What the device has, as far as it can be looked through.
bool through_devices(const Expressions& all, Terms* t, ElementType type, int64_t device) {
  bool any = false;
  for (int deep = 0; deep < kMostDeep; ++deep) {
    t->tidy();
    bool further = through(all, t, type);
    for (size_t f = 0; f < t->factors.size() && !further; ++f) {
      const Expr& x = all[t->factors[f].of];
      if (x.kind != Expr::kMessage) continue;
      if (x.message->kind == DeviceMessage::kPart) further = through_part(x, t, f, device);
      if (x.message->kind == DeviceMessage::kReduce) further = through_added(all, x, t, type, device);
    }
    if (!further) break;
    any = true;
  }
  return any;
}

bool same_view(const Expr::View& a, const Expr::View& b) {
  return a.sizes == b.sizes && a.steps == b.steps && a.offset == b.offset;
}

}  // namespace

bool same_on_devices(Expressions& all, ExprId a, ExprId b) {
  for (int64_t device = 0; device < all.devices().devices(); ++device) {
    std::optional<SumForm> forms[2];
    for (int side = 0; side < 2; ++side) {
      const Expr x = all[side ? b : a];
      const Shape& shape = x.m->u()[x.shape];
      Terms t;
      t.factors = {{side ? b : a, 0}}, t.kept = {{shape.elements_count(), {1}}};
      through_devices(all, &t, shape.type, device);
      forms[side] = form_of_all(all, *x.m, x.inst, std::move(t), x.shape);
    }
    const SumForm &f = *forms[0], &g = *forms[1];
    if (f.negated != g.negated || f.expr.kind != g.expr.kind || !same_view(f.order, g.order)) return false;
    if (f.expr.kind == Expr::kView ? f.expr.operands != g.expr.operands : f.key != g.key) return false;
  }
  return true;
}

std::optional<SumTerms> sum_terms(Expressions& all, Universe& u, ExprId now, ExprId before) {
  const ExprId ids[2] = {now, before};
  ExprId terms[2];
  Dims dims;
  for (int side = 0; side < 2; ++side) {
    Expr x = all[ids[side]];
    if (x.kind != Expr::kSum || x.sum->kept == x.view.sizes.size() || x.sum->by != all[now].sum->by) return {};
    Dims own{1, 1};
    for (size_t k = 0; k < x.view.sizes.size(); ++k) own[k < x.sum->kept ? 0 : 1] *= x.view.sizes[k];
    if (side && own != dims) return {};
    dims = own;
    const ElementType type = u[x.shape].type;
    x.shape = u.array(type, own);
    if (x.operands.size() == 1) {
      terms[side] = all.view(x.operands[0], x.view, x.shape);
      continue;
    }
    auto sum = std::make_shared<Expr::Sum>(*x.sum);
    sum->kept = x.view.sizes.size();
    const uint64_t key = key_of(x, *sum, type);
    x.sum = std::move(sum);
    terms[side] = all.find_or_add(key, std::move(x));
  }
  return SumTerms{terms[0], terms[1], dims};
}

}  // namespace hlo
