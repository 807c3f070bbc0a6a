#include "ir/base/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlo {

Place place_of(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  Place place;
  place.line = 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n'));
  size_t start = offset ? text.rfind('\n', offset - 1) : std::string_view::npos;
  place.column = offset - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return place;
}

namespace {
// The line around the offset, cut to what fits a terminal, with a caret under the place.
std::string excerpt(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  size_t start = offset ? text.rfind('\n', offset - 1) : std::string_view::npos;
  start = start == std::string_view::npos ? 0 : start + 1;
  size_t end = std::min(text.find('\n', offset), text.size());
  constexpr size_t kBefore = 90, kAfter = 60;
  bool cut = offset - start > kBefore;
  size_t from = cut ? offset - kBefore : start;
  size_t to = std::min(end, offset + kAfter);
  std::string line = cut ? "…" : "";
  for (char c : text.substr(from, to - from)) line += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  if (to < end) line += "…";
  return fmt::format("  {}\n  {}^", line, std::string(offset - from + (cut ? 1 : 0), ' '));
}
}  // namespace

std::string render(std::string_view file, std::string_view text, const Diagnostic& d, size_t first_line) {
  Place place = place_of(text, d.offset);
  std::string out = fmt::format("{}:{}:{}: error: {}\n{}\n", file, place.line + first_line, place.column, d.message,
                                excerpt(text, d.offset));
  if (!d.hint.empty()) out += fmt::format("  hint: {}\n", d.hint);
  for (const auto& [offset, note] : d.notes) {
    Place other = place_of(text, offset);
    out += fmt::format("{}:{}:{}: note: {}\n{}\n", file, other.line + first_line, other.column, note,
                       excerpt(text, offset));
  }
  return out;
}

}  // namespace hlo
