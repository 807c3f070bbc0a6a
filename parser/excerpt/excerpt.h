// Tolerant reading, one layer in front of the grammar: a text that the grammar refuses is cut into pieces
// (parser/excerpt/pieces.h) and written anew as a module that it takes. What is not defined becomes a parameter, what
// cannot be read is kept as a custom call or left out, and each of these is told with its line: nothing is dropped in
// silence.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parser/parser.h"

namespace hlo {

struct ExcerptNote {
  size_t line = 1;  // of the file, counted from 1
  std::string text;
};

struct Excerpt {
  std::vector<ExcerptNote> notes;  // by line; the first kMostNotes
  size_t more_notes = 0;           // how many there are beside
  size_t instructions = 0;         // read, those kept as custom calls included
  size_t custom_calls = 0;         // of them: in place of operations that cannot be read as they stand
  size_t left_out = 0;             // what looks like an instruction and was not read
  size_t stand_ins = 0;            // parameters for names and numbers that are not defined
  size_t gaps = 0;                 // lines such as `...`
  // Is anything of the module missing or taken for something else? What stood around a module does not count.
  bool incomplete = false;

  static constexpr size_t kMostNotes = 200;
  bool any() const { return !notes.empty(); }
  std::string in_words() const;  // `10 instructions read, 1 not read, 2 gaps`
};

// Throws what parse_module throws where the text cannot be read even so. `options.permissive` is taken for granted.
// `out` says nothing where the text is read as it stands.
std::unique_ptr<Module> parse_excerpt(std::string_view text, const std::shared_ptr<Universe>& universe,
                                      const ParseOptions& options, Excerpt* out);

// Would tolerant reading find more in the text than strict reading? A guess, for a hint: gaps, instructions outside of
// a computation, a computation that does not end.
bool looks_like_excerpt(std::string_view text);

}  // namespace hlo
