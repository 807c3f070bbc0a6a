#include "ir/library/library_calls.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "ir/backend_config.h"
#include "ir/base/checked.h"
#include "ir/library/lapack.h"
#include "ir/library/library_rules.h"

namespace hlo {
namespace library_rules {
namespace {

Dims without_last(const Dims& dims, size_t count) {
  return Dims(dims.begin(), dims.end() - static_cast<ptrdiff_t>(count));
}
Dims joined(Dims dims, int64_t last) {
  dims.push_back(last);
  return dims;
}

bool is_top_k(LibraryCall& c) {
  if (!(c.operands(1, 1) && c.operand(0, Kind::kReal, 1) && c.results(2, 2, true))) return false;
  const Dims& from = c.in(0).dims;
  const Shape &values = c.out(0), &places = c.out(1);
  return c.expect(values.type == c.in(0).type && values.dims.size() == from.size() &&
                      without_last(values.dims, 1) == without_last(from, 1) && values.dims.back() <= from.back(),
                  "result 0 is {}, expected the first values of each line of {}", c.text(c.out_id(0)),
                  c.text(c.in_id(0))) &&
         c.expect(is_integral(places.type) && places.dims == values.dims, "result 1 is {}, expected indices of {}",
                  c.text(c.out_id(1)), c.text(c.out_id(0)));
}

bool is_cholesky(LibraryCall& c) {
  return c.operands(1, 1) && c.operand(0, Kind::kFloatOrComplex, 2) && c.square_operand(0) && c.results(1, 3) &&
         c.result_is(0, c.in(0).type, c.in(0).dims);
}

// (X, the library's memory) of A and B
bool is_triangular_solve(LibraryCall& c) {
  if (!(c.operands(2, 2) && c.operand(0, Kind::kFloatOrComplex, 2) && c.operand(1, Kind::kFloatOrComplex, 2) &&
        c.square_operand(0) && c.results(1, 2, true) && c.result_is(0, c.in(1).type, c.in(1).dims)))
    return false;
  const Dims &a = c.in(0).dims, &b = c.in(1).dims;
  const bool left = flag(backend_config(c.config_text(), "triangular_solve_options"), "left_side");
  return c.expect(c.in(0).type == c.in(1).type && without_last(a, 2) == without_last(b, 2) &&
                      a.back() == b[b.size() - (left ? 2 : 1)],
                  "operand 1 is {}, which the triangles do not fit", c.text(c.in_id(1)));
}

// (packed R and reflectors, their factors)
bool is_qr(LibraryCall& c) {
  if (!(c.operands(1, 1) && c.operand(0, Kind::kFloatOrComplex, 2) && c.results(2, 2, true))) return false;
  const Dims& dims = c.in(0).dims;
  return c.result_is(0, c.in(0).type, dims) &&
         c.result_is(1, c.in(0).type, joined(without_last(dims, 2), std::min(dims.back(), dims[dims.size() - 2])));
}

bool is_reflectors_product(LibraryCall& c) {
  if (!(c.operands(2, 2) && c.operand(0, Kind::kFloatOrComplex, 2) && c.operand(1, Kind::kFloatOrComplex, 1) &&
        c.results(1, 1)))
    return false;
  const Shape &a = c.in(0), &taus = c.in(1);
  int64_t most = std::min(a.dims.back(), a.dims[a.dims.size() - 2]);
  return c.expect(
             taus.type == a.type && without_last(taus.dims, 1) == without_last(a.dims, 2) && taus.dims.back() <= most,
             "operand 1 is {}, expected at most {} factors for each matrix of {}", c.text(c.in_id(1)), most,
             c.text(c.in_id(0))) &&
         c.result_is(0, a.type, a.dims);
}

// (vectors, values)
bool is_eigh(LibraryCall& c) {
  if (!(c.operands(1, 1) && c.operand(0, Kind::kFloatOrComplex, 2) && c.square_operand(0) && c.results(2, 2, true)))
    return false;
  const Shape& a = c.in(0);
  ElementType real = a.type == ElementType::C64    ? ElementType::F32
                     : a.type == ElementType::C128 ? ElementType::F64
                                                   : a.type;
  return c.result_is(0, a.type, a.dims) && c.result_is(1, real, without_last(a.dims, 1));
}
bool is_configured_eigh(LibraryCall& c) {
  int lower = 1, sorted = 1, sweeps = 0;
  float tolerance = 0;
  std::string config(c.config_text());
  return is_eigh(c) &&
         c.expect(std::sscanf(config.c_str(), "%d,%d,%d,%f", &lower, &sorted, &sweeps, &tolerance) == 4,
                  "its configuration is '{}', expected lower,sort,sweeps,tolerance", config.substr(0, 100));
}

bool is_seed(LibraryCall& c) {
  return c.operands(0, 0) && c.results(1, 1) && c.result(0, Kind::kInteger) && c.result_dims(0, {});
}
bool is_allocation(LibraryCall&) { return true; }

// jax's own random bits on a GPU: two halves of a key, two of a counter.
bool is_threefry(LibraryCall& c) {
  if (!(c.operands(4, 4) && c.results(2, 2, true))) return false;
  bool good = true;
  for (size_t k = 0; k < 4 && good; ++k)
    good = c.expect(c.in(k).type == ElementType::U32 && c.in(k).dims == c.in(0).dims,
                    "operand {} is {}, expected u32[{}]", k, c.text(c.in_id(k)), fmt::join(c.in(0).dims, ","));
  return good && c.result_is(0, ElementType::U32, c.in(0).dims) && c.result_is(1, ElementType::U32, c.in(0).dims);
}

// A function of Python: where nothing comes back (jax.debug.print), nothing hangs on it.
bool is_silent_callback(LibraryCall& c) {
  bool silent = c.tuple() || c.out(0).is_token();
  for (size_t k = 0; silent && k < c.result_count(); ++k) silent = c.out(k).is_token();
  return silent || c.expect(false, "its result {} is made by a function in Python, which is not in the module",
                            c.text(c.out_id(0)));
}

bool is_layer_norm_of_onednn(LibraryCall& c) {
  if (!(c.operands(3, 3) && c.operand(0, Kind::kFloat, 1) && c.operand(1, Kind::kFloat) && c.operand(2, Kind::kFloat) &&
        c.results(1, 1) && c.result(0, Kind::kFloat)))
    return false;
  BackendConfig config = backend_config(c.config_text(), "onednn_layer_norm_config");
  std::string rescale = word(config, "rescale", "");
  double epsilon = number(config, "epsilon_typecast", 0);
  int64_t line = c.in(0).dims.back();
  return c.result_dims(0, c.in(0).dims) && c.operand_size(1, line) && c.operand_size(2, line) &&
         c.expect(rescale == "SCALE_AND_SHIFT", "rescale is '{}', expected SCALE_AND_SHIFT", rescale) &&
         c.expect(std::fabs(epsilon) <= INT32_MAX, "epsilon_typecast is {}, expected the bits of an f32", epsilon);
}

bool is_layer_norm_of_cudnn(LibraryCall& c) {
  std::string kind = word(backend_config(c.config_text(), "cudnn_norm_backend_config"), "kind", "LAYER_FWD_INFER");
  bool infer = kind == "LAYER_FWD_INFER", backward = kind == "LAYER_BWD";
  if (!(c.expect(infer || backward || kind == "LAYER_FWD_TRAIN",
                 "its kind is '{}', expected LAYER_FWD_INFER, LAYER_FWD_TRAIN or LAYER_BWD", kind) &&
        c.operands(backward ? 5 : 3, backward ? 5 : 3) && c.results(infer ? 2 : 4, infer ? 2 : 4, true)))
    return false;
  for (size_t k = 0; k < c.operand_count(); ++k)
    if (!c.operand(k, Kind::kFloat)) return false;
  for (size_t k = 0; k + 1 < c.result_count(); ++k)
    if (!c.result(k, Kind::kFloat)) return false;
  int64_t all = c.in(0).elements_count(), line = c.in(1).elements_count();
  if (!(c.expect(line > 0 && all % line == 0, "operand 1 is {}, expected one row of {}", c.text(c.in_id(1)),
                 c.text(c.in_id(0))) &&
        c.result_size(0, all) && c.operand_size(2, backward ? all : line)))
    return false;
  int64_t rows = all / line;
  if (infer) return true;
  return backward
             ? c.operand_size(3, rows) && c.operand_size(4, rows) && c.result_size(1, line) && c.result_size(2, line)
             : c.result_size(1, rows) && c.result_size(2, rows);
}

}  // namespace

std::optional<Dims> product_dims(LibraryCall& c, ShapeId left, ShapeId right, const Dims& l, const Dims& r,
                                 const BackendConfig& numbers, ProductSides sides) {
  Dims lb = list(numbers, "lhs_batch_dimensions"), rb = list(numbers, "rhs_batch_dimensions"),
       lc = list(numbers, "lhs_contracting_dimensions"), rc = list(numbers, "rhs_contracting_dimensions");
  auto fit = [](const Dims& dims, const Dims& batch, const Dims& contracted) {
    std::vector<bool> seen(dims.size(), false);
    for (const Dims* named : {&batch, &contracted})
      for (int64_t d : *named) {
        if (d < 0 || d >= static_cast<int64_t>(dims.size()) || seen[static_cast<size_t>(d)]) return false;
        seen[static_cast<size_t>(d)] = true;
      }
    return true;
  };
  auto fits_batch = [&](int64_t one, int64_t other) {
    return one == other || (sides.grouped && other > 0 && one % other == 0);
  };
  const bool shared = sides.shared && (lb.empty() || rb.empty());
  bool good = (lb.size() == rb.size() || shared) && lc.size() == rc.size() && fit(l, lb, lc) && fit(r, rb, rc);
  for (size_t k = 0; good && !shared && k < lb.size(); ++k)
    good = fits_batch(l[static_cast<size_t>(lb[k])], r[static_cast<size_t>(rb[k])]);
  for (size_t k = 0; good && k < lc.size(); ++k) good = l[static_cast<size_t>(lc[k])] == r[static_cast<size_t>(rc[k])];
  if (!c.expect(
          good, "its dimension numbers (batch {{{}}} and {{{}}}, contracting {{{}}} and {{{}}}) do not fit {} and {}",
          fmt::join(lb, ","), fmt::join(rb, ","), fmt::join(lc, ","), fmt::join(rc, ","), c.text(left), c.text(right)))
    return std::nullopt;
  Dims out;
  for (int64_t d : lb.empty() ? rb : lb) out.push_back((lb.empty() ? r : l)[static_cast<size_t>(d)]);
  auto rest = [&](const Dims& dims, const Dims& batch, const Dims& contracted) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (std::count(batch.begin(), batch.end(), d) + std::count(contracted.begin(), contracted.end(), d) == 0)
        out.push_back(dims[d]);
  };
  rest(l, lb, lc), rest(r, rb, rc);
  return out;
}

namespace {

// alpha · A · B [+ beta · C], the epilogue's bias, and the factors of eight bits behind them.
bool is_product(LibraryCall& c, bool lt, bool eight_bits) {
  if (!(c.operands(2, 8) && c.results(1, 4))) return false;
  BackendConfig config = backend_config(c.config_text(), "gemm_backend_config");
  auto numbers = config.find("dot_dimension_numbers");
  if (!c.expect(numbers != config.end() && numbers->is_object(), "its configuration has no dot_dimension_numbers"))
    return false;
  const Shape& out = c.out(0);
  auto complex = [](const Shape& s) { return is_complex(s.type); };
  if (!(c.expect(complex(out) == complex(c.in(0)) && complex(out) == complex(c.in(1)) &&
                     (!is_integral(out.type) || (!is_float(c.in(0).type) && !is_float(c.in(1).type))) &&
                     out.type != ElementType::Pred,
                 "result 0 is {}, which no product of {} and {} is", c.text(c.out_id(0)), c.text(c.in_id(0)),
                 c.text(c.in_id(1)))))
    return false;
  std::optional<Dims> dims =
      product_dims(c, c.in_id(0), c.in_id(1), c.in(0).dims, c.in(1).dims, *numbers, {.shared = lt});
  if (!dims || !c.result_dims(0, *dims)) return false;
  std::string epilogue = word(config, "epilogue", "DEFAULT");
  constexpr std::string_view kKnown[] = {"DEFAULT",   "RELU",          "GELU",          "GELU_AUX",
                                         "SILU",      "SILU_AUX",      "BIAS",          "BIAS_RELU",
                                         "BIAS_GELU", "BIAS_GELU_AUX", "BIAS_SILU_AUX", "BIAS_SILU"};
  if (!c.expect(std::find(std::begin(kKnown), std::end(kKnown), epilogue) != std::end(kKnown) &&
                    (lt || epilogue == "DEFAULT"),
                "epilogue {} is not supported", epilogue))
    return false;
  size_t next = 2;
  auto there = [&](const char* what) {
    return c.expect(next < c.operand_count(), "it has {} operands, expected another for {}", next, what) &&
           c.expect(complex(c.in(next)) == complex(out), "operand {} is {}, expected numbers as of {}", next,
                    c.text(c.in_id(next)), c.text(c.out_id(0)));
  };
  if (number(config, "beta", 0) != 0 && !(there("beta") && c.operand_dims(next++, *dims))) return false;
  for (int k = 0; eight_bits && k < 2; ++k)
    if (!(there("the factor of a side") && c.operand_size(next, 1) && c.operand(next++, Kind::kFloat))) return false;
  bool bias = epilogue.starts_with("BIAS");
  for (; next < c.operand_count(); ++next) {
    const Dims& d = c.in(next).dims;
    if (eight_bits && d.empty()) {
      if (!c.operand(next, Kind::kFloat)) return false;
    } else if (bias) {
      bias = false;
      if (!(there("the bias") &&
            // XLA pads products, and the vector behind them not always: what is added to the padding is cut off.
            c.expect((!d.empty() && d.size() <= dims->size() && std::equal(d.rbegin(), d.rend(), dims->rbegin())) ||
                         (lt && d.size() == 1 && d[0] > 0 && d[0] <= dims->back()),
                     "operand {} is {}, expected a bias of the last dimensions of {}", next, c.text(c.in_id(next)),
                     c.text(c.out_id(0)))))
        return false;
    } else {
      return c.expect(false, "operand {} is one more than epilogue {} takes", next, epilogue);
    }
  }
  if (!c.expect(!bias, "it has no operand for the bias of epilogue {}", epilogue)) return false;
  const bool before = epilogue.ends_with("_AUX");
  if (before && !(c.results(2, 4, true) && c.result(1, Kind::kFloat) && c.result_dims(1, *dims))) return false;
  // The largest of the absolute values behind it.
  const size_t largest = before ? 2 : 1;
  return !flag(config, "damax_output") ||
         (c.results(largest + 1, 4, true) && c.result(largest, Kind::kFloat) && c.result_size(largest, 1));
}

// Keys, or keys and what goes with them, in order along the last dimension, each row by itself, and a workspace
// (xla/backends/gpu/transforms/sort_rewriter.cc, estimate_cub_scratch_size.cc).
bool is_radix_sort(LibraryCall& c) {
  if (!(c.operands(1, 2) && c.operand(0, Kind::kReal, 1) &&
        c.expect(type_bits(c.in(0).type) >= 8, "operand 0 is {}, expected whole bytes", c.text(c.in_id(0)))))
    return false;
  const size_t arrays = c.operand_count();
  if (!(c.results(arrays + 1, arrays + 1, true) && c.operand_dims(arrays - 1, c.in(0).dims))) return false;
  for (size_t k = 0; k < arrays; ++k) {
    if (!c.result_is(k, c.in(k).type, c.in(0).dims)) return false;
    for (const Shape* s : {&c.in(k), &c.out(k)})
      if (!c.expect(s->layout.minor_to_major.empty() || s->layout.minor_to_major[0] == s->rank() - 1,
                    "the rows that are sorted are not contiguous"))
        return false;
  }
  return true;
}

// Are these three arrays a convolution's, by dim_labels and window?
bool convolution_fits(LibraryCall& c, const Shape& x, const Shape& w, const Shape& y) {
  const DimLabels* d = c.attrs().get<DimLabels>(Attr::dim_labels);
  static const Window kNone;
  const Window* window = c.attrs().get<Window>(Attr::window);
  if (!window) window = &kNone;
  if (!(c.expect(d, "it has no dim_labels") &&
        c.expect(x.rank() == d->lhs_rank && w.rank() == d->rhs_rank && y.rank() == d->out_rank &&
                     window->dims.size() == d->input_spatial.size(),
                 "dim_labels or a window of other ranks than its arrays")))
    return false;
  auto of = [](const Shape& s, int64_t dim) { return s.dims[static_cast<size_t>(dim)]; };
  int64_t groups = c.attrs().integer(Attr::feature_group_count, 1),
          batches = c.attrs().integer(Attr::batch_group_count, 1);
  bool fits = groups >= 1 && batches >= 1 &&
              (Checked(of(w, d->kernel_input)) * groups).capped() == of(x, d->input_feature) &&
              of(w, d->kernel_output) % groups == 0 && of(w, d->kernel_output) % batches == 0 &&
              of(x, d->input_batch) % batches == 0 && of(y, d->output_batch) == of(x, d->input_batch) / batches &&
              of(y, d->output_feature) == of(w, d->kernel_output);
  for (size_t k = 0; fits && k < window->dims.size(); ++k) {
    const WindowDim& at = window->dims[k];
    fits = at.stride >= 1 && at.lhs_dilate >= 1 && at.rhs_dilate >= 1 && at.size == of(w, d->kernel_spatial[k]) &&
           of(y, d->output_spatial[k]) == at.output_size(of(x, d->input_spatial[k]));
  }
  return c.expect(fits, "its arrays are not the input, kernel and output of a convolution of this window");
}

bool is_convolution(LibraryCall& c, std::string_view kind) {
  bool fused = kind == "BiasActivationForward";
  if (!(c.operands(2, fused ? 4 : 2) && c.results(1, 2, true))) return false;
  bool complex = is_complex(c.out(0).type);
  for (size_t k = 0; k < c.operand_count(); ++k)
    if (!c.expect(is_complex(c.in(k).type) == complex, "operand {} is {}, the result {}", k, c.text(c.in_id(k)),
                  c.text(c.out_id(0))))
      return false;
  const Shape &x = kind == "BackwardInput" ? c.out(0) : c.in(0), &w = kind == "BackwardFilter" ? c.out(0) : c.in(1),
              &y = kind == "BackwardInput"    ? c.in(0)
                   : kind == "BackwardFilter" ? c.in(1)
                                              : c.out(0);
  if (!convolution_fits(c, x, w, y)) return false;
  BackendConfig config = backend_config(c.config_text(), "cudnn_conv_backend_config");
  std::string mode = word(config, "activation_mode", "kNone");
  constexpr std::string_view kModes[] = {"kNone", "kRelu", "kRelu6", "kElu", "kLeakyRelu", "kSigmoid", "kTanh"};
  if (!c.expect(std::find(std::begin(kModes), std::end(kModes), mode) != std::end(kModes),
                "activation {} is not supported", mode))
    return false;
  if (c.operand_count() > 2 &&
      !c.operand_size(2, y.dims[static_cast<size_t>(c.attrs().get<DimLabels>(Attr::dim_labels)->output_feature)]))
    return false;
  return c.operand_count() < 4 || c.operand_dims(3, y.dims);
}

struct LibraryRow {
  std::string_view target;
  bool (*rule)(LibraryCall&);
  bool (*expanded)(LibraryCall&) = nullptr;  // what XLA's own passes take for granted
};
constexpr LibraryRow kLibraryRows[] = {
    {"__cudnn$convForward", [](LibraryCall& c) { return is_convolution(c, "Forward"); }},
    {"__cudnn$convBackwardInput", [](LibraryCall& c) { return is_convolution(c, "BackwardInput"); }},
    {"__cudnn$convBackwardFilter", [](LibraryCall& c) { return is_convolution(c, "BackwardFilter"); }},
    {"__cudnn$convBiasActivationForward", [](LibraryCall& c) { return is_convolution(c, "BiasActivationForward"); }},
    {"__cudnn$norm", is_layer_norm_of_cudnn},
    {"__cudnn$fmhaSoftmax", is_attention},
    {"__cudnn$fmhaScaleBiasSoftmax", is_attention},
    {"__cudnn$fmhaSoftmaxBackward", is_attention},
    {"__cudnn$fmhaScaleBiasSoftmaxBackward", is_attention},
    {"__cub$DeviceRadixSort", is_radix_sort},
    {"__cub$DeviceRadixSortUnassignedScratchSize", is_radix_sort},
    {"xla.gpu.ext.cub_sort_keys", is_radix_sort},
    {"xla.gpu.ext.cub_sort_pairs", is_radix_sort},
    {"__cublas$gemm", [](LibraryCall& c) { return is_product(c, false, false); }},
    {"__cublas$lt$matmul", [](LibraryCall& c) { return is_product(c, true, false); }},
    {"__cublas$lt$matmul$f8", [](LibraryCall& c) { return is_product(c, true, true); }},
    {"__cublas$lt$matmul$mx", is_scaled_product},
    {"__cublas$lt$groupedMatmul", is_grouped_product},
    {"xla.gpu.ext.cub_scan", is_scan},
    {"xla.gpu.ext.cub_scan_unassigned_scratch_size", is_scan},
    {"TopK", is_top_k, is_top_k},
    {"__gpu$TopK", is_top_k},
    {"__cusolver$cholesky", is_cholesky},
    {"cusolver$cholesky", is_cholesky},
    {"__cublas$triangularSolve", is_triangular_solve},
    {"Qr", is_qr, is_qr},
    {"Eigh", is_configured_eigh, is_eigh},
    {"ProductOfElementaryHouseholderReflectors", is_reflectors_product, is_reflectors_product},
    {"AllocateBuffer", is_allocation},
    {"GetRngSeed", is_seed},
    {"cu_threefry2x32", is_threefry},
    {"cu_threefry2x32_ffi", is_threefry},
    {"hip_threefry2x32", is_threefry},
    {"hip_threefry2x32_ffi", is_threefry},
    {"xla_python_cpu_callback", is_silent_callback},
    {"xla_python_gpu_callback", is_silent_callback},
    {"xla_ffi_python_cpu_callback", is_silent_callback},
    {"xla_ffi_python_gpu_callback", is_silent_callback},
    {"__onednn$layernorm", is_layer_norm_of_onednn},
};

const LibraryRow* library_row(std::string_view target) {
  for (const LibraryRow& row : kLibraryRows)
    if (row.target == target) return &row;
  return nullptr;
}
const LibraryRow* library_row(const Module& m, InstId call) {
  return m.op(call) == Opcode::CustomCall ? library_row(m.u().text(m.attrs(call).text(Attr::custom_call_target)))
                                          : nullptr;
}

}  // namespace
}  // namespace library_rules

