#include "replay/judge/values/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/hash.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"
#include "replay/judge/values/pair.h"

namespace hlo {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr int64_t kBlock = 1 << 11;  // elements
constexpr uint64_t kSamples = 32;
constexpr size_t kMostLike = 4;

// The type of the numbers in an array: of complex ones their parts'.
ElementType part_type(ElementType t) {
  return t == ElementType::C64 ? ElementType::F32 : t == ElementType::C128 ? ElementType::F64 : t;
}

bool has_floats(const Universe& u, std::span<const Value> each) {
  const Shape& s = u[each[0].shape];
  return s.is_array() && (is_float(s.type) || is_complex(s.type));
}

int64_t parts_count(const Shape& s) { return s.elements_count() * (is_complex(s.type) ? 2 : 1); }

// Shares of an element, and of the largest magnitude.
struct Room {
  double own = 0, sums = 0;
};
Room room_of(ElementType t, Rounding how) {
  Room r;
  const FloatFormat* f = float_format(t);
  if (t == ElementType::F64)
    r.own = 0x2p-52, r.sums = 0x1p-49;
  else if (t == ElementType::F32)
    r.own = 0x2p-23, r.sums = 0x1p-20;
  else if (f)
    r.own = std::ldexp(1.0, -f->mantissa_bits), r.sums = 0x1p-20;
  if (how != Rounding::kSums) r.sums = 0;
  return r;
}

// Some numbers of an array in f64: the array itself where it has them.
const double* in_f64(ElementType t, const char* data, int64_t from, int64_t count, std::vector<double>& buffer) {
  if (t == ElementType::F64) return reinterpret_cast<const double*>(data) + from;
  buffer.resize(static_cast<size_t>(count));
  convert_kernel(t, ElementType::F64, count, data + from * storage_bytes(t), reinterpret_cast<char*>(buffer.data()));
  return buffer.data();
}

double largest_of(const Universe& u, std::span<const Value> each) {
  double largest = 0;
  std::vector<double> buffer;
  for (const Value& v : each) {
    const Shape& s = u[v.shape];
    for (int64_t i = 0, n = parts_count(s); i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const double* x = in_f64(part_type(s.type), v.bytes(), i, count, buffer);
      Pair most[2] = {};
      int64_t k = 0;
      for (; k + 4 <= count; k += 4) {
        const Pair m = magnitude(pair_at(x + k)), o = magnitude(pair_at(x + k + 2));
        const Pair finite = m <= kLargest ? m : Pair{}, other = o <= kLargest ? o : Pair{};
        most[0] = most[0] > finite ? most[0] : finite, most[1] = most[1] > other ? most[1] : other;
      }
      for (; k < count; ++k)
        if (std::fabs(x[k]) > largest && std::isfinite(x[k])) largest = std::fabs(x[k]);
      for (const Pair& p : most) largest = std::max({largest, p[0], p[1]});
    }
  }
  return largest;
}

struct Samples {
  double sum = 0, magnitudes = 0;
};
Samples samples_of(const Universe& u, std::span<const Value> each) {
  Samples out;
  for (const Value& v : each) {
    const Shape& s = u[v.shape];
    const ElementType t = part_type(s.type);
    const auto n = static_cast<uint64_t>(parts_count(s));
    for (uint64_t k = 0; n && k < std::min(kSamples, n); ++k) {
      const uint64_t at = n <= kSamples ? k : mix64(k) % n;
      double x = load_double(t, v.bytes() + static_cast<int64_t>(at) * storage_bytes(t));
      if (!std::isfinite(x)) continue;
      out.sum += x * static_cast<double>(k % 7 + 1), out.magnitudes += std::fabs(x) * static_cast<double>(k % 7 + 1);
    }
  }
  return out;
}

uint64_t kind_of_floats(const Universe& u, std::span<const Value> each) {
  const Shape& s = u[each[0].shape];
  uint64_t h = hash_combine(static_cast<uint64_t>(s.type), static_cast<uint64_t>(s.elements_count()));
  h = hash_combine(h, each.size());
  for (const Value& v : each)
    for (int64_t d : v.sizes) h = hash_combine(h, static_cast<uint64_t>(d));
  return h;
}

// False where one of them is NaN or infinite.
bool near_number(double x, double y, double own, double sums) {
  const double apart = std::fabs(x - y);
  return apart <= own * std::min(std::fabs(x), std::fabs(y)) + sums && apart <= kLargest;
}

// Whether all are near and finite; false says nothing.
bool plainly_near(const double* x, const double* y, int64_t count, double own, double sums) {
  PairBits near = {-1, -1};
  int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
    const Pair p = pair_at(x + k), q = pair_at(y + k), m = magnitude(p), o = magnitude(q);
    const Pair apart = magnitude(p - q);
    near &= (apart <= own * (m < o ? m : o) + sums) & (apart <= kLargest);
  }
  return near[0] && near[1] && (k == count || near_number(x[k], y[k], own, sums));
}

