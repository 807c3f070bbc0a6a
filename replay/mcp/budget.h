// Answers that fit: lines of a text from a place on, as many as a budget of tokens allows, and how to go on.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hlo::mcp {

// A token is three bytes here: HLO is full of signs and numbers, of which a tokenizer makes more tokens than of prose.
constexpr size_t kBytesPerToken = 3;

// Whole lines of `text` from line `from` (counted from 0) on. Where more follow, a last line says how many and the
// cursor to go on with; a single line that is too long is cut and says so.
std::string within_budget(std::string_view text, size_t from, size_t tokens);

}  // namespace hlo::mcp
