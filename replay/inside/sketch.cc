#include "replay/inside/sketch.h"

#include <algorithm>
#include <cmath>

#include "ir/base/hash.h"
#include "ir/base/parallel.h"
#include "ir/eval/kernels.h"
#include "ir/literal.h"

namespace hlo {
namespace {

constexpr int64_t kChunk = 1 << 14;

struct Part {
  double first = 0, second = 0, magnitudes = 0, sum = 0, squares = 0, largest = 0;
  int64_t nan = 0, infinite = 0;
  uint64_t exact = 0;
  bool uniform = true;
};

void add_float(Part& p, uint64_t place, double v, double head) {
  auto h = static_cast<uint32_t>(place * 0x9E3779B1u + 0x7F4A7C15u);
  h ^= h >> 15, h *= 0x85EBCA6Bu, h ^= h >> 13;
  p.uniform &= v == head;
  if (!std::isfinite(v)) {
    bool nan = std::isnan(v);
    p.nan += nan, p.infinite += !nan;
    p.exact += mix64(place * 4 + (nan ? 1 : v > 0 ? 2 : 3));
    return;
  }
  double m = std::fabs(v);
  p.first += v * (static_cast<double>(static_cast<int32_t>(h)) * 0x1p-31);
  p.second += v * (static_cast<double>(static_cast<int32_t>(h * 0xC2B2AE35u)) * 0x1p-31);
  p.magnitudes += m, p.sum += v, p.squares += v * v;
  p.largest = std::max(p.largest, m);
}

}  // namespace

bool Sketch::same(const Sketch& o, double share) const {
  if (kind != o.kind || exact != o.exact) return false;
  double room = share * std::max(magnitudes, o.magnitudes);
  return std::fabs(first - o.first) <= room && std::fabs(second - o.second) <= room &&
         std::fabs(largest - o.largest) <= share * std::max(largest, o.largest) * static_cast<double>(elements);
}

Sketch sketch_of(const Universe& u, std::span<const Value> each) {
  Sketch out;
  const Shape& s = u[each[0].shape];
  if (!s.is_array()) return out;
  bool complex = is_complex(s.type);
  out.floats = complex || is_float(s.type);
  int64_t n = s.elements_count() * (complex ? 2 : 1), width = storage_bytes(s.type);
  out.elements = n;
  out.kind = hash_combine(hash_combine(static_cast<uint64_t>(s.type), static_cast<uint64_t>(n)), each.size());
  uint64_t place = 0;
  double head = 0;
  bool begun = false;
  for (const Value& v : each) {
    for (int64_t d : v.sizes) out.kind = hash_combine(out.kind, static_cast<uint64_t>(d));
    if (!n) continue;
    const char* data = v.bytes();
    if (!out.floats) {
      out.exact = hash_combine(out.exact, hash_bytes(data, v.data->size()));
      for (int64_t i = 1; i < n && out.uniform; ++i)
        out.uniform = !std::memcmp(data, data + i * width, static_cast<size_t>(width));
      out.uniform &= !std::memcmp(data, each[0].bytes(), static_cast<size_t>(width));
      continue;
    }
    auto number = [&, type = s.type](int64_t i) {
      if (type == ElementType::F64 || type == ElementType::C128) {
        double x;
        std::memcpy(&x, data + i * 8, 8);
        return x;
      }
      if (!complex) return load_double(type, data + i * width);
      std::complex<double> z = load_complex(type, data + i / 2 * width);
      return i % 2 ? z.imag() : z.real();
    };
    if (!begun) head = number(0), begun = true;
    // Chunks of fixed size: the sums are the same however many threads there are.
    std::vector<Part> parts(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_ranges(static_cast<int64_t>(parts.size()), 1, [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c) {
        Part p;
        for (int64_t i = c * kChunk, end = std::min(n, i + kChunk); i < end; ++i)
          add_float(p, place + static_cast<uint64_t>(i), number(i), head);
        parts[static_cast<size_t>(c)] = p;
      }
    });
    for (const Part& p : parts) {
      out.first += p.first, out.second += p.second, out.magnitudes += p.magnitudes;
      out.sum += p.sum, out.squares += p.squares, out.exact += p.exact;
      out.largest = std::max(out.largest, p.largest);
      out.nan += p.nan, out.infinite += p.infinite, out.uniform &= p.uniform;
    }
    place += static_cast<uint64_t>(n);
  }
  return out;
}

double deviation(const Universe& u, std::span<const Value> a, std::span<const Value> b, int64_t* at) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0, worst = 0;
  int64_t base = 0;
  if (at) *at = -1;
  for (size_t d = 0; d < a.size(); ++d) {
    const Shape &s = u[a[d].shape], &t = u[b[d].shape];
    int64_t n = s.elements_count(), width = storage_bytes(s.type);
    if (s.type != t.type || n != t.elements_count() || a[d].sizes != b[d].sizes) return INFINITY;
    const char *x = a[d].bytes(), *y = b[d].bytes();
    bool complex = is_complex(s.type), floats = complex || is_float(s.type);
    for (int64_t i = 0; i < n; ++i, x += width, y += width) {
      if (!std::memcmp(x, y, static_cast<size_t>(width)) && !floats) continue;
      if (!floats) {
        if (at) *at = base + i;
        return INFINITY;
      }
      std::complex<double> p = complex ? load_complex(s.type, x) : load_double(s.type, x),
                           q = complex ? load_complex(s.type, y) : load_double(s.type, y);
      double m = std::abs(q);
      if (std::isfinite(m)) largest = std::max(largest, m);
      if (p == q) continue;
      double e = std::abs(p - q);
      if (!std::isfinite(e)) {
        bool both_nan = std::isnan(std::abs(p)) && std::isnan(m);
        if (both_nan) continue;
        if (at) *at = base + i;
        return INFINITY;
      }
      if (e > worst) {
        worst = e;
        if (at) *at = base + i;
      }
    }
    base += n;
  }
  return worst == 0 ? 0 : largest > 0 ? worst / largest : INFINITY;
}

}  // namespace hlo
