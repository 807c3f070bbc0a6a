#include "ir/eval/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/eval/kernels.h"
#include "ir/types/literal.h"

namespace hlo {

double default_tolerance(ElementType type) {
  if (!is_float(type) && !is_complex(type)) return 0;
  if (type == ElementType::F64 || type == ElementType::C128) return 1e-10;
  if (type == ElementType::F32 || type == ElementType::C64) return 1e-4;
  return type_bits(type) == 16 ? 2e-2 : 1e-1;
}

double unit_of_last_place(ElementType type, double v) {
  int digits = 0, least = 0;  // bits of the mantissa, exponent of the smallest normal value
  if (type == ElementType::F64 || type == ElementType::C128) {
    digits = 52, least = -1022;
  } else if (type == ElementType::F32 || type == ElementType::C64) {
    digits = 23, least = -126;
  } else if (const FloatFormat* f = float_format(type)) {
    digits = f->mantissa_bits, least = 1 - f->bias;
  }
  int exponent = least;
  if (v != 0 && std::isfinite(v)) exponent = std::max(std::ilogb(v), least);
  return std::ldexp(1.0, exponent - digits);
}

namespace {

std::complex<double> number_at(ElementType type, const char* at) {
  return is_complex(type) ? load_complex(type, at) : std::complex<double>(load_double(type, at));
}
bool is_nan(std::complex<double> v) { return std::isnan(v.real()) || std::isnan(v.imag()); }
bool is_inf(std::complex<double> v) { return !is_nan(v) && (std::isinf(v.real()) || std::isinf(v.imag())); }
bool is_nan(double v) { return std::isnan(v); }
bool is_inf(double v) { return std::isinf(v); }

// Elements side by side, in order, as double or complex<double>.
template <class See>
void each_pair(ElementType type, int64_t n, const char* a, const char* b, const See& see) {
  int64_t width = storage_bytes(type);
  if (is_complex(type)) {
    for (int64_t i = 0; i < n; ++i) see(i, number_at(type, a + i * width), number_at(type, b + i * width));
    return;
  }
  constexpr int64_t kAtOnce = 1024;
  double x[kAtOnce], y[kAtOnce];
  for (int64_t i = 0; i < n; i += kAtOnce) {
    int64_t count = std::min(kAtOnce, n - i);
    convert_kernel(type, ElementType::F64, count, a + i * width, reinterpret_cast<char*>(x));
    convert_kernel(type, ElementType::F64, count, b + i * width, reinterpret_cast<char*>(y));
    for (int64_t k = 0; k < count; ++k) see(i + k, x[k], y[k]);
  }
}

std::string off_by(const OutputComparison& o, double largest) {
  std::string out = fmt::format("off by {:.3g} times the largest magnitude {:.6g}, {:.3g} is allowed", o.relative,
                                largest, o.tolerance);
  if (o.error_a >= 0) out += fmt::format("; against the reference {:.3g} off, the other {:.3g}", o.error_a, o.error_b);
  return out;
}

// Two arrays of one shape, element by element.
struct ArrayComparison {
  const Shape& shape;
  const Value &a, &b;
  OutputComparison& out;
  ElementType type = shape.type;
  int width = storage_bytes(type);
  double largest = 0;  // magnitude of b

  void place(int64_t i) {
    out.worst = i;
    out.index = Dims(shape.dims.size(), 0);
    int64_t rest = i;
    for (size_t d = shape.dims.size(); d-- > 0; rest /= shape.dims[d]) out.index[d] = rest % shape.dims[d];
    append_element(out.value_a = "", type, a.bytes() + i * width);
    append_element(out.value_b = "", type, b.bytes() + i * width);
  }

  void integers() {
    for (int64_t i = 0; i < out.elements; ++i) {
      int64_t x = load_int(type, a.bytes() + i * width), y = load_int(type, b.bytes() + i * width);
      if (x == y) continue;
      double distance = std::fabs(static_cast<double>(x) - static_cast<double>(y));
      if (!out.different++ || distance > out.absolute) place(i), out.absolute = distance;
    }
    out.equal = out.different == 0;
    if (!out.equal) out.why = fmt::format("{} of {} integers differ", out.different, out.elements);
  }

