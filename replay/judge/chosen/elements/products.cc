// Sums of products: dots, convolutions, and the library calls that passes put in their places. Elements of one result
// share rows of the left side and columns of the right one.
#include <algorithm>
#include <map>

#include "ir/eval/library/gemm_call.h"
#include "ir/eval/operations/convolution_numbers.h"
#include "ir/library/cudnn.h"
#include "ir/library/cudnn_epilogue.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/products.h"

namespace hlo {
namespace {

Shape matrix_shape(ElementType type, Dims dims) {
  Shape s;
  s.type = type, s.dims = std::move(dims);
  return s;
}

void multiply(const Dims& batch, const Dims& sum, const ProductSide& l, std::span<const int64_t> l_lines,
              const ProductSide& r, std::span<const int64_t> r_lines, const Shape& result, char* out) {
  const std::vector<char> x = l.chosen(l_lines), y = r.chosen(r_lines);
  const Shape xs = matrix_shape(l.type, {static_cast<int64_t>(l_lines.size()), l.length}),
              ys = matrix_shape(r.type, {static_cast<int64_t>(r_lines.size()), r.length});
  if (!dot_arrays({batch, sum, batch, sum}, false, xs, x.data(), ys, y.data(), result, out))
    fail(FailureKind::kUnsupported, "products of {} and {}", type_name(l.type), type_name(r.type));
}

// The sums of one group, members being places in sums_of.
void multiply_group(const ProductPlan& p, std::span<const size_t> members, const ProductSide& l, const ProductSide& r,
                    char* out) {
  const auto width = static_cast<size_t>(storage_bytes(p.sums));
  std::vector<int64_t> rows, columns;
  std::unordered_map<int64_t, int64_t> row_of, column_of;
  for (size_t k : members) {
    const ProductPlan::Sum& s = p.sums_of[k];
    if (row_of.try_emplace(s.left, static_cast<int64_t>(rows.size())).second) rows.push_back(s.left);
    if (column_of.try_emplace(s.right, static_cast<int64_t>(columns.size())).second) columns.push_back(s.right);
  }
  const auto m = static_cast<int64_t>(rows.size()), n = static_cast<int64_t>(columns.size());
  if (m * n <= 4 * static_cast<int64_t>(members.size())) {
    std::vector<char> all(static_cast<size_t>(m * n) * width);
    multiply({}, {1}, l, rows, r, columns, matrix_shape(p.sums, {m, n}), all.data());
    for (size_t k : members) {
      const ProductPlan::Sum& s = p.sums_of[k];
      std::memcpy(out + k * width, all.data() + static_cast<size_t>(row_of[s.left] * n + column_of[s.right]) * width,
                  width);
    }
    return;
  }
  // Pair by pair, some at a time.
  const auto chunk = static_cast<size_t>(std::clamp<int64_t>((1 << 20) / std::max<int64_t>(p.length, 1), 1, 1 << 16));
  for (size_t first = 0; first < members.size(); first += chunk) {
    const auto some = members.subspan(first, std::min(chunk, members.size() - first));
    std::vector<int64_t> left, right;
    for (size_t k : some) left.push_back(p.sums_of[k].left), right.push_back(p.sums_of[k].right);
    std::vector<char> all(some.size() * width);
    multiply({0}, {1}, l, left, r, right, matrix_shape(p.sums, {static_cast<int64_t>(some.size())}), all.data());
    for (size_t k = 0; k < some.size(); ++k) std::memcpy(out + some[k] * width, all.data() + k * width, width);
  }
}

}  // namespace

Dims other_dims(const Shape& s, const Dims& a, const Dims& b) {
  Dims out;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (!contains(a, d) && !contains(b, d)) out.push_back(d);
  return out;
}

std::vector<char> ProductSide::chosen(std::span<const int64_t> which) const {
  std::vector<char> out(which.size() * bytes());
  for (size_t k = 0; k < which.size() && bytes(); ++k)
    std::memcpy(out.data() + k * bytes(), lines.data() + static_cast<size_t>(which[k]) * bytes(), bytes());
  return out;
}

std::vector<char> summed(const ElementOperation& o, const ProductPlan& p, ElementSource& source) {
  const ProductSide l{o.in[p.left]->type, p.length, source.read(o, p.left, *p.left_lines)},
      r{o.in[p.right]->type, p.length, source.read(o, p.right, *p.right_lines)};
  return summed(p, l, r);
}

std::vector<char> summed(const ProductPlan& p, const ProductSide& l, const ProductSide& r) {
  std::vector<char> out(p.sums_of.size() * static_cast<size_t>(storage_bytes(p.sums)));
  std::map<int64_t, std::vector<size_t>> groups;
  for (size_t k = 0; k < p.sums_of.size(); ++k) groups[p.sums_of[k].group].push_back(k);
  for (const auto& [group, members] : groups) multiply_group(p, members, l, r, out.data());
  return out;
}

ProductPlan dot_products(const ElementOperation& o, const DotNumbers& d, std::span<const int64_t> at,
                         ElementSource& source, int64_t group) {
  const Shape &ls = *o.in[0], &rs = *o.in[1];
  const CountedDims l_batch(ls, d.l_batch), r_batch(rs, d.r_batch), l_sum(ls, d.l_contract), r_sum(rs, d.r_contract),
      l_own(ls, other_dims(ls, d.l_batch, d.l_contract)), r_own(rs, other_dims(rs, d.r_batch, d.r_contract));
  const bool l_alone = d.l_batch.empty(), r_alone = d.r_batch.empty();
  ProductPlan p;
  p.length = l_sum.size;
  std::vector<int64_t> l_steps, r_steps;
  ElementLines left(p.length, source), right(p.length, source);
  source.afford(p.length);
  for (int64_t k = 0; k < p.length; ++k) l_steps.push_back(l_sum.place(k)), r_steps.push_back(r_sum.place(k));
  for (int64_t i : at) {
    const int64_t column = i % r_own.size, row = i / r_own.size % l_own.size, batch = i / r_own.size / l_own.size;
    ProductPlan::Sum s{batch, 0, 0};
    s.left = left.line(l_alone ? row : batch * l_own.size + row, [&](std::vector<int64_t>& list) {
      const int64_t first = l_batch.place(l_alone ? 0 : batch) + l_own.place(row);
      for (int64_t step : l_steps) list.push_back(first + step);
    });
    s.right = right.line(r_alone ? column : batch / group * r_own.size + column, [&](std::vector<int64_t>& list) {
      const int64_t first = r_batch.place(r_alone ? 0 : batch / group) + r_own.place(column);
      for (int64_t step : r_steps) list.push_back(first + step);
    });
    p.sums_of.push_back(s);
  }
  p.left_lines = left.take(), p.right_lines = right.take();
  return p;
}

namespace {
ElementPlan plan_products(const ElementOperation& o, ProductPlan products, ElementSource& source) {
  ElementPlan p;
  p.needs = {{products.left, products.left_lines}, {products.right, products.right_lines}};
  p.values = [&o, &source, products = std::move(products)](char* out) {
    const std::vector<char> sums = summed(o, products, source);
    std::memcpy(out, sums.data(), sums.size());
  };
  return p;
}

// An array's dimensions as [first, middle ones, last] of a convolution's numbers.
struct ConvolutionArray {
  CountedDims middle;
  int64_t first, last, first_size, last_size;  // steps and sizes
  ConvolutionArray(const Shape& s, int64_t first_dim, const Dims& middle_dims, int64_t last_dim)
      : middle(s, middle_dims) {
    const Dims strides = row_major_strides(s.dims);
    first = strides[static_cast<size_t>(first_dim)], last = strides[static_cast<size_t>(last_dim)];
    first_size = s.dims[static_cast<size_t>(first_dim)], last_size = s.dims[static_cast<size_t>(last_dim)];
  }
  int64_t place(int64_t f, int64_t m, int64_t l) const { return f * first + middle.place(m) + l * last; }
  // Of the element at these coordinates.
  static int64_t number(const Dims& c, const Shape& s, const Dims& dims) {
    int64_t n = 0;
    for (int64_t d : dims) n = n * s.dims[static_cast<size_t>(d)] + c[static_cast<size_t>(d)];
    return n;
  }
};

enum class ConvolutionOf { kResult, kInput, kKernel };

// Of a convolution's result, or of what its input or kernel gets of the result's gradient.
class ConvolutionProducts {
 public:
  ConvolutionProducts(const AttrSet& a, const Shape& in, const Shape& kernel, const Shape& out)
      : labels_(*a.get<DimLabels>(Attr::dim_labels)),
        n_(a, in, kernel, out),
        in_(in, labels_.input_batch, labels_.input_spatial, labels_.input_feature),
        kernel_(kernel, labels_.kernel_input, labels_.kernel_spatial, labels_.kernel_output),
        out_(out, labels_.output_batch, labels_.output_spatial, labels_.output_feature) {}

