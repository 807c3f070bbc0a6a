#include "replay/judge/values/sketch.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/base/hash.h"
#include "ir/base/parallel.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"
#include "replay/judge/values/pair.h"

namespace hlo {
namespace {

constexpr int64_t kChunk = 1 << 14;
constexpr int64_t kTile = 1 << 11;  // elements that share one factor

struct Part {
  double first = 0, second = 0, magnitudes = 0, sum = 0, squares = 0, largest = 0;
  int64_t nan = 0, infinite = 0;
  uint64_t exact = 0;
  bool uniform = true;
};

// In [-1, 1].
double weight_of(uint64_t place) { return static_cast<double>(static_cast<int64_t>(mix64(place))) * 0x1p-63; }
// Of a whole tile: never near zero, where its elements would not count.
double factor_of(uint64_t place) {
  double w = weight_of(place);
  return std::copysign(0.5 + 0.5 * std::fabs(w), w);
}

// The weight of an element is that of its place in its tile times the tile's factor: what a tile needs stays in the
// nearest cache, and no element costs a hash.
struct Weights {
  alignas(64) double first[kTile], second[kTile];
  Weights() {
    for (uint64_t k = 0; k < kTile; ++k) first[k] = weight_of(2 * k), second[k] = weight_of(2 * k + 1);
  }
};
const Weights& weights() {
  static const Weights all;
  return all;
}

void add_number(Part& p, double v, double first, double second) {
  double m = std::fabs(v);
  p.first += v * first, p.second += v * second;
  p.magnitudes += m, p.sum += v, p.squares += v * v;
  p.largest = std::max(p.largest, m);
}

// One by one, where some are no numbers.
Part odd_tile(const double* v, int64_t n, uint64_t place) {
  const Weights& w = weights();
  Part p;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(v[i])) {
      bool nan = std::isnan(v[i]);
      p.nan += nan, p.infinite += !nan;
      p.exact += mix64((place + static_cast<uint64_t>(i)) * 4 + (nan ? 1 : v[i] > 0 ? 2 : 3));
      continue;
    }
    add_number(p, v[i], w.first[i], w.second[i]);
  }
  return p;
}

struct PairSums {
  Pair first = {}, second = {}, magnitudes = {}, sum = {}, squares = {}, largest = {};
  void add(Pair x, Pair w1, Pair w2) {
    Pair m = magnitude(x);
    first += x * w1, second += x * w2;
    magnitudes += m, sum += x, squares += x * x;
    largest = largest > m ? largest : m;
  }
  void to(Part& p) const {
    for (int l = 0; l < 2; ++l) {
      p.first += first[l], p.second += second[l], p.magnitudes += magnitudes[l], p.sum += sum[l];
      p.squares += squares[l], p.largest = std::max(p.largest, largest[l]);
    }
  }
};

Part tile(const double* v, int64_t n, uint64_t place) {
  const Weights& w = weights();
  PairSums low, high;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    low.add(pair_at(v + i), pair_at(w.first + i), pair_at(w.second + i));
    high.add(pair_at(v + i + 2), pair_at(w.first + i + 2), pair_at(w.second + i + 2));
  }
  Part p;
  low.to(p), high.to(p);
  for (; i < n; ++i) add_number(p, v[i], w.first[i], w.second[i]);
  return std::isfinite(p.magnitudes) ? p : odd_tile(v, n, place);
}

void add(Part& p, const Part& t, double factor) {
  p.first += t.first * factor, p.second += t.second * factor;
  p.magnitudes += t.magnitudes, p.sum += t.sum, p.squares += t.squares, p.exact += t.exact;
  p.largest = std::max(p.largest, t.largest);
  p.nan += t.nan, p.infinite += t.infinite, p.uniform &= t.uniform;
}

