#include "ir/library/lapack.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

namespace hlo {
namespace {

// What operands and results are, over m and n, the sizes of the first matrix: A is its element type, R and C the real
// and the complex type of that width, I s32. k is the lesser of m and n, h is n - 1; other letters are what they are
// where they first stand. Before each stand the dimensions of the batch.
struct LapackRow {
  std::string_view library, routine, operands, results;
  std::string_view options;  // names that the configuration must have
};
constexpr LapackRow kLapackRows[] = {
    {"lapack", "potrf", "Ann", "Ann I", "uplo"},
    {"lapack", "getrf", "Amn", "Amn Ik I", ""},
    {"lapack", "geqrf", "Amn", "Amn Ak", ""},
    {"lapack", "geqp3", "Amn In", "Amn In Ak", ""},
    {"lapack", "orgqr", "Amn At", "Amn", ""},
    {"lapack", "ormqr", "Aqt At Amn", "Amn", "left transpose"},
    {"lapack", "gesdd", "Amn", "Amn Rk Amu Avn I", "mode"},
    {"lapack", "gesvd", "Amn", "Amn Rk Amu Avn I", "mode"},
    {"lapack", "syevd", "Ann", "Ann Rn I", "mode uplo"},
    {"lapack", "geev real", "Ann", "An An Cnn Cnn I", "compute_left compute_right"},
    {"lapack", "geev", "Ann", "An Ann Ann I", "compute_left compute_right"},
    {"lapack", "gees real", "Ann", "Ann Ann An An I I", "mode sort"},
    {"lapack", "gees", "Ann", "Ann Ann An I I", "mode sort"},
    {"lapack", "gehrd", "Ann", "Ann Ah I", "low high"},
    {"lapack", "sytrd", "Ann", "Ann Rn Rh Ah I", "uplo"},
    {"lapack", "trsm", "Aqq Amn", "Amn", "side uplo trans_x diag"},
    {"lapack", "gtsv", "An An An Anc", "An An An Anc I", ""},
    {"cusolver", "potrf", "Ann", "Ann I", "lower"},
    {"cusolver", "getrf", "Amn", "Amn Ik I", ""},
    {"cusolver", "geqrf", "Amn", "Amn Ak", ""},
    {"cusolver", "orgqr", "Amn At", "Amn", ""},
    {"cusolver", "ormqr", "Aqt At Amn", "Amn", "left transpose"},
    {"cusolver", "gesvd", "Amn", "Amn Rk Amu Avn I", "full_matrices compute_uv transposed"},
    {"cusolver", "gesvdj", "Amn", "Amn Rk Amu Anv I", "full_matrices compute_uv"},
    {"cusolver", "gesvdp", "Amn", "Amn Rk Amu Anv I", "full_matrices compute_uv"},
    {"cusolver", "syevd", "Ann", "Ann Rn I", "lower"},
    {"cusolver", "geev", "Ann", "Ann Cn Ann Ann I", "left right"},
    {"cusolver", "sytrd", "Ann", "Ann Rn Rh Ah I", "lower"},
    {"cuhybrid", "geev real", "Ann", "An An Cnn Cnn I", "left right"},
    {"cuhybrid", "geev", "Ann", "An Ann Ann I", "left right"},
    {"cuhybrid", "geqp3", "Amn In", "Amn In Ak", ""},
    {"cusparse", "gtsv", "An An An Anc", "Anc", ""},
    {"cu", "lu_pivots_to_permutation", "It", "In", ""},
};

const LapackRow* row_of(const LapackCall& call, bool complex) {
  std::string real = std::string(call.routine) + " real";
  for (const LapackRow& row : kLapackRows)
    if (row.library == call.library && (row.routine == call.routine || (!complex && row.routine == real))) return &row;
  return nullptr;
}

// `{uplo = 76 : ui8, left = true}`: the value of a name, true as 1; a letter is its code.
std::optional<int64_t> ffi_value(std::string_view config, std::string_view name) {
  for (size_t at = config.find(name); at != std::string_view::npos; at = config.find(name, at + 1)) {
    bool starts = at > 0 && (config[at - 1] == '{' || config[at - 1] == ' ' || config[at - 1] == ',');
    size_t value = config.find_first_not_of(' ', at + name.size());
    if (!starts || value == std::string_view::npos || config[value] != '=') continue;
    value = config.find_first_not_of(' ', value + 1);
    if (value == std::string_view::npos) return std::nullopt;
    std::string_view rest = config.substr(value);
    if (rest.starts_with("true")) return 1;
    if (rest.starts_with("false")) return 0;
    std::string digits(rest.substr(0, 20));
    char* end = nullptr;
    int64_t number = std::strtoll(digits.c_str(), &end, 10);
    return end == digits.c_str() ? std::nullopt : std::optional(number);
  }
  return std::nullopt;
}

// The options that the row wants, or what is wrong with them.
std::string read_options(std::string_view config, const LapackRow& row, bool complex, LapackOptions* o) {
  std::map<std::string_view, int64_t> got;
  for (std::string_view left = row.options; !left.empty();) {
    size_t end = std::min(left.find(' '), left.size());
    std::string_view name = left.substr(0, end);
    std::optional<int64_t> value = ffi_value(config, name);
    if (!value) return fmt::format("its configuration has no {}", name);
    got[name] = *value;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  auto letter = [&](std::string_view name, std::string_view allowed, char* to) -> std::string {
    auto at = got.find(name);
    if (at == got.end()) return {};
    char c = at->second > 0 && at->second < 128 ? static_cast<char>(at->second) : '?';
    if (allowed.find(c) == std::string_view::npos)
      return fmt::format("its configuration has {} = {}, expected the code of one of {}", name, at->second, allowed);
    *to = c;
    return {};
  };
  char uplo = 'L', side = 'L', diag = 'N', sort = 'N', left = 'V', right = 'V';
  std::string_view jobs = row.routine == "gesdd" || row.routine == "gesvd" ? "ASN"
                          : row.routine == "syevd"                         ? "V"
                                                                           : "VN";
  for (std::string why : {letter("mode", jobs, &o->job), letter("uplo", "LU", &uplo), letter("side", "LR", &side),
                          letter("diag", "NU", &diag), letter("trans_x", "NTC", &o->trans), letter("sort", "N", &sort),
                          letter("compute_left", "VN", &left), letter("compute_right", "VN", &right)})
    if (!why.empty()) return why;
  auto yes = [&](std::string_view name, bool absent) { return got.count(name) ? got.at(name) != 0 : absent; };
  o->lower = yes("lower", uplo == 'L');
  o->left = got.count("side") ? side == 'L' : yes("left", left == 'V');
  o->right = yes("right", right == 'V');
  o->unit = diag == 'U', o->turned = yes("transposed", false);
  if (yes("transpose", false)) o->trans = complex ? 'C' : 'T';
  if (got.count("compute_uv")) o->job = !yes("compute_uv", true) ? 'N' : yes("full_matrices", true) ? 'A' : 'S';
  if (got.count("low")) o->low = got.at("low"), o->high = got.at("high");
  return {};
}

// Binds letters to sizes and says what does not fit.
class Sizes {
 public:
  Sizes(const Universe& u, ElementType type) : u_(u), type_(type) {}
  std::map<char, int64_t> bound;

  // Of the first operand: it has the batch.
  void start(const Shape& s, std::string_view what) {
    size_t own = std::min(what.size() - 1, s.dims.size());
    batch_.assign(s.dims.begin(), s.dims.end() - static_cast<ptrdiff_t>(own));
  }
  std::string fits(const char* kind, size_t place, ShapeId id, std::string_view what) {
    const Shape& s = u_[id];
    if (!s.is_array()) return fmt::format("{} {} is {}, expected an array", kind, place, u_.shape_text_plain(id));
    Dims want = batch_;
    for (size_t d = 0; d + 1 < what.size(); ++d) {
      size_t at = batch_.size() + d;
      want.push_back(size(what[d + 1], at < s.dims.size() ? s.dims[at] : 0));
    }
    if (s.type == type(what[0]) && s.dims == want) return {};
    return fmt::format("{} {} is {}, expected {}[{}]", kind, place, u_.shape_text_plain(id), type_name(type(what[0])),
                       fmt::join(want, ","));
  }

 private:
  ElementType type(char letter) const {
    ElementType real = component_type(type_);
    if (letter == 'A') return type_;
    if (letter == 'R') return real;
    if (letter == 'C') return real == ElementType::F64 ? ElementType::C128 : ElementType::C64;
    return ElementType::S32;
  }
  int64_t size(char letter, int64_t there) {
    if (letter == 'k') return std::min(bound.at('m'), bound.at('n'));
    if (letter == 'h') return std::max<int64_t>(bound.at('n') - 1, 0);
    return bound.emplace(letter, there).first->second;
  }

  const Universe& u_;
  ElementType type_;
  Dims batch_;
};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// What sizes must be to each other.
std::string lapack_size_error(const LapackCall& call, const std::map<char, int64_t>& at) {
  auto size = [&](char letter) { return at.count(letter) ? at.at(letter) : 0; };
  int64_t m = size('m'), n = size('n'), t = size('t');
  const LapackOptions& o = call.options;
  // Counts and works in LAPACK are of 32 bits.
  int64_t most = call.routine == "syevd" ? 30000 : int64_t{1} << 28;
  for (auto [letter, value] : at)
    if (value > most) return fmt::format("a dimension of {}, expected at most {}", value, most);
  if (call.routine == "orgqr" && !(t <= n && n <= m)) return fmt::format("{} factors for matrices of {} x {}", t, m, n);
  if (call.routine == "ormqr" && (size('q') != (o.left ? m : n) || t > size('q')))
    return fmt::format("{} factors of {} rows next to matrices of {} x {}", t, size('q'), m, n);
  if (call.routine == "trsm" && size('q') != (o.left ? m : n))
    return fmt::format("a triangle of {} rows next to matrices of {} x {}", size('q'), m, n);
  if (call.routine == "gehrd" && n && !(1 <= o.low && o.low <= o.high && o.high <= n))
    return fmt::format("rows {} to {} of {}", o.low, o.high, n);
  if (call.routine == "lu_pivots_to_permutation" && t > n) return fmt::format("{} pivots for {} rows", t, n);
  return {};
}

std::string lapack_shape_error(const Module& m, InstId inst, const LapackCall& call, const LapackRow& row) {
  // A wide matrix that is handed over as its transpose gets the factors of that.
  std::string_view made = call.options.turned ? "Amn Rk Avn Amu I" : row.results;
  std::vector<std::string_view> operands = words(row.operands), results = words(made);
  if (m.operand_count(inst) != operands.size())
    return fmt::format("it has {} operand(s), expected {}", m.operand_count(inst), operands.size());
  const Universe& u = m.u();
  const Shape &out = m.shape(inst), &first = m.shape(m.operand(inst, 0));
  size_t count = out.is_tuple() ? out.elements.size() : 1;
  if (count != results.size() || out.is_tuple() != (results.size() > 1))
    return fmt::format("its result is {}, expected {} array(s)", u.shape_text_plain(m.shape_id(inst)), results.size());
  if (!first.is_array() || first.dims.size() + 1 < operands[0].size())
    return fmt::format("operand 0 is {}, expected an array of rank {} or more",
                       u.shape_text_plain(m.shape_id(m.operand(inst, 0))), operands[0].size() - 1);
  Sizes sizes(u, first.type);
  sizes.start(first, operands[0]);
  for (size_t k = 0; k < operands.size(); ++k)
    if (std::string why = sizes.fits("operand", k, m.shape_id(m.operand(inst, k)), operands[k]); !why.empty())
      return why;
  if (row.results.find('u') != std::string_view::npos && call.options.job != 'N') {
    int64_t rows = sizes.bound['m'], columns = sizes.bound['n'], lesser = std::min(rows, columns);
    sizes.bound['u'] = call.options.job == 'A' ? rows : lesser;
    sizes.bound['v'] = call.options.job == 'A' ? columns : lesser;
  }
  for (size_t k = 0; k < results.size(); ++k)
    if (std::string why = sizes.fits("result", k, out.is_tuple() ? out.elements[k] : m.shape_id(inst), results[k]);
        !why.empty())
      return why;
  return lapack_size_error(call, sizes.bound);
}

}  // namespace

std::optional<LapackCall> lapack_call(std::string_view target) {
  LapackCall call;
  if (target == "cu_lu_pivots_to_permutation") return LapackCall{"lu_pivots_to_permutation", "cu", 0, {}};
  if (target == "cuhybrid_eig_real" || target == "cuhybrid_eig_comp") return LapackCall{"geev", "cuhybrid", 0, {}};
  if (target == "cuhybrid_geqp3") return LapackCall{"geqp3", "cuhybrid", 0, {}};
  if (target == "cusparse_gtsv2_ffi") return LapackCall{"gtsv", "cusparse", 0, {}};
  if (!target.ends_with("_ffi")) return std::nullopt;
  target.remove_suffix(4);
  if (target.starts_with("cusolver_")) {
    call.library = "cusolver", call.routine = target.substr(9);
  } else if (target.starts_with("lapack_") && target.size() > 8) {
    call.library = "lapack", call.letter = target[7], call.routine = target.substr(8);
    if (std::string_view("sdcz").find(call.letter) == std::string_view::npos) return std::nullopt;
    constexpr std::string_view kComplexNames[][2] = {
        {"ungqr", "orgqr"}, {"unmqr", "ormqr"}, {"heevd", "syevd"}, {"hetrd", "sytrd"}};
    for (auto [complex, real] : kComplexNames)
      if (call.routine == complex && (call.letter == 'c' || call.letter == 'z')) call.routine = real;
  }
  return row_of(call, true) ? std::optional(call) : std::nullopt;
}

std::optional<LapackCall> lapack_call(const Module& m, InstId inst, std::string* why) {
  if (m.op(inst) != Opcode::CustomCall) return std::nullopt;
  std::optional<LapackCall> call = lapack_call(m.u().text(m.attrs(inst).text(Attr::custom_call_target)));
  if (!call) return call;
  std::string error;
  if (!m.operand_count(inst)) {
    if (why) *why = "it has no operands";
    return call;
  }
  ElementType type = m.shape(m.operand(inst, 0)).type;
  bool complex = is_complex(type), known = type == ElementType::F32 || type == ElementType::F64 || complex;
  // A module that was made wider to find rounding keeps its targets.
  ElementType named = call->letter == 's'   ? ElementType::F32
                      : call->letter == 'd' ? ElementType::F64
                      : call->letter == 'c' ? ElementType::C64
                                            : ElementType::C128;
  bool fits = !call->letter || type == named || (call->letter == 's' && type == ElementType::F64) ||
              (call->letter == 'c' && type == ElementType::C128);
  if (call->library != "cu" && !(known && fits))
    error = fmt::format("operand 0 is of {}, expected {}", type_name(type),
                        call->letter ? std::string(type_name(named)) : "f32, f64, c64 or c128");
  const LapackRow* row = row_of(*call, complex);
  if (error.empty())
    error = read_options(m.u().text(m.attrs(inst).text(Attr::backend_config)), *row, complex, &call->options);
  if (error.empty()) error = lapack_shape_error(m, inst, *call, *row);
  if (why) *why = std::move(error);
  return call;
}

}  // namespace hlo
