// HLO text to module. Accepts what XLA's own parser accepts (xla/hlo/parser/hlo_parser.cc), from 2018 to today.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "ir/module.h"
#include "ir/sharding/sharding.h"

namespace hlo {

struct ParseOptions {
  std::string file = "<text>";  // for messages
  int max_errors = 20;
  bool permissive = false;   // unknown attributes and header fields are kept verbatim in place of errors
  bool text_behind = false;  // what stands behind the last computation is not read
  size_t first_line = 0;     // lines of the file in front of this text, for messages
  const std::vector<LitId>* literals = nullptr;  // what `constant(#3)` stands for, in texts made from protos
};

// All errors of one text, as data.
class SyntaxFailure : public Failure {
 public:
  struct Entry {
    size_t line, column;
    std::string message, hint;
  };
  SyntaxFailure(const std::string& text, std::vector<Entry> entries)
      : Failure(FailureKind::kSyntax, text), entries_(std::move(entries)) {}
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Throws SyntaxFailure (a Failure of kSyntax) whose text holds every diagnostic, rendered. The text need not outlive
// the call.
std::unique_ptr<Module> parse_module(std::string_view text, std::shared_ptr<Universe> universe,
                                     const ParseOptions& options = {});

// One shape, e.g. `f32[2,3]{1,0}`; and one literal of that shape. Throw as above.
ShapeId parse_shape(std::string_view text, Universe& universe);
LitId parse_literal(std::string_view text, ShapeId shape, Universe& universe, const ParseOptions& options = {});

// `{devices=[2,2]<=[4]}` and the other forms.
Sharding parse_sharding(std::string_view text);

// `{op_name="a"}`, or a list of such in braces.
std::vector<Metadata> parse_metadata_list(std::string_view text, Universe& universe);

// Bodies of quoted strings: C escapes decoded (absl::CUnescape) and written (absl::CEscape).
bool c_unescape(std::string_view text, std::string* out);

// Non-HLO inputs that users hand in: says what the text looks like ("StableHLO", …) or nothing.
std::string_view recognise_foreign(std::string_view text);

}  // namespace hlo
