// Fourier transforms, Cholesky decompositions and triangular systems, in f64 (complex f64) whatever the type.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

using Complex = std::complex<double>;

// In place, a power of two; `sign` -1 forward, 1 backward, not scaled.
void radix2(std::vector<Complex>& x, int sign) {
  size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t length = 2; length <= n; length *= 2) {
    std::vector<Complex> turn(length / 2);
    for (size_t k = 0; k < turn.size(); ++k)
      turn[k] = std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length));
    for (size_t i = 0; i < n; i += length)
      for (size_t k = 0; k < length / 2; ++k) {
        Complex a = x[i + k], b = x[i + k + length / 2] * turn[k];
        x[i + k] = a + b, x[i + k + length / 2] = a - b;
      }
  }
}

// Any length: Bluestein's convolution where it is no power of two.
void transform(std::vector<Complex>& x, int sign) {
  size_t n = x.size();
  if (n <= 1) return;
  if ((n & (n - 1)) == 0) return radix2(x, sign);
  size_t m = 1;
  while (m < 2 * n + 1) m *= 2;
  std::vector<Complex> chirp(n), a(m), b(m);
  for (size_t k = 0; k < n; ++k) {
    // k² modulo 2n keeps the angle exact.
    double square = static_cast<double>(static_cast<unsigned __int128>(k) * k % (2 * n));
    chirp[k] = std::polar(1.0, sign * std::numbers::pi * square / static_cast<double>(n));
    a[k] = x[k] * chirp[k];
    b[k] = std::conj(chirp[k]);
    if (k) b[m - k] = b[k];
  }
  radix2(a, -1), radix2(b, -1);
  for (size_t k = 0; k < m; ++k) a[k] *= b[k];
  radix2(a, 1);
  for (size_t k = 0; k < n; ++k) x[k] = a[k] / static_cast<double>(m) * chirp[k];
}

std::vector<Complex> as_complex(const Universe& u, const Value& v) {
  const Shape& s = u[v.shape];
  std::vector<Complex> out(static_cast<size_t>(s.elements_count()));
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  for (size_t i = 0; i < out.size(); ++i) {
    const char* at = v.bytes() + i * width;
    out[i] = is_complex(s.type) ? load_complex(s.type, at) : Complex(load_double(s.type, at));
  }
  return out;
}

void put_complex(const Universe& u, Value& v, const std::vector<Complex>& from) {
  const Shape& s = u[v.shape];
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  for (size_t i = 0; i < from.size(); ++i) {
    char* at = v.data->data() + i * width;
    if (is_complex(s.type))
      store_complex(s.type, at, from[i]);
    else
      store_double(s.type, at, from[i].real());
  }
}

// Every line of an array of those dimensions along `dim`, transformed.
void lines(std::vector<Complex>& data, const Dims& dims, size_t dim, int sign) {
  Dims strides = row_major_strides(dims);
  auto n = static_cast<size_t>(dims[dim]), stride = static_cast<size_t>(strides[dim]);
  if (!n) return;
  std::vector<Complex> line(n);
  for (size_t base = 0; base < data.size(); ++base) {
    if (base / stride % n) continue;  // not the first of its line
    for (size_t k = 0; k < n; ++k) line[k] = data[base + k * stride];
    transform(line, sign);
    for (size_t k = 0; k < n; ++k) data[base + k * stride] = line[k];
  }
}

}  // namespace

Value Evaluator::fft(InstId inst, const Value& in) {
  const AttrSet& a = m_.attrs(inst);
  std::string_view kind = u_.text(a.text(Attr::fft_type));
  const Dims& length = a.ints(Attr::fft_length);
  Value out = make(m_.shape_id(inst));
  std::vector<Complex> x = as_complex(u_, in);
  Dims dims = u_[in.shape].dims;
  const Dims& to = u_[out.shape].dims;
  size_t rank = dims.size(), count = length.size(), first = rank - count;
  bool inverse = kind == "IFFT" || kind == "IRFFT";
  if (!inverse) {
    for (size_t d = rank; d-- > first;) lines(x, dims, d, -1);
    if (kind == "RFFT" && dims.back()) {
      // The last dimension's second half repeats the first.
      std::vector<Complex> kept;
      auto n = static_cast<size_t>(dims.back()), keep = static_cast<size_t>(to.back());
      for (size_t at = 0; at < x.size(); at += n)
        kept.insert(kept.end(), x.begin() + static_cast<ptrdiff_t>(at), x.begin() + static_cast<ptrdiff_t>(at + keep));
      x = std::move(kept);
    }
    put_complex(u_, out, x);
    return out;
  }
  double scale = 1;
  for (int64_t l : length) scale /= static_cast<double>(std::max<int64_t>(l, 1));
  for (size_t d = first; d + (kind == "IRFFT" ? 1 : 0) < rank; ++d) lines(x, dims, d, 1);
  if (kind == "IRFFT" && to.back()) {
    std::vector<Complex> whole;
    auto half = static_cast<size_t>(dims.back()), n = static_cast<size_t>(to.back());
    for (size_t at = 0; half && at < x.size(); at += half)
      for (size_t k = 0; k < n; ++k) {
        Complex v = k < half ? x[at + k] : std::conj(x[at + n - k]);
        // What a real signal cannot have is left out of account.
        if (k == 0 || 2 * k == n) v = v.real();
        whole.push_back(v);
      }
    x = std::move(whole);
    dims = to;
    lines(x, dims, rank - 1, 1);
  }
  for (Complex& v : x) v *= scale;
  put_complex(u_, out, x);
  return out;
}

