// Dots and convolutions.
#include <algorithm>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>

#include "ir/base/checked.h"
#include "ir/base/parallel.h"
#include "ir/eval/blas.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/eval/operations/convolution_numbers.h"

namespace hlo {
namespace {

// The type that products are summed in: floats of 16 bits and less in f32, integers, which wrap, in unsigned ones.
ElementType sum_type(ElementType t) {
  if (t == ElementType::F64 || is_complex(t)) return t;
  return is_float(t) ? ElementType::F32 : ElementType::U64;
}

// A matrix in rows of `stride` elements.
template <class T>
struct Rows {
  T* at;
  int64_t stride;
};

// c[m,n] += a[m,k] · b[k,n] for any type; blocked over k so that b stays in cache.
template <class T>
void plain_gemm(int64_t m, int64_t n, int64_t k, Rows<const T> a, Rows<const T> b, Rows<T> c) {
  constexpr int64_t kBlock = 256, kCols = 512;
  for (int64_t j0 = 0; j0 < n; j0 += kCols)
    for (int64_t k0 = 0; k0 < k; k0 += kBlock) {
      int64_t k1 = std::min(k, k0 + kBlock), j1 = std::min(n, j0 + kCols);
      int64_t i = 0;
      for (; i + 4 <= m; i += 4)
        for (int64_t p = k0; p < k1; ++p) {
          const T* x = a.at + i * a.stride + p;
          T x0 = x[0], x1 = x[a.stride], x2 = x[2 * a.stride], x3 = x[3 * a.stride];
          const T* row = b.at + p * b.stride;
          T *c0 = c.at + i * c.stride, *c1 = c0 + c.stride, *c2 = c1 + c.stride, *c3 = c2 + c.stride;
          for (int64_t j = j0; j < j1; ++j) {
            T y = row[j];
            c0[j] += x0 * y, c1[j] += x1 * y, c2[j] += x2 * y, c3[j] += x3 * y;
          }
        }
      for (; i < m; ++i)
        for (int64_t p = k0; p < k1; ++p) {
          T x = a.at[i * a.stride + p];
          const T* row = b.at + p * b.stride;
          T* out = c.at + i * c.stride;
          for (int64_t j = j0; j < j1; ++j) out[j] += x * row[j];
        }
    }
}

// one(i0, i1, j0, j1) on all cores for parts of the result: its rows where there are enough, else its columns. Parts
// are of fixed size, so that sums do not depend on the number of threads.
template <class One>
void in_parts(int64_t m, int64_t n, int64_t k, const One& one) {
  constexpr int64_t kRows = 192, kColumns = 512;
  if (m * n * k < (1 << 18))
    one(0, m, 0, n);
  else if (m >= 2 * kRows)
    parallel_ranges(m, kRows, [&](int64_t i0, int64_t i1) { one(i0, i1, 0, n); });
  else
    parallel_ranges(n, kColumns, [&](int64_t j0, int64_t j1) { one(0, m, j0, j1); });
}

// The same on all cores, through the library for f32 and f64 unless `exact`.
template <class T>
void gemm(bool exact, int64_t m, int64_t n, int64_t k, Rows<const T> a, Rows<const T> b, Rows<T> c) {
  if (m == 0 || n == 0 || k == 0) return;
  constexpr bool library = std::is_same_v<T, float> || std::is_same_v<T, double>;
  auto one = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    Rows<const T> x{a.at + i0 * a.stride, a.stride}, y{b.at + j0, b.stride};
    Rows<T> z{c.at + i0 * c.stride + j0, c.stride};
    int64_t rows = i1 - i0, columns = j1 - j0;
    if constexpr (library)
      if (!exact && rows * columns * k > 4096 && has_blas())
        return library_gemm(rows, columns, k, T{1}, {x.at, x.stride}, {y.at, y.stride}, T{1}, z.at, z.stride);
    plain_gemm(rows, columns, k, x, y, z);
  };
  in_parts(m, n, k, one);
}

template <class T>
std::vector<T> transposed(Rows<const T> a, int64_t rows, int64_t columns) {
  std::vector<T> out(static_cast<size_t>(rows * columns));
  for (int64_t i0 = 0; i0 < rows; i0 += 32)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = i0; i < std::min(rows, i0 + 32); ++i)
        out[static_cast<size_t>(j * rows + i)] = a.at[i * a.stride + j];
  return out;
}

