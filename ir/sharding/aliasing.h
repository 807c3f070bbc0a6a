// Aliases and donations as values; their canonical text is what headers and instructions keep
// (xla/hlo/ir/hlo_input_output_alias_config.h).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace hlo {

// One entry of `{ {0}: (3, {1}, may-alias) }`; a donor `(3, {1})` has no output index.
struct AliasEntry {
  std::vector<int64_t> output;  // index of the result's shape
  int64_t number = -1;          // of the parameter or operand; -1: the text has none
  std::vector<int64_t> index;   // of its shape
  bool must = false;
};
// In the text's order; text that is no alias is passed over.
std::vector<AliasEntry> parse_aliases(std::string_view text);

// The integers that stand in a text, in order, each with its sign: `{{0,-1},{2,3}}` gives 0, -1, 2, 3.
std::vector<int64_t> integers_in(std::string_view text);

}  // namespace hlo
