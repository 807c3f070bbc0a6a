// The picture of what modules hand to each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "replay/compare/link.h"

namespace hlo {

std::string link_dot(const std::vector<LinkModule>& modules, const Links& links, double least) {
  auto quoted = [](const std::string& s) {
    std::string out;
    for (char c : s) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  std::string out =
      "digraph modules {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", "
      "fillcolor=\"#eef3fb\", fontsize=11];\n";
  for (size_t k = 0; k < modules.size(); ++k) {
    std::map<std::string, size_t> roles;
    for (const std::string& r : links.leaves[k].roles) ++roles[r];
    std::string list;
    for (const auto& [role, n] : roles) list += fmt::format("\\n{} {}", n, role);
    out += fmt::format("  m{} [label=\"{}{}\\n{} results\"];\n", k, quoted(modules[k].label), list,
                       links.leaves[k].results.size());
  }
  struct Bundle {
    size_t count = 0;
    double worst = 1;
    std::string one;
  };
  std::map<std::tuple<size_t, size_t, bool>, Bundle> bundles;
  for (const LinkEdge& e : links.edges) {
    if (e.confidence < least) continue;
    Bundle& b = bundles[{e.from, e.to, e.confidence > 0.5}];
    ++b.count, b.worst = std::min(b.worst, e.confidence);
    b.one = fmt::format("o{} → p{}", e.result, e.parameter);
  }
  for (const auto& [key, b] : bundles) {
    auto [from, to, sure] = key;
    out += fmt::format("  m{} -> m{} [label=\"{}\\n{:.0f} %\"{}];\n", from, to,
                       b.count == 1 ? b.one : fmt::format("{} values", b.count), 100 * b.worst,
                       sure ? "" : ", style=dashed, color=gray50");
  }
  return out + "}\n";
}

}  // namespace hlo
