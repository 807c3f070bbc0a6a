// The newest library calls: products of groups and of scaled blocks (xla/service/gpu/cublas_cudnn.h,
// autotuning/hipblaslt.cc), running sums (xla/backends/gpu/transforms/scan_rewriter.cc).
#include <algorithm>

#include "ir/library/library_calls.h"
#include "ir/library/library_rules.h"

namespace hlo {
namespace {

// What stands behind `key` in `{"key":"3"}` or in `{key = 3 : i64}` of the typed interface; empty: nothing.
std::string_view option(std::string_view text, std::string_view key) {
  constexpr std::string_view kBetween = " \t\"=:", kEnds = " \t\",}";
  auto in_name = [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); };
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const size_t end = at + key.size();
    if ((at && in_name(text[at - 1])) || (end < text.size() && in_name(text[end]))) continue;
    const size_t begin = text.find_first_not_of(kBetween, end);
    if (begin == text.npos) return {};
    return text.substr(begin, std::min(text.find_first_of(kEnds, begin), text.size()) - begin);
  }
  return {};
}
int64_t whole_option(std::string_view text, std::string_view key, int64_t absent) {
  const std::string said(option(text, key));
  return said.empty() ? absent : atoll(said.c_str());
}
std::string_view config_of(const Module& m, InstId call) {
  return m.u().text(m.attrs(call).text(Attr::backend_config));
}

}  // namespace

CubScan cub_scan(const Module& m, InstId call) {
  CubScan out;
  const Shape& s = m.shape(m.operand(call, 0));
  const Dims order = s.layout.minor_to_major.empty() ? default_minor_to_major(s.rank()) : s.layout.minor_to_major;
  // A row of one element is what it is.
  for (int64_t d : whole_option(config_of(m, call), "row_length", 0) == 1 ? Dims{} : order)
    if (s.dims[static_cast<size_t>(d)] != 1) {
      out.dimension = d;
      break;
    }
  const std::string_view reverse = option(config_of(m, call), "is_reverse");
  out.reverse = reverse == "true" || reverse == "1";
  return out;
}

BackendConfig grouped_gemm_config(const Module& m, InstId call) {
  const BackendConfig config = backend_config(config_of(m, call), "grouped_gemm_backend_config");
  auto at = config.find("ragged_dot_dimension_numbers");
  return at != config.end() && at->is_object() ? *at : BackendConfig::object();
}