bool near_numbers(const double* x, const double* y, int64_t count, double own, double sums) {
  if (plainly_near(x, y, count, own, sums)) return true;
  for (int64_t k = 0; k < count; ++k) {
    if (x[k] == y[k]) continue;
    if (std::isnan(x[k]) && std::isnan(y[k])) continue;
    if (!near_number(x[k], y[k], own, sums)) return false;
  }
  return true;
}

}  // namespace

Rounding rounding_of(const Module& m, InstId i) {
  const Opcode op = m.op(i);
  switch (op) {
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Multiply:
    case Opcode::Divide:
    case Opcode::Power:
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
    case Opcode::Cbrt:
      return Rounding::kOnce;
    case Opcode::CustomCall: {
      std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
      return target.starts_with("__cublas$") || target.starts_with("__cudnn$") ? Rounding::kSums : Rounding::kNone;
    }
    case Opcode::AllReduce:
    case Opcode::ReduceScatter:
      return Rounding::kSums;
    default:
      break;
  }
  if (op_info(op).transcendental) return Rounding::kOnce;
  switch (op_info(op).cls) {
    case OpClass::Dot:
    case OpClass::Conv:
    case OpClass::Reduce:
    case OpClass::Window:
      return Rounding::kSums;
    default:
      return Rounding::kNone;
  }
}

bool same_but_for_rounding(const Universe& u, std::span<const Value> a, std::span<const Value> b, Rounding how) {
  if (how == Rounding::kNone || a.size() != b.size() || !has_floats(u, a)) return false;
  const ElementType t = part_type(u[a[0].shape].type);
  const Room room = room_of(t, how);
  const double sums = room.sums > 0 ? room.sums * largest_of(u, b) : 0;
  std::vector<double> x, y;
  for (size_t d = 0; d < a.size(); ++d) {
    const Shape &s = u[a[d].shape], &o = u[b[d].shape];
    const int64_t n = parts_count(s);
    if (s.type != o.type || n != parts_count(o) || a[d].sizes != b[d].sizes) return false;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const double *p = in_f64(t, a[d].bytes(), i, count, x), *q = in_f64(t, b[d].bytes(), i, count, y);
      if (!near_numbers(p, q, count, room.own, sums)) return false;
    }
  }
  return true;
}

void NearValues::add(const Universe& u, std::span<const Value> each, NumberId n) {
  if (has_floats(u, each)) by_kind_[kind_of_floats(u, each)].emplace(samples_of(u, each).sum, n);
}

std::vector<NumberId> NearValues::like(const Universe& u, std::span<const Value> each, Rounding how) const {
  if (how == Rounding::kNone || !has_floats(u, each)) return {};
  auto group = by_kind_.find(kind_of_floats(u, each));
  if (group == by_kind_.end()) return {};
  const Samples own = samples_of(u, each);
  const Room room = room_of(part_type(u[each[0].shape].type), how);
  double wide = room.own * own.magnitudes;
  // Weights are 7 at most.
  if (room.sums > 0) wide += room.sums * largest_of(u, each) * static_cast<double>(7 * kSamples * each.size());
  std::vector<std::pair<double, NumberId>> near;
  for (auto at = group->second.lower_bound(own.sum - wide); at != group->second.end() && at->first <= own.sum + wide;
       ++at)
    near.emplace_back(std::fabs(at->first - own.sum), at->second);
  std::sort(near.begin(), near.end());
  std::vector<NumberId> out;
  for (size_t k = 0; k < std::min(near.size(), kMostLike); ++k) out.push_back(near[k].second);
  return out;
}

}  // namespace hlo
