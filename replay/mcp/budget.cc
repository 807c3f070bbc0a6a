#include "replay/mcp/budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlo::mcp {
namespace {

// Not within one of UTF-8's characters.
std::string_view cut_at(std::string_view line, size_t bytes) {
  while (bytes && (static_cast<unsigned char>(line[bytes]) & 0xc0) == 0x80) --bytes;
  return line.substr(0, bytes);
}

}  // namespace

std::string within_budget(std::string_view text, size_t from, size_t tokens) {
  constexpr size_t kLast = 80;  // the line about the rest
  const size_t most = std::max<size_t>(tokens * kBytesPerToken, 2 * kLast) - kLast;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t all = text.empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  std::string out;
  size_t number = 0;
  for (size_t at = 0; number < all; ++number) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (number < from) continue;
    if (out.size() + line.size() + 1 > most) {
      if (!out.empty()) break;
      out += fmt::format("{}… ({} bytes more)\n", cut_at(line, most / 2), line.size() - cut_at(line, most / 2).size());
      continue;
    }
    out.append(line) += '\n';
  }
  if (from >= all && all) return fmt::format("no more: {} lines in all\n", all);
  if (number < all) out += fmt::format("… {} more of {} lines: cursor \"{}\"\n", all - number, all, number);
  return out;
}

}  // namespace hlo::mcp
