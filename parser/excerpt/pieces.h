// A text cut into pieces for tolerant reading (parser/excerpt/excerpt.h): what each line seems to be, whether or not
// the grammar would take it. No piece is judged here, and none is left out.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

// One operand as it is written. `name` is empty where it is no plain name (an operation in place of an operand).
struct WrittenOperand {
  std::string_view shape, name;
};

struct Piece {
  enum Kind {
    kHeader,       // `HloModule …`
    kTable,        // FileNames … with its rows
    kOpen,         // `[ENTRY] %name (…) -> shape {`
    kInstruction,  // `[ROOT] %name = …`, over as many lines as its brackets take
    kClose,        // `}` of a computation
    kGap,          // `...`, `<elided>`: what somebody or something left out
    kOther,        // no HLO
  };
  Kind kind = kOther;
  std::string_view text;  // of the whole text
  size_t line = 1;        // of the text, counted from 1
  // Of kOpen and kInstruction:
  std::string_view name;
  bool entry = false, root = false;
  bool cut = false;  // a bracket or a string is still open where the piece ends
  // Of kOpen: what stands in parentheses, and behind `->`.
  std::vector<WrittenOperand> parameters;
  std::string_view result;
  // Of kInstruction; empty where it is not written, or cannot be told.
  std::string_view shape, opcode, attributes;
  std::string_view inside;  // what stands in the parentheses
  std::vector<WrittenOperand> operands;
  bool plain_operands = true;  // each one has a name
};

// In the order of the text. White space and comments are no pieces.
std::vector<Piece> pieces_of(std::string_view text);

// Does a line seem to be HLO: a header, an instruction, a computation's begin or end, a gap? (`text`: one line.)
bool seems_hlo(std::string_view line);
// Does it stand for lines that were left out?
bool is_gap(std::string_view line);

// `a, f32[2]{1,0} %b, (s32[], f32[]) c` and `a: f32[2], b: s32[]`, by their commas.
std::vector<WrittenOperand> written_operands(std::string_view list, bool* plain = nullptr);
// The parts between commas that stand in no bracket and no string.
std::vector<std::string_view> parts_between_commas(std::string_view list);
// Behind `key=` among attributes: `{…}` whole, or up to the comma; empty where it is not there.
std::string_view attribute_in(std::string_view attributes, std::string_view key);
std::string_view trimmed(std::string_view text);

}  // namespace hlo
