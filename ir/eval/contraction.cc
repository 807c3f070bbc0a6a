// Dots and convolutions.
#include <algorithm>
#include <complex>
#include <cstring>

#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"

namespace hlo {
namespace {

// The type that products are summed in: floats of 16 bits and less in f32.
ElementType sum_type(ElementType t) {
  if (t == ElementType::F64 || is_complex(t) || t == ElementType::S64 || t == ElementType::U64) return t;
  if (is_float(t)) return ElementType::F32;
  return is_unsigned_int(t) ? ElementType::U64 : ElementType::S64;
}

// c[m,n] += a[m,k] · b[k,n], rows contiguous; blocked over k so that b stays in cache.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  constexpr int64_t kBlock = 256, kCols = 512;
  for (int64_t j0 = 0; j0 < n; j0 += kCols)
    for (int64_t k0 = 0; k0 < k; k0 += kBlock) {
      int64_t k1 = std::min(k, k0 + kBlock), j1 = std::min(n, j0 + kCols);
      int64_t i = 0;
      for (; i + 4 <= m; i += 4)
        for (int64_t p = k0; p < k1; ++p) {
          T x0 = a[i * k + p], x1 = a[(i + 1) * k + p], x2 = a[(i + 2) * k + p], x3 = a[(i + 3) * k + p];
          const T* row = b + p * n;
          T *c0 = c + i * n, *c1 = c0 + n, *c2 = c1 + n, *c3 = c2 + n;
          for (int64_t j = j0; j < j1; ++j) {
            T y = row[j];
            c0[j] += x0 * y, c1[j] += x1 * y, c2[j] += x2 * y, c3[j] += x3 * y;
          }
        }
      for (; i < m; ++i)
        for (int64_t p = k0; p < k1; ++p) {
          T x = a[i * k + p];
          const T* row = b + p * n;
          T* out = c + i * n;
          for (int64_t j = j0; j < j1; ++j) out[j] += x * row[j];
        }
    }
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

}  // namespace

Value Evaluator::dot(InstId inst, const Value& l, const Value& r) {
  const AttrSet& attrs = m_.attrs(inst);
  const Shape &ls = u_[l.shape], &rs = u_[r.shape];
  Value out = make(m_.shape_id(inst));
  const Shape& os = u_[out.shape];
  ElementType type =
      sum_type(type_bits(ls.type) >= type_bits(rs.type) && ls.type != ElementType::Pred ? ls.type : rs.type);
  if (type_bits(os.type) > type_bits(type) && is_float(os.type) == is_float(type)) type = sum_type(os.type);
  if (is_float(os.type) && !is_float(type) && !is_complex(type)) type = sum_type(os.type);
  struct Side {
    Dims dims, strides;
    int64_t batch = 1, free = 1, contract = 1;
  };
  auto side = [](const Shape& s, const Dims& batch, const Dims& contract, bool contract_last) {
    Side out;
    Dims strides = row_major_strides(s.dims);
    auto push = [&](int64_t d) {
      out.dims.push_back(s.dims[static_cast<size_t>(d)]), out.strides.push_back(strides[static_cast<size_t>(d)]);
    };
    for (int64_t d : batch) push(d), out.batch *= s.dims[static_cast<size_t>(d)];
    auto contracted = [&] {
      for (int64_t d : contract) push(d), out.contract *= s.dims[static_cast<size_t>(d)];
    };
    if (!contract_last) contracted();
    for (int64_t d = 0; d < s.rank(); ++d)
      if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
          std::find(contract.begin(), contract.end(), d) == contract.end())
        push(d), out.free *= s.dims[static_cast<size_t>(d)];
    if (contract_last) contracted();
    return out;
  };
  Side a = side(ls, attrs.ints(Attr::lhs_batch_dims), attrs.ints(Attr::lhs_contracting_dims), true);
  Side b = side(rs, attrs.ints(Attr::rhs_batch_dims), attrs.ints(Attr::rhs_contracting_dims), false);
  size_t width = static_cast<size_t>(storage_bytes(type));
  auto packed = [&](const Value& v, const Shape& s, const Side& d) {
    std::vector<char> moved(v.data->size()), wide(static_cast<size_t>(s.elements_count()) * width);
    copy_nd(d.dims, v.bytes(), d.strides, moved.data(), row_major_strides(d.dims), storage_bytes(s.type));
    convert_kernel(s.type, type, s.elements_count(), moved.data(), wide.data());
    return wide;
  };
  std::vector<char> x = packed(l, ls, a), y = packed(r, rs, b);
  std::vector<char> z(static_cast<size_t>(os.elements_count()) * width, 0);
  bool ok = with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < a.batch; ++i)
      gemm(a.free, b.free, a.contract, reinterpret_cast<const T*>(x.data()) + i * a.free * a.contract,
           reinterpret_cast<const T*>(y.data()) + i * b.free * b.contract,
           reinterpret_cast<T*>(z.data()) + i * a.free * b.free);
  });
  if (!ok) refuse(inst, "dot of this element type");
  convert_kernel(type, os.type, os.elements_count(), z.data(), out.data->data());
  return out;
}