namespace library_rules {
namespace {

// Only the product itself: XLA makes no others of these (autotuning/hipblaslt.cc).
bool is_plain(LibraryCall& c, const BackendConfig& gemm) {
  const std::string epilogue = word(gemm, "epilogue", "DEFAULT");
  return c.expect(
             number(gemm, "alpha_real", 1) == 1 && number(gemm, "alpha_imag", 0) == 0 && number(gemm, "beta", 0) == 0,
             "a factor of the product or an addend is not supported") &&
         c.expect(epilogue == "DEFAULT", "epilogue {} is not supported", epilogue);
}
Dims without(Dims dims, int64_t removed) {
  for (int64_t& d : dims) d -= d > removed;
  return dims;
}

}  // namespace

bool is_scaled_product(LibraryCall& c) {
  if (!(c.operands(4, 4) && c.results(1, 2) && c.result(0, Kind::kFloat))) return false;
  const BackendConfig config = backend_config(c.config_text(), "gemm_backend_config");
  auto numbers = config.find("dot_dimension_numbers");
  if (!(is_plain(c, config) &&
        c.expect(numbers != config.end() && numbers->is_object(), "its configuration has no dot_dimension_numbers")))
    return false;
  for (size_t side = 0; side < 2; ++side) {
    const Shape &array = c.in(side), &scales = c.in(side + 2);
    bool fits = scales.rank() == array.rank();
    for (size_t d = 0; fits && d < array.dims.size(); ++d)
      fits = scales.dims[d] > 0 ? array.dims[d] % scales.dims[d] == 0 : array.dims[d] == 0;
    if (!(c.operand(side, Kind::kFloat) && c.operand(side + 2, Kind::kFloat) &&
          c.expect(fits, "operand {} is {}, expected scales of blocks of {}", side + 2, c.text(c.in_id(side + 2)),
                   c.text(c.in_id(side)))))
      return false;
  }
  std::optional<Dims> dims = product_dims(c, c.in_id(0), c.in_id(1), c.in(0).dims, c.in(1).dims, *numbers);
  return dims && c.result_dims(0, *dims);
}

bool is_grouped_product(LibraryCall& c) {
  if (!(c.operands(3, 3) && c.results(1, 2) && c.operand(0, Kind::kFloat) && c.operand(1, Kind::kFloat) &&
        c.operand(2, Kind::kInteger) && c.result(0, Kind::kFloat)))
    return false;
  const BackendConfig whole = backend_config(c.config_text(), "grouped_gemm_backend_config"),
                      config = grouped_gemm_config(c.module(), c.inst());
  auto gemm = whole.find("gemm_backend_config"), numbers = config.find("dot_dimension_numbers");
  if (!(is_plain(c, gemm != whole.end() && gemm->is_object() ? *gemm : BackendConfig::object()) &&
        c.expect(numbers != config.end() && numbers->is_object(),
                 "its configuration has no ragged_dot_dimension_numbers with dot_dimension_numbers") &&
        c.expect(c.in(2).rank() == 1, "operand 2 is {}, expected the sizes of groups (of all batches the same)",
                 c.text(c.in_id(2)))))
    return false;
  const Dims ragged = list(config, "lhs_ragged_dimensions"), group = list(config, "rhs_group_dimensions"),
             summed = list(*numbers, "lhs_contracting_dimensions");
  if (!c.expect(ragged.size() == 1 && ragged[0] >= 0 && ragged[0] < c.in(0).rank(),
                "its ragged dimensions are {{{}}}, expected one of {}", fmt::join(ragged, ","), c.text(c.in_id(0))))
    return false;
  const Dims batch = list(*numbers, "lhs_batch_dimensions");
  const bool contracting = contains(summed, ragged[0]), batched = contains(batch, ragged[0]);
  const int64_t groups = c.in(2).dims[0];
  if (contracting || batched) {
    std::optional<Dims> dims = product_dims(c, c.in_id(0), c.in_id(1), c.in(0).dims, c.in(1).dims, *numbers);
    if (!dims || !c.expect(group.empty(), "it has rhs_group_dimensions, and no dimension of groups")) return false;
    if (contracting) dims->insert(dims->begin(), groups);
    return c.result_dims(0, *dims);
  }
  Dims rb = list(*numbers, "rhs_batch_dimensions"), rc = list(*numbers, "rhs_contracting_dimensions"), r = c.in(1).dims;
  if (!c.expect(group.size() == 1 && group[0] >= 0 && group[0] < c.in(1).rank() && !contains(rb, group[0]) &&
                    !contains(rc, group[0]) && r[static_cast<size_t>(group[0])] == groups,
                "its group dimensions are {{{}}}, expected one of {} elements of {}", fmt::join(group, ","), groups,
                c.text(c.in_id(1))))
    return false;
  r.erase(r.begin() + static_cast<ptrdiff_t>(group[0]));
  BackendConfig one = *numbers;
  one["rhs_batch_dimensions"] = without(rb, group[0]), one["rhs_contracting_dimensions"] = without(rc, group[0]);
  std::optional<Dims> dims = product_dims(c, c.in_id(0), c.in_id(1), c.in(0).dims, r, one);
  return dims && c.result_dims(0, *dims);
}

bool is_scan(LibraryCall& c) {
  if (!(c.operands(1, 1) && c.operand(0, Kind::kReal, 1) && c.results(2, 2, true) &&
        c.result_is(0, c.in(0).type, c.in(0).dims)))
    return false;
  const std::string_view config = c.config_text(), kind = option(config, "kind");
  const CubScan scan = cub_scan(c.module(), c.inst());
  const int64_t row = scan.dimension < 0 ? 1 : c.in(0).dims[static_cast<size_t>(scan.dimension)];
  return c.expect(kind == "SUM", "its kind is '{}', expected SUM", kind) &&
         c.expect(whole_option(config, "vector_length", 1) == 1 && whole_option(config, "row_length", row) == row,
                  "its rows have {} elements, expected {}, those of the minor dimension",
                  whole_option(config, "row_length", row), row) &&
         c.expect(c.in(0).layout.minor_to_major == c.out(0).layout.minor_to_major,
                  "result 0 is {}, expected the layout of {}", c.text(c.out_id(0)), c.text(c.in_id(0)));
}

}  // namespace library_rules
}  // namespace hlo
