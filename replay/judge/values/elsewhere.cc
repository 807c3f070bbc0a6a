// Two operations, on operands that the inputs do not give them.
#include <algorithm>
#include <cmath>

#include "ir/base/hash.h"
#include "ir/types/literal.h"
#include "replay/judge/values/numbering.h"

namespace hlo {
namespace {

constexpr size_t kCombinations = 256;
constexpr size_t kTriesOfScalars = 24;
constexpr size_t kMostThatTell = 8;

bool is_flag_or_number(const Shape& s) {
  return s.is_array() && (s.type == ElementType::Pred || is_integral(s.type) || s.type == ElementType::F64);
}

constexpr double kTried[] = {-1, -0.5, -0.0, 0, 0.5, 1, INFINITY, -INFINITY, NAN};

// One of a few values: neighbours that are equal, both zeros, both signs where the type has signs, and what is no
// number.
Value small_scalar(Universe& u, ShapeId shape, uint64_t which) {
  Value v;
  v.shape = shape, v.data = new_array(u, shape);
  const ElementType t = u[shape].type;
  if (t == ElementType::Pred)
    v.mutable_bytes()[0] = static_cast<char>(which % 2);
  else if (is_integral(t))
    store_int(t, v.mutable_bytes(), static_cast<int64_t>(which % 4) - (is_signed_int(t) ? 1 : 0));
  else
    store_double(t, v.mutable_bytes(), kTried[which % std::size(kTried)]);
  return v;
}

// Few values, so that operands are equal here and there.
Value with_ties(Universe& u, ShapeId shape, size_t operand) {
  Value v = seeded_input(u, shape, 5, operand, false);
  const ElementType t = u[shape].type;
  if (t != ElementType::F64) return v;
  const bool flat = u[shape].rank() < 2;
  for (int64_t e = 0, n = u[shape].elements_count(); e < n; ++e) {
    char* at = v.mutable_bytes() + e * 8;
    store_double(t, at, std::nearbyint(load_double(t, at) * (flat ? 4 : 24)) / 2 - (flat ? 2 : 0));
  }
  return v;
}

// Every element the same small number: both signs and zero where the type has them.
constexpr size_t kAlike = 3;
Value all_the_same(Universe& u, ShapeId shape, size_t which) {
  Value v;
  v.shape = shape, v.data = new_array(u, shape);
  const ElementType t = u[shape].type;
  const int width = storage_bytes(t);
  for (int64_t e = 0, n = u[shape].elements_count(); e < n; ++e) {
    char* at = v.mutable_bytes() + e * width;
    if (t == ElementType::Pred)
      *at = static_cast<char>(which % 2);
    else if (is_integral(t))
      store_int(t, at, which == 2 && is_signed_int(t) ? -2 : static_cast<int64_t>(2 * which));
    else
      store_double(t, at, which == 2 ? -2 : static_cast<double>(2 * which));
  }
  return v;
}

double deviation_of(const Universe& u, const Value& a, const Value& b) {
  double worst = 0;
  for (size_t k = 0; k < a.elements.size() && k < b.elements.size(); ++k)
    worst = std::max(worst, deviation_of(u, a.elements[k], b.elements[k]));
  return a.data && b.data ? deviation(u, std::span(&a, 1), std::span(&b, 1)) : worst;
}

// Are both computations of scalars of the same types?
bool takes_same_scalars(const Module& x, const std::vector<InstId>& p, const Module& y, const std::vector<InstId>& q) {
  if (p.empty() || p.size() != q.size()) return false;
  for (size_t k = 0; k < p.size(); ++k)
    if (!x.u().compatible(x.shape_id(p[k]), y.shape_id(q[k])) || !is_flag_or_number(x.shape(p[k])) ||
        x.shape(p[k]).rank())
      return false;
  return true;
}

// The t-th choice of values for so many parameters, in which parameters `apart` from each other tie half of the time.
std::vector<uint64_t> combination(size_t t, size_t count, size_t apart) {
  std::vector<uint64_t> out;
  for (size_t k = 0; k < count; ++k) out.push_back(hash_combine(t + 1, k) >> 7);
  for (size_t k = 0; k + apart < count; ++k) {
    const bool second = apart == 1 ? k % 2 == 0 : k < apart;
    if (second && (hash_combine(t + 77, k) >> 9) % 2) out[k + apart] = out[k];
  }
  return out;
}

}  // namespace

// Computations of scalars: each by each of few values where they are two, else by many combinations, in which a pair of
// parameters ties as often as not.
double Numbering::applied_elsewhere(StageModule& a, CompId c, StageModule& b, CompId d) {
  const Module &x = a.m(), &y = b.m();
  const std::vector<InstId>&p = x.comp(c).params, &q = y.comp(d).params;
  if (!takes_same_scalars(x, p, y, q)) return -1;
  const uint64_t values = std::size(kTried);
  const size_t tries = p.size() == 2 ? values * values : kCombinations;
  double worst = 0;
  for (size_t t = 0; t < tries; ++t) {
    std::vector<Value> left, right;
    const std::vector<uint64_t> which =
        p.size() == 2 ? std::vector<uint64_t>{t / values, t % values} : combination(t, p.size(), p.size() / 2);
    for (size_t k = 0; k < p.size(); ++k) {
      left.push_back(small_scalar(u_, x.shape_id(p[k]), which[k])), right.push_back(left.back());
      right.back().shape = y.shape_id(q[k]);
    }
    const Value r = a.evaluators[0]->run_computation(c, std::move(left)),
                s = b.evaluators[0]->run_computation(d, std::move(right));
    worst = std::max(worst, deviation_of(u_, r, s));
  }
  return worst;
}

std::vector<std::vector<Value>> Numbering::scalars_that_tell(StageModule& a, CompId c, StageModule& b, CompId d) {
  const Module &x = a.m(), &y = b.m();
  const std::vector<InstId>&p = x.comp(c).params, &q = y.comp(d).params;
  std::vector<std::vector<Value>> out;
  if (!takes_same_scalars(x, p, y, q)) return out;
  try {
    // Parameters that belong together stand side by side (sorts), or in two halves (reductions).
    for (size_t t = 0; t < 2 * kCombinations && out.size() < kMostThatTell; ++t) {
      const size_t apart = t % 2 ? p.size() / 2 : 1;
      const std::vector<uint64_t> which = combination(t / 2, p.size(), std::max<size_t>(apart, 1));
      std::vector<Value> given;
      for (size_t k = 0; k < p.size(); ++k) given.push_back(small_scalar(u_, x.shape_id(p[k]), which[k]));
      std::vector<Value> other = given;
      for (size_t k = 0; k < q.size(); ++k) other[k].shape = y.shape_id(q[k]);
      const Value r = a.evaluators[0]->run_computation(c, given),
                  s = b.evaluators[0]->run_computation(d, std::move(other));
      if (deviation_of(u_, r, s) > 1e-6) out.push_back(std::move(given));
    }
  } catch (const Failure&) {
    out.clear();
  }
  return out;
}

namespace {

// Of two elements, the first of which stands in front: what a sort makes of them.
enum class Order : uint8_t { kKept, kTurned, kFree, kNone };  // kNone: each is to come before the other

// Which operands of a sort are the positions of its elements.
std::vector<bool> positions_of(const Module& m, InstId sort) {
  std::vector<bool> out;
  for (InstId o : m.operands(sort)) {
    while (m.op(o) == Opcode::Copy || m.op(o) == Opcode::Bitcast) o = m.operand(o, 0);
    out.push_back(m.op(o) == Opcode::Iota);
  }
  return out;
}

Order order_by(StageModule& s, InstId sort, CompId c, const std::vector<Value>& pairs) {
  std::vector<Value> given = pairs, turned = pairs;
  for (size_t k = 0; k + 1 < turned.size(); k += 2) std::swap(turned[k], turned[k + 1]);
  for (size_t k = 0; k < given.size(); ++k) given[k].shape = turned[k].shape = s.m().shape_id(s.m().comp(c).params[k]);
  const bool before = s.evaluators[0]->run_computation(c, std::move(given)).bytes()[0] != 0;
  const bool behind = s.evaluators[0]->run_computation(c, std::move(turned)).bytes()[0] != 0;
  if (before || behind) return before && behind ? Order::kNone : before ? Order::kKept : Order::kTurned;
  return s.m().attrs(sort).flag(Attr::is_stable) ? Order::kKept : Order::kFree;
}

}  // namespace

// Comparators by the order that they ask for: a tie may be told apart where the sort was free to do either, or as its
// stability does. 0 the same, infinity another one, negative where it cannot be tried.
double Numbering::sorts_elsewhere(StageModule& a, InstId i, StageModule& b, InstId k) {
  const Module &x = a.m(), &y = b.m();
  const CompId c = x.called(i)[0], d = y.called(k)[0];
  const std::vector<InstId>&p = x.comp(c).params, &q = y.comp(d).params;
  if (!takes_same_scalars(x, p, y, q) || p.size() % 2) return -1;
  const std::vector<bool> position = positions_of(x, i);
  const size_t tries = p.size() == 2 ? std::size(kTried) * std::size(kTried) : kCombinations * 2;
  for (size_t t = 0; t < tries; ++t) {
    std::vector<uint64_t> which = p.size() == 2 ? std::vector<uint64_t>{t / std::size(kTried), t % std::size(kTried)}
                                                : combination(t, p.size(), 1);
    std::vector<Value> pair;
    for (size_t n = 0; n < p.size(); ++n) {
      if (n / 2 < position.size() && position[n / 2]) which[n] = n % 2 ? 2 : 1;
      pair.push_back(small_scalar(u_, x.shape_id(p[n]), which[n]));
    }
    const Order was = order_by(a, i, c, pair), is = order_by(b, k, d, pair);
    if (was == is || was == Order::kFree || was == Order::kNone) continue;
    // What is the same element twice may stand in either order.
    bool same = true;
    for (size_t n = 0; n < pair.size(); n += 2) same = same && *pair[n].data == *pair[n + 1].data;
    if (same && is != Order::kNone) continue;
    return INFINITY;
  }
  return 0;
}

double Numbering::deviation_by_operand(StageModule& s, InstId i, size_t which, const Term& one, const Term& other) {
  const Module& m = s.m();
  for (InstId o : m.operands(i))
    if (!is_flag_or_number(m.shape(o))) return -1;
  if (s.devices > 1 && s.asks_who(i)) return -1;
  double worst = 0;
  try {
    for (size_t t = 0; t <= kAlike; ++t) {
      std::vector<Value> given;
      for (size_t o = 0; o < m.operand_count(i); ++o) {
        const ShapeId shape = m.shape_id(m.operand(i, o));
        given.push_back(o == which    ? value(one, shape, 0)
                        : t == kAlike ? with_ties(u_, shape, o)
                                      : all_the_same(u_, shape, t));
      }
      std::vector<Value> turned = given;
      turned[which] = value(other, m.shape_id(m.operand(i, which)), 0);
      const Value p = s.evaluators[0]->run_instruction(i, std::move(given)),
                  q = s.evaluators[0]->run_instruction(i, std::move(turned));
      worst = std::max(worst, deviation_of(u_, p, q));
    }
    return worst;
  } catch (const Failure&) {
    return -1;
  }
}

double Numbering::deviation_elsewhere(StageModule& a, InstId i, StageModule& b, InstId k) {
  const Module &x = a.m(), &y = b.m();
  try {
    if (!x.called(i).empty() && x.called(i).size() == y.called(k).size() && x.op(i) == y.op(k)) {
      if (x.op(i) == Opcode::Sort) return sorts_elsewhere(a, i, b, k);
      // Of the same computation, applied along other dimensions, any inputs tell.
      double worst = 0;
      for (size_t c = 0; c < x.called(i).size(); ++c) {
        if (a.canonical.computation(x.called(i)[c]) == b.canonical.computation(y.called(k)[c])) continue;
        const double apart = applied_elsewhere(a, x.called(i)[c], b, y.called(k)[c]);
        if (apart < 0) return apart;
        worst = std::max(worst, apart);
      }
      return worst;
    }
    auto plain = [](const Module& m, InstId n) { return op_info(m.op(n)).elementwise && m.called(n).empty(); };
    if (!plain(x, i) || !plain(y, k) || x.operand_count(i) != y.operand_count(k)) return -1;
    bool scalars = true;
    for (size_t o = 0; o < x.operand_count(i); ++o) {
      const Shape& s = x.shape(x.operand(i, o));
      if (!s.is_array() || !u_.compatible(x.shape_id(x.operand(i, o)), y.shape_id(y.operand(k, o)))) return -1;
      scalars &= is_flag_or_number(s) && s.rank() == 0;
    }
    double worst = 0;
    // One of each says little of a comparison.
    for (size_t t = 0; t < (scalars ? kTriesOfScalars : 1); ++t) {
      std::vector<Value> left, right;
      for (size_t o = 0; o < x.operand_count(i); ++o) {
        const ShapeId shape = x.shape_id(x.operand(i, o));
        left.push_back(scalars && t ? small_scalar(u_, shape, hash_combine(t, o) >> 7) : with_ties(u_, shape, o));
        right.push_back(left.back());
        right.back().shape = y.shape_id(y.operand(k, o));
      }
      const Value p = a.evaluators[0]->run_instruction(i, std::move(left)),
                  q = b.evaluators[0]->run_instruction(k, std::move(right));
      worst = std::max(worst, deviation_of(u_, p, q));
    }
    return worst;
  } catch (const Failure&) {
    return -1;
  }
}

}  // namespace hlo
