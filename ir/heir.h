// What became of an instruction: the one that its users read now, its copy, or what was made of it. A Module logs them
// while it is changed, so that the history of stages needs no guess.
#pragma once
#include <cstdint>

#include "ir/base/ids.h"

namespace hlo {

enum class HeirKind : uint8_t {
  kReplaced,  // the users of `from` read `to` now
  kCloned,    // `to` is a copy: into a fusion, out of a call, of a flattened computation
  kDerived,   // `to` was made of `from` and has its metadata
};

struct Heir {
  InstId from, to;
  HeirKind kind = HeirKind::kReplaced;
  bool operator==(const Heir&) const = default;
};
static_assert(sizeof(Heir) == 12);

}  // namespace hlo