  // False where NaN or infinities disagree, which no rounding explains.
  bool numbers() {
    double worst = -1;
    int64_t worst_at = -1, unlike = -1;  // the first place where NaN or infinities disagree
    each_pair(type, out.elements, a.bytes(), b.bytes(), [&](int64_t i, auto x, auto y) {
      bool nan_x = is_nan(x), nan_y = is_nan(y), inf_x = is_inf(x), inf_y = is_inf(y);
      out.nan_a += nan_x, out.nan_b += nan_y, out.inf_a += inf_x, out.inf_b += inf_y;
      if (!nan_y && !inf_y) largest = std::max(largest, std::abs(y));
      if ((nan_x && nan_y) || x == y) return;
      ++out.different;
      if (nan_x || nan_y || inf_x || inf_y) {
        if (unlike < 0) unlike = i;
        return;
      }
      if (double d = std::abs(x - y); d > worst) worst = d, worst_at = i;
    });
    // An infinity beside the largest finite numbers is a matter of rounding only where the type says so; it counts as a
    // difference, as it would grow.
    if (worst_at >= 0) {
      place(worst_at);
      out.absolute = worst;
      out.relative = largest > 0 ? worst / largest : INFINITY;
      out.ulps = worst / unit_of_last_place(type, std::abs(number_at(type, b.bytes() + worst_at * width)));
    }
    if (unlike >= 0) {
      place(unlike);
      out.absolute = out.relative = out.ulps = NAN;
      out.equal = false;
      out.why = out.nan_a != out.nan_b ? fmt::format("NaN at {} places here, at {} there", out.nan_a, out.nan_b)
                                       : "NaN or infinities at different places";
      return false;
    }
    out.equal = worst_at < 0 || worst <= out.tolerance * largest;
    if (!out.equal) out.why = off_by(out, largest);
    return true;
  }
};

}  // namespace

OutputComparison compare_values(const Universe& u, std::string name, const Value& a, const Value& b, double tolerance,
                                const Value* reference) {
  OutputComparison out;
  out.name = std::move(name);
  out.shape = u.shape_text_plain(b.shape);
  const Shape &sa = u[a.shape], &sb = u[b.shape];
  if (sa.type != sb.type || sa.dims != sb.dims) {
    out.equal = false;
    out.why = fmt::format("shapes differ: {} and {}", u.shape_text_plain(a.shape), out.shape);
    return out;
  }
  if (!sb.is_array()) return out;
  out.elements = sb.elements_count();
  out.tolerance = tolerance < 0 ? default_tolerance(sb.type) : tolerance;
  ArrayComparison sides{sb, a, b, out};
  if (!is_float(sb.type) && !is_complex(sb.type)) {
    sides.integers();
    return out;
  }
  if (!sides.numbers() || out.equal || !reference || u[reference->shape].dims != sb.dims) return out;
  out.error_a = error_against(u, a, *reference);
  out.error_b = error_against(u, b, *reference);
  // A side that is far off while the other one is not has gone wrong, it has not merely been rounded.
  bool plausible = out.error_b <= 100 * out.tolerance || out.error_b <= 1000 * out.error_a;
  out.equal = out.error_a <= 4 * out.error_b && plausible;
  if (out.equal)
    out.why.clear();
  else
    out.why = off_by(out, sides.largest);
  return out;
}

double error_against(const Universe& u, const Value& value, const Value& reference) {
  if (u[value.shape].is_tuple()) {
    double worst = 0;
    for (size_t k = 0; k < value.elements.size(); ++k)
      worst = std::max(worst, error_against(u, value.elements[k], reference.elements[k]));
    return worst;
  }
  ElementType type = u[value.shape].type;
  if (!is_float(type) && type_kind(type) != TypeKind::kComplex) return 0;
  ElementType high = u[reference.shape].type;
  int width = storage_bytes(type), high_width = storage_bytes(high);
  double scale = 0, error = 0;
  for (int64_t i = 0, n = u[value.shape].elements_count(); i < n; ++i) {
    std::complex<double> r = number_at(high, reference.bytes() + i * high_width);
    if (is_nan(r) || is_inf(r)) continue;
    scale = std::max(scale, std::abs(r));
    error = std::max(error, std::abs(number_at(type, value.bytes() + i * width) - r));
  }
  return scale > 0 ? error / scale : error;
}

void hold_both_to_reference(Comparison& comparison) {
  for (OutputComparison& o : comparison.outputs) {
    if (!o.equal || o.error_b <= 4 * std::max(o.error_a, o.tolerance)) continue;
    o.equal = comparison.equal = false;
    o.why = off_by(o, o.relative > 0 ? o.absolute / o.relative : 0);
  }
}

const OutputComparison* Comparison::first_difference() const {
  for (const OutputComparison& o : outputs)
    if (!o.equal) return &o;
  return nullptr;
}

Comparison compare_results(const Universe& u, const Value& a, const Value& b, double tolerance,
                           const Value* reference) {
  std::vector<Value> x, y, r;
  flatten(u, a, &x), flatten(u, b, &y);
  if (reference) flatten(u, *reference, &r);
  Comparison out;
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    if (i >= x.size() || i >= y.size()) {
      OutputComparison missing;
      missing.name = fmt::format("o{}", i);
      missing.equal = false;
      missing.why = fmt::format("{} outputs here, {} there", x.size(), y.size());
      out.outputs.push_back(std::move(missing));
      break;
    }
    if (!u[y[i].shape].is_array() && !u[x[i].shape].is_array()) continue;
    out.outputs.push_back(
        compare_values(u, fmt::format("o{}", i), x[i], y[i], tolerance, i < r.size() ? &r[i] : nullptr));
  }
  out.equal = !out.first_difference();
  return out;
}

}  // namespace hlo
