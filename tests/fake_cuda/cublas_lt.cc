// cuBLASLt without a card, over the fake driver's memory. What the library's documentation asks is asked here: sizes of
// attributes, forms of the eight-bit types, leading dimensions of kept values, algorithms of the library's own making.
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "tests/fake_cuda/number.h"
#include "tests/fake_cuda/state.h"

namespace {

struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t step;
  int32_t batch = 1;
  int64_t batch_step = 0;
};

struct Operation {
  int compute, scale;
  std::map<int, std::vector<char>> attributes;
  template <class T>
  T get(int key, T otherwise) const {
    auto at = attributes.find(key);
    if (at == attributes.end()) return otherwise;
    T value;
    std::memcpy(&value, at->second.data(), sizeof value);
    return value;
  }
};

using fake::kBf16, fake::kE4m3, fake::kE5m2, fake::kF16, fake::kF32, fake::kF64, fake::load, fake::store, fake::width;
enum { kSuccess = 0, kInvalid = 7, kNotSupported = 15, kFailed = 13, kOutside = 14 };

// Of eight bits: the "TN format", sizes in memory that are multiples of 16 bytes, and the table of types of
// cublasLtMatmul(); factors only of matrices of eight bits (CUBLASLT_MATMUL_DESC_A_SCALE_POINTER and the others).
int judge_small(const Operation& o, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  if (width(a.type) != 1 || width(b.type) != 1 || (a.type == kE5m2 && b.type == kE5m2)) return kNotSupported;
  if (!o.get<int32_t>(3, 0) || o.get<int32_t>(4, 0)) return kNotSupported;
  const auto out = static_cast<int64_t>(width(d.type)), added = static_cast<int64_t>(width(c.type));
  if (a.step % 16 || b.step % 16 || a.rows % 16 || d.step * out % 16 || c.step * added % 16) return kNotSupported;
  const bool eight = width(d.type) == 1;
  if (d.type == kF64 || (eight ? c.type != kBf16 && c.type != kF16 : c.type != d.type)) return kNotSupported;
  if (d.type == kE5m2 && a.type != kE5m2 && b.type != kE5m2) return kNotSupported;
  if (o.attributes.count(20) && !eight) return kInvalid;
  if (o.get<uint32_t>(7, 1) & 4 && o.get<int32_t>(26, d.type) != (c.type == kF16 ? kF16 : kBf16)) return kNotSupported;
  return kSuccess;
}

// What the library would refuse of this product before it looks for an algorithm.
int judge(const Operation& o, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  auto ta = o.get<int32_t>(3, 0), tb = o.get<int32_t>(4, 0);
  uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, n = tb ? b.rows : b.columns;
  if (k != (tb ? b.columns : b.rows) || m != d.rows || n != d.columns || c.rows != d.rows || c.columns != d.columns)
    return kInvalid;
  for (const Layout* l : {&a, &b, &c, &d})
    if (l->step < static_cast<int64_t>(l->rows) || l->batch != d.batch || !width(l->type)) return kInvalid;
  bool small = width(a.type) == 1 || width(b.type) == 1, wide = a.type == kF64;
  if (o.compute == 77 && a.type != kF32) return kNotSupported;
  if ((o.compute == 70) != wide || (o.scale == kF64) != wide) return kNotSupported;
  if (int r = small ? judge_small(o, a, b, c, d) : kSuccess) return r;
  if (!small) {
    if (a.type != b.type || o.attributes.count(17) || o.attributes.count(18) || o.attributes.count(20))
      return kNotSupported;
    if (c.type != d.type || (d.type != a.type && !(d.type == kF32 && width(a.type) == 2))) return kNotSupported;
  }
  auto epilogue = o.get<uint32_t>(7, 1);
  for (uint32_t known : {1u, 2u, 4u, 6u, 32u, 36u, 32u | 128u, 36u | 128u})
    if (epilogue == known) {
      if ((epilogue & 4) && !o.get<const void*>(8, nullptr)) return kInvalid;
      if ((epilogue & 128) && (!o.get<const void*>(11, nullptr) || o.get<int64_t>(12, 0) % 8 ||
                               o.get<int64_t>(12, 0) < static_cast<int64_t>(d.rows)))
        return kInvalid;
      return kSuccess;
    }
  return kNotSupported;
}

