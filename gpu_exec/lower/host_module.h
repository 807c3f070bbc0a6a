// A module made ready for the host: arrays row by row, what follows a convolution in its library call.
#pragma once
#include <utility>
#include <vector>

#include "ir/module.h"

namespace hlo {

class Device;
class PassContext;

// Every shape gets its default layout. What reads bytes in the order of another one becomes
//   %b = bitcast(%a)   ==>   %t = transpose(%a), %c = bitcast(%t), %b = transpose(%c)
// Which was which, the new one second. Throws Failure(kUnsupported) for bitcasts of tiled layouts that move elements.
std::vector<std::pair<InstId, InstId>> make_row_major(Module& m);

// Convolutions that the device has a library for become its calls,
//   %c = convolution(x, w)      →      %c = get-tuple-element(custom-call(x, w)), index=0
// with bias, sum and relu behind them in the call (pass cudnn-fused-convolution-rewriter, run in `context`).
void call_convolutions(Device& device, Module& m, PassContext& context);

}  // namespace hlo