// `v`: the elements of a chunk, of which the first is element `place` of all; `head`: element 0 of all.
Part chunk(const double* v, int64_t n, uint64_t place, double head) {
  Part p;
  for (int64_t i = 0; i < n; i += kTile) {
    uint64_t at = place + static_cast<uint64_t>(i);
    add(p, tile(v + i, std::min(kTile, n - i), at), factor_of(~at));
  }
  for (int64_t i = 0; i < n && p.uniform; ++i) p.uniform = v[i] == head;
  return p;
}

}  // namespace

bool Sketch::same(const Sketch& o, double share) const {
  if (kind != o.kind || exact != o.exact) return false;
  if (std::fabs(mask_first - o.mask_first) > share * std::max(mask_magnitudes, o.mask_magnitudes)) return false;
  double room = share * std::max(magnitudes, o.magnitudes);
  return std::fabs(first - o.first) <= room && std::fabs(second - o.second) <= room &&
         std::fabs(largest - o.largest) <= share * std::max(largest, o.largest) * static_cast<double>(elements);
}

namespace {

// A mask is at least that large, and that much larger than all beside it.
constexpr double kLeastMask = 1e3, kMaskOver = 1e4;
// In sums of numbers that large those around 1 are lost, and exp(x) is 1 + exp(x).
constexpr double kHuge = 1.234567e8;  // no number that rounding leaves on either side

// Sums what is smaller than `cut` apart from the rest. False where it has nothing to do: nothing but zeros is smaller,
// there is a number between `below` and `cut`, or what is smaller is huge itself.
bool sum_apart(const Universe& u, std::span<const Value> each, double cut, double below, Sketch& out) {
  const Shape& s = u[each[0].shape];
  const int64_t n = s.elements_count(), width = storage_bytes(s.type);
  const bool far_apart = cut == Sketch::kBesideHuge;
  double first = 0, second = 0, magnitudes = 0, mask_first = 0, mask_magnitudes = 0;
  uint64_t place = 0, where = 0;
  bool masked = false;
  for (const Value& v : each)
    for (int64_t i = 0; i < n; ++i, ++place) {
      const double x = load_double(s.type, v.bytes() + i * width), m = std::fabs(x);
      if (!std::isfinite(x)) continue;
      if (m > below && m < cut) return false;
      if (m >= cut) {
        where += mix64(place * 4);
        // What is far apart counts by its logarithm, so that none hides another.
        const double counted = far_apart ? std::log(m) : m;
        mask_first += std::copysign(counted, x) * weight_of(2 * place), mask_magnitudes += counted;
        continue;
      }
      if (m >= kHuge) return false;
      masked |= m > 0;
      first += x * weight_of(2 * place), second += x * weight_of(2 * place + 1), magnitudes += m;
    }
  if (!masked && !far_apart) return false;
  out.cut = cut, out.exact += where, out.first = first, out.second = second, out.magnitudes = magnitudes;
  out.mask_first = mask_first, out.mask_magnitudes = mask_magnitudes;
  return true;
}

// Sums what a mask, or numbers out of all proportion, hide apart from them.
void look_beside_mask(const Universe& u, std::span<const Value> each, Sketch& out) {
  if (is_complex(u[each[0].shape].type) || out.largest < kLeastMask || out.magnitudes <= 0) return;
  if (sum_apart(u, each, out.largest / 2, out.largest / kMaskOver, out) || out.largest < kHuge) return;
  if (out.magnitudes >= out.largest * static_cast<double>(out.elements) / 2) return;  // all are of one size
  sum_apart(u, each, Sketch::kBesideHuge, Sketch::kBesideHuge, out);
}

// What every value of that sketch has: the type, how many elements, on how many devices.
Sketch kind_of(const Shape& s, std::span<const Value> each) {
  Sketch out;
  out.elements = s.elements_count() * (is_complex(s.type) ? 2 : 1);
  out.kind = hash_combine(static_cast<uint64_t>(s.type), static_cast<uint64_t>(out.elements));
  out.kind = hash_combine(out.kind, each.size());
  for (const Value& v : each)
    for (int64_t d : v.sizes) out.kind = hash_combine(out.kind, static_cast<uint64_t>(d));
  return out;
}

}  // namespace