constexpr uint64_t kMark = 0x4c74416c676f;

double through(uint32_t epilogue, double v) {
  if (epilogue & 2) return std::isnan(v) ? v : std::max(v, 0.0);
  if (epilogue & 32) return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  return v;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 120000; }
int cublasLtCreate(void** h) {
  *h = h;
  return kSuccess;
}
int cublasLtDestroy(void*) { return kSuccess; }
int cublasLtMatmulDescCreate(void** d, int compute, int scale) {
  *d = new Operation{compute, scale, {}};
  ++fake::descriptors();
  return kSuccess;
}
int cublasLtMatmulDescDestroy(void* d) {
  delete static_cast<Operation*>(d);
  --fake::descriptors();
  return kSuccess;
}
int cublasLtMatmulDescSetAttribute(void* d, int key, const void* value, size_t size) {
  static const std::map<int, size_t> kSizes = {{3, 4},  {4, 4},  {7, 4},  {8, 8},  {11, 8}, {12, 8},
                                               {13, 8}, {17, 8}, {18, 8}, {20, 8}, {22, 4}, {26, 4}};
  auto at = kSizes.find(key);
  if (at == kSizes.end() || at->second != size) return kInvalid;
  const char* bytes = static_cast<const char*>(value);
  static_cast<Operation*>(d)->attributes[key].assign(bytes, bytes + size);
  return kSuccess;
}
int cublasLtMatrixLayoutCreate(void** l, int type, uint64_t rows, uint64_t columns, int64_t step) {
  *l = new Layout{type, rows, columns, step};
  ++fake::descriptors();
  return kSuccess;
}
int cublasLtMatrixLayoutDestroy(void* l) {
  delete static_cast<Layout*>(l);
  --fake::descriptors();
  return kSuccess;
}
int cublasLtMatrixLayoutSetAttribute(void* l, int key, const void* value, size_t size) {
  auto* layout = static_cast<Layout*>(l);
  if (key == 5 && size == 4)
    std::memcpy(&layout->batch, value, 4);
  else if (key == 6 && size == 8)
    std::memcpy(&layout->batch_step, value, 8);
  else
    return kInvalid;
  return kSuccess;
}
int cublasLtMatmulPreferenceCreate(void** p) {
  *p = new size_t(0);
  ++fake::descriptors();
  return kSuccess;
}
int cublasLtMatmulPreferenceDestroy(void* p) {
  delete static_cast<size_t*>(p);
  --fake::descriptors();
  return kSuccess;
}
int cublasLtMatmulPreferenceSetAttribute(void* p, int key, const void* value, size_t size) {
  if (key != 1 || size != 8) return kInvalid;
  std::memcpy(p, value, 8);
  return kSuccess;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void* operation, void* a, void* b, void* c, void* d, void* preference,
                                   int wanted, Heuristic* out, int* count) {
  if (wanted <= 0 || !preference) return kInvalid;
  int r = judge(*static_cast<Operation*>(operation), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
                *static_cast<Layout*>(c), *static_cast<Layout*>(d));
  *count = 0;
  if (r != kSuccess) return r;
  for (uint64_t k = 0; k < 2 && *count < wanted; ++k) {
    Heuristic h{};
    h.algorithm[0] = kMark + k;
    h.workspace = k * 1024;
    out[(*count)++] = h;
  }
  return kSuccess;
}
int cublasLtMatmul(void*, void* operation, const void* alpha, const void* a, void* layout_a, const void* b,
                   void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                   const uint64_t* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  if (int r = fake::begin("cublasLtMatmul")) return r == 0 ? 0 : kFailed;
  const Operation o = *static_cast<Operation*>(operation);
  const Layout la = *static_cast<Layout*>(layout_a), lb = *static_cast<Layout*>(layout_b),
               lc = *static_cast<Layout*>(layout_c), ld = *static_cast<Layout*>(layout_d);
  if (int r = judge(o, la, lb, lc, ld)) return r;
  // In place means the same matrix: C == D and Cdesc == Ddesc.
  if (c == d && (lc.type != ld.type || lc.step != ld.step || lc.batch_step != ld.batch_step)) return kInvalid;
  if (width(la.type) == 1)
    for (const void* p : {a, b, c, static_cast<const void*>(d)})
      if (reinterpret_cast<uint64_t>(p) % 16) return kInvalid;
  if (!algorithm || algorithm[0] - kMark > 1 || workspace_bytes < (algorithm[0] - kMark) * 1024) return kInvalid;
  auto extent = [](const void* p, const Layout& l) {
    return fake::inside(reinterpret_cast<uint64_t>(p),
                        static_cast<int64_t>(width(l.type)) *
                            (l.batch_step * (l.batch - 1) + l.step * static_cast<int64_t>(l.columns)));
  };
  if (!extent(a, la) || !extent(b, lb) || !extent(d, ld)) return kOutside;
  if (!fake::inside(reinterpret_cast<uint64_t>(workspace), static_cast<int64_t>(workspace_bytes))) return kOutside;
  auto epilogue = o.get<uint32_t>(7, 1);
  auto rows = static_cast<int64_t>(ld.rows), columns = static_cast<int64_t>(ld.columns);
  const void* bias = o.get<const void*>(8, nullptr);
  void* kept = o.get<void*>(11, nullptr);
  auto bias_type = o.get<int32_t>(26, ld.type);
  if ((epilogue & 4) && !fake::inside(reinterpret_cast<uint64_t>(bias), rows * static_cast<int64_t>(width(bias_type))))
    return kOutside;
  auto kept_type = o.get<int32_t>(22, ld.type);
  int64_t kept_step = o.get<int64_t>(12, 0), kept_batch = o.get<int64_t>(13, 0);
  if ((epilogue & 128) &&
      !fake::inside(reinterpret_cast<uint64_t>(kept),
                    static_cast<int64_t>(width(kept_type)) * (kept_batch * (ld.batch - 1) + kept_step * columns)))
    return kOutside;
  bool wide = o.compute == 70;
  double x = wide ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha));
  double y = wide ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
  if (y != 0 && !extent(c, lc)) return kOutside;
  auto product = [=] {
    auto factor = [&](int key) {
      const void* p = o.get<const void*>(key, nullptr);
      return p ? load(kF32, p, 0) : 1;
    };
    bool ta = o.get<int32_t>(3, 0), tb = o.get<int32_t>(4, 0);
    auto operand = [&](int type, const void* p, int64_t at) {
      const double v = load(type, p, at);
      return o.compute == 77 ? fake::as_tf32(v) : v;
    };
    auto inner = static_cast<int64_t>(ta ? la.rows : la.columns);
    double scales = factor(17) * factor(18), scale = factor(20);
    for (int64_t s = 0; s < ld.batch; ++s)
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) {
          double sum = 0;
          for (int64_t l = 0; l < inner; ++l)
            sum += operand(la.type, a, s * la.batch_step + (ta ? i * la.step + l : l * la.step + i)) *
                   operand(lb.type, b, s * lb.batch_step + (tb ? l * lb.step + j : j * lb.step + l));
          double v = x * scales * sum;
          if (y != 0) v += y * load(lc.type, c, s * lc.batch_step + j * lc.step + i);
          if (epilogue & 4) v += load(bias_type, bias, i);
          if (epilogue & 128) store(kept_type, kept, s * kept_batch + j * kept_step + i, v);
          store(ld.type, d, s * ld.batch_step + j * ld.step + i, through(epilogue, v) * scale);
        }
    return 0;
  };
  return fake::submit(product, stream);
}

}  // extern "C"