template <class F>
bool with_type(ElementType t, F f) {
  switch (t) {
    case ElementType::F32:
      f(float{});
      return true;
    case ElementType::F64:
      f(double{});
      return true;
    case ElementType::S64:
      f(int64_t{});
      return true;
    case ElementType::U64:
      f(uint64_t{});
      return true;
    case ElementType::C64:
      f(std::complex<float>{});
      return true;
    case ElementType::C128:
      f(std::complex<double>{});
      return true;
    default:
      return false;
  }
}

int64_t dim(const Shape& s, int64_t i) { return s.dims[static_cast<size_t>(i)]; }

// Copies an array so that its dimensions stand in `order`, as another type; and back.
std::vector<char> packed_as(ElementType type, const Value& v, const Shape& s, const Dims& order) {
  Dims strides = row_major_strides(s.dims), dims, from;
  for (int64_t o : order) dims.push_back(dim(s, o)), from.push_back(strides[static_cast<size_t>(o)]);
  std::vector<char> moved(v.data->size()),
      wide(static_cast<size_t>(s.elements_count()) * static_cast<size_t>(storage_bytes(type)));
  if (s.type == type) {
    copy_nd(dims, v.bytes(), from, wide.data(), row_major_strides(dims), storage_bytes(type));
    return wide;
  }
  copy_nd(dims, v.bytes(), from, moved.data(), row_major_strides(dims), storage_bytes(s.type));
  convert_kernel(s.type, type, s.elements_count(), moved.data(), wide.data());
  return wide;
}
void unpack(ElementType type, const std::vector<char>& z, const Shape& s, const Dims& order, Value& out) {
  Dims strides = row_major_strides(s.dims), dims, to;
  for (int64_t o : order) dims.push_back(dim(s, o)), to.push_back(strides[static_cast<size_t>(o)]);
  std::vector<char> narrow(out.data->size());
  convert_kernel(type, s.type, s.elements_count(), z.data(), narrow.data());
  copy_nd(dims, narrow.data(), row_major_strides(dims), out.data->data(), to, storage_bytes(s.type));
}

// The same with a table of what each tap reads.
struct ConvPlan : ConvolutionNumbers {
  std::vector<int64_t> source;  // by output point and tap

  ConvPlan(const AttrSet& attrs, const Shape& in, const Shape& kernel, const Shape& out)
      : ConvolutionNumbers(attrs, in, kernel, out) {
    source.assign((Checked(points) * taps).size("a table of a convolution's taps"), -1);
    for (int64_t p = 0; p < points; ++p)
      for (int64_t t = 0; t < taps; ++t) source[static_cast<size_t>(p * taps + t)] = source_of(p, t);
  }
  int64_t rows() const { return out_batch * points; }
  int64_t depth() const { return taps * k_in; }
  // The taps of output row `row`, one after the other: f(input point or null in the padding, tap's place in `at`).
  template <class In, class T, class F>
  void patch(const Part& part, In* in, int64_t row, T* at, F f) const {
    int64_t b = part.first_batch + row / points, p = row % points;
    for (int64_t t = 0; t < taps; ++t, at += k_in) {
      int64_t from = source[static_cast<size_t>(p * taps + t)];
      f(from < 0 ? nullptr : in + (b * in_points + from) * in_f + part.first_in, at);
    }
  }
  int64_t chunk() const { return std::clamp<int64_t>((1 << 22) / std::max<int64_t>(depth(), 1), 4, 1 << 16); }
  size_t patch_space() const { return static_cast<size_t>(std::min(chunk(), rows()) * depth()); }
  // What output rows sum over, a chunk of rows at a time: f(part, first row, rows, [rows, depth] matrix).
  template <class T, class F>
  void by_patches(const T* in, F f) const {
    std::vector<T> patches(patch_space());
    for (const Part& part : parts())
      for (int64_t row0 = 0; row0 < rows(); row0 += chunk()) {
        int64_t count = std::min(chunk(), rows() - row0);
        parallel_ranges(count, 64, [&](int64_t i0, int64_t i1) {
          for (int64_t i = i0; i < i1; ++i)
            patch(part, in, row0 + i, patches.data() + i * depth(), [&](const T* point, T* to) {
              if (point)
                std::copy_n(point, k_in, to);
              else
                std::fill(to, to + k_in, T{});
            });
        });
        f(part, row0, count, patches.data());
      }
  }
};

struct Packing {
  const Value& value;
  const Dims& order;
};

