// Decompositions of matrices as custom-calls: what XLA itself expands on a CPU, by its own algorithms (Qr, Eigh), and
// what jax hands to LAPACK or the GPU's libraries, by LAPACK in f64.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ir/eval/evaluator.h"
#include "ir/eval/library/lapack_calls.h"
#include "ir/eval/library/matrices.h"
#include "ir/library/lapack.h"

namespace hlo {
namespace {

using Complex = std::complex<double>;

double real_part(double x) { return x; }
double real_part(Complex x) { return x.real(); }
double imag_part(double) { return 0; }
double imag_part(Complex x) { return x.imag(); }
double conjugate(double x) { return x; }
Complex conjugate(Complex x) { return std::conj(x); }
double squared(double x) { return x * x; }
double squared(Complex x) { return std::norm(x); }
// Without the care that a product of complex numbers takes of infinities, as in XLA.
double product(double x, double y) { return x * y; }
Complex product(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// LAPACK's geqrf: R in and above the diagonal, the Householder vectors (their leading 1 left out) below it. The sign is
// XLA's: beta is of the other sign than (the real part of) what it replaces, negative for 0.
template <class T>
void householder_qr(const Universe& u, const Value& in, Value& packed, Value& taus) {
  const Dims& dims = u[in.shape].dims;
  auto rows = static_cast<size_t>(dims[dims.size() - 2]), columns = static_cast<size_t>(dims.back());
  size_t steps = std::min(rows, columns);
  std::vector<T> all = matrix_elements<T>(u, in), tau;
  for (size_t base = 0; steps && base < all.size(); base += rows * columns) {
    T* a = all.data() + base;
    auto at = [&](size_t i, size_t j) -> T& { return a[i * columns + j]; };
    for (size_t k = 0; k < steps; ++k) {
      double sigma = 0;
      T alpha = at(k, k);
      for (size_t i = k + 1; i < rows; ++i) sigma += squared(at(i, k));
      if (sigma == 0 && imag_part(alpha) == 0) {
        tau.push_back(0);
        continue;
      }
      double beta = (real_part(alpha) < 0 ? 1 : -1) * std::hypot(real_part(alpha), imag_part(alpha), std::sqrt(sigma));
      T t = (beta - alpha) / beta;
      for (size_t i = k + 1; i < rows; ++i) at(i, k) /= alpha - beta;
      for (size_t j = k + 1; j < columns; ++j) {
        T dot = at(k, j);
        for (size_t i = k + 1; i < rows; ++i) dot += product(conjugate(at(i, k)), at(i, j));
        dot = product(conjugate(t), dot);
        at(k, j) -= dot;
        for (size_t i = k + 1; i < rows; ++i) at(i, j) -= product(dot, at(i, k));
      }
      at(k, k) = beta;
      tau.push_back(t);
    }
  }
  put_numbers(u, all, packed), put_numbers(u, tau, taus);
}

// LAPACK's orgqr: the first columns of the product of the reflections.
template <class T>
void householder_product(const Universe& u, const Value& packed, const Value& taus, Value& out) {
  const Dims& dims = u[packed.shape].dims;
  auto rows = static_cast<size_t>(dims[dims.size() - 2]), columns = static_cast<size_t>(dims.back()),
       count = static_cast<size_t>(u[taus.shape].dims.back());
  std::vector<T> v = matrix_elements<T>(u, packed), tau = matrix_elements<T>(u, taus), q(v.size());
  for (size_t base = 0, batch = 0; base < v.size(); base += rows * columns, ++batch) {
    auto at = [&](size_t i, size_t j) -> T& { return q[base + i * columns + j]; };
    for (size_t i = 0; i < std::min(rows, columns); ++i) at(i, i) = 1;
    for (size_t k = count; k-- > 0;) {
      T t = tau[batch * count + k];
      for (size_t j = 0; j < columns; ++j) {
        T dot = at(k, j);
        for (size_t i = k + 1; i < rows; ++i) dot += product(conjugate(v[base + i * columns + k]), at(i, j));
        dot = product(t, dot);
        at(k, j) -= dot;
        for (size_t i = k + 1; i < rows; ++i) at(i, j) -= product(dot, v[base + i * columns + k]);
      }
    }
  }
  put_numbers(u, q, out);
}

// A symmetric (Hermitian) matrix on its way to a diagonal one by Jacobi rotations, and the product of these; of an even
// number of rows, the last one zeros where n is odd.
template <class T>
struct JacobiMatrix {
  JacobiMatrix(const T* from, size_t rows, bool lower) : n(rows), half((n + 1) / 2), size(2 * half) {
    a.resize(size * size), v.resize(size * size);
    for (size_t i = 0; i < size; ++i) v[i * size + i] = 1;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (i == j)
          a[i * size + j] = real_part(from[i * n + i]);
        else
          a[i * size + j] = (i > j) == lower ? from[i * n + j] : conjugate(from[j * n + i]);
  }

  T& at(size_t i, size_t j) { return a[i * size + j]; }
  double value(size_t k) const { return real_part(a[k * size + k]); }

  bool unfinished(double tolerance) const {
    double whole = 0, beside = 0;
    for (size_t i = 0; i < size; ++i)
      for (size_t j = 0; j < size; ++j)
        whole += squared(a[i * size + j]), beside += i == j ? 0 : squared(a[i * size + j]);
    return whole * tolerance * tolerance < beside;
  }

  struct Turn {
    double first, second, c;  // the diagonal after it; the cosine
    T s;
  };
  // The rotation that makes the element of both zero.
  Turn turn_of(size_t row, size_t column) {
    double x = real_part(at(row, row)), y = real_part(at(column, column));
    // Of complex numbers the angle is that of the size; the direction turns the sine.
    T beside = at(row, column), phase = 1;
    double z = real_part(beside);
    if constexpr (!std::is_same_v<T, double>) {
      z = std::abs(beside);
      if (z != 0) phase = std::conj(beside) / z;
    }
    double tau = (y - x) / (2 * z), root = std::sqrt(1 + tau * tau), t = 1 / (tau + (tau >= 0 ? root : -root));
    constexpr float kSmall = 0.1f * 1.1920929e-7f;
    if (std::fabs(z) <= static_cast<double>(kSmall) * std::min(std::fabs(x), std::fabs(y))) t = 0;
    double c = 1 / std::sqrt(1 + t * t);
    return {x - t * z, y + t * z, c, t * c * phase};
  }

  // All pairs of one round at once.
  void rotate(const std::vector<size_t>& top, const std::vector<size_t>& bottom) {
    std::vector<Turn> turns;
    for (size_t k = 0; k < half; ++k) turns.push_back(turn_of(top[k], bottom[k]));
    auto turn = [](T& x, T& y, double c, T s) {
      T before = x;
      x = before * c - product(y, conjugate(s)), y = product(before, s) + y * c;
    };
    for (size_t k = 0; k < half; ++k)
      for (size_t j = 0; j < size; ++j) {
        turn(at(top[k], j), at(bottom[k], j), turns[k].c, turns[k].s);
        turn(v[top[k] * size + j], v[bottom[k] * size + j], turns[k].c, turns[k].s);
      }
    for (size_t k = 0; k < half; ++k) {
      for (size_t i = 0; i < size; ++i) turn(at(i, top[k]), at(i, bottom[k]), turns[k].c, conjugate(turns[k].s));
      at(top[k], top[k]) = turns[k].first, at(bottom[k], bottom[k]) = turns[k].second;
      at(top[k], bottom[k]) = at(bottom[k], top[k]) = 0;
    }
  }

  size_t n, half, size;
  std::vector<T> a, v;
};

// Eigenvalues and eigenvectors of symmetric (Hermitian) matrices by Jacobi rotations, all pairs of a round of a
// tournament at once (xla/hlo/transforms/expanders/eigh_expander.cc): the signs of the vectors are what its rotations
// make them.
template <class T>
void symmetric_eigen(const Universe& u, const Value& in, bool lower, bool sort, int64_t sweeps, double tolerance,
                     Value& vectors, Value& values) {
  auto n = static_cast<size_t>(u[in.shape].dims.back()), half = (n + 1) / 2, size = 2 * half;
  std::vector<T> from = matrix_elements<T>(u, in), v_out(from.size());
  std::vector<double> w_out(n ? from.size() / n : 0);
  size_t count = n ? from.size() / (n * n) : 0;
  std::vector<JacobiMatrix<T>> all;
  for (size_t b = 0; b < count; ++b) all.emplace_back(from.data() + b * n * n, n, lower);
  auto unfinished = [&](const JacobiMatrix<T>& o) { return o.unfinished(tolerance); };
  std::vector<size_t> top, bottom;
  for (size_t k = 0; k < half; ++k) top.push_back(k), bottom.push_back(half + k);
  for (int64_t sweep = 0; n > 1 && sweep < sweeps && std::any_of(all.begin(), all.end(), unfinished); ++sweep)
    for (size_t r = 0; r + 1 < size; ++r) {
      for (JacobiMatrix<T>& o : all) o.rotate(top, bottom);
      if (half == 1) continue;
      // The first stays, the others go round.
      size_t last = top.back();
      top.insert(top.begin() + 1, bottom.front()), top.pop_back();
      bottom.erase(bottom.begin()), bottom.push_back(last);
    }
  for (size_t b = 0; b < count; ++b) {
    std::vector<size_t> order(n);
    for (size_t k = 0; k < n; ++k) order[k] = k;
    auto w = [&](size_t k) { return all[b].value(k); };
    if (sort) std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return w(x) < w(y); });
    for (size_t k = 0; k < n; ++k) {
      w_out[b * n + k] = w(order[k]);
      for (size_t i = 0; i < n; ++i) v_out[b * n * n + i * n + k] = conjugate(all[b].v[order[k] * size + i]);
    }
  }
  put_numbers(u, v_out, vectors), put_numbers(u, w_out, values);
}

}  // namespace