  ProductPlan plan(ConvolutionOf what, const Shape& result, const Elements& at, ElementSource& source) const {
    ProductPlan p;
    p.length = what == ConvolutionOf::kResult  ? n_.taps * n_.k_in
               : what == ConvolutionOf::kInput ? n_.taps * n_.outs()
                                               : n_.out_batch * n_.points;
    ElementLines left(p.length, source), right(p.length, source);
    for_coordinates(*at, result.dims, [&](size_t, const Dims& c) {
      p.sums_of.push_back(what == ConvolutionOf::kResult  ? of_result(c, result, left, right)
                          : what == ConvolutionOf::kInput ? of_input(c, result, left, right)
                                                          : of_kernel(c, result, left, right));
    });
    p.left_lines = left.take(), p.right_lines = right.take();
    return p;
  }

 private:
  using List = std::vector<int64_t>;
  using Part = ConvolutionNumbers::Part;
  static int64_t at(const Dims& c, int64_t d) { return c[static_cast<size_t>(d)]; }

  ProductPlan::Sum of_result(const Dims& c, const Shape& s, ElementLines& left, ElementLines& right) const {
    const int64_t batch = at(c, labels_.output_batch), feature = at(c, labels_.output_feature),
                  point = ConvolutionArray::number(c, s, labels_.output_spatial), g = feature / n_.outs();
    const Part part = n_.part(g);
    ProductPlan::Sum sum{g, 0, 0};
    sum.left = left.line((g * n_.out_batch + batch) * n_.points + point, [&](List& list) {
      for (int64_t t = 0; t < n_.taps; ++t) {
        const int64_t from = n_.source_of(point, t);
        for (int64_t f = 0; f < n_.k_in; ++f)
          list.push_back(from < 0 ? -1 : in_.place(part.first_batch + batch, from, part.first_in + f));
      }
    });
    sum.right = right.line(feature, [&](List& list) {
      for (int64_t t = 0; t < n_.taps; ++t)
        for (int64_t f = 0; f < n_.k_in; ++f) list.push_back(kernel_.place(f, t, feature));
    });
    return sum;
  }

