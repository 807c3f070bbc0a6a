// Spans of graphs (command buffers) to instructions: launches are told apart, and each graph is matched once.
#pragma once
#include <unordered_set>
#include <utility>
#include <vector>

#include "replay/record/files/timeline.h"
#include "replay/report/measured/launches.h"

namespace hlo {

struct PlacedSpan {
  size_t track = 0, span = 0;  // places in the timeline
};

// Whether a span is of a graph: it says so, or what it names is a command buffer.
bool of_graph(const Timeline& t, const Span& s);

// Of one module's graph spans, one match each in their order. `plain`: instructions that run outside of graphs.
std::vector<NodeMatch> match_spans(const Timeline& t, const std::vector<PlacedSpan>& spans,
                                   const ModuleLaunches& launches, const std::unordered_set<InstId>& plain);

}  // namespace hlo
