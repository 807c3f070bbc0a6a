// Drawings of strangers' graphs stand in our pages: only what draws is let through.
#include <algorithm>
#include <set>
#include <vector>

#include "viewer/markup.h"

namespace hlo {
namespace {

const std::set<std::string_view>& drawing_elements() {
  static const std::set<std::string_view> kAll = {
      "svg",  "g",      "title", "text", "tspan", "polygon", "polyline",       "ellipse",
      "path", "circle", "rect",  "line", "defs",  "stop",    "linearGradient", "radialGradient"};
  return kAll;
}

const std::set<std::string_view>& drawing_attributes() {
  static const std::set<std::string_view> kAll = {"width",
                                                  "height",
                                                  "viewBox",
                                                  "transform",
                                                  "fill",
                                                  "fill-opacity",
                                                  "stroke",
                                                  "stroke-width",
                                                  "stroke-dasharray",
                                                  "stroke-opacity",
                                                  "opacity",
                                                  "points",
                                                  "d",
                                                  "cx",
                                                  "cy",
                                                  "r",
                                                  "rx",
                                                  "ry",
                                                  "x",
                                                  "y",
                                                  "x1",
                                                  "y1",
                                                  "x2",
                                                  "y2",
                                                  "text-anchor",
                                                  "font-family",
                                                  "font-size",
                                                  "font-weight",
                                                  "font-style",
                                                  "text-decoration",
                                                  "baseline-shift",
                                                  "class",
                                                  "offset",
                                                  "stop-color",
                                                  "stop-opacity"};
  return kAll;
}

// Values refer to nothing: `url(…)` is how they could.
bool harmless_value(std::string_view value) {
  return value.find_first_of("<>\"'\\&@;{}") == std::string_view::npos && value.find("url") == std::string_view::npos &&
         value.find("URL") == std::string_view::npos;
}

// Escaped text as XML has it, its references kept where they are some.
void put_text(std::string_view text, std::string* out) {
  for (size_t k = 0; k < text.size(); ++k) {
    char c = text[k];
    if (c == '&') {
      size_t end = text.find(';', k);
      std::string_view name = end == std::string_view::npos ? std::string_view() : text.substr(k + 1, end - k - 1);
      bool reference = !name.empty() && name.size() < 10 &&
                       name.find_first_not_of("#abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
                           std::string_view::npos;
      *out += reference ? "&" : "&amp;";
    } else if (c == '>') {
      *out += "&gt;";
    } else {
      *out += c;
    }
  }
}

bool name_character(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':' || c == '_'; }

// One pass over a drawing: elements that draw are written anew, what is in others goes with them.
class SvgReader {
 public:
  explicit SvgReader(std::string_view svg) : svg_(svg) {}
  std::string drawing() {
    while (at_ < svg_.size()) {
      size_t open = std::min(svg_.find('<', at_), svg_.size());
      if (!open_.empty() && !left_out_) put_text(svg_.substr(at_, open - at_), &out_);
      at_ = open;
      if (at_ < svg_.size()) element();
    }
    while (!open_.empty()) close();
    return out_;
  }

 private:
  void element() {
    for (auto [begin, end] : {std::pair<std::string_view, std::string_view>{"<!--", "-->"},
                              {"<![CDATA[", "]]>"},
                              {"<!", ">"},
                              {"<?", "?>"}})
      if (svg_.substr(at_).starts_with(begin)) {
        size_t stop = svg_.find(end, at_ + begin.size());
        at_ = stop == std::string_view::npos ? svg_.size() : stop + end.size();
        return;
      }
    ++at_;
    bool closing = at_ < svg_.size() && svg_[at_] == '/';
    if (closing) ++at_;
    std::string_view name = word();
    tooltip_ = {};
    std::string attributes = this->attributes();
    // A link becomes a group that shows what the link said.
    if (name == "a") name = "g";
    bool alone = at_ > 0 && at_ <= svg_.size() && at_ >= 2 && svg_[at_ - 2] == '/';
    bool draws = drawing_elements().contains(name);
    bool transparent = name == "image";
    if (closing) {
      if (left_out_) {
        if (!transparent && !draws) --left_out_;
      } else if (draws && !open_.empty() && open_.back() == name) {
        close();
      }
      return;
    }
    if (!draws && !transparent && !alone) ++left_out_;
    if (!draws || left_out_) return;
    out_ += "<" + std::string(name) + attributes + (alone ? "/>" : ">");
    if (alone) return;
    open_.emplace_back(name);
    if (tooltip_.empty()) return;
    out_ += "<title>";
    put_text(tooltip_, &out_);
    out_ += "</title>";
  }
  std::string_view word() {
    size_t begin = at_;
    while (at_ < svg_.size() && name_character(svg_[at_])) ++at_;
    return svg_.substr(begin, at_ - begin);
  }
  // To behind the `>`.
  std::string attributes() {
    std::string out;
    while (at_ < svg_.size() && svg_[at_] != '>') {
      std::string_view name = word();
      if (name.empty()) {
        ++at_;
        continue;
      }
      if (at_ + 1 >= svg_.size() || svg_[at_] != '=' || (svg_[at_ + 1] != '"' && svg_[at_ + 1] != '\'')) continue;
      char quote = svg_[at_ + 1];
      size_t begin = at_ + 2, end = std::min(svg_.find(quote, begin), svg_.size());
      std::string_view value = svg_.substr(begin, end - begin);
      at_ = std::min(end + 1, svg_.size());
      if (name == "xlink:title" && value.find('<') == std::string_view::npos) tooltip_ = value;
      if (name == "fill" && value.starts_with("url")) value = "none";
      if (drawing_attributes().contains(name) && harmless_value(value))
        out += " " + std::string(name) + "=\"" + std::string(value) + "\"";
    }
    if (at_ < svg_.size()) ++at_;
    return out;
  }
  void close() {
    out_ += "</" + open_.back() + ">";
    open_.pop_back();
  }

  std::string_view svg_, tooltip_;
  size_t at_ = 0, left_out_ = 0;
  std::vector<std::string> open_;
  std::string out_;
};

}  // namespace

Markup sanitised_svg(const std::string& svg) {
  size_t start = svg.find("<svg");
  if (start == std::string::npos) return markup("{}", {svg});
  return MarkupMaker::trusted(SvgReader(std::string_view(svg).substr(start)).drawing());
}

}  // namespace hlo
