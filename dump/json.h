// Modules as JSON, version 1. The schema is in docs/json.md.
#pragma once
#include <string>

#include "ir/module.h"

namespace hlo {
std::string module_json(const Module& m, bool large_literals = true);
}
