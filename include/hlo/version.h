#pragma once
#include "hlo/export.h"

HLO_API_BEGIN

// `0.1.0`
HLO_EXPORT const char* version();

HLO_API_END
