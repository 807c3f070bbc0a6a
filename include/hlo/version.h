#pragma once
#include "hlo/export.h"

namespace hlo::api {

// `0.1.0`
HLO_EXPORT const char* version();

}  // namespace hlo::api
