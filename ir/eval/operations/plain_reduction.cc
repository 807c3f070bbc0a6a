#include "ir/eval/operations/plain_reduction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/base/parallel.h"

namespace hlo {
namespace {

// NaN wins, and 0 over -0 among maxima, as in the operations themselves.
template <class T>
T larger_one(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
template <class T>
T smaller_one(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}

int64_t rows_at_once(const PlainReduction& r) { return std::max<int64_t>((1 << 15) / r.inner, 1); }
int64_t columns_at_once(const PlainReduction& r) { return std::clamp<int64_t>((1 << 18) / r.inner, 64, 1 << 14); }

template <class T, class F>
void reduce_rows(const PlainReduction& r, T init, const T* from, T* to, F f) {
  parallel_ranges(r.outer, rows_at_once(r), [&](int64_t first, int64_t last) {
    const int64_t n = r.inner;
    int64_t j = first;
    // Four rows at a time: each waits for its own result alone.
    for (; j + 4 <= last; j += 4) {
      const T *v0 = from + j * n, *v1 = v0 + n, *v2 = v1 + n, *v3 = v2 + n;
      T a0 = init, a1 = init, a2 = init, a3 = init;
      for (int64_t k = 0; k < n; ++k) a0 = f(a0, v0[k]), a1 = f(a1, v1[k]), a2 = f(a2, v2[k]), a3 = f(a3, v3[k]);
      to[j] = a0, to[j + 1] = a1, to[j + 2] = a2, to[j + 3] = a3;
    }
    for (; j < last; ++j) {
      T acc = init;
      for (int64_t k = 0; k < n; ++k) acc = f(acc, from[j * n + k]);
      to[j] = acc;
    }
  });
}

template <class T, class F>
void reduce_columns(const PlainReduction& r, T init, const T* from, T* to, F f) {
  parallel_ranges(r.outer, columns_at_once(r), [&](int64_t first, int64_t last) {
    std::fill(to + first, to + last, init);
    for (int64_t k = 0; k < r.inner; ++k) {
      const T* v = from + k * r.outer;
      for (int64_t j = first; j < last; ++j) to[j] = f(to[j], v[j]);
    }
  });
}

void sum_rows_of_floats(const PlainReduction& r, float init, const float* from, float* to) {
  parallel_ranges(r.outer, rows_at_once(r), [&](int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) {
      const float* v = from + j * r.inner;
      // Four sums at a time, always the same ones.
      double sum[4] = {0, 0, 0, 0};
      int64_t k = 0;
      for (; k + 4 <= r.inner; k += 4)
        for (int l = 0; l < 4; ++l) sum[l] += static_cast<double>(v[k + l]);
      for (; k < r.inner; ++k) sum[0] += static_cast<double>(v[k]);
      to[j] = static_cast<float>(static_cast<double>(init) + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
    }
  });
}

void sum_columns_of_floats(const PlainReduction& r, float init, const float* from, float* to) {
  parallel_ranges(r.outer, columns_at_once(r), [&](int64_t first, int64_t last) {
    std::vector<double> sum(static_cast<size_t>(last - first), static_cast<double>(init));
    for (int64_t k = 0; k < r.inner; ++k) {
      const float* v = from + k * r.outer + first;
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += static_cast<double>(v[j]);
    }
    for (size_t j = 0; j < sum.size(); ++j) to[first + static_cast<int64_t>(j)] = static_cast<float>(sum[j]);
  });
}

template <class T>
void reduce_as(const PlainReduction& r, const char* first, const char* in, char* out) {
  const T init = *reinterpret_cast<const T*>(first);
  const T* from = reinterpret_cast<const T*>(in);
  T* to = reinterpret_cast<T*>(out);
  auto with = [&](auto f) { r.rows ? reduce_rows<T>(r, init, from, to, f) : reduce_columns<T>(r, init, from, to, f); };
  if (r.how == Opcode::Maximum) return with(larger_one<T>);
  if (r.how == Opcode::Minimum) return with(smaller_one<T>);
  if constexpr (sizeof(T) == 8)
    with([](T a, T b) { return a + b; });
  else
    (r.rows ? sum_rows_of_floats : sum_columns_of_floats)(r, init, from, to);
}

}  // namespace

void reduce_in_place(const PlainReduction& r, const char* init, const char* from, char* to) {
  (r.type == ElementType::F64 ? reduce_as<double> : reduce_as<float>)(r, init, from, to);
}

}  // namespace hlo
