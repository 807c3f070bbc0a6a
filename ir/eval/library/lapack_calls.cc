#include "ir/eval/library/lapack_calls.h"

#include <algorithm>
#include <numeric>

#include "ir/base/checked.h"
#include "ir/eval/blas.h"
#include "ir/eval/library/matrices.h"

namespace hlo {
namespace {

using Complex = std::complex<double>;

// A matrix as Fortran has it, by columns.
template <class T>
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<T> at;
  Matrix(int64_t r, int64_t c)
      : rows(static_cast<int>(r)), columns(static_cast<int>(c)), at(static_cast<size_t>(r * c)) {}
  int stride() const { return std::max(rows, 1); }
};

// Calls a routine with pointers, as Fortran does; behind them the lengths of its letters.
template <class... A>
void fortran(const std::string& name, A... arguments) {
  void* symbol = blas_symbol((name + "_").c_str());
  HLO_CHECK(symbol, "no LAPACK routine of that name");
  auto* routine = reinterpret_cast<void (*)(A..., size_t, size_t, size_t, size_t)>(symbol);
  routine(arguments..., size_t{1}, size_t{1}, size_t{1}, size_t{1});
}

// One batch of calls of one routine. T is double or Complex.
template <class T>
class Lapack {
  static constexpr bool kComplex = std::is_same_v<T, Complex>;

 public:
  Lapack(const Universe& u, const LapackCall& call, const std::vector<Value>& operands, Value& out)
      : u_(u), o_(call.options), library_(call.library), operands_(operands), out_(out) {
    for (const Value& v : operands)
      elements_.push_back(is_integral(u[v.shape].type) ? std::vector<T>() : matrix_elements<T>(u, v));
  }
  void run(std::string_view routine) {
    int64_t own = routine == "gtsv" ? 1 : 2, batch = 1;
    const Dims& dims = u_[operands_[0].shape].dims;
    for (size_t d = 0; d + static_cast<size_t>(own) < dims.size(); ++d) batch *= dims[d];
    for (b_ = 0; b_ < batch; ++b_) one(routine);
  }

 private:
  void one(std::string_view routine) {
    if (routine == "potrf") return potrf();
    if (routine == "getrf") return getrf();
    if (routine == "geqrf") return geqrf();
    if (routine == "geqp3") return geqp3();
    if (routine == "orgqr") return orgqr();
    if (routine == "ormqr") return ormqr();
    if (routine == "gesdd" || routine == "gesvd") return svd(routine == "gesdd", false);
    if (routine == "gesvdj" || routine == "gesvdp") return svd(true, true);
    if (routine == "syevd") return syevd();
    if (routine == "geev") return geev();
    if (routine == "gees") return gees();
    if (routine == "gehrd") return gehrd();
    if (routine == "sytrd") return sytrd();
    if (routine == "trsm") return trsm();
    HLO_CHECK(routine == "gtsv", "a routine of ir/library/lapack.cc's table without code");
    gtsv();
  }

  // "dgesdd", "zungqr": the complex name where it is another.
  static std::string name(const char* real, const char* complex = nullptr) {
    return std::string(1, kComplex ? 'z' : 'd') + (kComplex && complex ? complex : real);
  }
  // `body(work, lwork)`: once to ask how much it wants, once with it.
  template <class F>
  static void with_work(F body) {
    T wanted = 0;
    int size = -1;
    body(&wanted, &size);
    size = std::max(1, static_cast<int>(std::real(wanted)));
    std::vector<T> work(static_cast<size_t>(size));
    body(work.data(), &size);
  }

