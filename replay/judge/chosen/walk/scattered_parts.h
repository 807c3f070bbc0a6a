// A scatter into each device's part of an array, and that into the whole array.
#pragma once
#include <vector>

#include "replay/judge/chosen/elements/messages.h"

namespace hlo {

// Do both scatter as many updates, by indices of the same meaning and by the same computation, the first one into that
// part of what the second one scatters into, divided where windows have one element? `starts`: by device, where its
// part begins in each dimension.
bool scatters_alike(const Expr& local, const Expr& whole, const DeviceMessage& part, std::vector<Dims>* starts);

}  // namespace hlo