Sketch bits_of(const Universe& u, std::span<const Value> each) {
  const Shape& s = u[each[0].shape];
  if (!s.is_array()) return {};
  Sketch out = kind_of(s, each);
  for (const Value& v : each) out.exact = hash_combine(out.exact, hash_bytes(v.data->data(), v.data->size()));
  return out;
}

Sketch sketch_of(const Universe& u, std::span<const Value> each) {
  const Shape& s = u[each[0].shape];
  if (!s.is_array()) return {};
  Sketch out = kind_of(s, each);
  bool complex = is_complex(s.type);
  out.floats = complex || is_float(s.type);
  int64_t n = out.elements, width = storage_bytes(s.type);
  uint64_t place = 0;
  double head = 0;
  bool begun = false;
  for (const Value& v : each) {
    if (!n) continue;
    const char* data = v.bytes();
    if (!out.floats) {
      out.exact = hash_combine(out.exact, hash_bytes(data, v.data->size()));
      for (int64_t i = 1; i < n && out.uniform; ++i)
        out.uniform = !std::memcmp(data, data + i * width, static_cast<size_t>(width));
      out.uniform &= !std::memcmp(data, each[0].bytes(), static_cast<size_t>(width));
      continue;
    }
    ElementType type = is_complex(s.type) ? s.type == ElementType::C64 ? ElementType::F32 : ElementType::F64 : s.type;
    int64_t bytes = storage_bytes(type);
    // Chunks of fixed size: the sums are the same however many threads there are.
    if (!begun) head = load_double(type, data), begun = true;
    std::vector<Part> parts(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_ranges(static_cast<int64_t>(parts.size()), 1, [&](int64_t from, int64_t to) {
      std::vector<double> wide;
      for (int64_t c = from; c < to; ++c) {
        int64_t i = c * kChunk, count = std::min(n - i, kChunk);
        wide.resize(static_cast<size_t>(count));
        const double* v = wide.data();
        if (type == ElementType::F64)
          v = reinterpret_cast<const double*>(data) + i;
        else
          convert_kernel(type, ElementType::F64, count, data + i * bytes, reinterpret_cast<char*>(wide.data()));
        parts[static_cast<size_t>(c)] = chunk(v, count, place + static_cast<uint64_t>(i), head);
      }
    });
    Part all;
    for (const Part& p : parts) add(all, p, 1);
    out.first += all.first, out.second += all.second, out.magnitudes += all.magnitudes;
    out.sum += all.sum, out.squares += all.squares, out.exact += all.exact;
    out.largest = std::max(out.largest, all.largest);
    out.nan += all.nan, out.infinite += all.infinite, out.uniform &= all.uniform;
    place += static_cast<uint64_t>(n);
  }
  if (out.floats && n) look_beside_mask(u, each, out);
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

double deviation_beside_mask(const Universe& u, std::span<const Value> a, std::span<const Value> b, double cut) {
  double largest = 0, worst = 0;
  for (size_t d = 0; d < a.size() && d < b.size(); ++d) {
    const Shape& s = u[b[d].shape];
    const int64_t width = storage_bytes(s.type);
    for (int64_t i = 0, n = s.elements_count(); i < n; ++i) {
      const double p = load_double(s.type, a[d].bytes() + i * width), q = load_double(s.type, b[d].bytes() + i * width);
      if (!(std::fabs(q) < cut) || !(std::fabs(p) < cut)) continue;
      largest = std::max(largest, std::fabs(q)), worst = std::max(worst, std::fabs(p - q));
    }
  }
  return worst == 0 ? 0 : largest > 0 ? worst / largest : INFINITY;
}

}  // namespace hlo
