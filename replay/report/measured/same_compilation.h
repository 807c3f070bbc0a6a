// Whether a profile and a module are of one compilation, and which instructions its graphs' kernels are.
#pragma once
#include <string>
#include <vector>

#include "replay/report/measured/graph_spans.h"
#include "replay/report/measured/measured.h"

namespace hlo {

struct KernelsOfModule {
  std::string another_compilation;      // what disagrees; empty: nothing does
  std::vector<PlacedSpan> graph_spans;  // of the spans those of graphs, and
  std::vector<NodeMatch> matches;       // which instructions each may be of
};

// `spans`: all that are counted and say that module, which has been read. They disagree where the profile holds a
// module of that name and number with other instructions, where half of the names, or (of spans that say the module) a
// tenth of the time, is of instructions or compiled kernels that the module does not have, or runs another number of
// times than the module says.
KernelsOfModule kernels_of_module(const Timeline& t, const std::vector<PlacedSpan>& spans, const MeasuredModule& m);

}  // namespace hlo