  ProductPlan::Sum of_input(const Dims& c, const Shape& s, ElementLines& left, ElementLines& right) const {
    const int64_t batch = at(c, labels_.input_batch), feature = at(c, labels_.input_feature),
                  point = ConvolutionArray::number(c, s, labels_.input_spatial);
    const int64_t g = n_.groups > 1 ? feature / n_.k_in : n_.batch_groups > 1 ? batch / n_.out_batch : 0;
    const Part part = n_.part(g);
    ProductPlan::Sum sum{g, 0, 0};
    sum.left = left.line((g * n_.batch + batch) * n_.in_points + point, [&](List& list) {
      for (int64_t t = 0; t < n_.taps; ++t) {
        const int64_t reader = n_.reader_of(point, t);
        for (int64_t f = 0; f < part.outs; ++f)
          list.push_back(reader < 0 ? -1 : out_.place(batch - part.first_batch, reader, part.first_out + f));
      }
    });
    sum.right = right.line(g * n_.k_in + feature - part.first_in, [&](List& list) {
      for (int64_t t = 0; t < n_.taps; ++t)
        for (int64_t f = 0; f < part.outs; ++f)
          list.push_back(kernel_.place(feature - part.first_in, t, part.first_out + f));
    });
    return sum;
  }

  ProductPlan::Sum of_kernel(const Dims& c, const Shape& s, ElementLines& left, ElementLines& right) const {
    const int64_t in = at(c, labels_.kernel_input), feature = at(c, labels_.kernel_output),
                  tap = ConvolutionArray::number(c, s, labels_.kernel_spatial), g = feature / n_.outs();
    const Part part = n_.part(g);
    ProductPlan::Sum sum{g, 0, 0};
    sum.left = left.line((g * n_.taps + tap) * n_.k_in + in, [&](List& list) {
      for (int64_t b = 0; b < n_.out_batch; ++b)
        for (int64_t point = 0; point < n_.points; ++point) {
          const int64_t from = n_.source_of(point, tap);
          list.push_back(from < 0 ? -1 : in_.place(part.first_batch + b, from, part.first_in + in));
        }
    });
    sum.right = right.line(feature, [&](List& list) {
      for (int64_t b = 0; b < n_.out_batch; ++b)
        for (int64_t point = 0; point < n_.points; ++point) list.push_back(out_.place(b, point, feature));
    });
    return sum;
  }