// The operands packed in their orders and the type of sums, `body(a, b, zeroed result)`, the result unpacked.
template <class F>
void convolve(const Universe& u, Packing a, Packing b, const Dims& out_order, Value& out, F body) {
  const Shape &as = u[a.value.shape], &bs = u[b.value.shape], &os = u[out.shape];
  ElementType type = sum_type(type_bits(as.type) >= type_bits(bs.type) ? as.type : bs.type);
  std::vector<char> x = packed_as(type, a.value, as, a.order), y = packed_as(type, b.value, bs, b.order);
  std::vector<char> z(static_cast<size_t>(os.elements_count() * storage_bytes(type)), 0);
  bool ok = with_type(type, [&](auto zero) {
    using T = decltype(zero);
    body(reinterpret_cast<const T*>(x.data()), reinterpret_cast<const T*>(y.data()), reinterpret_cast<T*>(z.data()));
  });
  HLO_CHECK(ok, "convolution of type {}", type_name(type));
  unpack(type, z, os, out_order, out);
}

// z = alpha · x · y + beta · z on all cores, in the blocks of `gemm`.
template <class T>
void blas_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixView<T> x, MatrixView<T> y, T beta, Rows<T> z) {
  auto one = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const MatrixView<T> rows{x.from(i0, 0), x.stride, x.transposed}, columns{y.from(0, j0), y.stride, y.transposed};
    library_gemm(i1 - i0, j1 - j0, k, alpha, rows, columns, beta, z.at + i0 * z.stride + j0, z.stride);
  };
  in_parts(m, n, k, one);
}

// Dimensions of an array that are counted together.
struct Counted {
  Dims dims, strides;
  int64_t size = 1;
  void add(const Shape& s, int64_t d) {
    dims.push_back(s.dims[static_cast<size_t>(d)]);
    strides.push_back(row_major_strides(s.dims)[static_cast<size_t>(d)]);
    size *= dims.back();
  }
  // The distance from one to the next, where it is the same everywhere; 0 where there is one only.
  std::optional<int64_t> step() const {
    int64_t inner = 0, reach = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      if (dims[k] == 1) continue;
      if (inner && strides[k] != reach) return std::nullopt;
      if (!inner) inner = strides[k];
      reach = strides[k] * dims[k];
    }
    return inner;
  }
  int64_t place(int64_t n) const {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0;) at += n % dims[k] * strides[k], n /= dims[k];
    return at;
  }
};

// A dot's operand: batch, its own and contracted dimensions.
struct DotSide {
  Counted batch, own, contracted;
  DotSide(const Shape& s, const Dims& b, const Dims& c) {
    for (int64_t d : b) batch.add(s, d);
    for (int64_t d : c) contracted.add(s, d);
    for (int64_t d = 0; d < s.rank(); ++d)
      if (!contains(b, d) && !contains(c, d)) own.add(s, d);
  }
  // As a matrix of `rows` by the other dimensions where the library takes it as it lies; the batch's first element at
  // `data`.
  template <class T>
  std::optional<MatrixView<T>> matrix_view(const char* data, bool own_rows) const {
    const Counted &rows = own_rows ? own : contracted, &columns = own_rows ? contracted : own;
    std::optional<int64_t> down = rows.step(), along = columns.step();
    if (!down || !along) return std::nullopt;
    auto at = reinterpret_cast<const T*>(data);
    if (*along <= 1 && (*down == 0 || *down >= columns.size) && *down <= INT32_MAX)
      return MatrixView<T>{at, std::max(*down, columns.size), false};
    if (*down <= 1 && (*along == 0 || *along >= rows.size) && *along <= INT32_MAX)
      return MatrixView<T>{at, std::max(*along, rows.size), true};
    return std::nullopt;
  }
  // Gathered and widened: batch, then rows, then columns.
  std::vector<char> packed(const Shape& s, const char* data, ElementType type, bool own_rows) const {
    Dims dims = batch.dims, strides = batch.strides;
    for (const Counted* c : {own_rows ? &own : &contracted, own_rows ? &contracted : &own}) {
      dims.insert(dims.end(), c->dims.begin(), c->dims.end());
      strides.insert(strides.end(), c->strides.begin(), c->strides.end());
    }
    auto n = static_cast<size_t>(s.elements_count());
    std::vector<char> wide(n * static_cast<size_t>(storage_bytes(type)));
    if (s.type == type) {
      copy_nd(dims, data, strides, wide.data(), row_major_strides(dims), storage_bytes(type));
      return wide;
    }
    std::vector<char> moved(n * static_cast<size_t>(storage_bytes(s.type)));
    copy_nd(dims, data, strides, moved.data(), row_major_strides(dims), storage_bytes(s.type));
    convert_kernel(s.type, type, s.elements_count(), moved.data(), wide.data());
    return wide;
  }
};

}  // namespace

