#include "viewer/markup.h"

#include <nlohmann/json.hpp>

#include "ir/base/check.h"

namespace hlo {

Markup MarkupMaker::filled(std::string_view pattern, std::initializer_list<MarkupValue> values) {
  Markup out;
  const MarkupValue* next = values.begin();
  for (size_t at = 0;;) {
    size_t place = pattern.find("{}", at);
    out.text_ += pattern.substr(at, place - at);
    if (place == std::string_view::npos) break;
    HLO_CHECK(next != values.end(), "a pattern's values: {}", pattern);
    out.text_ += (next++)->text();
    at = place + 2;
  }
  HLO_CHECK(next == values.end(), "a pattern's values: {}", pattern);
  return out;
}

Markup MarkupMaker::trusted(std::string text) {
  Markup out;
  out.text_ = std::move(text);
  return out;
}

Markup json_data(const nlohmann::ordered_json& data) {
  std::string json = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out = "<script type=\"application/json\" id=\"data\">";
  // These stand only inside of JSON's strings, where they may be written so.
  for (char c : json) switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  return MarkupMaker::trusted(out + "</script>");
}

std::string page_of(std::string_view page, std::initializer_list<std::pair<std::string_view, MarkupValue>> values) {
  std::string out;
  for (size_t at = 0;;) {
    size_t open = page.find("{{", at);
    out += page.substr(at, open - at);
    if (open == std::string_view::npos) return out;
    size_t close = page.find("}}", open);
    HLO_CHECK(close != std::string_view::npos, "a template's mark has an end");
    std::string_view name = page.substr(open + 2, close - open - 2);
    at = close + 2;
    bool known = false;
    for (const auto& [key, value] : values)
      if (key == name) out += value.text(), known = true;
    HLO_CHECK(known, "a template names {}", name);
  }
}

}  // namespace hlo
