// The form that layout-assignment had for the pipeline of 2019.
#pragma once
#include "passes/pass.h"

namespace hlo {

bool assign_layouts_2019(Module& m, PassContext& ctx);

}  // namespace hlo