  Value& result(size_t k) { return out_.elements.empty() ? out_ : out_.elements[k]; }
  int64_t last(const Value& v, size_t from_end) const {
    const Dims& dims = u_[v.shape].dims;
    return dims[dims.size() - 1 - from_end];
  }
  Matrix<T> matrix(size_t operand) const {
    const Value& v = operands_[operand];
    Matrix<T> out(last(v, 1), last(v, 0));
    auto rows = static_cast<size_t>(out.rows), columns = static_cast<size_t>(out.columns);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        out.at[j * rows + i] = elements_[operand][(static_cast<size_t>(b_) * rows + i) * columns + j];
    return out;
  }
  std::vector<T> vector(size_t operand) const {
    auto n = static_cast<size_t>(last(operands_[operand], 0));
    auto from = elements_[operand].begin() + static_cast<ptrdiff_t>(static_cast<size_t>(b_) * n);
    return std::vector<T>(from, from + static_cast<ptrdiff_t>(n));
  }
  template <class X>
  static void store(ElementType t, char* to, X x) {
    if constexpr (std::is_same_v<X, int>)
      store_int(t, to, x);
    else if (is_complex(t))
      store_complex(t, to, x);
    else
      store_double(t, to, std::real(x));
  }
  template <class X>
  void put(size_t k, const Matrix<X>& from) {
    Value& v = result(k);
    ElementType t = u_[v.shape].type;
    auto rows = static_cast<size_t>(from.rows), columns = static_cast<size_t>(from.columns);
    char* to = v.mutable_bytes() + b_ * from.rows * from.columns * storage_bytes(t);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j, to += storage_bytes(t)) store(t, to, from.at[j * rows + i]);
  }
  template <class X>
  void put(size_t k, const std::vector<X>& from) {
    Value& v = result(k);
    ElementType t = u_[v.shape].type;
    char* to = v.mutable_bytes() + b_ * static_cast<int64_t>(from.size()) * storage_bytes(t);
    for (size_t i = 0; i < from.size(); ++i, to += storage_bytes(t)) store(t, to, from[i]);
  }
  void put_info(size_t k, int info) { put(k, std::vector<int>{info}); }

  // --- factors ---

  void potrf() {
    Matrix<T> a = matrix(0);
    int n = a.rows, stride = a.stride(), info = 0;
    fortran(name("potrf"), o_.lower ? "L" : "U", &n, a.at.data(), &stride, &info);
    put(0, a), put_info(1, info);
  }
  void getrf() {
    Matrix<T> a = matrix(0);
    int stride = a.stride(), info = 0;
    std::vector<int> pivots(static_cast<size_t>(std::min(a.rows, a.columns)));
    fortran(name("getrf"), &a.rows, &a.columns, a.at.data(), &stride, pivots.data(), &info);
    put(0, a), put(1, pivots), put_info(2, info);
  }
  void geqrf() {
    Matrix<T> a = matrix(0);
    int stride = a.stride(), info = 0;
    std::vector<T> tau(static_cast<size_t>(std::min(a.rows, a.columns)));
    with_work([&](T* work, int* size) {
      fortran(name("geqrf"), &a.rows, &a.columns, a.at.data(), &stride, tau.data(), work, size, &info);
    });
    put(0, a), put(1, tau);
  }
  void geqp3() {
    Matrix<T> a = matrix(0);
    int stride = a.stride(), info = 0;
    std::vector<T> tau(static_cast<size_t>(std::min(a.rows, a.columns)));
    std::vector<int> columns(static_cast<size_t>(a.columns));
    const char* from = operands_[1].bytes() + b_ * a.columns * storage_bytes(ElementType::S32);
    for (size_t j = 0; j < columns.size(); ++j)
      columns[j] = static_cast<int>(load_int(ElementType::S32, from + j * sizeof(int)));
    std::vector<double> real(2 * static_cast<size_t>(a.columns) + 1);
    with_work([&](T* work, int* size) {
      if constexpr (kComplex)
        fortran("zgeqp3", &a.rows, &a.columns, a.at.data(), &stride, columns.data(), tau.data(), work, size,
                real.data(), &info);
      else
        fortran("dgeqp3", &a.rows, &a.columns, a.at.data(), &stride, columns.data(), tau.data(), work, size, &info);
    });
    put(0, a), put(1, columns), put(2, tau);
  }
  void orgqr() {
    Matrix<T> a = matrix(0);
    std::vector<T> tau = vector(1);
    int stride = a.stride(), count = static_cast<int>(tau.size()), info = 0;
    with_work([&](T* work, int* size) {
      fortran(name("orgqr", "ungqr"), &a.rows, &a.columns, &count, a.at.data(), &stride, tau.data(), work, size, &info);
    });
    put(0, a);
  }
  void ormqr() {
    Matrix<T> a = matrix(0), c = matrix(2);
    std::vector<T> tau = vector(1);
    int stride = a.stride(), to = c.stride(), count = static_cast<int>(tau.size()), info = 0;
    with_work([&](T* work, int* size) {
      fortran(name("ormqr", "unmqr"), o_.left ? "L" : "R", &o_.trans, &c.rows, &c.columns, &count, a.at.data(), &stride,
              tau.data(), c.at.data(), &to, work, size, &info);
    });
    put(0, c);
  }