Value Evaluator::convolution(const AttrSet& attrs, const Value& l, const Value& r, ShapeId out_id) {
  const DimLabels& d = *attrs.get<DimLabels>(Attr::dim_labels);
  static const Window kNone;
  const Window* window = attrs.get<Window>(Attr::window);
  if (!window) window = &kNone;
  const Shape &ls = u_[l.shape], &rs = u_[r.shape];
  Value out = make(out_id);
  const Shape& os = u_[out_id];
  ElementType type = sum_type(type_bits(ls.type) >= type_bits(rs.type) ? ls.type : rs.type);
  size_t spatial = window->dims.size();
  auto dim = [](const Shape& s, int64_t i) { return s.dims[static_cast<size_t>(i)]; };
  int64_t groups = attrs.integer(Attr::feature_group_count, 1),
          batch_groups = attrs.integer(Attr::batch_group_count, 1);
  int64_t batch = dim(ls, d.input_batch), in_f = dim(ls, d.input_feature), k_in = dim(rs, d.kernel_input),
          k_out = dim(rs, d.kernel_output);
  // Input as [batch, spatial…, feature], kernel as [spatial…, in, out], output as [batch, spatial…, feature].
  auto packed = [&](const Value& v, const Shape& s, const Dims& order) {
    Dims strides = row_major_strides(s.dims), dims, from;
    for (int64_t o : order) dims.push_back(dim(s, o)), from.push_back(strides[static_cast<size_t>(o)]);
    std::vector<char> moved(v.data->size()),
        wide(static_cast<size_t>(s.elements_count()) * static_cast<size_t>(storage_bytes(type)));
    copy_nd(dims, v.bytes(), from, moved.data(), row_major_strides(dims), storage_bytes(s.type));
    convert_kernel(s.type, type, s.elements_count(), moved.data(), wide.data());
    return wide;
  };
  Dims l_order{d.input_batch}, r_order, o_order{d.output_batch};
  l_order.insert(l_order.end(), d.input_spatial.begin(), d.input_spatial.end()), l_order.push_back(d.input_feature);
  r_order.insert(r_order.end(), d.kernel_spatial.begin(), d.kernel_spatial.end()), r_order.push_back(d.kernel_input),
      r_order.push_back(d.kernel_output);
  o_order.insert(o_order.end(), d.output_spatial.begin(), d.output_spatial.end()), o_order.push_back(d.output_feature);
  std::vector<char> x = packed(l, ls, l_order), w = packed(r, rs, r_order);
  Dims in_sp, k_sp, out_sp;
  for (size_t i = 0; i < spatial; ++i)
    in_sp.push_back(dim(ls, d.input_spatial[i])), k_sp.push_back(dim(rs, d.kernel_spatial[i])),
        out_sp.push_back(dim(os, d.output_spatial[i]));
  int64_t in_points = 1, points = 1, taps = 1;
  for (size_t i = 0; i < spatial; ++i) in_points *= in_sp[i], points *= out_sp[i], taps *= k_sp[i];
  int64_t out_batch = batch / batch_groups, group_out = k_out / groups, batch_group_out = k_out / batch_groups;
  std::vector<char> z(static_cast<size_t>(out_batch * points * k_out) * static_cast<size_t>(storage_bytes(type)), 0);

  // Input point that kernel tap t reads for output point p, or -1 where padding or dilation leaves none.
  std::vector<int64_t> source(static_cast<size_t>(points * taps), -1);
  for (int64_t p = 0; p < points; ++p)
    for (int64_t t = 0; t < taps; ++t) {
      int64_t rest_p = p, rest_t = t, place = 0, stride = 1;
      bool inside = true;
      for (size_t i = spatial; i-- > 0 && inside;) {
        const WindowDim& wd = window->dims[i];
        int64_t o = rest_p % out_sp[i], k = rest_t % k_sp[i];
        rest_p /= out_sp[i], rest_t /= k_sp[i];
        if (wd.reversal) k = k_sp[i] - 1 - k;
        int64_t at = o * wd.stride - wd.pad_low + k * wd.rhs_dilate;
        if (at < 0 || at % wd.lhs_dilate || at / wd.lhs_dilate >= in_sp[i])
          inside = false;
        else
          place += at / wd.lhs_dilate * stride;
        stride *= in_sp[i];
      }
      if (inside) source[static_cast<size_t>(p * taps + t)] = place;
    }
  bool ok = with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const T *in = reinterpret_cast<const T*>(x.data()), *kernel = reinterpret_cast<const T*>(w.data());
    T* result = reinterpret_cast<T*>(z.data());
    if (groups == 1 && batch_groups == 1) {
      // Rows of input patches times the kernel as a matrix.
      int64_t depth = taps * k_in, chunk = std::max<int64_t>(4, (1 << 20) / std::max<int64_t>(depth, 1));
      std::vector<T> patches(static_cast<size_t>(chunk * depth));
      int64_t rows = out_batch * points;
      for (int64_t row0 = 0; row0 < rows; row0 += chunk) {
        int64_t count = std::min(chunk, rows - row0);
        for (int64_t row = 0; row < count; ++row) {
          int64_t b = (row0 + row) / points, p = (row0 + row) % points;
          T* patch = patches.data() + row * depth;
          for (int64_t t = 0; t < taps; ++t) {
            int64_t from = source[static_cast<size_t>(p * taps + t)];
            if (from < 0)
              std::fill(patch + t * k_in, patch + (t + 1) * k_in, T{});
            else
              std::copy_n(in + (b * in_points + from) * in_f, k_in, patch + t * k_in);
          }
        }
        gemm(count, k_out, depth, patches.data(), kernel, result + row0 * k_out);
      }
      return;
    }
    for (int64_t b = 0; b < out_batch; ++b)
      for (int64_t p = 0; p < points; ++p) {
        T* acc = result + (b * points + p) * k_out;
        for (int64_t t = 0; t < taps; ++t) {
          int64_t from = source[static_cast<size_t>(p * taps + t)];
          if (from < 0) continue;
          for (int64_t bg = 0; bg < batch_groups; ++bg) {
            const T* point = in + ((bg * out_batch + b) * in_points + from) * in_f;
            int64_t first = batch_groups > 1 ? bg * batch_group_out : 0,
                    last = batch_groups > 1 ? first + batch_group_out : k_out;
            if (k_in == 1 && group_out == 1) {
              const T* row = kernel + t * k_out;
              for (int64_t o = first; o < last; ++o) acc[o] += point[o] * row[o];
              continue;
            }
            for (int64_t i = 0; i < k_in; ++i) {
              const T* row = kernel + (t * k_in + i) * k_out;
              for (int64_t o = first; o < last; ++o)
                acc[o] += point[(groups > 1 ? o / group_out * k_in : 0) + i] * row[o];
            }
          }
        }
      }
  });
  HLO_CHECK(ok, "convolution of type {}", type_name(type));
  Dims strides = row_major_strides(os.dims), dims, to;
  for (int64_t o : o_order) dims.push_back(dim(os, o)), to.push_back(strides[static_cast<size_t>(o)]);
  std::vector<char> narrow(out.data->size());
  convert_kernel(type, os.type, os.elements_count(), z.data(), narrow.data());
  copy_nd(dims, narrow.data(), row_major_strides(dims), out.data->data(), to, storage_bytes(os.type));
  return out;
}

}  // namespace hlo
