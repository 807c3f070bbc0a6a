#pragma once
#include "hlo/export.h"

namespace hlo::HLO_INLINE_API api {

// `0.1.0`
HLO_EXPORT const char* version();

}  // namespace hlo::HLO_INLINE_APIapi
