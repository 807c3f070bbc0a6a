#include "ir/sharding/aliasing.h"

#include <algorithm>

namespace hlo {

std::vector<int64_t> integers_in(std::string_view text) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < text.size();) {
    bool minus = text[i] == '-';
    size_t digit = i + minus;
    if (digit >= text.size() || text[digit] < '0' || text[digit] > '9') {
      ++i;
      continue;
    }
    // More digits than an integer has wrap around, as nothing that was parsed has them.
    uint64_t v = 0;
    for (i = digit; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      v = v * 10 + static_cast<uint64_t>(text[i] - '0');
    out.push_back(static_cast<int64_t>(minus ? -v : v));
  }
  return out;
}

std::vector<AliasEntry> parse_aliases(std::string_view text) {
  std::vector<AliasEntry> out;
  size_t behind = 0;
  for (size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1)) {
    AliasEntry e;
    size_t close = std::min(text.find(')', at), text.size()), inner = std::min(text.find('{', at), close);
    // Before the parenthesis stands the output's index, `{0}:`; a donor has none.
    std::string_view before = text.substr(behind, at - behind);
    if (size_t colon = before.rfind(':'); colon != std::string_view::npos)
      e.output = integers_in(before.substr(before.rfind('{', colon)));
    if (std::vector<int64_t> n = integers_in(text.substr(at, inner - at)); !n.empty()) e.number = n[0];
    e.index = integers_in(text.substr(inner, std::min(text.find('}', inner), close) - inner));
    e.must = text.substr(inner, close - inner).find("must") != std::string_view::npos;
    out.push_back(std::move(e));
    behind = close;
  }
  return out;
}

}  // namespace hlo
