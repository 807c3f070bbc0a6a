#include "replay/judge/nan_watch.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "ir/base/hash.h"
#include "ir/eval/evaluator.h"
#include "ir/print/print.h"
#include "ir/query/source_lines.h"

namespace hlo {
namespace {

bool is_number(const Universe& u, const Value& v) {
  const Shape& s = u[v.shape];
  return s.is_array() && (is_float(s.type) || is_complex(s.type));
}

std::complex<double> number_at(ElementType t, const char* at) {
  return is_complex(t) ? load_complex(t, at) : std::complex<double>(load_double(t, at));
}

bool holds_nan(std::complex<double> x) { return std::isnan(x.real()) || std::isnan(x.imag()); }
bool holds_infinity(std::complex<double> x) { return !holds_nan(x) && (std::isinf(x.real()) || std::isinf(x.imag())); }

// One byte an element: is it of the kind? Empty where none is.
std::vector<char> marks(const Universe& u, const Value& v, bool nan, bool infinity) {
  std::vector<char> out;
  if (!is_number(u, v)) return out;
  ElementType t = u[v.shape].type;
  int width = storage_bytes(t);
  int64_t n = u[v.shape].elements_count();
  for (int64_t k = 0; k < n; ++k) {
    std::complex<double> x = number_at(t, v.bytes() + k * width);
    if ((nan && holds_nan(x)) || (infinity && holds_infinity(x))) {
      if (out.empty()) out.resize(static_cast<size_t>(n));
      out[static_cast<size_t>(k)] = 1;
    }
  }
  return out;
}

int64_t count_marks(const Universe& u, const Value& v, bool nan) {
  if (u[v.shape].is_tuple()) {
    int64_t sum = 0;
    for (const Value& e : v.elements) sum += count_marks(u, e, nan);
    return sum;
  }
  std::vector<char> m = marks(u, v, nan, !nan);
  return std::count(m.begin(), m.end(), 1);
}

// Elements of the kind stay, all others become one: what a computation makes of it shows where the kind gets to.
Value only_kind(const Universe& u, const Value& v, bool nan) {
  Value out = v;
  if (u[v.shape].is_tuple()) {
    for (Value& e : out.elements) e = only_kind(u, e, nan);
    return out;
  }
  if (!is_number(u, v)) return out;
  std::vector<char> keep = marks(u, v, nan, !nan);
  ElementType t = u[v.shape].type;
  int width = storage_bytes(t);
  char* bytes = out.mutable_bytes();
  for (int64_t k = 0; k < u[v.shape].elements_count(); ++k) {
    if (!keep.empty() && keep[static_cast<size_t>(k)]) continue;
    if (is_complex(t))
      store_complex(t, bytes + k * width, 1);
    else
      store_double(t, bytes + k * width, 1);
  }
  return out;
}

std::string number_text(ElementType t, const char* at) {
  if (is_complex(t)) {
    std::complex<double> x = load_complex(t, at);
    return fmt::format("({:.6g}, {:.6g})", x.real(), x.imag());
  }
  if (is_float(t)) return fmt::format("{:.6g}", load_double(t, at));
  return fmt::format("{}", load_int(t, at));
}

std::string index_text(const Shape& s, int64_t flat) {
  std::string out;
  for (size_t d = s.dims.size(); d-- > 0;) {
    int64_t size = std::max<int64_t>(s.dims[d], 1);
    out = fmt::format("{}{}{}", flat % size, out.empty() ? "" : ",", out);
    flat /= size;
  }
  return "[" + out + "]";
}

std::string source_in_words(const Module& m, InstId i) {
  const Metadata& d = m.u()[m[i].meta];
  std::string out;
  auto text = [&](uint32_t s) { return s == StrId::kNone ? std::string_view() : m.u().text(StrId(s)); };
  if (!text(d.op_name).empty()) out += fmt::format(", op_name \"{}\"", text(d.op_name));
  if (SourceLine line = source_line(m, i); line.known()) out += ", " + line.text();
  return out;
}

// Result element k is made of the operands' elements k (or of scalars).
bool element_by_element(const Module& m, InstId i, std::span<const Value> operands, const Value& v) {
  const Universe& u = m.u();
  if (!u[v.shape].is_array() || !(op_info(m.op(i)).elementwise || m.op(i) == Opcode::Map)) return false;
  int64_t n = u[v.shape].elements_count();
  return std::all_of(operands.begin(), operands.end(), [&](const Value& o) {
    return u[o.shape].is_array() && (u[o.shape].elements_count() == n || u[o.shape].rank() == 0);
  });
}

}  // namespace

Statistics statistics(const Universe& u, const Value& v) {
  Statistics out;
  const Shape& s = u[v.shape];
  if (!s.is_array()) return out;
  out.elements = s.elements_count();
  out.checksum = hash_bytes({v.data->data(), v.data->size()});
  out.numbers = true;
  int width = storage_bytes(s.type);
  for (int64_t k = 0; k < out.elements; ++k) {
    std::complex<double> z = number_at(s.type, v.bytes() + k * width);
    if (holds_nan(z)) {
      ++out.nan;
    } else if (holds_infinity(z)) {
      ++out.inf;
    } else {
      double x = is_complex(s.type) ? std::abs(z) : z.real();
      out.min = std::min(out.min, x), out.max = std::max(out.max, x), out.sum += x;
    }
  }
  return out;
}

std::function<void(InstId, std::span<const Value>, const Value&)> NanWatch::listener() {
  return [this](InstId i, std::span<const Value> operands, const Value& v) { see(i, operands, v); };
}

void NanWatch::see(InstId i, std::span<const Value> operands, const Value& v) {
  Opcode op = m_.op(i);
  OpClass cls = op_info(op).cls;
  // These hand on what they get.
  if (cls == OpClass::Move || cls == OpClass::Tuple || cls == OpClass::Token || op == Opcode::AsyncUpdate ||
      op == Opcode::AsyncDone || op == Opcode::CopyStart || op == Opcode::CopyDone)
    return;
  if (cls == OpClass::Leaf) {
    bool outside = op == Opcode::Constant || (op == Opcode::Parameter && m_.parent(i) == m_.entry());
    if (!outside || brought_.size() > 300) return;
    if (int64_t n = count_marks(m_.u(), v, true))
      brought_ += fmt::format("{}{} {} ({} NaN)", brought_.empty() ? "" : ", ", op_text(op), m_.inst_name(i), n);
    return;
  }
  bool called = cls == OpClass::Fusion || (cls == OpClass::Call && op != Opcode::Map) || op == Opcode::AsyncStart;
  if (called && !kernels_) return;  // the instructions inside tell
  for (Kind kind : {Kind::kInfinity, Kind::kNan}) {
    if (kind == Kind::kInfinity && infinity_) continue;
    int64_t first = -1, n = made(kind, i, operands, v, &first);
    if (!n || (called && looked_inside(kind, i, operands))) continue;
    NotFinite found = described(kind, i, operands, v, n, first);
    (kind == Kind::kNan ? nan_ : infinity_) = std::move(found);
  }
  if (nan_) fail(FailureKind::kInvalid, "{}", text());
}

int64_t NanWatch::made(Kind kind, InstId i, std::span<const Value> operands, const Value& v, int64_t* first) {
  Universe& u = m_.u();
  bool nan = kind == Kind::kNan;
  std::vector<Value> results, explained;
  flatten(u, v, &results);
  std::vector<std::vector<char>> found;
  bool any = false;
  for (const Value& r : results) found.push_back(marks(u, r, nan, !nan)), any |= !found.back().empty();
  if (!any) return 0;
  bool comes_in =
      std::any_of(operands.begin(), operands.end(), [&](const Value& o) { return count_marks(u, o, nan) > 0; });
  OpClass cls = op_info(m_.op(i)).cls;
  // What other devices or the host sent is not seen here.
  bool from_afar = cls == OpClass::Collective || cls == OpClass::Io;
  if (from_afar && (comes_in || !nan || !brought_.empty())) return 0;
  if (comes_in && element_by_element(m_, i, operands, v)) {
    for (const Value& o : operands) {
      std::vector<char> bad = marks(u, o, nan, !nan);
      if (bad.empty()) continue;
      for (size_t k = 0; k < found[0].size(); ++k) found[0][k] &= !bad[bad.size() == 1 ? 0 : k];
    }
  } else if (comes_in) {
    if (cls != OpClass::Dot && (cls == OpClass::Call || cls == OpClass::Fusion || cls == OpClass::Async)) return 0;
    try {
      std::vector<Value> given;
      for (const Value& o : operands) given.push_back(only_kind(u, o, nan));
      Evaluator evaluator(m_);
      flatten(u, evaluator.run_instruction(i, std::move(given)), &explained);
    } catch (const Failure&) {
      return 0;  // nothing can be said: not made, then
    }
    for (size_t r = 0; r < std::min(found.size(), explained.size()); ++r) {
      std::vector<char> reached = marks(u, explained[r], true, !nan);
      for (size_t k = 0; k < std::min(found[r].size(), reached.size()); ++k) found[r][k] &= !reached[k];
    }
  }
  int64_t n = 0;
  for (const std::vector<char>& f : found) {
    auto at = std::find(f.begin(), f.end(), 1);
    if (*first < 0 && at != f.end()) *first = at - f.begin();
    n += std::count(f.begin(), f.end(), 1);
  }
  return n;
}

bool NanWatch::looked_inside(Kind kind, InstId i, std::span<const Value> operands) {
  NanWatch inner(m_, false);
  EvalOptions options;
  options.trace = inner.listener(), options.trace_all = true;
  Value v;
  try {
    Evaluator evaluator(m_, options);
    v = evaluator.run_instruction(i, std::vector<Value>(operands.begin(), operands.end()));
  } catch (const Failure&) {
    if (!inner.nan_) return false;
  }
  if (kind == Kind::kInfinity) {
    infinity_ = inner.infinity_;
    // A constant inside may bring it.
    return infinity_ || (!inner.nan_ && count_marks(m_.u(), v, false) > 0);
  }
  if (inner.nan_) nan_ = inner.nan_;
  return nan_ || count_marks(m_.u(), v, true) > 0;
}

NotFinite NanWatch::described(Kind kind, InstId i, std::span<const Value> operands, const Value& v, int64_t elements,
                              int64_t first) const {
  const Universe& u = m_.u();
  Opcode op = m_.op(i);
  NotFinite out{
      std::string(m_.inst_name(i)), std::string(op_text(op)), std::string(m_.comp_name(m_.parent(i))), elements, {}};
  out.text = fmt::format("{} ({} in computation {}) makes {} {} where {}{}{}\n  {}", out.instruction, out.opcode,
                         out.computation, elements, kind == Kind::kNan ? "NaN" : "infinite element(s)",
                         kind == Kind::kNan ? "no operand has one" : "operands are finite",
                         op_info(op).cls == OpClass::Fusion ? " (its kernel does: the evaluator makes none of it)" : "",
                         source_in_words(m_, i), print_instruction(m_, i));
  if (first >= 0 && element_by_element(m_, i, operands, v)) {
    std::string of;
    for (const Value& o : operands) {
      ElementType t = u[o.shape].type;
      int64_t at = u[o.shape].rank() == 0 ? 0 : first;
      of += fmt::format("{}{}", of.empty() ? "" : ", ", number_text(t, o.bytes() + at * storage_bytes(t)));
    }
    out.text += fmt::format("\n  first at {}: of {}", index_text(u[v.shape], first), of);
  }
  for (size_t k = 0; k < operands.size() && k < m_.operand_count(i); ++k) {
    Statistics s = statistics(u, operands[k]);
    out.text +=
        fmt::format("\n  operand {}: {} {}", k, m_.inst_name(m_.operand(i, k)), u.shape_text_plain(operands[k].shape));
    if (s.elements > s.nan + s.inf) out.text += fmt::format("  min {:.6g}  max {:.6g}", s.min, s.max);
    if (s.nan) out.text += fmt::format("  {} NaN", s.nan);
    if (s.inf) out.text += fmt::format("  {} infinite", s.inf);
  }
  return out;
}

std::string NanWatch::text() const {
  std::string out;
  if (nan_) out = "the first NaN: " + nan_->text;
  if (infinity_)
    out += fmt::format("{}the first infinity{}: {}", out.empty() ? "" : "\n", nan_ ? "" : " (no NaN is made)",
                       infinity_->text);
  return out;
}

}  // namespace hlo
