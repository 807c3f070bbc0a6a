// Modules as text, byte for byte as XLA prints them (xla/hlo/ir/hlo_instruction.cc, hlo_computation.cc, hlo_module.cc).
#pragma once
#include <string>

#include "ir/module.h"

namespace hlo {

struct PrintOptions {
  bool percent = true;     // `%` before names
  bool signatures = true;  // `(a: f32[]) -> f32[]` behind computation names
  bool metadata = true;
  bool operand_shapes = false;
  bool large_constants = false;  // arrays of more than 10 elements and tuples in full
  bool control = true;
  bool backend_config = true;
  bool result_shapes = true;
  bool index_comments = true;  // /*index=5*/ between operands
  bool canonical = false;      // names tmp_N, bodies in place
  bool fingerprint = false;
  // Canonical, of one instruction: names within the computations that it calls alone, not its own and its operands'.
  bool names_within = false;
  bool stack_tables = true;
  bool compact_gte = false;   // `%t#1` in place of get-tuple-elements that say nothing else
  bool dialect_2019 = false;  // header without fields of later years, typed operands, backend_config in quotes
  bool color = false;         // for a terminal
  // Computations in the order in which the text names them, in place of XLA's (order of creation of the instructions
  // that call them): texts of modules that passes have changed then read back to the same text.
  bool stable_order = false;
  // Nothing that reading back would change: async operations in full (`add-start` hides names), `-0.0` for XLA's `-0`.
  bool lossless = false;

  static PrintOptions Default() { return {}; }
  static PrintOptions Long();
  static PrintOptions Short();
  static PrintOptions Canonical();
  static PrintOptions Fingerprint();
  // default, long, short, canonical, fingerprint; false for another word.
  static bool by_name(std::string_view style, PrintOptions* out);
};

std::string print_module(const Module& m, const PrintOptions& options = {});
// With nothing left out: constants in full, instructions in the order that reading keeps.
std::string lossless_text(const Module& m);
// `HloModule name, …` and the blank line behind it.
std::string print_header(const Module& m, const PrintOptions& options = {});
std::string print_computation(const Module& m, CompId comp, const PrintOptions& options = {});
// One line, without indentation.
std::string print_instruction(const Module& m, InstId inst, const PrintOptions& options = {});
// `, key=value` of every attribute but metadata, with names of called computations.
std::string print_attributes(const Module& m, InstId inst, const PrintOptions& options = {});

std::string literal_text(const Universe& u, LitId lit, bool large, bool exact = false);
// Is the async operation printed in its short form? `inside` becomes the operation that it runs.
bool async_sugar(const Module& m, InstId id, Opcode* inside);
// `{op_name="a" source_line=3}`: every field that is set.
std::string metadata_text(const Universe& u, const Metadata& m);
std::string c_escape(std::string_view text);
// Would XLA's lexer take the text for one raw dictionary? Those are printed without quotes.
bool is_dict_text(std::string_view text);
// Index of the quote that ends the string opened at `open`, escapes passed over; npos where there is none.
size_t closing_quote(std::string_view text, size_t open);
// Index behind the brace that closes the one at or behind `start`, strings passed over; npos where there is none.
size_t dict_end(std::string_view text, size_t start);

// Computations in XLA's print order, and the instructions of one in print order.
std::vector<CompId> print_order(const Module& m, bool stable = false);
std::vector<InstId> print_order(const Module& m, CompId comp);

}  // namespace hlo