  // --- singular values, eigenvalues ---

  // By divide and conquer or by QR. Of a wide matrix that the caller calls turned, the results are vt, u instead of u,
  // vt; where the library gives v itself (`by_columns`), that.
  void svd(bool divide, bool by_columns) {
    Matrix<T> a = matrix(0);
    int m = a.rows, n = a.columns, k = std::min(m, n), stride = a.stride(), info = 0;
    bool all = o_.job == 'A', none = o_.job == 'N';
    Matrix<T> left(m, none ? 0 : all ? m : k), right(none ? 0 : all ? n : k, n);
    int left_stride = left.stride(), right_stride = std::max(right.rows, 1);
    std::vector<double> values(static_cast<size_t>(k));
    auto greatest = static_cast<size_t>(std::max(m, n)), least = static_cast<size_t>(k);
    std::vector<double> real(kComplex ? least * std::max(5 * least + 7, 2 * greatest + 2 * least + 1) + 5 : 0);
    std::vector<int> whole(8 * least + 1);
    with_work([&](T* work, int* size) {
      auto call = [&](auto... behind) {
        if (divide)
          fortran(name("gesdd"), &o_.job, &m, &n, a.at.data(), &stride, values.data(), left.at.data(), &left_stride,
                  right.at.data(), &right_stride, work, size, behind..., whole.data(), &info);
        else
          fortran(name("gesvd"), &o_.job, &o_.job, &m, &n, a.at.data(), &stride, values.data(), left.at.data(),
                  &left_stride, right.at.data(), &right_stride, work, size, behind..., &info);
      };
      if constexpr (kComplex)
        call(real.data());
      else
        call();
    });
    put(0, a), put(1, values), put_info(4, info);
    if (none) return;
    put(o_.turned ? 3 : 2, left), put(o_.turned ? 2 : 3, by_columns ? adjoint(right) : right);
  }
  static Matrix<T> adjoint(const Matrix<T>& from) {
    Matrix<T> out(from.columns, from.rows);
    for (size_t j = 0; j < static_cast<size_t>(out.columns); ++j)
      for (size_t i = 0; i < static_cast<size_t>(out.rows); ++i) {
        T x = from.at[i * static_cast<size_t>(from.rows) + j];
        if constexpr (kComplex) x = std::conj(x);
        out.at[j * static_cast<size_t>(out.rows) + i] = x;
      }
    return out;
  }
  void syevd() {
    Matrix<T> a = matrix(0);
    int n = a.rows, stride = a.stride(), info = 0, wholes = 0, reals = 0;
    std::vector<double> values(static_cast<size_t>(n));
    reals = 1 + 5 * n + 2 * n * n, wholes = 3 + 5 * n;
    std::vector<double> real(kComplex ? static_cast<size_t>(reals) : 1);
    std::vector<int> whole(static_cast<size_t>(wholes));
    with_work([&](T* work, int* size) {
      // Where one size is asked for, all are.
      int whole_size = *size < 0 ? -1 : wholes, real_size = *size < 0 ? -1 : reals;
      if constexpr (kComplex)
        fortran("zheevd", "V", o_.lower ? "L" : "U", &n, a.at.data(), &stride, values.data(), work, size, real.data(),
                &real_size, whole.data(), &whole_size, &info);
      else
        fortran("dsyevd", "V", o_.lower ? "L" : "U", &n, a.at.data(), &stride, values.data(), work, size, whole.data(),
                &whole_size, &info);
    });
    put(0, a), put(1, values), put_info(2, info);
  }
  // Two columns of real numbers for a pair of complex vectors, one the other's conjugate.
  static Matrix<Complex> unpacked(const Matrix<T>& packed, const std::vector<double>& imaginary) {
    Matrix<Complex> out(packed.rows, packed.columns);
    auto n = static_cast<size_t>(packed.rows);
    if constexpr (!kComplex) {
      for (size_t j = 0; j < static_cast<size_t>(packed.columns); ++j) {
        bool pair = imaginary[j] != 0 && j + 1 < static_cast<size_t>(packed.columns);
        for (size_t i = 0; i < n; ++i) {
          Complex x(packed.at[j * n + i], pair ? packed.at[(j + 1) * n + i] : 0);
          out.at[j * n + i] = x;
          if (pair) out.at[(j + 1) * n + i] = std::conj(x);
        }
        j += pair ? 1 : 0;
      }
    }
    return out;
  }
  void geev() {
    Matrix<T> a = matrix(0);
    int n = a.rows, stride = a.stride(), info = 0;
    Matrix<T> left(n, n), right(n, n);
    std::vector<T> values(static_cast<size_t>(n));
    std::vector<double> imaginary(static_cast<size_t>(n)), real(2 * static_cast<size_t>(n) + 1);
    // Of what is not finite there are no eigenvalues; its loops need not end.
    bool finite = std::all_of(a.at.begin(), a.at.end(), [](T x) { return std::isfinite(std::abs(x)); });
    if (!finite) info = -4;
    if (finite)
      with_work([&](T* work, int* size) {
        if constexpr (kComplex)
          fortran("zgeev", o_.left ? "V" : "N", o_.right ? "V" : "N", &n, a.at.data(), &stride, values.data(),
                  left.at.data(), &stride, right.at.data(), &stride, work, size, real.data(), &info);
        else
          fortran("dgeev", o_.left ? "V" : "N", o_.right ? "V" : "N", &n, a.at.data(), &stride, values.data(),
                  imaginary.data(), left.at.data(), &stride, right.at.data(), &stride, work, size, &info);
      });
    if (library_ == "cusolver") {
      put(0, a), put(2, left), put(3, right), put_info(4, info);
      std::vector<Complex> both(values.begin(), values.end());
      for (size_t k = 0; k < both.size(); ++k) both[k] += Complex(0, imaginary[k]);
      put(1, both);
    } else if constexpr (kComplex) {
      put(0, values), put(1, left), put(2, right), put_info(3, info);
    } else {
      put(0, values), put(1, imaginary), put(2, unpacked(left, imaginary)), put(3, unpacked(right, imaginary));
      put_info(4, info);
    }
  }
  void gees() {
    Matrix<T> a = matrix(0);
    int n = a.rows, stride = a.stride(), info = 0, chosen = 0;
    Matrix<T> vectors(n, n);
    std::vector<T> values(static_cast<size_t>(n));
    std::vector<double> imaginary(static_cast<size_t>(n)), real(static_cast<size_t>(n) + 1);
    std::vector<int> flags(static_cast<size_t>(n) + 1);
    void* select = nullptr;
    bool finite = std::all_of(a.at.begin(), a.at.end(), [](T x) { return std::isfinite(std::abs(x)); });
    if (!finite) info = -6;
    if (finite)
      with_work([&](T* work, int* size) {
        if constexpr (kComplex)
          fortran("zgees", &o_.job, "N", select, &n, a.at.data(), &stride, &chosen, values.data(), vectors.at.data(),
                  &stride, work, size, real.data(), flags.data(), &info);
        else
          fortran("dgees", &o_.job, "N", select, &n, a.at.data(), &stride, &chosen, values.data(), imaginary.data(),
                  vectors.at.data(), &stride, work, size, flags.data(), &info);
      });
    size_t place = 0;
    put(place++, a), put(place++, vectors), put(place++, values);
    if (!kComplex) put(place++, imaginary);
    put_info(place++, chosen), put_info(place, info);
  }
  void gehrd() {
    Matrix<T> a = matrix(0);
    int n = a.rows, stride = a.stride(), info = 0, low = static_cast<int>(o_.low), high = static_cast<int>(o_.high);
    std::vector<T> tau(static_cast<size_t>(std::max(n - 1, 0)));
    if (n)
      with_work([&](T* work, int* size) {
        fortran(name("gehrd"), &n, &low, &high, a.at.data(), &stride, tau.data(), work, size, &info);
      });
    put(0, a), put(1, tau), put_info(2, info);
  }
  void sytrd() {
    Matrix<T> a = matrix(0);
    int n = a.rows, stride = a.stride(), info = 0;
    auto beside = static_cast<size_t>(std::max(n - 1, 0));
    std::vector<double> diagonal(static_cast<size_t>(n)), second(beside);
    std::vector<T> tau(beside);
    with_work([&](T* work, int* size) {
      fortran(name("sytrd", "hetrd"), o_.lower ? "L" : "U", &n, a.at.data(), &stride, diagonal.data(), second.data(),
              tau.data(), work, size, &info);
    });
    put(0, a), put(1, diagonal), put(2, second), put(3, tau), put_info(4, info);
  }