Value Evaluator::cholesky_factor(const Value& in, bool lower, ShapeId out_id) {
  Value out = make(out_id);
  std::vector<Complex> a = as_complex(u_, in), l(a.size());
  size_t n = static_cast<size_t>(u_[in.shape].dims.back()), size = n * n;
  for (size_t base = 0; n && base < a.size(); base += size) {
    auto at = [&](size_t i, size_t j) { return lower ? a[base + i * n + j] : std::conj(a[base + j * n + i]); };
    auto to = [&](size_t i, size_t j) -> Complex& { return l[base + i * n + j]; };
    bool bad = false;
    for (size_t j = 0; j < n && !bad; ++j) {
      double d = at(j, j).real();
      for (size_t k = 0; k < j; ++k) d -= std::norm(to(j, k));
      // Not positive definite: no factor at all.
      bad = !(d > 0);
      to(j, j) = std::sqrt(d);
      for (size_t i = j + 1; i < n && !bad; ++i) {
        Complex v = at(i, j);
        for (size_t k = 0; k < j; ++k) v -= to(i, k) * std::conj(to(j, k));
        to(i, j) = v / to(j, j);
      }
    }
    if (bad) std::fill_n(l.begin() + static_cast<ptrdiff_t>(base), size, Complex(NAN, 0));
    if (!lower && !bad)
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < i; ++j) to(j, i) = std::conj(to(i, j)), to(i, j) = 0;
  }
  put_complex(u_, out, l);
  return out;
}

Value Evaluator::triangular_solve(const Triangle& t, const Value& a_value, const Value& b_value, ShapeId out_id) {
  const bool left = t.left, lower = t.lower, unit = t.unit;
  const bool adjoint = t.transposed == "ADJOINT", transpose = t.transposed == "TRANSPOSE" || adjoint;
  Value out = make(out_id);
  std::vector<Complex> a = as_complex(u_, a_value), b = as_complex(u_, b_value);
  const Dims &ad = u_[a_value.shape].dims, &bd = u_[b_value.shape].dims;
  size_t n = static_cast<size_t>(ad.back()), rows = static_cast<size_t>(bd[bd.size() - 2]),
         columns = static_cast<size_t>(bd.back()), count = n ? a.size() / (n * n) : 0;
  for (size_t batch = 0; batch < count; ++batch) {
    // op(A) X = B; from the right X op(A) = B, which is op(A)ᵀ Xᵀ = Bᵀ.
    bool flip = transpose == left;
    auto element = [&](size_t i, size_t j) {
      Complex v = flip ? a[batch * n * n + j * n + i] : a[batch * n * n + i * n + j];
      return adjoint ? std::conj(v) : v;
    };
    auto x = [&](size_t i, size_t k) -> Complex& {
      return b[batch * rows * columns + (left ? i * columns + k : k * columns + i)];
    };
    bool forward = lower != flip;
    size_t sides = left ? columns : rows;
    for (size_t k = 0; k < sides; ++k)
      for (size_t step = 0; step < n; ++step) {
        size_t i = forward ? step : n - 1 - step;
        Complex v = x(i, k);
        for (size_t j = forward ? 0 : i + 1; j < (forward ? i : n); ++j) v -= element(i, j) * x(j, k);
        x(i, k) = unit ? v : v / element(i, i);
      }
  }
  put_complex(u_, out, b);
  return out;
}

}  // namespace hlo
