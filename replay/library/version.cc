#include "hlo/version.h"

namespace hlo::api {

const char* version() { return HLO_VERSION; }

}  // namespace hlo::api
