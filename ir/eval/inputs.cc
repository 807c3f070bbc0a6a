// Inputs drawn from a seed, the same everywhere.
#include "ir/eval/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_set>

#include "ir/base/hash.h"
#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"

namespace hlo {

Value seeded_input(Universe& u, ShapeId shape, uint64_t seed, uint64_t leaf, bool positive) {
  const Shape& s = u[shape];
  Value v;
  v.shape = shape;
  if (!s.is_array()) return v;
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  };
  uint64_t base = mix(seed * kGolden + leaf + 1);
  auto r = [&](uint64_t i) { return mix(base + (i + 1) * kGolden); };
  int64_t n = s.elements_count();
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  v.data = new_array(u, shape);
  auto real = [&](uint64_t i) {
    float unit = static_cast<float>(r(i) >> 40) * 0x1p-24f;
    if (s.rank() < 2) return unit + 0.5f;
    return (positive ? unit : unit * 2.0f - 1.0f) * 0.125f;
  };
  auto real64 = [&](uint64_t i) {
    double unit = static_cast<double>(r(i) >> 40) * 0x1p-24;
    if (s.rank() < 2) return unit + 0.5;
    return (positive ? unit : unit * 2.0 - 1.0) * 0.125;
  };
  char* data = v.data->data();
  auto draw = [&](auto one) {
    parallel_ranges(n, 1 << 14, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) one(static_cast<uint64_t>(i), data + static_cast<size_t>(i) * width);
    });
  };
  ElementType t = s.type;
  switch (type_kind(t)) {
    case TypeKind::kBool:
      draw([&](uint64_t i, char* at) { *at = static_cast<char>(r(i) & 1); });
      break;
    case TypeKind::kSigned:
    case TypeKind::kUnsigned: {
      int bits = type_bits(t) - (is_signed_int(t) ? 1 : 0);
      uint64_t below = bits >= 3 ? 8 : 1ull << bits;
      draw([&](uint64_t i, char* at) { store_int(t, at, static_cast<int64_t>(r(i) % below)); });
      break;
    }
    case TypeKind::kFloat:
      // Models have gigabytes of the first two.
      if (t == ElementType::F32) {
        draw([&](uint64_t i, char* at) {
          float x = real(i);
          std::memcpy(at, &x, sizeof(x));
        });
      } else if (t == ElementType::BF16) {
        draw([&](uint64_t i, char* at) {
          uint16_t x = f32_to_bf16(real(i));
          std::memcpy(at, &x, sizeof(x));
        });
      } else if (t == ElementType::F64) {
        draw([&](uint64_t i, char* at) { store_double(t, at, real64(i)); });
      } else {
        draw([&](uint64_t i, char* at) { store_double(t, at, static_cast<double>(real(i))); });
      }
      break;
    case TypeKind::kComplex:
      if (t == ElementType::C64)
        draw([&](uint64_t i, char* at) {
          store_complex(t, at, {static_cast<double>(real(2 * i)), static_cast<double>(real(2 * i + 1))});
        });
      else
        draw([&](uint64_t i, char* at) { store_complex(t, at, {real64(2 * i), real64(2 * i + 1)}); });
      break;
    case TypeKind::kOther:
      break;
  }
  return v;
}

std::vector<Value> seeded_arguments(const Module& m, uint64_t seed, bool positive) {
  if (seed >= kReachingFrom) return reaching_arguments(m, seed - kReachingFrom, positive);
  Universe& u = m.u();
  uint64_t leaf = 0;
  auto build = [&](auto&& self, ShapeId shape) -> Value {
    if (!u[shape].is_tuple()) return seeded_input(u, shape, seed, leaf++, positive);
    Value v;
    v.shape = shape;
    for (ShapeId e : u[shape].elements) v.elements.push_back(self(self, e));
    return v;
  };
  std::vector<Value> out;
  for (InstId p : m.comp(m.entry()).params) out.push_back(build(build, m.shape_id(p)));
  return out;
}

