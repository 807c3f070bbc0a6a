// HLO text to module. Accepts what XLA's own parser accepts (xla/hlo/parser/hlo_parser.cc), from 2018 to today.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "ir/module.h"
#include "ir/sharding.h"

namespace hlo {

struct ParseOptions {
  std::string file = "<text>";  // for messages
  int max_errors = 20;
};

// Throws Failure(kSyntax) whose text holds every diagnostic, rendered. The text need not outlive the call.
std::unique_ptr<Module> parse_module(std::string_view text, std::shared_ptr<Universe> universe,
                                     const ParseOptions& options = {});

// One shape, e.g. `f32[2,3]{1,0}`; and one literal of that shape. Throw as above.
ShapeId parse_shape(std::string_view text, Universe& universe);
LitId parse_literal(std::string_view text, ShapeId shape, Universe& universe);

// `{devices=[2,2]<=[4]}` and the other forms.
Sharding parse_sharding(std::string_view text);

// Bodies of quoted strings: C escapes decoded (absl::CUnescape) and written (absl::CEscape).
bool c_unescape(std::string_view text, std::string* out);

// Non-HLO inputs that users hand in: says what the text looks like ("StableHLO", …) or nothing.
std::string_view recognise_foreign(std::string_view text);

}  // namespace hlo
