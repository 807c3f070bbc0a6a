// Windows, dimension labels and profile types.
#include <algorithm>
#include <cctype>
#include <map>

#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

Window Parser::window() {
  size_t start = at_;
  expect('{', "before a window");
  std::vector<Dims> lists(6);
  std::vector<std::pair<int64_t, int64_t>> pads;
  static constexpr std::string_view kFields[] = {"size", "stride", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  size_t rank = 0;
  while (!eat('}')) {
    skip();
    size_t place = at_;
    std::string_view field = word();
    if (peek() != '=') error_at(place, "expected a field of a window");
    ++at_;
    size_t count;
    if (field == "pad") {
      if (!pads.empty()) error_at(place, "window field pad is given twice");
      do {
        int64_t low = integer("low padding");
        if (peek() != '_') error_here("window padding is written low_highx…");
        ++at_;
        pads.emplace_back(low, integer("high padding"));
      } while (peek() == 'x' && ++at_);
      count = pads.size();
    } else {
      size_t which = std::find(std::begin(kFields), std::end(kFields), field) - std::begin(kFields);
      if (which == std::size(kFields)) error_at(place, "unknown field '{}' of a window", field);
      if (!lists[which].empty()) error_at(place, "window field {} is given twice", field);
      lists[which] = dxd("a number of a window");
      count = lists[which].size();
    }
    if (count > 1024) error_at(place, "a window of more than 1024 dimensions");
    if (rank && rank != count) error_at(place, "window fields have {} and {} dimensions", rank, count);
    rank = count;
  }
  if (rank && lists[0].empty()) error_at(start, "a window needs size=");
  Window out;
  for (size_t i = 0; i < rank; ++i) {
    WindowDim d;
    d.size = lists[0][i];
    if (!lists[1].empty()) d.stride = lists[1][i];
    if (!pads.empty()) d.pad_low = pads[i].first, d.pad_high = pads[i].second;
    if (!lists[2].empty()) d.lhs_dilate = lists[2][i];
    if (!lists[3].empty()) d.rhs_dilate = lists[3][i];
    if (!lists[4].empty()) d.reversal = lists[4][i] != 0;
    out.dims.push_back(d);
  }
  return out;
}

DimLabels Parser::dim_labels() {
  skip();
  size_t start = at_;
  auto part = [&] {
    size_t from = at_;
    while (isalnum(static_cast<unsigned char>(peek())) || peek() == '?') ++at_;
    return text_.substr(from, at_ - from);
  };
  std::string_view lhs = part();
  if (peek() != '_') error_at(start, "dim_labels is written like b01f_01io->b01f");
  ++at_;
  std::string_view rhs = part();
  if (!eat("->")) error_at(start, "dim_labels is written like b01f_01io->b01f");
  std::string_view out = part();
  DimLabels d;
  auto read = [&](std::string_view labels, char one, char two, int64_t& a, int64_t& b, Dims& spatial) {
    size_t count = 0;
    for (char c : labels) count += c >= '0' && c <= '9';
    spatial.assign(count, -1);
    a = b = -1;
    for (size_t i = 0; i < labels.size(); ++i) {
      char c = labels[i];
      auto put = [&](int64_t& slot) {
        if (slot >= 0) error_at(start, "dim label '{}' is given twice", c);
        slot = static_cast<int64_t>(i);
      };
      if (c == one)
        put(a);
      else if (c == two)
        put(b);
      else if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < count)
        put(spatial[static_cast<size_t>(c - '0')]);
      else if (c != '?')
        error_at(start, "unexpected dim label '{}'", c);
    }
    if (a < 0 || b < 0) error_at(start, "dim labels '{}' need {} and {}", labels, one, two);
    return static_cast<int>(labels.size());
  };
  d.lhs_rank = read(lhs, 'b', 'f', d.input_batch, d.input_feature, d.input_spatial);
  d.rhs_rank = read(rhs, 'i', 'o', d.kernel_input, d.kernel_output, d.kernel_spatial);
  d.out_rank = read(out, 'b', 'f', d.output_batch, d.output_feature, d.output_spatial);
  if (d.input_spatial.size() != d.kernel_spatial.size() || d.input_spatial.size() != d.output_spatial.size())
    error_at(start, "dim labels have different numbers of spatial dimensions");
  return d;
}

// `{1}` or `{1,2}`: numbers of xla.ProfileType.
std::string Parser::profile_types() {
  skip();
  size_t place = at_;
  Dims list = int_list("the types of a profile");
  for (int64_t v : list)
    if (v < 0 || v > 4) error_at(place, "unknown profile type {}", v);
  return fmt::format("{{{}}}", fmt::join(list, ","));
}

}  // namespace hlo