void blas_product(const BlasProduct& p, const char* x, const char* y, char* z) {
  auto all = [&](auto zero) {
    using T = decltype(zero);
    int64_t grain = std::max<int64_t>((1 << 18) / std::max<int64_t>(p.m * p.n * p.k, 1), 1);
    parallel_ranges(p.batch, grain, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; ++b)
        blas_gemm<T>(p.m, p.n, p.k, static_cast<T>(p.alpha),
                     {reinterpret_cast<const T*>(x) + b * p.m * p.k, p.transpose_x ? p.m : p.k, p.transpose_x},
                     {reinterpret_cast<const T*>(y) + b * p.k * p.n, p.transpose_y ? p.k : p.n, p.transpose_y},
                     static_cast<T>(p.beta), {reinterpret_cast<T*>(z) + b * p.m * p.n, p.n});
    });
  };
  if (p.type == ElementType::F32)
    all(0.0F);
  else
    all(0.0);
}

bool dot_arrays(const DotNumbers& d, bool exact, const Shape& ls, const char* l, const Shape& rs, const char* r,
                const Shape& os, char* out) {
  ElementType type =
      sum_type(type_bits(ls.type) >= type_bits(rs.type) && ls.type != ElementType::Pred ? ls.type : rs.type);
  if (type_bits(os.type) > type_bits(type) && is_float(os.type) == is_float(type)) type = sum_type(os.type);
  if (is_float(os.type) && !is_float(type) && !is_complex(type)) type = sum_type(os.type);
  DotSide a(ls, d.l_batch, d.l_contract), b(rs, d.r_batch, d.r_contract);
  const int64_t m = a.own.size, n = b.own.size, k = a.contracted.size;
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    constexpr bool library = std::is_same_v<T, float> || std::is_same_v<T, double>;
    std::vector<char> z;
    char* sums = out;
    if (os.type != type || !library || exact) {
      z.assign(static_cast<size_t>(os.elements_count()) * sizeof(T), 0);
      sums = z.data();
    }
    auto result = [&](int64_t i) { return Rows<T>{reinterpret_cast<T*>(sums) + i * m * n, n}; };
    bool by_library = false;
    if constexpr (library) {
      if (!exact && m * n * k > 4096 && std::max({m, n, k}) <= INT32_MAX && has_blas()) {
        by_library = true;
        std::optional<MatrixView<T>> x, y;
        if (ls.type == type) x = a.matrix_view<T>(l, true);
        if (rs.type == type) y = b.matrix_view<T>(r, false);
        std::vector<char> px, py;
        if (!x) px = a.packed(ls, l, type, true);
        if (!y) py = b.packed(rs, r, type, false);
        auto matrix = [&](const std::optional<MatrixView<T>>& view, const Counted& batch,
                          const std::vector<char>& packed, int64_t i, int64_t rows, int64_t columns) {
          if (view) return MatrixView<T>{view->at + batch.place(i), view->stride, view->transposed};
          return MatrixView<T>{reinterpret_cast<const T*>(packed.data()) + i * rows * columns, columns, false};
        };
        // Many small products: one a core.
        parallel_for(a.batch.size, [&](int64_t i) {
          blas_gemm<T>(m, n, k, T{1}, matrix(x, a.batch, px, i, m, k), matrix(y, b.batch, py, i, k, n), T{0},
                       result(i));
        });
      }
    }
    if (!by_library) {
      if (sums == out && os.elements_count()) std::memset(out, 0, static_cast<size_t>(os.elements_count()) * sizeof(T));
      std::vector<char> x = a.packed(ls, l, type, true), y = b.packed(rs, r, type, false);
      parallel_for(a.batch.size, [&](int64_t i) {
        gemm<T>(exact, m, n, k, {reinterpret_cast<const T*>(x.data()) + i * m * k, k},
                {reinterpret_cast<const T*>(y.data()) + i * k * n, n}, result(i));
      });
    }
    if (sums != out) convert_kernel(type, os.type, os.elements_count(), sums, out);
  });
}

Value Evaluator::contract(InstId inst, const Value& l, const Value& r, const Dims& l_batch, const Dims& l_contract,
                          const Dims& r_batch, const Dims& r_contract, ShapeId out_id) {
  Value out = make(out_id);
  if (!dot_arrays({l_batch, l_contract, r_batch, r_contract}, options_.exact, u_[l.shape], l.bytes(), u_[r.shape],
                  r.bytes(), u_[out_id], out.data->data()))
    refuse(inst, "dot of this element type");
  return out;
}

