// What a module loses on its way into an installed XLA. jaxlib's clients take StableHLO alone, and HLO -> StableHLO ->
// HLO does not give everything back: what XLA then compiles is another module, and whoever asks about a layout or a
// bitcast must know.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct RoundTrip {
  bool same = false;                  // the same structure, layouts included: nothing was lost
  std::vector<std::string> lost;      // by name: "layouts of 3 instructions that are not row-major", "12 of 12 bitcast"
  std::vector<std::string> restated;  // what is there in another form: "reshape: 4, was 1"
};

// Both of one universe. `compiled`: the dump's before_optimizations.
RoundTrip round_trip(const Module& given, const Module& compiled);

}  // namespace hlo