using library_rules::library_row, library_rules::LibraryCall, library_rules::LibraryRow;

bool is_library_target(std::string_view target) { return library_row(target) || lapack_call(target); }

std::optional<size_t> scratch_element(const Universe& u, ShapeId shape, std::string_view target) {
  constexpr std::string_view kLibraries[] = {"__cudnn$", "__cublas$", "__cub$", "xla.gpu.ext.cub_", "__onednn$"};
  const Shape& s = u[shape];
  if (!s.is_tuple()) return std::nullopt;
  auto array = [&](size_t k) { return u[s.elements[k]].is_array(); };
  for (size_t k = 0; k < s.elements.size(); ++k)
    if (!array(k)) return std::nullopt;
  if (target == "__cusolver$cholesky" || target == "cusolver$cholesky")
    return s.elements.size() == 3 ? std::optional<size_t>(1) : std::nullopt;
  if (s.elements.size() < 2 || std::none_of(std::begin(kLibraries), std::end(kLibraries),
                                            [&](std::string_view prefix) { return target.starts_with(prefix); }))
    return std::nullopt;
  const Shape& last = u[s.elements.back()];
  const bool bytes = last.rank() == 1 && (last.type == ElementType::U8 || last.type == ElementType::S8);
  return bytes ? std::optional<size_t>(s.elements.size() - 1) : std::nullopt;
}

std::optional<size_t> scratch_element(const Module& m, InstId call) {
  if (m.op(call) != Opcode::CustomCall) return std::nullopt;
  return scratch_element(m.u(), m.shape_id(call), m.u().text(m.attrs(call).text(Attr::custom_call_target)));
}

std::string library_call_error(const Module& m, InstId call) {
  const LibraryRow* row = library_row(m, call);
  LibraryCall c(m, call);
  if (row)
    row->rule(c);
  else
    lapack_call(m, call, &c.why);
  return std::move(c.why);
}

std::string expanded_call_error(const Module& m, InstId call) {
  const LibraryRow* row = library_row(m, call);
  LibraryCall c(m, call);
  if (row && row->expanded) row->expanded(c);
  return std::move(c.why);
}

}  // namespace hlo
