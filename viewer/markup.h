// Pages and their parts. Text becomes markup here and nowhere else: values are escaped as they are put in, in one pass,
// and what has been put in is never looked at again.
#pragma once
#include <concepts>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "dump/xml_text.h"

namespace hlo {

// HTML that is safe to show: made of the program's own patterns and of escaped values.
class Markup {
 public:
  Markup() = default;
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  Markup& operator+=(const Markup& more) {
    text_ += more.text_;
    return *this;
  }

 private:
  friend class MarkupMaker;
  std::string text_;
};

// What may stand in a pattern's place: markup as it is, everything else escaped for text and for quoted attributes.
class MarkupValue {
 public:
  MarkupValue(const Markup& m) : text_(m.text()) {}
  MarkupValue(std::string_view text) : text_(xml_escaped(text)) {}
  MarkupValue(const std::string& text) : text_(xml_escaped(text)) {}
  MarkupValue(const char* text) : text_(xml_escaped(text)) {}
  MarkupValue(std::integral auto number) : text_(std::to_string(number)) {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class MarkupMaker {
 public:
  static Markup filled(std::string_view pattern, std::initializer_list<MarkupValue> values);
  static Markup trusted(std::string text);  // for svg.cc and json_data alone
};

// A pattern of the program's own, each {} replaced by a value.
template <size_t N>
Markup markup(const char (&pattern)[N], std::initializer_list<MarkupValue> values) {
  return MarkupMaker::filled(std::string_view(pattern, N - 1), values);
}

// `<script type="application/json" id="data">`: data that no browser runs, for the page's own script.
Markup json_data(const nlohmann::ordered_json& data);

// A drawing by Graphviz to stand in a page: only elements and attributes that draw, no scripts, links, images or
// identifiers. What is no drawing becomes text.
Markup sanitised_svg(const std::string& svg);

// A template of viewer/assets with each {{name}} replaced by its value. What may run in it is its own
// Content-Security-Policy's to say: the template's one script (viewer/embed.cmake puts its hash there), nothing else.
std::string page_of(std::string_view page_template,
                    std::initializer_list<std::pair<std::string_view, MarkupValue>> values);

}  // namespace hlo
