// Layouts taken out of a module, for executors whose arrays lie row by row.
#pragma once
#include <utility>
#include <vector>

#include "ir/module.h"

namespace hlo {

// Every shape gets its default layout. What reads bytes in the order of another one becomes
//   %b = bitcast(%a)   ==>   %t = transpose(%a), %c = bitcast(%t), %b = transpose(%c)
// Which was which, the new one second. Throws Failure(kUnsupported) for bitcasts of tiled layouts.
std::vector<std::pair<InstId, InstId>> make_row_major(Module& m);

}  // namespace hlo
