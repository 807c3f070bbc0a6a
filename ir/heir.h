// What an instruction lives on as, from one stage to the next.
#pragma once
#include <cstdint>

#include "ir/base/ids.h"

namespace hlo {

enum class HeirKind : uint8_t {
  kReplaced,  // its users read the other one now
  kCloned,    // a copy: into a fusion, out of a call, of a computation
  kDerived,   // made of it
};

struct Heir {
  InstId from, to;
  HeirKind kind = HeirKind::kReplaced;
};

}  // namespace hlo
