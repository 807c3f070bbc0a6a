// Two operations, on operands that the inputs do not give them.
#include <algorithm>
#include <cmath>

#include "ir/base/hash.h"
#include "ir/literal.h"
#include "replay/judge/inside/numbering.h"

namespace hlo {
namespace {

constexpr size_t kCombinations = 32;
constexpr size_t kTriesOfScalars = 12;

bool is_flag_or_number(const Shape& s) {
  return s.is_array() && (s.type == ElementType::Pred || is_integral(s.type) || s.type == ElementType::F64);
}

// One of a few values, of which neighbours are equal, zero, and of both signs where the type has signs.
Value small_scalar(Universe& u, ShapeId shape, uint64_t which) {
  Value v;
  v.shape = shape, v.data = new_array(u, shape);
  const ElementType t = u[shape].type;
  if (t == ElementType::Pred)
    v.mutable_bytes()[0] = static_cast<char>(which % 2);
  else if (is_integral(t))
    store_int(t, v.mutable_bytes(), static_cast<int64_t>(which % 4) - (is_signed_int(t) ? 1 : 0));
  else
    store_double(t, v.mutable_bytes(), (static_cast<double>(which % 5) - 2) / 2);
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

// Elements a and b come as a0, b0, a1, b1 …
bool pairs_tie(const std::vector<Value>& v) {
  for (size_t k = 0; k + 1 < v.size(); k += 2)
    if (v[k].shape == v[k + 1].shape && *v[k].data == *v[k + 1].data) return true;
  return false;
}

double deviation_of(const Universe& u, const Value& a, const Value& b) {
  double worst = 0;
  for (size_t k = 0; k < a.elements.size() && k < b.elements.size(); ++k)
    worst = std::max(worst, deviation_of(u, a.elements[k], b.elements[k]));
  return a.data && b.data ? deviation(u, std::span(&a, 1), std::span(&b, 1)) : worst;
}

}  // namespace

// Computations of scalars, each by each of few values where they are two, else by some combinations. `distinct`: of
// elements that are not the same, as comparators may tell ties apart or leave them to the sort.
double Numbering::applied_elsewhere(StageModule& a, CompId c, StageModule& b, CompId d, bool distinct) {
  const Module &x = a.m(), &y = b.m();
  const std::vector<InstId>&p = x.comp(c).params, &q = y.comp(d).params;
  if (p.empty() || p.size() != q.size()) return -1;
  for (size_t k = 0; k < p.size(); ++k)
    if (!u_.compatible(x.shape_id(p[k]), y.shape_id(q[k])) || !is_flag_or_number(x.shape(p[k])) || x.shape(p[k]).rank())
      return -1;
  const size_t tries = p.size() == 2 ? 25 : kCombinations;
  double worst = 0;
  for (size_t t = 0; t < tries; ++t) {
    std::vector<Value> left, right;
    for (size_t k = 0; k < p.size(); ++k) {
      const uint64_t which = p.size() == 2 ? (k ? t / 5 : t % 5) : hash_combine(t + 1, k) >> 7;
      left.push_back(small_scalar(u_, x.shape_id(p[k]), which)), right.push_back(left.back());
      right.back().shape = y.shape_id(q[k]);
    }
    if (distinct && pairs_tie(left)) continue;
    const Value r = a.evaluators[0]->run_computation(c, std::move(left)),
                s = b.evaluators[0]->run_computation(d, std::move(right));
    worst = std::max(worst, deviation_of(u_, r, s));
  }
  return worst;
}

double Numbering::deviation_elsewhere(StageModule& a, InstId i, StageModule& b, InstId k) {
  const Module &x = a.m(), &y = b.m();
  const bool compares = x.op(i) == Opcode::Sort || x.op(i) == Opcode::CustomCall;  // TopK
  try {
    if (!x.called(i).empty() && x.called(i).size() == y.called(k).size() && x.op(i) == y.op(k)) {
      double worst = -1;
      for (size_t c = 0; c < x.called(i).size(); ++c)
        if (a.canonical.computation(x.called(i)[c]) != b.canonical.computation(y.called(k)[c]))
          worst = std::max(worst, applied_elsewhere(a, x.called(i)[c], b, y.called(k)[c], compares));
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
