#pragma once
#include "hlo/export.h"

namespace hlo {
HLO_INLINE_API namespace api {
  // `0.1.0`
  HLO_EXPORT const char* version();

}  // namespace api
}  // namespace hlo