namespace {

using Starts = std::set<int64_t>;  // last valid ones

// The last valid starts of the slices that `operand` of `user` says where to take or put; nothing: it is no index.
void add_starts(const Module& m, InstId user, size_t operand, Starts& out) {
  const AttrSet& a = m.attrs(user);
  auto add = [&](const Dims& dims, const Dims& taken) {
    for (size_t d = 0; d < std::min(dims.size(), taken.size()); ++d) out.insert(dims[d] - taken[d]);
  };
  const Opcode op = m.op(user);
  const Dims& dims = m.shape(m.operand(user, 0)).dims;
  const size_t first = op == Opcode::DynamicSlice ? 1 : 2;
  if (op == Opcode::DynamicSlice || op == Opcode::DynamicUpdateSlice) {
    const Dims& taken = m.shape(op == Opcode::DynamicSlice ? user : m.operand(user, 1)).dims;
    if (operand < first) return;
    const bool each = m.shape(m.operand(user, operand)).rank() == 0;
    const size_t d = operand - first;
    if (!each)
      add(dims, taken);
    else if (d < std::min(dims.size(), taken.size()))
      out.insert(dims[d] - taken[d]);
    return;
  }
  if (op == Opcode::Gather && operand == 1) {
    for (int64_t d : a.ints(Attr::start_index_map))
      out.insert(dims[static_cast<size_t>(d)] - a.ints(Attr::slice_sizes)[static_cast<size_t>(d)]);
  } else if (op == Opcode::Scatter && operand == m.operand_count(user) / 2) {
    for (int64_t d : a.ints(Attr::scatter_dims_to_operand_dims)) out.insert(dims[static_cast<size_t>(d)] - 1);
  }
}

// The slices whose places are made of a parameter: followed through conversions, movement, sums with something else,
// tuples (as a whole), and what is called.
class IndexUses {
 public:
  explicit IndexUses(const Module& m) : m_(m) {}

  Starts of(InstId value) {
    seen_.clear(), out_.clear();
    follow(value);
    return out_;
  }

 private:
  void follow(InstId first) {
    std::vector<InstId> work{first};
    while (!work.empty()) {
      const InstId i = work.back();
      work.pop_back();
      if (!seen_.insert(i).second || seen_.size() > kMost) continue;
      for (InstId user : m_.users(i))
        for (size_t k = 0; k < m_.operand_count(user); ++k)
          if (m_.operand(user, k) == i) reach(user, k, work);
      if (m_.is_root(i))
        for (InstId caller : callers(m_.parent(i))) work.push_back(caller);
    }
  }
  void reach(InstId user, size_t k, std::vector<InstId>& work) {
    add_starts(m_, user, k, out_);
    const auto called = m_.called(user);
    switch (m_.op(user)) {
      case Opcode::Fusion:
      case Opcode::Call:
        if (k < m_.comp(called[0]).params.size()) work.push_back(m_.comp(called[0]).params[k]);
        return;
      case Opcode::While:
        for (CompId c : called) work.push_back(m_.comp(c).params[0]);
        work.push_back(user);
        return;
      case Opcode::Conditional:
        if (k) work.push_back(m_.comp(called[k - 1]).params[0]);
        return;
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
      case Opcode::Broadcast:
      case Opcode::Reshape:
      case Opcode::Bitcast:
      case Opcode::Slice:
      case Opcode::Concatenate:
      case Opcode::Transpose:
      case Opcode::Copy:
        work.push_back(user);
        return;
      default:
        if (op_info(m_.op(user)).elementwise && type_kind(m_.shape(user).type) != TypeKind::kBool &&
            is_integral(m_.shape(user).type))
          work.push_back(user);
    }
  }
  const std::vector<InstId>& callers(CompId c) {
    if (callers_.empty()) callers_ = m_.callers();
    return callers_[c.value];
  }