  // --- systems ---

  void trsm() {
    Matrix<T> a = matrix(0), x = matrix(1);
    int stride = a.stride(), to = x.stride();
    T one = 1;
    fortran(name("trsm"), o_.left ? "L" : "R", o_.lower ? "L" : "U", &o_.trans, o_.unit ? "U" : "N", &x.rows,
            &x.columns, &one, a.at.data(), &stride, x.at.data(), &to);
    put(0, x);
  }
  // The first of the lower diagonal's n numbers is none.
  void gtsv() {
    std::vector<T> lower = vector(0), middle = vector(1), upper = vector(2);
    Matrix<T> x = matrix(3);
    int n = x.rows, columns = x.columns, stride = x.stride(), info = 0;
    lower.resize(lower.size() + 1), upper.resize(upper.size() + 1);
    fortran(name("gtsv"), &n, &columns, lower.data() + 1, middle.data(), upper.data(), x.at.data(), &stride, &info);
    lower.pop_back(), upper.pop_back();
    if (out_.elements.empty()) return put(0, x);
    put(0, lower), put(1, middle), put(2, upper), put(3, x), put_info(4, info);
  }

  const Universe& u_;
  LapackOptions o_;
  std::string_view library_;
  const std::vector<Value>& operands_;
  Value& out_;
  std::vector<std::vector<T>> elements_;  // of each operand of numbers
  int64_t b_ = 0;                         // the matrix of the batch
};

