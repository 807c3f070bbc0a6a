#include "replay/judge/contract/noise.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ir/base/stack_guard.h"
#include "ir/eval/compare.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

// Numbers of an array, one after the other: of complex ones both parts.
struct Parts {
  ElementType type = ElementType::F32;
  int64_t n = 0;
  int width = 4;
};
bool parts_of(const Universe& u, const Value& v, Parts* out) {
  const Shape& s = u[v.shape];
  if (!s.is_array() || !v.data || !(is_float(s.type) || is_complex(s.type))) return false;
  out->type = component_type(s.type);
  out->n = s.elements_count() * (is_complex(s.type) ? 2 : 1);
  out->width = storage_bytes(out->type);
  return true;
}

enum class Rounds { kNot, kElement, kTranscendental, kSum, kWhole };

Rounds how_it_rounds(const Module& m, InstId i);

// Or does the combiner do nothing but choose or keep?
bool adds(const Module& m, InstId i) {
  check_stack("calls of computations are nested");
  OpClass c = op_info(m.op(i)).cls;
  if (c == OpClass::Dot || c == OpClass::Conv) return true;
  for (CompId called : m.called(i))
    for (InstId k : m.live_order(called))
      if (how_it_rounds(m, k) != Rounds::kNot) return true;
  return false;
}

Rounds how_it_rounds(const Module& m, InstId i) {
  Opcode op = m.op(i);
  switch (op) {
    case Opcode::Abs:
    case Opcode::BitcastConvert:
    case Opcode::Ceil:
    case Opcode::Clamp:
    case Opcode::Complex:
    case Opcode::Copy:
    case Opcode::Floor:
    case Opcode::Imag:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Negate:
    case Opcode::Real:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Select:
    case Opcode::Sign:
    case Opcode::TopK:
      return Rounds::kNot;
    default:
      break;
  }
  const OpInfo& info = op_info(op);
  switch (info.cls) {
    case OpClass::Elementwise:
      return info.transcendental ? Rounds::kTranscendental : Rounds::kElement;
    case OpClass::Dot:
    case OpClass::Conv:
    case OpClass::Reduce:
    case OpClass::Window:
    case OpClass::Scatter:
      return adds(m, i) ? Rounds::kSum : Rounds::kNot;
    case OpClass::BatchNorm:
    case OpClass::LinearAlgebra:
    case OpClass::Custom:
      return Rounds::kWhole;
    case OpClass::Collective:
      return Rounds::kElement;
    default:
      return op == Opcode::Map ? Rounds::kTranscendental : Rounds::kNot;
  }
}

// Is every number of it an integer that sums keep exact?
bool whole_numbers(const Universe& u, const Value& v, double below) {
  Parts p;
  if (!parts_of(u, v, &p)) return true;
  for (int64_t k = 0; k < p.n; ++k) {
    double x = load_double(p.type, v.bytes() + k * p.width);
    if (std::nearbyint(x) != x || std::fabs(x) >= below) return false;
  }
  return true;
}

// Exact results of sums and products are left alone.
bool exact_element(Opcode op, double a, double b, double r) {
  if (op == Opcode::Add) return a + b == r;
  if (op == Opcode::Subtract) return a - b == r;
  if (op == Opcode::Multiply) return a * b == r;
  if (op == Opcode::Divide) return r * b == a;
  if (op == Opcode::Convert) return a == r;
  return false;
}

class Noise {
 public:
  Noise(const Module& m, const NoiseOptions& o) : m_(m), o_(o), random_(o.seed) {}

  void operator()(InstId i, std::span<const Value> ops, Value& v) {
    if (i.value >= m_.inst_slots() || !m_.alive(i)) return;
    Rounds how = how_it_rounds(m_, i);
    if (how == Rounds::kNot || ops.empty()) return;
    if (how == Rounds::kSum) return sum(i, ops, v);
    Parts p;
    if (!parts_of(m_.u(), v, &p)) {
      for (Value& e : v.elements) whole(e);
      return;
    }
    if (how == Rounds::kWhole) return whole(v);
    element(i, ops, v, p, how == Rounds::kTranscendental ? o_.transcendental : o_.ulps);
  }

 private:
  double chance() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

