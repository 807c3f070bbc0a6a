// One library call and what its target's rule expects of it (library_calls.cc, library_attention.cc).
#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>

#include "ir/backend_config.h"
#include "ir/module.h"

namespace hlo::library_rules {

// What numbers an array has.
enum class Kind { kFloat, kFloatOrComplex, kReal, kInteger, kAny };

inline bool is_of(Kind kind, ElementType t) {
  switch (kind) {
    case Kind::kFloat:
      return is_float(t);
    case Kind::kFloatOrComplex:
      return is_float(t) || is_complex(t);
    case Kind::kReal:
      return is_float(t) || is_integral(t);
    case Kind::kInteger:
      return is_integral(t);
    case Kind::kAny:
      return true;
  }
  return false;
}
inline const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::kFloat:
      return "floats";
    case Kind::kFloatOrComplex:
      return "floats or complex numbers";
    case Kind::kReal:
      return "real numbers";
    case Kind::kInteger:
      return "integers";
    case Kind::kAny:
      return "numbers";
  }
  return "";
}

// One call, and the first thing that is wrong with it. Rules are chains of `&&`: what a later part reads, an earlier
// one has made sure of.
class LibraryCall {
 public:
  LibraryCall(const Module& m, InstId call) : m_(m), call_(call) {}

  std::string why;

  template <class... A>
  bool expect(bool holds, fmt::format_string<A...> text, A&&... args) {
    if (!holds && why.empty()) why = fmt::format(text, std::forward<A>(args)...);
    return holds;
  }
  const Module& module() const { return m_; }
  InstId inst() const { return call_; }
  const AttrSet& attrs() const { return m_.attrs(call_); }
  std::string_view config_text() const { return m_.u().text(attrs().text(Attr::backend_config)); }
  size_t operand_count() const { return m_.operand_count(call_); }
  bool tuple() const { return m_.shape(call_).is_tuple(); }
  size_t result_count() const { return tuple() ? m_.shape(call_).elements.size() : 1; }
  ShapeId in_id(size_t k) const { return m_.shape_id(m_.operand(call_, k)); }
  ShapeId out_id(size_t k) const { return tuple() ? m_.shape(call_).elements[k] : m_.shape_id(call_); }
  const Shape& in(size_t k) const { return m_.u()[in_id(k)]; }
  const Shape& out(size_t k) const { return m_.u()[out_id(k)]; }
  const std::string& text(ShapeId s) const { return m_.u().shape_text_plain(s); }

  bool operands(size_t least, size_t most) {
    size_t n = operand_count();
    if (!expect(n >= least && n <= most, "it has {} operand(s), expected {}", n,
                least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most)))
      return false;
    for (size_t k = 0; k < n; ++k)
      if (!expect(in(k).is_array(), "operand {} is {}, expected an array", k, text(in_id(k)))) return false;
    return true;
  }
  // `least` to `most` results: as a tuple, or where one is enough, as an array.
  bool results(size_t least, size_t most, bool as_tuple = false) {
    size_t n = result_count();
    if (!expect(n >= least && n <= most && (tuple() || !as_tuple), "its result is {}, expected {}{}{}",
                text(m_.shape_id(call_)), as_tuple || least > 1 ? "a tuple of " : "", least,
                most > least ? " or more results" : " result(s)"))
      return false;
    for (size_t k = 0; k < n; ++k)
      if (!expect(out(k).is_array(), "result {} is {}, expected an array", k, text(out_id(k)))) return false;
    return true;
  }
  bool operand(size_t k, Kind kind, int least_rank = 0) {
    return expect(is_of(kind, in(k).type) && in(k).rank() >= least_rank, "operand {} is {}, expected {} of rank {}{}",
                  k, text(in_id(k)), kind_text(kind), least_rank, " or more");
  }
  bool result(size_t k, Kind kind) {
    return expect(is_of(kind, out(k).type), "result {} is {}, expected {}", k, text(out_id(k)), kind_text(kind));
  }
  bool result_is(size_t k, ElementType type, const Dims& dims) {
    return expect(out(k).type == type && out(k).dims == dims, "result {} is {}, expected {}[{}]", k, text(out_id(k)),
                  type_name(type), fmt::join(dims, ","));
  }
  bool result_dims(size_t k, const Dims& dims) {
    return expect(out(k).dims == dims, "result {} is {}, expected dimensions [{}]", k, text(out_id(k)),
                  fmt::join(dims, ","));
  }
  bool operand_dims(size_t k, const Dims& dims) {
    return expect(in(k).dims == dims, "operand {} is {}, expected dimensions [{}]", k, text(in_id(k)),
                  fmt::join(dims, ","));
  }
  bool operand_size(size_t k, int64_t elements) {
    return expect(in(k).elements_count() == elements, "operand {} is {}, expected {} element(s)", k, text(in_id(k)),
                  elements);
  }
  bool result_size(size_t k, int64_t elements) {
    return expect(out(k).elements_count() == elements, "result {} is {}, expected {} element(s)", k, text(out_id(k)),
                  elements);
  }
  bool square_operand(size_t k) {
    return expect(in(k).rank() >= 2 && in(k).dims.back() == in(k).dims[in(k).dims.size() - 2],
                  "operand {} is {}, expected square matrices", k, text(in_id(k)));
  }

 private:
  const Module& m_;
  InstId call_;
};

// The dimensions of the product of two arrays by a configuration's numbers, batch dimensions in front; none where they
// do not fit, which the call is told. `shared`: one side may be a single matrix for the whole batch of the other.
// `grouped`: a batch dimension of the right side may be a whole fraction of the left side's.
struct ProductSides {
  bool shared = false, grouped = false;
};
std::optional<Dims> product_dims(LibraryCall& c, ShapeId left, ShapeId right, const Dims& l, const Dims& r,
                                 const BackendConfig& numbers, ProductSides sides = {});

// cuBLASLt's products of groups of rows, and of arrays whose blocks have scales; CUB's running sums.
bool is_grouped_product(LibraryCall& c);
bool is_scaled_product(LibraryCall& c);
bool is_scan(LibraryCall& c);

// cuDNN's attention, forward or backward.
bool is_attention(LibraryCall& c);

}  // namespace hlo::library_rules
