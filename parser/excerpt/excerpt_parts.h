// The pieces of an excerpt put together: which instructions are of which computation, what stands around them, what of
// it is told. Inside of parser/excerpt/excerpt.cc.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "parser/excerpt/excerpt.h"
#include "parser/excerpt/pieces.h"

namespace hlo {

constexpr auto kNoPiece = static_cast<size_t>(-1);

struct TextComputation {
  size_t open = kNoPiece;    // its piece; kNoPiece: its begin is not in the text
  std::vector<size_t> body;  // instructions
  std::string name;
  std::string_view behind;  // `, execution_thread="…"`
  bool closed = false, has_root = false, gap = false, entry = false, left_out = false;
  bool emitted = false;
};

// `1 line`, `2 lines`.
std::string count_of(size_t n, std::string_view one, std::string_view many);

class ExcerptParts {
 public:
  // `first_line`: lines of the file in front of the text.
  ExcerptParts(std::string_view text, size_t first_line);

 protected:
  void note(size_t line, std::string text) { notes_.push_back({line + first_line_, std::move(text)}); }
  // The same of what makes the module incomplete.
  void lack(size_t line, std::string text) {
    incomplete_ = true;
    note(line, std::move(text));
  }
  size_t line_of(const TextComputation& c) const;

  size_t first_line_;
  std::vector<Piece> pieces_;
  std::vector<TextComputation> comps_;
  std::vector<size_t> tables_;  // pieces
  size_t header_ = kNoPiece;
  size_t gaps_ = 0;
  std::vector<ExcerptNote> notes_;
  bool incomplete_ = false;

 private:
  std::unordered_set<std::string> taken_;          // names of computations
  std::unordered_map<std::string, size_t> again_;  // how often a name was given anew
  std::vector<int> ends_of_runs() const;
  void assemble();
  void begin_computation(size_t open);
  void end_open(size_t line);
  size_t other_text(size_t k, bool inside);
  void name_computations();
  void name_again(TextComputation& c, const TextComputation& first);
};

}  // namespace hlo