  void element(InstId i, std::span<const Value> ops, Value& v, const Parts& p, double ulps) {
    Opcode op = m_.op(i);
    Parts in[2];
    bool known = !is_complex(m_.u()[v.shape].type) && ops.size() <= 2;
    for (size_t w = 0; known && w < ops.size(); ++w) known = parts_of(m_.u(), ops[w], &in[w]);
    auto operand = [&](size_t w, int64_t k) {
      if (w >= ops.size()) return 0.0;
      return load_double(in[w].type, ops[w].bytes() + (in[w].n == 1 ? 0 : k) * in[w].width);
    };
    char* bytes = v.mutable_bytes();
    for (int64_t k = 0; k < p.n; ++k) {
      double r = load_double(p.type, bytes + k * p.width);
      if (!std::isfinite(r) || (known && exact_element(op, operand(0, k), operand(1, k), r))) continue;
      store_double(p.type, bytes + k * p.width, r + chance() * ulps * unit_of_last_place(p.type, r));
    }
  }

  // Relative to the largest number: factorisations and the like.
  void whole(Value& v) {
    Parts p;
    if (!parts_of(m_.u(), v, &p)) return;
    char* bytes = v.mutable_bytes();
    double largest = 0;
    for (int64_t k = 0; k < p.n; ++k) {
      double x = std::fabs(load_double(p.type, bytes + k * p.width));
      if (std::isfinite(x)) largest = std::max(largest, x);
    }
    double unit = 4 * o_.ulps * unit_of_last_place(p.type, 1) * largest;
    for (int64_t k = 0; k < p.n; ++k) {
      double r = load_double(p.type, bytes + k * p.width);
      if (std::isfinite(r)) store_double(p.type, bytes + k * p.width, r + chance() * unit);
    }
  }

  // What the terms of each number add up to without their signs, times what adding them in another order may do.
  void sum(InstId i, std::span<const Value> ops, Value& v) {
    const Universe& u = m_.u();
    Parts p;
    bool array = parts_of(u, v, &p);
    if (!array && v.elements.empty()) return;
    ElementType t = array ? p.type : ElementType::F32;
    double below = std::ldexp(1.0, 2) / unit_of_last_place(t, 1) / 8;
    if (array && whole_numbers(u, v, below) &&
        std::all_of(ops.begin(), ops.end(), [&](const Value& o) { return whole_numbers(u, o, below / 16); }))
      return;
    std::vector<Value> magnitudes;
    int64_t most = 1;
    for (const Value& o : ops) magnitudes.push_back(without_signs(o)), most = std::max(most, count(o));
    Value sums = Evaluator(m_).run_instruction(i, std::move(magnitudes));
    double terms = static_cast<double>(most) / static_cast<double>(std::max<int64_t>(count(v), 1));
    add(v, sums, o_.ulps * std::max(2.0, std::sqrt(std::max(terms, 1.0))));
  }

  int64_t count(const Value& v) const {
    if (v.elements.empty()) return m_.u()[v.shape].is_array() ? m_.u()[v.shape].elements_count() : 1;
    return count(v.elements[0]);
  }

  void add(Value& v, const Value& sums, double times) {
    for (size_t k = 0; k < v.elements.size(); ++k) add(v.elements[k], sums.elements[k], times);
    Parts p;
    if (!parts_of(m_.u(), v, &p)) return;
    double unit = times * unit_of_last_place(p.type, 1);
    char* bytes = v.mutable_bytes();
    for (int64_t k = 0; k < p.n; ++k) {
      double r = load_double(p.type, bytes + k * p.width);
      double of = std::fabs(load_double(p.type, sums.bytes() + k * p.width));
      if (!std::isfinite(r) || !std::isfinite(of) || of == 0) continue;
      store_double(p.type, bytes + k * p.width, r + chance() * unit * of);
    }
  }

  Value without_signs(const Value& v) const {
    Value out = v;
    Parts p;
    if (!parts_of(m_.u(), v, &p)) return out;
    char* bytes = out.mutable_bytes();
    for (int64_t k = 0; k < p.n; ++k)
      store_double(p.type, bytes + k * p.width, std::fabs(load_double(p.type, bytes + k * p.width)));
    return out;
  }

  const Module& m_;
  NoiseOptions o_;
  std::mt19937 random_;
};

}  // namespace

bool adds_up(const Module& m, InstId i) { return how_it_rounds(m, i) == Rounds::kSum; }
bool rounds(const Module& m, InstId i) { return how_it_rounds(m, i) != Rounds::kNot; }

std::function<void(InstId, std::span<const Value>, Value&)> rounding_noise(const Module& m,
                                                                           const NoiseOptions& options) {
  auto noise = std::make_shared<Noise>(m, options);
  return [noise](InstId i, std::span<const Value> ops, Value& v) { (*noise)(i, ops, v); };
}

}  // namespace hlo
