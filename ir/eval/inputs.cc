// Inputs drawn from a seed, the same everywhere.
#include <cstring>

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

}  // namespace hlo
