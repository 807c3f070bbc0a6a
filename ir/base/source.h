// A source text and places in it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

struct Place {
  size_t line = 1, column = 1;  // counted from 1; columns in bytes
};
Place place_of(std::string_view text, size_t offset);

struct Diagnostic {
  size_t offset = 0;
  std::string message;
  std::string hint;                                   // empty when there is none
  std::vector<std::pair<size_t, std::string>> notes;  // other places: offset, text
};

// `file:line:col: error: message`, the line, a caret, the hint and the notes.
std::string render(std::string_view file, std::string_view text, const Diagnostic& diagnostic, size_t first_line = 0);

}  // namespace hlo