  const DimLabels& labels_;
  ConvolutionNumbers n_;
  ConvolutionArray in_, kernel_, out_;
};

ElementType product_type(const ElementOperation& o) { return o.out->type; }

}  // namespace

ElementPlan plan_dot(const ElementOperation& o, const Elements& at, ElementSource& source) {
  ProductPlan p = dot_products(o,
                               {o.a.ints(Attr::lhs_batch_dims), o.a.ints(Attr::lhs_contracting_dims),
                                o.a.ints(Attr::rhs_batch_dims), o.a.ints(Attr::rhs_contracting_dims)},
                               *at, source);
  p.sums = product_type(o);
  return plan_products(o, std::move(p), source);
}

ElementPlan plan_convolution(const ElementOperation& o, const Elements& at, ElementSource& source) {
  ProductPlan p = ConvolutionProducts(o.a, *o.in[0], *o.in[1], *o.out).plan(ConvolutionOf::kResult, *o.out, at, source);
  p.sums = product_type(o);
  return plan_products(o, std::move(p), source);
}

ElementPlan plan_gemm(const ElementOperation& o, const Elements& at, ElementSource& source) {
  GemmCall call(o.m, o.x.inst);
  const Shape& all = o.m.shape(o.x.inst);
  const Shape& result = all.is_tuple() ? o.u[all.elements[0]] : all;
  if (!call.why.empty()) return no_plan(call.why);
  if (o.x.leaf > (call.aux ? 1u : 0u)) return no_plan("a second result of a product");
  ProductPlan products = dot_products(o, {call.lhs_batch, call.lhs_sum, call.rhs_batch, call.rhs_sum}, *at, source);
  products.sums = call.sums;
  ElementPlan p;
  p.needs = {{0, products.left_lines}, {1, products.right_lines}};
  const ElementList one = element_list({0});
  for (size_t k : call.scales) p.needs.push_back({k, one});
  for (size_t k : call.result_scales) p.needs.push_back({k, one});
  if (call.matrix) p.needs.push_back({call.matrix, at});
  std::vector<int64_t> biases;
  if (call.bias)
    for (int64_t i : *at) biases.push_back(GemmCall::bias_index(i, *o.in[call.bias], result));
  const ElementList bias = element_list(std::move(biases));
  if (call.bias) p.needs.push_back({call.bias, bias});
  p.values = [&o, &source, at, call, bias, products = std::move(products)](char* out) {
    const std::vector<char> sums = summed(o, products, source);
    std::vector<char> added, biased;
    if (call.matrix) added = source.read(o, call.matrix, *at);
    if (call.bias) biased = source.read(o, call.bias, *bias);
    double scale = 1, result_scale = 1;
    for (size_t k : call.scales) scale *= source.number(o, k, 0);
    for (size_t k : call.result_scales) result_scale *= source.number(o, k, 0);
    auto number = [](ElementType type, const std::vector<char>& list, size_t k) -> std::complex<double> {
      return list.empty() ? 0 : GemmCall::number_at(type, list.data() + k * static_cast<size_t>(storage_bytes(type)));
    };
    for (size_t k = 0; k < at->size(); ++k, out += storage_bytes(o.out->type)) {
      const std::complex<double> v =
          call.summed(number(call.sums, sums, k), scale, number(o.in[call.matrix]->type, added, k),
                      number(o.in[call.bias]->type, biased, k));
      if (o.x.leaf == 1)
        store_double(o.out->type, out, v.real());
      else
        call.store(o.out->type, out, v, result_scale);
    }
  };
  return p;
}

ElementPlan plan_cudnn_convolution(const ElementOperation& o, std::string_view kind, const Elements& at,
                                   ElementSource& source) {
  if (!is_cudnn_convolution_of_fitting_ranks(o.m, o.x.inst)) return no_plan("dim_labels or a window of other ranks");
  const Shape &a = *o.in[0], &b = *o.in[1];
  ProductPlan products = kind == "BackwardInput"
                             ? ConvolutionProducts(o.a, *o.out, b, a).plan(ConvolutionOf::kInput, *o.out, at, source)
                         : kind == "BackwardFilter"
                             ? ConvolutionProducts(o.a, a, *o.out, b).plan(ConvolutionOf::kKernel, *o.out, at, source)
                             : ConvolutionProducts(o.a, a, b, *o.out).plan(ConvolutionOf::kResult, *o.out, at, source);
  products.sums = product_type(o);
  const CudnnEpilogue epilogue = cudnn_epilogue(o.m, o.x.inst);
  if (epilogue.plain()) return plan_products(o, std::move(products), source);
  const auto feature = static_cast<size_t>(o.a.get<DimLabels>(Attr::dim_labels)->output_feature);
  // The elements one behind the other along the features' dimension, each with its own bias.
  std::vector<ElementList> more(o.in.size());
  ElementPlan p;
  p.needs = {{0, products.left_lines}, {1, products.right_lines}};
  for (size_t k = 2; k < o.in.size() && k < 4 && epilogue.fused; ++k) {
    std::vector<int64_t> list(*at);
    if (k == 2) for_coordinates(*at, o.out->dims, [&](size_t i, const Dims& c) { list[i] = c[feature]; });
    more[k] = element_list(std::move(list));
    p.needs.push_back({k, more[k]});
  }
  p.values = [&o, &source, feature, more, products = std::move(products)](char* out) {
    Universe& u = const_cast<Universe&>(o.u);
    const auto n = static_cast<int64_t>(products.sums_of.size());
    Dims dims(o.out->dims.size(), 1);
    dims[feature] = n;
    std::vector<Value> operands{element_values(u, products.sums, summed(o, products, source))};
    operands[0].shape = u.array(products.sums, dims);
    for (size_t k = 2; k < more.size() && more[k]; ++k) {
      operands.push_back(element_values(u, o.in[k]->type, source.read(o, k, *more[k])));
      operands.back().shape = u.array(o.in[k]->type, {n});
    }
    const Value v = Evaluator(o.m).run_epilogue(o.x.inst, std::move(operands));
    std::memcpy(out, v.bytes(), v.data->size());
  };
  return p;
}

}  // namespace hlo
