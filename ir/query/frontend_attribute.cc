#include "ir/query/frontend_attribute.h"

#include <algorithm>
#include <string>

namespace hlo {

std::string_view frontend_attribute(const Module& m, InstId i, std::string_view name) {
  std::string_view text = m.u().text(m.attrs(i).text(Attr::frontend_attributes));
  std::string key = std::string(name) + "=\"";
  size_t at = text.find(key);
  // The whole name: it begins the list or stands behind a comma.
  while (at != std::string_view::npos && at > 0 && text[at - 1] != '{' && text[at - 1] != ',' && text[at - 1] != ' ')
    at = text.find(key, at + 1);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, std::min(rest.find('"'), rest.size()));
}

}  // namespace hlo