// Shapes and configuration are as they must be: check_target.
bool Evaluator::matrix_call(InstId inst, const std::vector<Value>& ops, Value* out) {
  std::string_view target = u_.text(m_.attrs(inst).text(Attr::custom_call_target));
  if (std::optional<LapackCall> call = lapack_call(m_, inst, nullptr)) {
    *out = make(m_.shape_id(inst));
    run_lapack(u_, *call, ops, *out);
    return true;
  }
  bool product = target == "ProductOfElementaryHouseholderReflectors";
  if (target != "Qr" && target != "Eigh" && !product) return false;
  bool complex = is_complex(u_[ops[0].shape].type);
  *out = make(m_.shape_id(inst));
  if (product) {
    (complex ? householder_product<Complex> : householder_product<double>)(u_, ops[0], ops[1], *out);
  } else if (target == "Qr") {
    (complex ? householder_qr<Complex> : householder_qr<double>)(u_, ops[0], out->elements[0], out->elements[1]);
  } else {
    int lower = 1, sorted = 1, sweeps = 0;
    float tolerance = 0;
    std::string config(u_.text(m_.attrs(inst).text(Attr::backend_config)));
    std::sscanf(config.c_str(), "%d,%d,%d,%f", &lower, &sorted, &sweeps, &tolerance);
    (complex ? symmetric_eigen<Complex> : symmetric_eigen<double>)(u_, ops[0], lower != 0, sorted != 0, sweeps,
                                                                   static_cast<double>(tolerance), out->elements[0],
                                                                   out->elements[1]);
  }
  return true;
}

}  // namespace hlo