  static constexpr size_t kMost = 20'000;
  const Module& m_;
  std::vector<std::vector<InstId>> callers_;
  std::unordered_set<InstId> seen_;
  Starts out_;
};

// The ends of an integer type, as store_int takes them.
std::pair<int64_t, int64_t> ends_of(ElementType t) {
  const int bits = type_bits(t);
  if (is_signed_int(t))
    return {bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1)),
            bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1};
  return {0, bits == 64 ? -1 : (int64_t{1} << bits) - 1};
}
// Those of them that the type holds, each once, in that order.
std::vector<int64_t> held(ElementType t, const std::vector<int64_t>& wanted) {
  const auto [low, high] = ends_of(t);
  std::vector<int64_t> out;
  for (int64_t v : wanted) {
    const bool whole = t == ElementType::U64 ? v >= 0 || v >= -2 : v >= low && v <= high;
    if (whole && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  }
  return out;
}

std::vector<int64_t> index_values(ElementType t, const Starts& starts) {
  const auto [low, high] = ends_of(t);
  std::vector<int64_t> wanted{0, 1};
  for (int64_t last : starts)
    if (last >= 0)
      for (int64_t v : {last, last + 1, last - 1})
        if (v >= 0) wanted.push_back(v);
  if (is_signed_int(t)) wanted.push_back(-1), wanted.push_back(low);
  wanted.push_back(high);
  return held(t, wanted);
}

// The least number whose square has the type's top bit: below zero, where there is a sign (12 * 12 is -112 of eight
// bits; the ends' own squares are 0 and 1).
int64_t wrapping_square(ElementType t) {
  return static_cast<int64_t>(std::ceil(std::sqrt(std::ldexp(1.0, type_bits(t) - 1))));
}

std::vector<int64_t> integer_values(ElementType t, uint64_t turn, bool one) {
  const auto [low, high] = ends_of(t);
  const bool sign = is_signed_int(t);
  switch (turn % 4) {
    case 0:
      return held(t, sign ? std::vector<int64_t>{-1, 1, 0, 2, -2, 3, -3} : std::vector<int64_t>{1, 0, 2, 3, 5});
    case 1:
      if (one) return held(t, {high, low, 0, 1, high - 1, sign ? low + 1 : 2});
      return held(t, {high, low, 0, 1, high - 1, sign ? low + 1 : 2, wrapping_square(t), -wrapping_square(t)});
    case 2:
      return held(t, {1, 0});
    default:
      return {};
  }
}

// `one`: for a single element, which takes one value a turn: four that it has all had after four rounds of turns.
std::vector<double> float_values(uint64_t turn, bool one) {
  constexpr double kInf = HUGE_VAL;
  switch (turn % 6) {
    case 1:
      return {0.5, 1, 0.5, -1};
    case 2:
      return {0.0, -0.0, 1, -1};
    case 4:
      if (one) return {kInf, -kInf, 1, -0.5};
      return {1, kInf, -0.5, 2, -kInf, 0.25, -1, 0};
    case 5:
      if (one) return {NAN, -0.0, -2, 0};
      return {1, -0.0, 0.5, NAN, -2, 0, 3, -NAN};
    default:
      return {};  // drawn, and below zero where 3
  }
}

// Of arrays, by chance which of them; what is one element takes them in turn.
void take_values(const Universe& u, Value& v, uint64_t turn, uint64_t leaf, const Starts& starts, bool positive) {
  const Shape& s = u[v.shape];
  const ElementType t = s.type;
  const auto width = static_cast<size_t>(storage_bytes(t));
  const bool whole = type_kind(t) == TypeKind::kSigned || type_kind(t) == TypeKind::kUnsigned;
  const uint64_t own = turn + leaf;  // neighbours differ
  std::vector<int64_t> integers;
  std::vector<double> reals;
  if (whole) integers = starts.empty() ? integer_values(t, own, s.elements_count() == 1) : index_values(t, starts);
  if (is_float(t)) reals = float_values(own, s.elements_count() == 1);
  const bool below = is_float(t) && own % 6 == 3 && !positive;
  if (integers.empty() && reals.empty() && !below) return;
  const auto n = static_cast<uint64_t>(s.elements_count());
  const size_t count = std::max(integers.size(), reals.size());
  char* at = v.mutable_bytes();
  for (uint64_t i = 0; i < n; ++i, at += width) {
    // Every round of the values begins one further for the next leaf, so that pairs of indices meet in all ways.
    const uint64_t round = count ? turn / count : 0;
    const uint64_t alone = whole ? turn + leaf * (1 + round) : own / 6;
    const uint64_t which = n == 1 ? alone : mix64(hash_combine(own, i));
    if (whole) {
      store_int(t, at, integers[which % count]);
    } else if (below) {
      store_double(t, at, -std::fabs(load_double(t, at)));
    } else {
      const double x = reals[which % count];
      store_double(t, at, positive && x < 0 ? -x : positive && x == 0 ? 0.0 : x);
    }
  }
}

}  // namespace

std::vector<Value> reaching_arguments(const Module& m, uint64_t turn, bool positive) {
  const Universe& u = m.u();
  std::vector<Value> out = seeded_arguments(m, 1 + turn % 1000, positive);
  IndexUses uses(m);
  const auto params = m.comp(m.entry()).params;
  uint64_t leaf = 0;
  for (size_t k = 0; k < params.size(); ++k) {
    auto each = [&](auto&& self, Value& v, const Starts& starts) -> void {
      if (u[v.shape].is_tuple()) {
        for (Value& e : v.elements) self(self, e, starts);
        return;
      }
      if (u[v.shape].is_array()) take_values(u, v, turn, leaf, starts, positive);
      ++leaf;
    };
    each(each, out[k], uses.of(params[k]));
  }
  return out;
}

}  // namespace hlo