// The rows that pivots (from 0) put in each place.
void permutation(const Universe& u, const Value& pivots, Value& out) {
  int64_t count = u[pivots.shape].dims.back(), n = u[out.shape].dims.back(),
          rows = n ? u[out.shape].elements_count() / n : 0;
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t b = 0; b < rows; ++b) {
    std::iota(order.begin(), order.end(), 0);
    for (int64_t k = 0; k < count; ++k) {
      int64_t with = load_int(ElementType::S32, pivots.bytes() + (b * count + k) * 4);
      if (with >= 0 && with < n) std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(with)]);
    }
    for (int64_t k = 0; k < n; ++k)
      store_int(ElementType::S32, out.mutable_bytes() + (b * n + k) * 4, order[static_cast<size_t>(k)]);
  }
}

}  // namespace

bool has_lapack() { return blas_symbol("dgesdd_") && blas_symbol("zgesdd_"); }

void run_lapack(const Universe& u, const LapackCall& call, const std::vector<Value>& operands, Value& out) {
  if (call.library == "cu") return permutation(u, operands[0], out);
  if (is_complex(u[operands[0].shape].type))
    Lapack<Complex>(u, call, operands, out).run(call.routine);
  else
    Lapack<double>(u, call, operands, out).run(call.routine);
}

}  // namespace hlo
