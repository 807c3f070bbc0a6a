// The streams beside the main one on which a GPU's runtime runs what is started and waited for
// (xla/service/gpu/execution_stream_assignment.cc).
#pragma once
#include <string>
#include <unordered_map>

#include "ir/module.h"

namespace hlo {

// `computation_stream[N]` or `communication_stream[N]` of each async-start, copy-start, collective's start, send and
// recv that the entry computation, its loops, branches and calls reach: in turn over four streams for computations; one
// for communication, as it is without XLA's flags for several. `_xla_stream_annotation` names one.
std::unordered_map<InstId, std::string> execution_streams(const Module& m);

}  // namespace hlo
