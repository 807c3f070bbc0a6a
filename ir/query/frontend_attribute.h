// Frontend attributes by name: `frontend_attributes={_xla_stream_annotation="1"}`.
#pragma once
#include <string_view>

#include "ir/module.h"

namespace hlo {

// The value without its quotes; empty where the instruction has no attribute of that name.
std::string_view frontend_attribute(const Module& m, InstId i, std::string_view name);

}  // namespace hlo