Value Evaluator::convolution(const AttrSet& attrs, const Value& l, const Value& r, ShapeId out_id) {
  Value out = make(out_id);
  const ConvPlan plan(attrs, u_[l.shape], u_[r.shape], u_[out_id]);
  convolve(
      u_, {l, plan.in_order}, {r, plan.kernel_order}, plan.out_order, out, [&](auto* in, auto* kernel, auto* result) {
        using T = std::remove_pointer_t<decltype(result)>;
        if (plan.groups > 1 && plan.k_in == 1 && plan.k_out == plan.groups) {
          // Depthwise: every feature by itself.
          parallel_ranges(plan.rows(), 64, [&](int64_t row0, int64_t row1) {
            for (int64_t row = row0; row < row1; ++row) {
              T* acc = result + row * plan.k_out;
              for (int64_t t = 0; t < plan.taps; ++t) {
                int64_t from = plan.source[static_cast<size_t>(row % plan.points * plan.taps + t)];
                if (from < 0) continue;
                const T *point = in + (row / plan.points * plan.in_points + from) * plan.in_f,
                        *k = kernel + t * plan.k_out;
                for (int64_t o = 0; o < plan.k_out; ++o) acc[o] += point[o] * k[o];
              }
            }
          });
          return;
        }
        plan.by_patches(in, [&](const ConvPlan::Part& part, int64_t row0, int64_t count, const T* patches) {
          gemm<T>(options_.exact, count, part.outs, plan.depth(), {patches, plan.depth()},
                  {kernel + part.first_out, plan.k_out}, {result + row0 * plan.k_out + part.first_out, plan.k_out});
        });
      });
  return out;
}

Value Evaluator::convolution_backward_input(const AttrSet& attrs, const Value& gradient, const Value& kernel,
                                            ShapeId out_id) {
  Value out = make(out_id);
  const ConvPlan plan(attrs, u_[out_id], u_[kernel.shape], u_[gradient.shape]);
  convolve(u_, {gradient, plan.out_order}, {kernel, plan.kernel_order}, plan.in_order, out,
           [&](auto* grad, auto* k, auto* result) {
             using T = std::remove_pointer_t<decltype(result)>;
             std::vector<T> patches(plan.patch_space());
             for (const ConvPlan::Part& part : plan.parts()) {
               // Every output's gradient goes back to the taps that it came from.
               std::vector<T> back = transposed<T>({k + part.first_out, plan.k_out}, plan.depth(), part.outs);
               for (int64_t row0 = 0; row0 < plan.rows(); row0 += plan.chunk()) {
                 int64_t count = std::min(plan.chunk(), plan.rows() - row0);
                 std::fill(patches.begin(), patches.end(), T{});
                 gemm<T>(options_.exact, count, plan.depth(), part.outs,
                         {grad + row0 * plan.k_out + part.first_out, plan.k_out}, {back.data(), plan.depth()},
                         {patches.data(), plan.depth()});
                 for (int64_t i = 0; i < count; ++i)
                   plan.patch(part, result, row0 + i, patches.data() + i * plan.depth(), [&](T* point, const T* patch) {
                     for (int64_t f = 0; point && f < plan.k_in; ++f) point[f] += patch[f];
                   });
               }
             }
           });
  return out;
}

Value Evaluator::convolution_backward_filter(const AttrSet& attrs, const Value& input, const Value& gradient,
                                             ShapeId out_id) {
  Value out = make(out_id);
  const ConvPlan plan(attrs, u_[input.shape], u_[out_id], u_[gradient.shape]);
  convolve(u_, {input, plan.in_order}, {gradient, plan.out_order}, plan.kernel_order, out,
           [&](auto* in, auto* grad, auto* result) {
             using T = std::remove_pointer_t<decltype(result)>;
             plan.by_patches(in, [&](const ConvPlan::Part& part, int64_t row0, int64_t count, const T* patches) {
               std::vector<T> across = transposed<T>({patches, plan.depth()}, count, plan.depth());
               gemm<T>(options_.exact, plan.depth(), part.outs, count, {across.data(), count},
                       {grad + row0 * plan.k_out + part.first_out, plan.k_out}, {result + part.first_out, plan.k_out});
             });
           });
  return out;
}

}  // namespace hlo
