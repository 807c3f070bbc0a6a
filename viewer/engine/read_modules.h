// Modules in bytes that lie in no folder.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// Each in a universe of its own. `label`: for messages, its ending tells protos as text. Throws Failure. The program
// reads all that the command line reads (read_modules.cc); the page's engine texts and JSON, and refuses protos
// (read_texts.cc).
std::vector<std::unique_ptr<Module>> read_modules(const std::string& label, std::string bytes);

}  // namespace hlo
