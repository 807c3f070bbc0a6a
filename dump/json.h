// Modules as JSON, version 2. The schema is in docs/formats.md.
#pragma once
#include <string>
#include <string_view>

#include "ir/module.h"

namespace hlo {

std::string module_json(const Module& m, bool large_literals = true);

// Does the text look like what module_json() writes?
bool looks_like_module_json(std::string_view text);

// Back again: HLO text that the parser reads, and the stack tables beside it. Throws Failure(kIo, kUnsupported).
std::string text_of_json(std::string_view json, const std::string& label, StackTables* stack);

}  // namespace hlo
